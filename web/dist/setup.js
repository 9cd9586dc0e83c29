import{Ac as P,Cc as B,M as b,N as T,ac as O,bc as x,c as n,e as p,g,h as M,ic as u,lc as f,m as e,mc as U,oc as _,q as m,rc as q,sc as A,vc as R,wc as k,yc as y}from"./shared.js";var H="default",E=({origin:a})=>a!==H;function C({key:a}){let t=a.indexOf(".");return{section:a.slice(0,t),name:a.slice(t+1)}}function z(a,t,s){let i=t.toLocaleLowerCase().split(/\s+/).filter(o=>o!==""),l=new Map;for(let o of a){let r=[o.key,o.variable,o.value,o.description].join(" ").toLocaleLowerCase();if(s&&!E(o)||!i.every(c=>r.includes(c)))continue;let{section:d}=C(o);l.set(d,[...l.get(d)??[],o])}return[...l].map(([o,r])=>({section:o,settings:r}))}function D(a,t,s,i){let l=a.profile_models.filter(o=>o.backend===s.kind&&o.model===i.name).map(({profile_id:o})=>o);return t.filter(({id:o})=>l.includes(o)).map(({name:o})=>o)}function K(a,t){let s=a.profile_models.find(({profile_id:h})=>h===t.id);if(s?.backend===void 0)return[{key:"nobody",params:{}}];let{backend:i,model:l,fell_back_from:o,instead_of:r}=s,d=a.backends.find(({kind:h})=>h===i)?.models.find(({name:h})=>h===l),c=[];return o!==void 0&&c.push({key:"fell_back",params:{backend:o}}),r!==void 0&&c.push({key:"instead",params:{model:r}}),d?.tools===!1&&(t.enabled_tools??[]).length>0&&c.push({key:"tool_less",params:{}}),c}var J={fine:"✓",warning:"!",broken:"✗"};function G(a,t,s){let i=t.checks.map(({name:o,level:r,detail:d,remedy:c})=>`${J[r]} ${o}: ${d}${c===void 0?"":`
  → ${c}`}`),l=s.filter(E).map(({variable:o,value:r,origin:d})=>`${o}=${r??""} (${d})`);return[`Navi ${a}`,...i,"",...l].join(`
`).trimEnd()}var S=/^(\s*id\s*=\s*)(["'])(.*?)\2/m,V=a=>S.exec(a)?.[3]||"-",W=a=>a.replace(S,"$1$2$3_copy$2");var $=class{busy=!1;problem=null;constructor(t){this.host=t,t.addController(this)}hostConnected(){}async ask(t){this.busy=!0,this.problem=null,this.host.requestUpdate();try{await t()}catch(s){this.problem=O(s)}finally{this.busy=!1,this.host.requestUpdate()}}card(t){return this.problem===null?p:U(this.problem,n`<button type="button" class="button small" @click=${t}>${e("subagent.retry")}</button>`)}};var Q={fine:{icon:u.check,look:"allow"},warning:{icon:u.warning,look:"warn"},broken:{icon:u.cross,look:"deny"}},F=class extends _{static properties={_report:{state:!0}};constructor(){super(),this._report=null,this._settings=[],this._asking=new $(this)}firstUpdated(){this.#t()}render(){let t=this._report,{busy:s}=this._asking;return n`<p class="quiet">${f(e("setup.diagnostics.hint"))}</p>
      <div class="panel-tools">
        <button type="button" class="button small" data-testid="diagnostics-again" ?disabled=${s} @click=${()=>this.#t()}>${u.again}${e(s?"setup.diagnostics.looking":"setup.diagnostics.again")}</button>
        <button type="button" class="button small plain" data-testid="diagnostics-copy" ?disabled=${t===null} @click=${()=>{this.#e()}}>${u.copy}${e("setup.diagnostics.copy")}</button>
      </div>
      ${this._asking.card(()=>this.#t())}
      ${t===null?p:n`<ul class="rows" data-testid="diagnostics" data-level=${t.level}>${t.checks.map(X)}</ul>`}`}#t(){this._asking.ask(async()=>{let[t,{settings:s}]=await Promise.all([m.diagnostics(),m.settings()]);this._report=t,this._settings=s})}async#e(){if(this._report===null)return;let t=G(b.get()?.version??"",this._report,this._settings);await B(t)&&x(e("message.copied"))}};function X({name:a,level:t,detail:s,remedy:i}){let{icon:l,look:o}=Q[t];return n`<li class="row" data-testid="check" data-check=${a} data-level=${t}><span class="row-icon ${o}">${l}</span>
    <div class="row-text"><p class="row-title"><span class="off-screen">${e(`setup.level.${t}`)}</span> ${a}</p>
      <p class="row-note">${f(s)}</p>
      ${i===void 0||i===""?p:n`<p class="row-note"><span class="remedy">${f(k(i))}</span></p>`}</div></li>`}customElements.define("navi-setup-diagnostics",F);var I=class extends _{static properties={_name:{state:!0}};constructor(){super(),this._name="",this._asking=new $(this)}render(){let t=b.get();return t===null?n`<p class="quiet">${e("connection.connecting")}</p>`:n`${g(t.backends,({kind:s})=>s,s=>this.#t(t,s))}
      <h3>${e("setup.models.profiles")}</h3>
      <ul class="rows">${g(T.get(),({id:s})=>s,s=>Z(t,s))}</ul>`}#t(t,s){let{kind:i,address:l,state:o,version:r,down_since:d,models:c,default_model:h}=s;return n`<section data-testid="backend" data-kind=${i} data-state=${o}>
      <h3>${e(`setup.backend.${i}`)}</h3>
      <ul class="rows">
        <li class="row"><span class="row-icon ${o==="ready"?"allow":o==="down"?"deny":""}">${o==="ready"?u.check:o==="down"?u.cross:u.history}</span>
          <div class="row-text"><p class="row-title">${e(`setup.models.state.${o}`)}
              ${d===void 0?p:n`<span class="quiet">${e("setup.models.since",{at:R(d)})}</span>`}
              ${t.active===i?n`<span class="tag">${e("setup.models.active")}</span>`:p}</p>
            <p class="row-note"><span class="hash">${l}</span>${r===void 0?p:n` · ${r}`}</p>
            ${s.state==="down"?n`<p class="row-note warn">${f(k(s.problem))} <span class="remedy">${f(k(s.remedy))}</span></p>`:p}
            ${s.state==="loading"?n`<p class="row-note">${k(s.detail)}</p>`:p}</div></li>
        ${g(c,({name:w})=>w,w=>Y(w,w.name===h,D(t,T.get(),s,w)))}
      </ul>
      ${i==="ollama"?this.#e(t.pull??null,r!==void 0):p}</section>`}#e(t,s){return t!==null&&t.problem===void 0?this.#i(t):n`${t===null?p:this.#n(t)}
      ${this._asking.card(()=>this.#s(this._name))}
      <form class="panel-tools" @submit=${i=>{i.preventDefault(),this.#s(this._name)}}>
        <label class="search">${u.download}<input type="text" data-testid="pull-name" autocapitalize="off" autocomplete="off" spellcheck="false" maxlength="300"
          placeholder=${e("setup.pull.placeholder")} aria-label=${e("setup.pull.label")}
          .value=${this._name} @input=${i=>{this._name=i.target.value}}></label>
        <button class="button small" data-testid="pull" ?disabled=${!s||this._asking.busy||this._name.trim()===""}>${e("setup.pull.begin")}</button>
      </form>`}#i({name:t,received:s,total:i,step:l}){let o={model:t,received:q(s),total:q(i)};return n`<div class="pull" data-testid="pulling"><p>${i===0?e("setup.pull.begun",{model:t}):e("banner.fetching",o)}</p>
      <progress max=${Math.max(1,i)} value=${s} aria-label=${e("banner.progress")}></progress>
      <p class="pull-foot"><span class="quiet">${l}</span><button type="button" class="button small plain danger" data-testid="pull-stop" ?disabled=${this._asking.busy} @click=${()=>this.#o(t)}>${e("composer.stop")}</button></p></div>`}#n({name:t,problem:s=""}){return n`<section class="card error" role="alert" data-testid="pull-failed"><span class="card-icon">${u.warning}</span>
      <div class="card-text"><h2>${e("setup.pull.failed",{model:t})}</h2><p>${f(k(s))}</p>
        <div class="card-actions"><button type="button" class="button small" data-testid="pull-again" ?disabled=${this._asking.busy} @click=${()=>this.#s(t)}>${e("subagent.retry")}</button>
          <button type="button" class="button small plain" data-testid="pull-hide" ?disabled=${this._asking.busy} @click=${()=>this.#o(t)}>${e("banner.hide")}</button></div></div></section>`}#s(t){this._asking.ask(async()=>{await m.pullModel(t.trim()),this._name=""})}#o(t){this._asking.ask(()=>m.stopPull(t))}};function Y(a,t,s){let{name:i,bytes:l,context_window:o,demo:r}=a,d=[l===void 0?"":q(l),o===void 0?"":e("runs.option.window",{n:A(o)}),...["tools","vision","thinking"].filter(c=>a[c]===!0).map(c=>e(`setup.models.can.${c}`)),a.tools===!1?e("setup.models.can.no_tools"):""];return n`<li class="row" data-testid="model" data-model=${i}><span class="row-icon"></span><div class="row-text">
    <p class="row-title">${y(i)} ${t?n`<span class="tag">${e("setup.models.default")}</span>`:p} ${r?n`<span class="tag">${e("header.demo")}</span>`:p}</p>
    <p class="row-note">${d.filter(c=>c!=="").join(" · ")}</p>
    ${s.length===0?p:n`<p class="row-note">${e("setup.models.for",{names:s.join(", ")})}</p>`}</div></li>`}function Z(a,t){let s=a.profile_models.find(({profile_id:i})=>i===t.id)?.model;return n`<li class="row" data-testid="profile-model" data-profile=${t.id}><div class="row-text">
    <p class="row-title">${t.name}</p>
    ${s===void 0?p:n`<p class="row-note">${y(s)}</p>`}
    ${K(a,t).map(({key:i,params:l})=>n`<p class="row-note warn">${f(e(`setup.misfit.${i}`,l))}</p>`)}</div></li>`}customElements.define("navi-setup-models",I);var v=M(null),L=class extends _{static properties={_profiles:{state:!0},_files:{state:!0}};constructor(){super(),this._profiles=[],this._files=new Map,this._known=void 0,this._asking=new $(this)}updated(){this._known===b.get()||v.get()!==null||(this._known=b.get(),this._asking.ask(async()=>{this._profiles=await m.profiles();let t=this._profiles.map(({id:s})=>s).filter(s=>this._files.has(s));this._files=new Map(await Promise.all(t.map(async s=>[s,await m.profileFile(s)])))}))}render(){b.get();let t=v.get();return t!==null?this.#e(t):n`<p class="quiet">${e("setup.profiles.hint")}</p>${this._asking.card(()=>this.#i())}
      <ul class="rows">${g(this._profiles,({id:s})=>s,s=>this.#t(s))}</ul>`}#t({id:t,name:s,description:i,model:l,llm_backend:o,temperature:r,enabled_tools:d=[],system_prompt:c=""}){let h=this._files.get(t);return n`<li class="row" data-testid="profile" data-profile=${t}><span class="row-icon">${u.agent}</span><div class="row-text">
        <p class="row-title">${s} <code>${t}</code></p><p class="row-note">${i}</p>
        <details class="sent-tools" @toggle=${()=>this.#n(t)}><summary>${e("setup.profiles.look")}</summary>
          <dl class="run-facts">
            <div><dt>${e("setup.profiles.from")}</dt><dd>${h===void 0?"…":h.built_in?e("setup.origin.default"):n`<span class="hash">${h.file}</span>`}</dd></div>
            <div><dt>${e("header.model")}</dt><dd>${[o,l].filter(w=>w!=null).join(" · ")||e("setup.models.default")}</dd></div>
            <div><dt>${e("setup.profiles.temperature")}</dt><dd>${r}</dd></div>
            <div class="whole"><dt>${e("setup.profiles.tools")}</dt><dd>${d.join(", ")||e("setup.models.can.no_tools")}</dd></div>
          </dl>
          <pre class="profile-prompt" tabindex="0" dir="auto">${c}</pre></details>
        <p class="row-actions"><button type="button" class="button small plain" data-testid="profile-edit" aria-label="${e("setup.profiles.edit")}: ${s}" @click=${()=>this.#s(t,!1)}>${u.pencil}${e("setup.profiles.edit")}</button>
          <button type="button" class="button small plain" data-testid="profile-copy" aria-label="${e("setup.profiles.copy")}: ${s}" @click=${()=>this.#s(t,!0)}>${u.copy}${e("setup.profiles.copy")}</button></p></div></li>`}#e({profile:t,text:s,is_copy:i}){let{file:l,built_in:o}=t;return n`<form class="profile-editor" @submit=${r=>{r.preventDefault(),this.#o()}}>
      <p class="quiet">${f(i?e("setup.profiles.copy_hint"):e(o?"setup.profiles.replace_hint":"setup.profiles.edit_hint",{file:l}))}</p>
      <textarea data-testid="profile-text" spellcheck="false" autocapitalize="off" aria-label=${e("setup.profiles.text")} .value=${s}
        @input=${r=>v.set({profile:t,is_copy:i,text:r.target.value})}></textarea>
      ${this._asking.card(()=>this.#o())}
      <p class="row-actions"><button class="button small" data-testid="profile-save" ?disabled=${this._asking.busy}>${e("queue.save")}</button>
        <button type="button" class="button small plain" data-testid="profile-cancel" @click=${()=>this.#i()}>${e("queue.cancel")}</button></p></form>`}#i(){v.set(null),this._known=void 0,this._asking.problem=null,this.requestUpdate()}#n(t){this._files.has(t)||this._asking.ask(async()=>{this._files=new Map([...this._files,[t,await m.profileFile(t)]])})}#s(t,s){this._asking.ask(async()=>{let i=await m.profileFile(t);v.set({profile:i,is_copy:s,text:s?W(i.text):i.text})})}#o(){this._asking.ask(async()=>{let t=v.get();if(t===null)return;let{profile:s,text:i,is_copy:l}=t;await m.writeProfileFile(V(l?i:s.text),i,l||s.built_in?null:s.text),x(e("setup.profiles.saved")),this.#i()})}};customElements.define("navi-setup-profiles",L);var tt=["default","environment","command line"],N=class extends _{static properties={_list:{state:!0},_query:{state:!0},_only_set:{state:!0}};constructor(){super(),this._list=null,this._query="",this._only_set=!1,this._asking=new $(this)}firstUpdated(){this.#t()}render(){let t=this._list,s=t===null?[]:z(t.settings,this._query,this._only_set);return n`${this._asking.card(()=>this.#t())}
      ${t===null?p:n`<p class="quiet">${f(e("setup.settings.hint",{file:t.file}))}</p>
      <div class="panel-tools">
        <label class="search">${u.search}<input type="search" data-testid="settings-filter" placeholder=${e("setup.settings.filter")} aria-label=${e("setup.settings.filter")}
          .value=${this._query} @input=${i=>{this._query=i.target.value}}></label>
        <label class="check-label"><input type="checkbox" data-testid="settings-only-set" .checked=${this._only_set}
          @change=${i=>{this._only_set=i.target.checked}}>${e("setup.settings.only_set")}</label>
      </div>
      ${s.length>0?p:n`<p class="quiet panel-empty" role="status" data-testid="settings-empty">${e("setup.settings.nothing")}</p>`}
      ${g(s,({section:i})=>i,({section:i,settings:l})=>n`<h3><code>[${i}]</code></h3>
        <ul class="rows">${g(l,({key:o})=>o,st)}</ul>`)}`}`}#t(){this._asking.ask(async()=>{this._list=await m.settings()})}};function st(a){let{key:t,variable:s,description:i,secret:l,value:o,origin:r}=a,d=tt.includes(r);return n`<li class="row" data-testid="setting" data-key=${t} data-origin=${d?r:"file"}><div class="row-text">
    <p class="row-title setting-head"><code>${C(a).name}</code>
      ${o===null?n`<span class="quiet">${e("setup.settings.unset")}</span>`:l?n`<span class="quiet">${e("setup.settings.hidden")}</span>`:n`<code class="setting-value">${y(o)}</code>`}</p>
    <p class="row-note">${f(i)}</p>
    <p class="row-note"><code>${s}</code>${o===null?p:n` · <span class=${E(a)?"tag":""}>${d?e(`setup.origin.${r.replace(" ","_")}`):e("setup.origin.file",{file:r})}</span>`}</p></div></li>`}customElements.define("navi-setup-settings",N);var et=["settings","models","profiles","diagnostics"],it={settings:()=>n`<navi-setup-settings></navi-setup-settings>`,models:()=>n`<navi-setup-models></navi-setup-models>`,profiles:()=>n`<navi-setup-profiles></navi-setup-profiles>`,diagnostics:()=>n`<navi-setup-diagnostics></navi-setup-diagnostics>`},j=class extends P{static properties={_tab:{state:!0}};constructor(){super(),this._tab="settings"}render(){return this.frame("setup",e("setup.open"),this.tabs(e("setup.open"),et,this._tab,{title:t=>e(`setup.tab.${t}`),show:t=>{this._tab=t},content:it[this._tab]()}))}};customElements.define("navi-setup",j);export{j as NaviSetup};
