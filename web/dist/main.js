import{$ as es,$a as B,$b as zs,A as et,Aa as zt,Ab as Us,B as C,Ba as ps,Bb as d,C as st,Ca as us,Cb as q,D as Rt,Da as ms,Db as Hs,E as M,Ea as hs,Eb as j,F as T,Fa as X,Fb as O,G as g,Ga as fs,Gb as Bs,H as k,Ha as gs,Hb as u,I as x,Ia as Xt,Ib as wt,J as v,Ja as ft,Jb as w,K as Xe,Ka as D,Kb as S,L as Ut,La as gt,Lb as A,M as Ye,Ma as $t,Mb as xt,N as Ve,Na as H,O as Qe,Oa as $s,Ob as I,P as nt,Pa as bs,Pb as E,Q as Ht,Qa as vs,Qb as W,R as Bt,Ra as ks,Rb as Fs,S as R,Sa as Yt,Sb as js,T as it,Ta as _s,Tb as Et,U as N,Ua as ys,V as Je,Vb as Ws,W as at,Wa as ws,Wb as qt,X as Ze,Xa as Y,Xb as St,Y as ot,Ya as xs,Yb as Gs,Z as ts,Za as Es,Zb as Ct,_ as rt,_a as qs,_b as Mt,a,aa as Ft,ab as Ss,ac as Xs,b as Pe,ba as ss,bb as Cs,bc as Ys,c as r,ca as ns,cb as Ms,cc as Vs,d as Pt,db as Ts,dc as Qs,e as f,eb as Ds,ec as Js,fb as Os,fc as Zs,g as Ke,ga as lt,gb as As,gc as Tt,h as J,ha as jt,hb as Is,i as Re,ia as z,ib as Ls,ic as Jt,j as Kt,ja as is,jb as Ns,jc as tn,k as s,ka as as,kb as bt,kc as en,la as Wt,lb as V,lc as sn,ma as os,mb as F,na as rs,nb as Ps,o as Z,oa as y,ob as Ks,oc as Zt,p as P,pa as ls,pb as vt,pc as nn,q as tt,qa as ds,qc as an,r as Ue,ra as dt,rb as kt,rc as Dt,s as He,sa as ct,sb as _t,t as Be,ta as Gt,tb as Vt,u as Fe,ua as cs,ub as Rs,v as je,va as pt,vb as yt,w as K,wa as U,wb as Q,x as We,xa as ut,xb as Qt,y as Ge,ya as mt,yb as $,z as ze,za as ht}from"./shared.js";var te=class extends u{render(){let t=R.get().filter(H);if(t.length===0)return Et("line");let[e]=t;return a`<div class="asks" data-testid="asks" data-count=${t.length}>${d.shield}
      <span class="asks-text">${t.length===1?Ws(s("approval.one",{summary:e.request.summary})):s("approval.many",{n:t.length})}</span>
      <button type="button" class="button small plain" data-testid="asks-show" @click=${()=>yn(e.approval_id)}>${s("approval.show")}</button></div>`}};function yn(n){document.querySelector(`.approval[data-approval-id="${CSS.escape(n)}"]`)?.closest("navi-approval")?.focusCard()}customElements.define("navi-asks",te);var ee=class extends u{static properties={_hidden:{state:!0}};constructor(){super(),this._hidden=[]}willUpdate(){let t=M.get()?.warnings??[];this._hidden.some(e=>e!=="demo"&&!t.includes(e))&&(this._hidden=this._hidden.filter(e=>e==="demo"||t.includes(e)))}render(){let t=M.get();return a`${wn()}${xn()}${t===null?r:a`${this.#t(t)}${this.#e(t)}`}`}#t(t){let e=Fe(t),i=e===null?Be(t):null,o=je(t);if(o!==null)return a`<section class="banner trouble" role="status" data-testid="banner" data-kind="no-model">
      ${d.warning}<div class="banner-text">
        <strong>${s("banner.no_model.title")}</strong>
        ${o.loading!==null?a`<p>${s("banner.loading",{detail:o.loading})}</p>`:r}
        ${o.problems.length===0&&o.loading===null&&e===null?a`<p>${s("banner.looking")}</p>`:r}
        ${o.problems.map(p=>a`<p>${j(W(p.problem))} <span class="remedy">${j(W(p.remedy))}</span></p>`)}
        ${e===null?r:on(e)}
        ${rn(i)}
      </div></section>`;if(e!==null)return a`<section class="banner" role="status" data-testid="banner" data-kind="fetching">${d.download}<div class="banner-text">${on(e)}</div></section>`;let l=tt(t);return!(l?.models.find(p=>p.name===l.default_model)?.demo===!0)||this._hidden.includes("demo")?r:a`<section class="banner" data-testid="banner" data-kind="demo"><div class="banner-text"><p>${s("banner.demo")}</p>${rn(i)}</div>${this.#s("demo")}</section>`}#e(t){return t.warnings.filter(i=>!this._hidden.includes(i)).map(i=>a`<section class="banner trouble" role="status" data-testid="banner" data-kind="warning">
      ${d.warning}<div class="banner-text"><p>${j(W(i))}</p></div>${this.#s(i)}</section>`)}#s(t){return a`<button type="button" class="icon-button" aria-label=${s("banner.hide")} title=${s("banner.hide")}
      @click=${()=>{this._hidden=[...this._hidden,t]}}>${d.close}</button>`}};function wn(){return ss.get()?a`<section class="banner" role="status" data-testid="banner" data-kind="outdated">
    ${d.again}<div class="banner-text"><p>${s("banner.outdated")}</p>
      <p class="banner-actions"><button type="button" class="button small" data-testid="reload" @click=${()=>location.reload()}>${s("banner.reload")}</button></p></div></section>`:r}function xn(){return cs()?a`<section class="banner trouble" role="status" data-testid="banner" data-kind="unkept">
    ${d.warning}<div class="banner-text"><p>${s(`banner.unkept.${is.get()}`)}</p></div></section>`:r}function on(n){let t={model:n.model,received:A(n.received),total:A(n.total)};return a`<p>${s("banner.fetching",t)}</p>
    <progress max=${Math.max(1,n.total)} value=${n.received} aria-label=${s("banner.progress")} data-testid="fetch-progress"></progress>`}function rn(n){if(n===null)return r;let t=ds.get()===n.name;return a`<p class="banner-actions"><button type="button" class="button small" data-testid="fetch-model" ?disabled=${t}
      @click=${()=>{Rs(n.name)}}>${d.download}${t?s("banner.starting"):s("banner.fetch",{title:n.title,size:A(n.size)})}</button>
    <span class="quiet">${s("banner.fetch_hint",{memory:A(n.memory)})}</span></p>`}customElements.define("navi-banner",ee);var ne=256*1024,se={queue:"composer.queue",steer:"composer.steer"};function ln(n){return n.length*3<=ne?0:Math.max(0,new TextEncoder().encode(n).length-ne)}var ie=class extends u{static properties={_problem:{state:!0},_dragging:{state:!0},_mode:{state:!0}};constructor(){super(),this._problem="",this._dragging=!1,this._mode="queue",this._for=void 0,this._ondrag=t=>this.#r(t),this._ondrop=t=>this.#l(t),this._onleave=t=>{t.relatedTarget===null&&(this._dragging=!1)}}connectedCallback(){super.connectedCallback(),addEventListener("dragover",this._ondrag),addEventListener("dragleave",this._onleave),addEventListener("drop",this._ondrop)}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("dragover",this._ondrag),removeEventListener("dragleave",this._onleave),removeEventListener("drop",this._ondrop)}willUpdate(){let t=g.get();v.get()||(this._mode="queue"),t!==this._for&&(this._for=t,this._problem="")}updated(){let t=this.querySelector("textarea");t===null||CSS.supports("field-sizing","content")||(t.style.height="auto",t.style.height=`${t.scrollHeight}px`)}get#t(){return g.get()??lt}focusInput(){this.querySelector("textarea")?.focus({preventScroll:!0})}setText(t){Xt(this.#t,t),this.focusInput()}render(){let t=g.get(),e=v.get(),i=t!==null&&(it.get()!==null||!x.get()),o=ft(this.#t),l=X(this.#t),c=ln(o),p=c>0?s("composer.too_long",{over:A(c),max:A(ne)}):this._problem||this.#s(l),m=e?se[this._mode]:"composer.send",b=!i&&!rt.get()&&c===0&&o.trim()!=="";return a`<form class="composer ${this._dragging?"dragging":""}" @submit=${h=>{h.preventDefault(),this.#a(this._mode)}} data-drop=${s("composer.drop")}>
      ${En(l)}
      ${Mt(l)}
      <textarea id="composer" data-testid="composer" rows="1" dir="auto" aria-label=${s("composer.label")} aria-describedby="composer-hint"
        placeholder=${s(e?`composer.placeholder.${this._mode}`:"composer.placeholder")} enterkeyhint=${dn()?"enter":"send"}
        .value=${Pt(o)} @input=${h=>this.#n(h)}
        @keydown=${h=>this.#i(h)}
        @paste=${h=>this.#d(h)}></textarea>
      <div class="composer-row">
        <input type="file" id="composer-file" class="off-screen" multiple tabindex="-1" aria-hidden="true"
          data-testid="file-input" @change=${h=>this.#p(h)}>
        <button type="button" class="icon-button" title=${s("composer.attach")} aria-label=${s("composer.attach")} data-testid="attach"
          @click=${()=>this.querySelector("#composer-file")?.click()}>${d.clip}</button>
        <span id="composer-hint" class="composer-hint ${p===""?"":"problem"}" role=${p===""?r:"status"}
          >${p||(e?s("composer.hint_running",{key:S}):s("composer.hint"))}</span>
        ${e?this.#e():r}
        ${e?a`<button type="button" class="round stop" data-testid="stop" ?disabled=${ot.get()} @click=${B}
          title=${`${s(ot.get()?"composer.stopping":"composer.stop")} (Esc)`} aria-label=${s(ot.get()?"composer.stopping":"composer.stop")}>${d.stop}</button>`:r}
        ${e&&o.trim()===""?r:a`<button type="submit" class="round send" data-testid="send" ?disabled=${!b}
          title=${s(m)} aria-label=${s(m)}>${d.send}</button>`}
      </div>
    </form>`}#e(){return a`<fieldset class="segments modes"><legend class="off-screen">${s("composer.mode")}</legend>${["queue","steer"].map(t=>a`<label title=${s(se[t])}><input type="radio" name="send-mode" class="cover"
        data-testid=${`mode-${t}`} value=${t} .checked=${Pt(this._mode===t)} aria-label=${s(se[t])}
        @change=${()=>{this._mode=t}}><span>${s(`composer.mode.${t}`)}</span></label>`)}</fieldset>`}#s(t){if(!t.some(({picture:i})=>i))return"";let{model:e}=qt();return e?.vision===!1?s("composer.no_vision",{model:e.name}):""}#n(t){Xt(this.#t,t.target.value),this._problem=""}#i(t){w(t)||t.shiftKey||(t.key==="ArrowUp"&&ft(this.#t)===""&&this.#o(t),!(t.key!=="Enter"||dn()&&!t.ctrlKey&&!t.metaKey)&&(t.preventDefault(),this.#a(t.ctrlKey||t.metaKey?"steer":this._mode)))}#o(t){let e=k.get()?.entries.findLast(i=>i.kind==="user");e?.kind!=="user"||v.get()||(t.preventDefault(),gt(e.id,e.content))}#a(t){let e=g.get(),i=ft(this.#t);if(!(i.trim()===""||ln(i)>0)){if(X(this.#t).some(({state:o})=>o==="failed")){this._problem=s("composer.upload_failed");return}e===null?Ps():x.get()&&xs(e,v.get()?t:"queue")}}#r(t){t.dataTransfer?.types.includes("Files")&&(t.preventDefault(),this._dragging=!0)}#l(t){let e=[...t.dataTransfer?.files??[]];this._dragging=!1,e.length!==0&&(t.preventDefault(),this.closest("[inert]")===null&&this.#c(e))}#d(t){let e=[...t.clipboardData?.files??[]],i=t.clipboardData?.getData("text/plain")??"";e.length===0||i!==""&&!e.every(({name:o})=>i.includes(o))||(t.preventDefault(),this.#c(e))}#p(t){let e=t.target;this.#c([...e.files??[]]),e.value=""}#c(t){this._problem=fs(this.#t,t)?"":s("composer.file_count",{n:hs})}},dn=()=>matchMedia("(hover: none) and (pointer: coarse)").matches;function En(n){let t=n.filter(({image:e})=>e!==null);return t.length===0?r:a`<ul class="previews">${f(t,({id:e})=>e,({id:e,image:i},o)=>a`<li data-testid="preview">
    <img src=${Gs(i)} alt=${s("conversation.image",{n:o+1})}>
    <button type="button" class="icon-button" aria-label=${s("composer.remove_image",{n:o+1})} @click=${()=>gs(e)}>${d.close}</button></li>`)}</ul>`}customElements.define("navi-composer",ie);function cn(n){let t=new Map,e="",i="",o=()=>{e!==""&&i!==""&&t.set(i,e),i=""};for(let l of n)l.kind==="user"&&!l.steered?(o(),e=l.id):l.kind==="assistant"&&!l.is_plan&&(i=l.id);return o(),t}function pn(n,t,e=0){if(n===null)return-1;if(n.before!==null){let i=t.findIndex(o=>Ot(o,n.before));if(i>=0||e>0)return i}return t.findIndex(i=>i.id===n.after)+1}function Ot(n,t){return n.id===t||n.kind==="assistant"&&n.calls.some(e=>e.result_id===t)}function un(n,t){return n.find(e=>e.branch_ids.length>1&&Ot(t,e.message_id))??null}function mn(n,t){if(n[t].kind!=="assistant")return!1;for(let e=t-1;e>=0;e-=1){let{kind:i}=n[e];if(i==="user"||i==="assistant")return i==="user"}return!0}var At=n=>f(Y(n),t=>t.client_id,qn);function qn(n){let{client_id:t,refused:e,held:i}=n,o=X(t),l=o.some(({state:m})=>m==="failed"),c=[...n.images,...o.flatMap(({image:m})=>m??[])],p=e!==null?s(`error.${P(e.code)}.title`):s(i?"message.unsent":l?"composer.upload_failed":"message.sending");return a`<article class="message user pending ${e===null&&!l?"":"refused"}" data-testid="pending-message" data-client-id=${t}>
    ${c.length===0?r:Ct(c,m=>s("conversation.image",{n:m}))}
    ${n.files.length===0?r:a`<ul class="file-row">${n.files.map(({name:m})=>a`<li><span class="file-chip">${d.file}<span class="file-name" dir="auto">${m}</span></span></li>`)}</ul>`}
    ${Mt(o)}
    <div class="bubble" dir="auto">${n.content}</div>
    <div class="message-foot pending-foot"><span>${p}${e!==null&&e.message!==""?`: ${e.message}`:""}</span>
      ${e===null&&!i&&!l?r:a`
        <button type="button" class="link-button" @click=${()=>Es(t)}>${s("message.resend")}</button>
        <button type="button" class="link-button" @click=${()=>qs(t)}>${s("message.discard")}</button>`}
    </div>
  </article>`}var Sn=3e3,ae=class extends u{static properties={session:{attribute:!1}};constructor(){super(),this.session=null,this._clock=new wt(this),this._since=Date.now(),this._waiting_for=""}willUpdate(){let t=this.session.waiting?.reason??"";t!==this._waiting_for&&(this._waiting_for=t,this._since=this._clock.now=Date.now())}render(){let{waiting:t}=this.session,e=s(t===null?"waiting.thinking_of":`waiting.${t.reason}`),i=this._clock.now-this._since;return a`<p class="status-line" data-testid="status-line" data-reason=${t?.reason??"starting"}>
      <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>
      <span>${e}${t===null||t.detail===""?r:a`<span class="status-detail"> · ${t.detail}</span>`}</span>
      ${i>Sn?a`<span class="status-time">${I(Math.floor(i/1e3)*1e3)}</span>`:r}
    </p>`}};customElements.define("navi-status-line",ae);function hn(n){if(n.run===null||n.approvals.some(H))return!1;if(n.waiting!==null)return!0;let t=n.entries[n.entries.length-1];return t===void 0||t.kind!=="assistant"?!0:!t.thinking_open&&!(t.open&&t.content!=="")&&!t.calls.some(e=>e.state==="running")}function fn(n){let t=T.get().find(({id:e})=>e===n.profile_id)?.name||n.profile_name||n.profile_id;return a`<p class="divider" role="separator" aria-label=${s("divider.profile",{name:t})} data-testid="profile-divider" data-profile=${n.profile_id}>
    <span>${s("divider.profile",{name:t})}</span></p>`}var oe=class extends u{static properties={mark:{attribute:!1},_open:{state:!0},_read:{state:!0}};constructor(){super(),this.mark=null,this._open=!1,this._read=null}render(){let t=this._read?.mark===this.mark?this._read:null,e=this.mark.summary??t?.summary??null;return a`<section class="compression" data-testid="compression-divider" data-open=${String(this._open)}>
      <button type="button" class="divider" aria-expanded=${String(this._open)} aria-controls="compression-body" data-testid="compression-toggle"
        title=${s("divider.compressed_hint")} @click=${()=>this.#t()}><span>${s("divider.compressed")}<span class="turn">${d.chevron}</span></span></button>
      <div id="compression-body" class="compression-body" ?hidden=${!this._open}>${this._open?a`
        <p class="quiet">${s("divider.compressed_hint")}</p>
        ${e!==null?a`<navi-markdown class="prose" dir="auto" data-testid="compression-summary" .text=${e} .complete=${!0}></navi-markdown>`:t?.error!=null?O(t.error,a`<button type="button" class="button small" @click=${()=>{this.#e()}}>${s("subagent.retry")}</button>`):a`<p class="quiet loading" role="status"><span class="spinner" aria-hidden="true"></span>${s("app.loading")}</p>`}`:r}</div>
    </section>`}#t(){this._open=!this._open,this._open&&this.mark.summary===null&&this._read?.mark!==this.mark&&this.#e()}async#e(){let t=g.get(),{mark:e}=this;if(t!==null){this._read=null;try{let{compression:i}=await Z.session(t,1);this._read={mark:e,summary:i?.summary??"",error:null}}catch(i){this._read={mark:e,summary:null,error:yt(i)}}}}};customElements.define("navi-compression",oe);function It(n){let t=n.branch_ids.indexOf(n.shown),e=s("branch.label",{n:t+1,total:n.branch_ids.length});return a`<span class="pager" role="group" aria-label=${e} data-testid="branch-pager" data-shown=${t+1} data-total=${n.branch_ids.length}>
    ${gn(n.branch_ids[t-1],"previous")}<span class="pager-text">${t+1}/${n.branch_ids.length}</span>${gn(n.branch_ids[t+1],"next")}</span>`}function gn(n,t){let e=n===void 0||v.get();return a`<button type="button" class="icon-button ${t}" data-testid=${`branch-${t}`} ?disabled=${e} title=${s(`branch.${t}`)} aria-label=${s(`branch.${t}`)}
    @click=${()=>{n!==void 0&&Is(n)}}>${d.chevron}</button>`}var Cn={note:d.note,tip:d.check,important:d.shield,warning:d.warning,caution:d.cross},re=class extends u{static properties={kind:{attribute:!1}};constructor(){super(),this.kind="note"}render(){return a`<p class="alert-title">${Cn[this.kind]}<strong>${s(`alert.${this.kind}`)}</strong></p>`}};customElements.define("navi-alert",re);var Lt=class extends u{static properties={label:{attribute:!1},number:{attribute:!1}};constructor(){super(),this.label="",this.number=""}goTo(t){let i=[...this.closest("navi-markdown")?.querySelectorAll(t)??[]].find(({label:o})=>o.toLowerCase()===this.label.toLowerCase());i?.scrollIntoView({block:"center"}),i?.querySelector("button")?.focus({preventScroll:!0})}},le=class extends Lt{render(){return this.number===""?a`[^${this.label}]`:a`<sup><button type="button" class="link-button" data-testid="footnote" aria-label=${s("footnote.read",{n:this.number})} @click=${()=>this.goTo("navi-footnote-back")}>${this.number}</button></sup>`}},de=class extends Lt{render(){return a`<button type="button" class="link-button" data-testid="footnote-back" aria-label=${s("footnote.back",{n:this.number})} @click=${()=>this.goTo("navi-footnote")}>↩</button>`}};customElements.define("navi-footnote",le);customElements.define("navi-footnote-back",de);var Mn=2e4,Tn={throwOnError:!0,maxExpand:1e3,maxSize:[20,20]},ce=null;function Dn(){return ce??=Ke(new URL("./math.js",import.meta.url)).catch(n=>{throw ce=null,n}),ce}var pe=class extends HTMLElement{#t="";set source(t){this.#t=t,this.#e()}get source(){return this.#t}async#e(){let t=this.#t;if(this.textContent=t,!(t.length>Mn))try{let{math:e}=await Dn();t===this.#t&&e(t.slice(2,-2),this,{...Tn,displayMode:!t.startsWith("\\(")})}catch{this.textContent=t}}};customElements.define("navi-math",pe);var me=class extends u{static properties={entry:{attribute:!1},_chosen:{state:!0}};constructor(){super(),this.entry=null,this._chosen=null}render(){let t=Ve.get(),e=t?.message_id===this.entry.id?Ge(t,nt.get()):[],i=e.length>0,o=this._chosen??i,l=e.filter(et).length,c=`plan-${this.entry.id}`;return a`<section class="plan ${v.get()?"running":""}" data-testid="plan" data-current=${String(i)} aria-label=${s("message.plan")}>
      <button type="button" class="fold plan-head" aria-expanded=${String(o)} aria-controls=${c} data-testid="plan-toggle"
        @click=${()=>{this._chosen=!o}}>
        ${d.steps}<span class="plan-title">${s(i?"message.plan":"plan.earlier")}</span>
        ${i?a`<span class="todo-progress">${s("todo.progress",{done:l,total:e.length})}</span>
          <progress max=${e.length} value=${l} aria-hidden="true"></progress>`:r}
        <span class="turn">${d.chevron}</span>
      </button>
      <div id=${c} class="plan-body" ?hidden=${!o}>${o?i?ze(e).map(On):a`<navi-markdown class="prose" dir="auto" .text=${this.entry.content} .complete=${!0}></navi-markdown>`:r}</div>
    </section>`}};function On(n){return a`${n.milestone===""?r:a`<h3 class="milestone" dir="auto" data-testid="plan-milestone">${n.milestone}</h3>`}
    <ol class="steps">${f(n.steps,t=>t.number,An)}</ol>`}function An(n){let t=s(`todo.state.${n.status}`);return a`<li class="todo-item ${n.status}" data-testid="plan-step" data-status=${n.status} data-number=${n.number} value=${n.number}>
    <span class="todo-mark" role="img" aria-label=${t} title=${t}>${n.status==="done"?d.check:n.status==="failed"?d.cross:r}</span>
    <span class="todo-text" dir="auto">${n.text}${n.note===void 0?r:a`<span class="todo-note">${n.note}</span>`}</span>
    ${In(n)}
  </li>`}function In(n){return n.executor==="tool"?ue("tool",Hs(n.tool),n.tool):n.executor==="self"?ue("self",r,s("conversation.navi")):ue("agent",d.agent,T.get().find(({id:t})=>t===n.profile_id)?.name??n.profile_id)}function ue(n,t,e){return a`<span class="chip" data-testid="plan-executor" data-executor=${n} title=${s(`plan.executor.${n}`)}>${t}<span>${e}</span></span>`}customElements.define("navi-plan",me);var he=class extends u{static properties={call:{attribute:!1},run:{attribute:!1},_open:{state:!0},_stopping:{state:!0}};constructor(){super(),this.call=null,this.run=null,this._open=!1,this._stopping=!1}render(){let{call:t}=this,e=Yt({children:Ht.get()},t.id),i=e?.profile_id||ks(t.args)||Ln(t.id),o=T.get().find(({id:h})=>h===i)?.name??(i||s("subagent.name")),l=e?.task||$n(t.args,"task"),c=t.state==="running",p=e===null?_s(t.result):e.state==="running"?null:e.state==="completed",m=s(`tool.state.${t.state}`),b=`subagent-${t.id}`;return a`<section class="tool-card subagent" data-testid="subagent" data-call-id=${t.id} data-state=${t.state} data-open=${String(this._open)}
      data-run-id=${e?.run_id??r} data-profile=${i} data-completed=${p??r}
      aria-label="${o}: ${m}">
      <div class="subagent-row">
        <button type="button" class="tool-head" aria-expanded=${String(this._open)} aria-controls=${b} data-testid="subagent-toggle"
          @click=${()=>this.#s(e)}>
          <span class="tool-icon">${d.agent}</span>
          <span class="subagent-text"><span class="tool-name" data-testid="subagent-profile">${o}</span>
            <span class="subagent-task" dir="auto" data-testid="subagent-task">${l}</span>
            ${c?a`<span class="subagent-now" data-testid="subagent-activity">${Nn(e)}</span>`:r}
            ${p===!1&&!c?a`<span class="subagent-now">${s("subagent.limited")}</span>`:r}</span>
          <span class="tool-end">
            ${t.duration_ms===null?r:a`<span class="tool-time">${I(t.duration_ms)}</span>`}
            ${sn(t.state)}<span class="turn">${d.chevron}</span>
          </span>
        </button>
        ${c&&e?.state==="running"?a`<button type="button" class="icon-button" data-testid="subagent-stop" ?disabled=${this._stopping}
          title=${s("subagent.stop")} aria-label="${s("subagent.stop")}: ${o}" @click=${()=>{this.#i(e.run_id)}}>${d.stop}</button>`:r}
      </div>
      ${js(t)}
      <div id=${b} class="tool-body" ?hidden=${!this._open}>${this._open?this.#t(e):r}</div>
    </section>`}#t(t){let e=this.run===null?void 0:Bt.get()[this.run],i=t?.entries??[],o=$n(this.call.args,"context");return a`${o===""?r:a`<p class="subagent-context" dir="auto">${o}</p>`}
      ${t===null?this.#e(e):r}
      <div class="subagent-log" role="group" aria-label=${s("subagent.log")} data-testid="subagent-log">${f(i,l=>l.id,l=>a`<navi-message .entry=${l}></navi-message>`)}</div>
      ${i.length===0&&this.call.result!==null?a`<div class="tool-part"><div class="tool-label"><span>${s("tool.result")}</span></div>
        <pre tabindex="0" class="tool-text" data-testid="subagent-result">${this.call.result}</pre></div>`:r}`}#e(t){return t?.state==="failed"?a`<div data-testid="subagent-error">${O(t,a`<button type="button" class="button small" data-testid="subagent-retry"
      @click=${()=>this.#n()}>${s("subagent.retry")}</button>`)}</div>`:t?.state==="ready"?a`<p class="quiet">${s("subagent.nothing")}</p>`:a`<p class="quiet loading" role="status" data-testid="subagent-loading"><span class="spinner" aria-hidden="true"></span>${s("app.loading")}</p>`}#s(t){this._open=!this._open,this._open&&t===null&&this.#n()}updated(){this._open&&this.run!==null&&x.get()&&Bt.get()[this.run]===void 0&&Yt({children:Ht.get()},this.call.id)===null&&this.#n()}#n(){this.run!==null&&Ds(this.run)}async#i(t){this._stopping=!0,await Ls(t)||(this._stopping=!1)}};function Ln(n){let t=k.get();return t===null?"":ys(t,n)}function $n(n,t){let e=n!==null&&typeof n=="object"?Object.entries(n).find(([i])=>i===t)?.[1]:"";return typeof e=="string"?e:""}function Nn(n){let t=n?.entries[n.entries.length-1];if(n===null||t===void 0||n.waiting!==null)return s(n?.waiting==null?"subagent.starting":`waiting.${n.waiting.reason}`);if(t.kind!=="assistant")return s("thinking.now");let e=t.calls.findLast(({state:i})=>i==="running");return e!==void 0?`${e.name} ${Fs(e.args)}`:s(t.open&&t.content!==""?"subagent.writing":"thinking.now")}customElements.define("navi-subagent",he);var fe=class extends u{static properties={entry:{attribute:!1},_chosen:{state:!0}};constructor(){super(),this.entry=null,this._chosen=null,this._pinned=!0}get#t(){return this._chosen??this.entry.thinking_open}updated(){let t=this.querySelector(".thinking-body");t!==null&&this.entry.thinking_open&&this._pinned&&(t.scrollTop=t.scrollHeight)}render(){let{thinking:t,thinking_open:e,thinking_ms:i,id:o}=this.entry,l=this.#t,c=e?s("thinking.now"):i===null||i<100?s("thinking.done"):s("thinking.done_in",{time:I(i)}),p=`thinking-${o}`;return a`<div class="thinking ${e?"live":""}" data-testid="thinking" data-open=${String(l)}>
      <button type="button" class="fold" aria-expanded=${String(l)} aria-controls=${p}
        @click=${()=>{this._chosen=!l}}>
        ${d.thought}<span class="fold-label">${c}</span><span class="turn">${d.chevron}</span>
      </button>
      <div id=${p} class="thinking-body" ?hidden=${!l} tabindex="0"
        @scroll=${m=>{this._pinned=Js(m.target)}}>${l?t:r}</div>
    </div>`}};customElements.define("navi-thinking",fe);var ge=class extends u{static properties={entry:{attribute:!1},fork:{attribute:!1},_sending:{state:!0}};constructor(){super(),this.entry=null,this.fork=null,this._sending=!1}firstUpdated(){z.get().has(this.entry.id)&&document.activeElement===document.body&&this.#e()}updated(){jt.get()===this.entry.id&&(jt.set(null),this.#e())}render(){let{entry:t}=this,e=v.get(),i=z.get().get(t.id);return a`<article class="message user" data-testid="message" data-role="user" data-message-id=${t.id} data-steered=${String(t.steered)}
      tabindex="-1" aria-label=${s("conversation.you")}>
      ${t.images.length===0?r:Ct(t.images,o=>s("conversation.image",{n:o}))}
      ${t.files.length===0?r:en(g.get()??"",t.files)}
      ${i!==void 0?this.#t(e,i):a`<div class="bubble" dir="auto">${t.content}</div>`}
      ${i!==void 0?r:a`<div class="message-foot"><span class="message-actions"><time datetime=${t.created_at}>${E(t.created_at)}</time>${e?r:a`<button type="button" class="icon-button" data-testid="edit-message" title=${s("message.edit")} aria-label=${s("message.edit")}
            @click=${()=>gt(t.id,t.content)}>${d.pencil}</button>`}${Tt(()=>t.content,"message.copy")}</span>
        ${t.steered?a`<span class="tag" data-testid="steered-tag">${s("message.steered")}</span>`:r}
        ${this.fork===null?r:It(this.fork)}</div>`}
    </article>`}#t(t,e){return a`<form class="edit-form" @submit=${i=>{i.preventDefault(),this.#i()}}>
      <textarea data-testid="edit-input" dir="auto" rows="2" aria-label=${s("message.edit")} .value=${e}
        @input=${i=>$t(this.entry.id,i.target.value)}
        @keydown=${i=>this.#n(i)}></textarea>
      <div class="edit-actions"><span class="quiet">${s("message.edit_hint")}</span>
        <button type="button" class="button small plain" data-testid="edit-cancel" @click=${()=>{this.#s()}}>${s("queue.cancel")}</button>
        <button type="submit" class="button small" data-testid="edit-send" ?disabled=${t||this._sending}>${s("composer.send")}</button></div>
    </form>`}#e(){let t=this.querySelector("textarea");t?.focus(),t?.setSelectionRange(t.value.length,t.value.length)}async#s(){D(this.entry.id,void 0),await this.updateComplete,this.querySelector('[data-testid="edit-message"]')?.focus()}#n(t){w(t)||(t.key==="Escape"?(t.preventDefault(),this.#s()):t.key==="Enter"&&!t.shiftKey&&(t.preventDefault(),this.#i()))}async#i(){let t=this.querySelector("textarea")?.value.trim()??"";if(t===""||this._sending||v.get())return;if(t===this.entry.content.trim()){await this.#s();return}this._sending=!0;let e=await Os(this.entry.id,t);this._sending=!1,e&&await this.#s()}};customElements.define("navi-user-message",ge);var $e=class extends u{static properties={entry:{attribute:!1},first:{type:Boolean},fork:{attribute:!1},asked:{attribute:!1},work:{attribute:!1},steps:{type:Boolean}};constructor(){super(),this.entry=null,this.first=!1,this.fork=null,this.asked=null,this.work=null,this.steps=!1}render(){let{entry:t}=this;return t.kind==="user"?a`<navi-user-message .entry=${t} .fork=${this.fork}></navi-user-message>`:t.kind==="switch"?fn(t):t.kind==="notice"?Kn(t):this.#t(t)}#t(t){let e=t.open&&t.content!=="",i=t.content!==""&&t.calls.length===0&&!t.is_plan,{work:o}=this,l=this.#e(t),c=o!==null&&o.id===t.id?tn(o):r,p=o!==null&&t.content===""&&!Jt(o),m=t.content===""&&l.length===0&&c===r&&(p||t.thinking==="");return a`<article class="message assistant ${this.first?"first":""} ${o!==null?"worked":""} ${m&&!this.first?"bare":""}" data-testid="message" data-role="assistant"
      data-message-id=${t.id} tabindex="-1" data-state=${t.open?"streaming":t.state} aria-label=${s("conversation.navi")}>
      ${this.first?a`<span class="avatar">${q}</span>`:r}
      ${t.content===""?c:r}
      ${t.thinking===""||p?r:a`<navi-thinking .entry=${t}></navi-thinking>`}
      ${t.is_plan?a`<navi-plan .entry=${t}></navi-plan>`:t.content===""?r:a`<navi-markdown class="prose ${e?"streaming":""}" dir="auto"
        .text=${t.content} .complete=${!t.open}></navi-markdown>`}
      ${t.content===""?r:c}
      ${f(Pn(l),b=>b[0].id,b=>b[0].name===be?a`<div class="agents">${f(b,h=>h.id,h=>a`<navi-subagent .call=${h} .run=${t.run_id}></navi-subagent>`)}</div>`:a`<navi-tool-card .call=${b[0]}></navi-tool-card>`)}
      ${t.open||!(i||this.asked!==null||this.fork!==null)?r:this.#s(t,i)}
    </article>`}#e({calls:t}){let{work:e,steps:i}=this,o=i?t.filter(p=>!Xs(p)):t;if(e===null||Jt(e))return o;let l=R.get(),c=Qs(e.calls,l);return o.filter(p=>!Ys(p)||c.includes(p)||["asked","outcome_unknown"].includes(zs(p,$s(l,p.id))))}#s(t,e){let{asked:i}=this;return a`<div class="message-foot">
      ${t.state==="complete"?r:a`<span class="tag ${t.state}">${s(`message.state.${t.state}`)}</span>`}
      ${this.fork===null?r:It(this.fork)}
      <span class="message-actions">${e?Tt(()=>t.content,"message.copy"):r}
        ${i===null||v.get()?r:a`<button type="button" class="icon-button" data-testid="regenerate"
          title=${s("message.regenerate")} aria-label=${s("message.regenerate")} @click=${()=>{As(i)}}>${d.again}</button>`}
        ${t.run_id===null||!(e||i!==null)?r:a`<button type="button" class="icon-button" data-testid="run-details" data-run-id=${t.run_id}
          aria-haspopup="dialog" title=${s("message.details")} aria-label=${s("message.details")} @click=${()=>Us(t.run_id)}>${d.history}</button>`}
        ${e?a`<time datetime=${t.created_at}>${E(t.created_at)}</time>`:r}</span></div>`}},be="spawn_agent";function Pn(n){let t=[];for(let e of n){let i=t[t.length-1];e.name===be&&i?.[0].name===be?i.push(e):t.push([e])}return t}function Kn({tone:n,code:t,message:e}){let i=t==="run_resumed";return a`<p class="notice ${n}" data-testid="notice" data-code=${t}>${i?d.resume:d.warning}<span>${i||t==="unreadable_frame"?s(`notice.${t}`):j(W(e))}</span></p>`}customElements.define("navi-message",$e);var L=100,ve=300,Rn=60,Un=2500,ke=class extends u{static properties={_shown:{state:!0},_last:{state:!0},_away:{state:!0},_reads:{state:!0}};constructor(){super(),this._shown=L,this._last="",this._reads=!1,this._away=!1,this._newest_read="",this._session_id="",this._keeper=new Zs(t=>this.#i(t),t=>t==="start"?void this.#r():this.#l()),this._outbox_length=0,this._work=new Map}disconnectedCallback(){super.disconnectedCallback(),this._keeper.stop()}updated(){let t=this.querySelector(".scroll"),e=this.querySelector(".column");t instanceof HTMLElement&&e instanceof HTMLElement&&this._keeper.watch(t,e);let i=k.get()?.id??"",o=Y(i).length;(i!==this._session_id||o>this._outbox_length)&&this.#a(!1),this._session_id=i,this._outbox_length=o,this.#t()}async#t(){let t=Ft.get(),e=k.get();if(t===null||e===null||t.session_id!==e.id)return;Ft.set(null);let i=({entries:h})=>h.findIndex(_=>Ot(_,t.message_id));i(e)<0&&await this.#d(t.message_id);let o=k.get();if(o?.id!==t.session_id)return;let{entries:l}=o,c=i(o);if(c<0){Q(s("search.elsewhere"));return}this._keeper.leave(),this.#n(l,c-L/2,c+L/2),await this.updateComplete;let p=this._work.get(l[c].id);p!==void 0&&Wt.set(new Map([...Wt.get(),[p.id,!0]]));let m=[...this.querySelectorAll("navi-message")];await Promise.all(m.map(h=>h.updateComplete)),await new Promise(h=>{setTimeout(h,Rn)});let b=this.querySelector(`article[data-message-id="${CSS.escape(l[c].id)}"]`);b instanceof HTMLElement&&(b.scrollIntoView({block:"start"}),b.focus({preventScroll:!0}),b.classList.add("found"),setTimeout(()=>b.classList.remove("found"),Un))}render(){let t=k.get();if(t===null)return Bn();let{from:e,to:i}=this.#s(t.entries),o=e+t.earlier,l=i===t.entries.length,c=this.#o(t.entries).filter(({kind:_})=>_==="user"||_==="assistant").length,p=c===0?[]:[s("conversation.new",{n:c})],m=cn(t.entries),b=t.entries.slice(e,i);this._work=Vs(b,l&&t.run!==null,this._work);let h=pn(t.compression,t.entries,t.earlier);return a`
      <div class="scroll" role="log" aria-live="off" aria-label=${s("conversation.label")} tabindex="0" data-testid="conversation"
        data-last-seq=${t.last_seq} data-running=${String(t.run!==null)}>
        <div class="column">
          ${o===0?r:a`<button type="button" class="link-button earlier" data-testid="show-earlier" aria-busy=${String(this._reads)}
            @click=${()=>this.#r()}>${s("conversation.earlier",{n:Math.min(o,L)})}</button>`}
          ${f(b,_=>_.id,(_,Ne)=>a`${e+Ne===h?bn(t):r}<navi-message .entry=${_}
            ?first=${mn(t.entries,e+Ne)} steps .work=${this._work.get(_.id)??null} .fork=${un(t.forks,_)} .asked=${m.get(_.id)??null}></navi-message>`)}
          ${l?this.#e(t,h):a`<button type="button" class="link-button later" data-testid="show-later"
            @click=${()=>this.#l()}>${s("conversation.later")}</button>`}
        </div>
      </div>
      ${this._away||!l?a`<button type="button" class="to-end" data-testid="jump-latest" @click=${()=>{this.#a(!0)}}
        aria-label=${[s("conversation.latest"),...p].join(", ")} title=${s("conversation.latest")}>${d.down}${p.map(_=>a`<span data-testid="unread">${_}</span>`)}</button>`:r}`}#e(t,e){return a`${e===t.entries.length?bn(t):r}
      ${f(bs(t),i=>i.approval_id,i=>a`<navi-approval class="apart" .approval=${i}></navi-approval>`)}
      ${Et("rest")}
      ${At(t.id)}
      ${Hn(t)}`}#s(t){let e=this._last===""?-1:t.findIndex(({id:l})=>l===this._last),i=e<0?t.length:e+1,o=e<0?Math.min(ve,this._shown+this.#o(t).length):this._shown;return{from:Math.max(0,i-o),to:i}}#n(t,e,i){let[o,l]=[Math.max(0,e),Math.min(t.length,i)];this._shown=l-o,this._last=l===t.length?"":t[l-1].id}#i(t){this._away=t,this._newest_read=k.get()?.entries.at(-1)?.id??""}#o(t){let e=this._away?t.findLastIndex(({id:i})=>i===this._newest_read):-1;return e<0?[]:t.slice(e+1)}async#a(t){this._shown=L,this._last="",t||this._keeper.toEnd(!1),await this.updateComplete,this._keeper.toEnd(t)}async#r(){let t=k.get();if(t===null||this._reads)return;this.#s(t.entries).from<L&&t.earlier>0&&await this.#d(null);let e=k.get()?.entries??[],{from:i,to:o}=this.#s(e);if(i===0)return;this._keeper.hold(this.querySelectorAll("navi-message"));let l=Math.max(0,i-L);this.#n(e,l,Math.min(o,l+ve))}#l(){let t=k.get()?.entries??[],{from:e,to:i}=this.#s(t);if(i===t.length)return;this._keeper.leave(),this._keeper.hold(this.querySelectorAll("navi-message"));let o=Math.min(t.length,i+L);this.#n(t,Math.max(e,o-ve),o)}async#d(t){this._reads=!0,await Ts(t),this._reads=!1}},bn=n=>a`<navi-compression .mark=${n.compression}></navi-compression>`;function Hn(n){return n.run!==null?hn(n)?a`<navi-status-line .session=${n}></navi-status-line>`:r:n.ending===null||Y(n.id).some(ms)?r:n.ending.kind==="interrupted"&&N.get()==="restarting"?r:Bs(n.ending,n.can_continue)}function Bn(){return a`<div class="scroll" role="status" aria-busy="true" aria-label=${s("app.loading")}><div class="column skeleton" data-testid="skeleton">
    <div class="bone right"></div><div class="bone"></div><div class="bone"></div><div class="bone short"></div>
  </div></div>`}customElements.define("navi-conversation",ke);function Nt(n){ht(),requestAnimationFrame(()=>document.querySelector(n)?.focus())}var _e=class extends u{static properties={state:{attribute:!1}};constructor(){super(),this.state="connecting",this._clock=new wt(this)}render(){let t=Math.max(0,Math.round((this._clock.now-Ze.get())/1e3)),e=this.state==="lost"&&!Je.get()?"absent":this.state;return a`<span class="connection" role="status" data-testid="connection" data-state=${this.state}><span class="spinner" aria-hidden="true"></span>
      <span class="connection-text">${s(`connection.${e}`)}</span>
      ${this.state==="silent"?a`<span class="connection-text" aria-hidden="true" data-testid="silent-for">· ${I(t*1e3)}</span>`:""}</span>`}};customElements.define("navi-connection",_e);var ye=class extends u{render(){let t=g.get(),e=t===null?at.get():N.get();return a`<header class="page-head">
      <button type="button" class="icon-button drawer-open" aria-label=${s("sidebar.open")} title=${s("sidebar.open")} data-testid="drawer-open"
        aria-expanded=${String(y.get())} @click=${()=>y.set(!0)}>${d.menu}</button>
      ${U.get()?a`<button type="button" class="icon-button sidebar-unfold" aria-label=${s("sidebar.unfold")} title=${s("sidebar.unfold")} data-testid="sidebar-unfold"
        @click=${()=>Nt(".sidebar-fold")}>${d.sidebar}</button>`:r}
      <div class="head-text">
        <h1 data-testid="session-title" dir="auto">${t===null?s("sidebar.new"):ct()||s("sidebar.untitled")}</h1>
        <div class="head-line"><navi-mode></navi-mode>
          ${dt(t)?.archived?a`<span class="head-mark" data-testid="archived-badge">${s("archive.mark")}</span>`:r}</div>
      </div>
      ${e==="open"?r:a`<navi-connection .state=${e}></navi-connection>`}
      ${x.get()?a`<button type="button" class="icon-button" data-testid="open-files" aria-haspopup="dialog" title=${s("files.open")} aria-label=${s("files.open")}
        @click=${()=>{$("files")}}>${d.folder}</button>`:r}
      ${Ut.get()===0?r:Fn(Xe.get(),Ut.get())}
    </header>`}},we=8,vn=2*Math.PI*we;function Fn(n,t){let e=Math.min(1,n/t),i=s("header.context",{used:xt(n),max:xt(t)});return a`<button type="button" class="context ${e>.8?"high":""}" aria-haspopup="dialog" aria-label=${i} title=${i} data-testid="context-meter" @click=${()=>{$("context")}}>
    <svg viewBox="0 0 20 20" aria-hidden="true">${Pe`<circle class="ring" cx="10" cy="10" r=${we}/>
      <circle class="fill" cx="10" cy="10" r=${we} stroke-dasharray="${e*vn} ${vn}" transform="rotate(-90 10 10)"/>`}</svg>
    <span class="context-text">${xt(n)}</span></button>`}customElements.define("navi-header",ye);var jn=[[["Enter"],"keys.send"],[["Shift","Enter"],"keys.line"],[[S,"Enter"],"keys.steer"],[["Esc"],"keys.stop"],[["↑"],"keys.edit"],[[S,"K"],"palette.open"],[[S,"⇧","O"],"keys.new"],[["↑","↓"],"keys.list"],[["Y","A","N"],"keys.answer"],[["?"],"keys.open"]],xe=class extends St{render(){return this.frame("keys",s("keys.title"),a`
      <dl class="keys">${jn.map(([t,e])=>a`<div><dt>${t.map(i=>a`<kbd>${i}</kbd>`)}</dt><dd>${s(e)}</dd></div>`)}</dl>`)}};customElements.define("navi-keys",xe);function Wn(){let n=dt(g.get());return[{id:"new",name:s("sidebar.new"),run:F},v.get()&&{id:"stop",name:s("composer.stop"),run:B},k.get()?.can_continue===!0&&{id:"continue",name:s("ending.continue"),run:Ss},x.get()&&{id:"files",name:s("files.open"),run:()=>{$("files")}},x.get()&&{id:"context",name:s("context.open"),run:()=>{$("context")}},{id:"memory",name:s("memory.open"),run:()=>{$("memory")}},{id:"permissions",name:s("permissions.open"),run:()=>{$("permissions")}},{id:"setup",name:s("setup.open"),run:()=>{$("setup")}},n!==void 0&&{id:"pin",name:s(n.pinned?"session.unpin":"session.pin"),run:()=>vt(n)},n!==void 0&&{id:"tags",name:s("tags.open"),run:()=>{$("tags")}},n!==void 0&&{id:"archive",name:s(n.archived?"session.unarchive":"session.archive"),run:()=>n.archived?_t(n):void kt(n)},n!==void 0&&{id:"export-md",name:s("export.markdown"),run:()=>{Zt("md")}},n!==void 0&&{id:"export-json",name:s("export.json"),run:()=>{Zt("json")}},C.get().list.length>0&&{id:"export-all",name:s("export.all"),run:()=>{nn()}},{id:"import",name:s("import.open"),run:()=>{$("import")}},{id:"print",name:s("palette.print"),run:()=>print()},{id:"sidebar",name:s(U.get()?"sidebar.unfold":"sidebar.fold"),run:ht},ps()&&{id:"notify",name:s(zt.get()?"notify.off":"notify.on"),run:()=>{Gn()}},{id:"keys",name:s("keys.open"),run:()=>{$("keys")}},...["auto","light","dark"].filter(e=>e!==pt.get()).map(e=>({id:`theme-${e}`,name:`${s("settings.theme")}: ${s(`settings.theme.${e}`)}`,run:()=>mt(e)})),...Object.entries(J).map(([e,i])=>({id:`language-${e}`,name:`${s("settings.language")}: ${i}`,run:()=>{ut(e)}}))].filter(e=>e!==!1)}async function Gn(){await us()?Q(s(zt.get()?"notify.is_on":"notify.is_off")):Q(s("notify.refused"),null,void 0,!0)}function kn(n){let t=n.toLocaleLowerCase().split(/\s+/).filter(e=>e!=="");return Wn().filter(({name:e})=>t.every(i=>e.toLocaleLowerCase().includes(i)))}var zn=200,G=class{answer={state:"loading"};#t="";#e;#s=new AbortController;constructor(t,e){this.host=t,this.limit=e,t.addController(this)}hostDisconnected(){clearTimeout(this.#e),this.#s.abort(),this.#t=""}look(t){t!==this.#t&&(this.#t=t,clearTimeout(this.#e),this.#s.abort(),t!==""&&(this.#e=setTimeout(()=>{this.again()},zn)))}async again(){let t=new AbortController;this.#s=t,this.answer.state==="failed"&&(this.answer={state:"loading"});let e;try{e={state:"found",hits:await Z.search(this.#t,this.limit,t.signal)}}catch(i){e={state:"failed",...yt(i)}}t.signal.aborted||(this.answer=e,this.host.requestUpdate())}};function _n({text:n,marks:t}){let e=[],i=0;for(let{start:o,end:l}of[...t].sort((c,p)=>c.start-p.start))o>=i&&l>o&&l<=n.length&&(o>i&&e.push({text:n.slice(i,o),match:!1}),e.push({text:n.slice(o,l),match:!0}),i=l);return i<n.length&&e.push({text:n.slice(i),match:!1}),e}var Xn=20,Ee=class extends u{static properties={query:{attribute:!1}};constructor(){super(),this.query="",this._finder=new G(this,Xn)}willUpdate(){this._finder.look(this.query)}render(){let{answer:t}=this._finder;return a`<section class="hits" data-testid="search-results" data-state=${t.state} aria-label=${s("search.title")}>
      <h2>${s("search.title")}</h2>
      ${t.state==="loading"?a`<p class="quiet loading" role="status"><span class="spinner" aria-hidden="true"></span>${s("search.looking")}</p>`:r}
      ${t.state==="failed"?a`<p class="quiet failed" role="alert" data-testid="search-error">${s(`error.${P(t.code)}.title`)}
        <button type="button" class="link-button" @click=${()=>{this._finder.again()}}>${s("subagent.retry")}</button></p>`:r}
      ${t.state==="found"?a`<p class="off-screen" role="status">${s("search.count",{n:t.hits.length})}</p>`:r}
      ${t.state==="found"&&t.hits.length===0?a`<p class="quiet" data-testid="search-empty">${s("search.nothing")}</p>`:r}
      ${t.state==="found"?a`<ul>${t.hits.map(Yn)}</ul>`:r}
    </section>`}},qe=n=>a`<span class="hit-text" dir="auto">${n.role==="user"?a`<b>${s("conversation.you")}:</b> `:r}${_n(n.snippet).map(({text:t,match:e})=>e?a`<mark>${t}</mark>`:t)}</span>`;function Yn(n){let{session_id:t,message_id:e}=n;return a`<li><a class="session-link hit" href=${bt(t,e)} data-testid="search-hit" data-session-id=${t} data-message-id=${e??r}
    @click=${i=>{i.ctrlKey||i.metaKey||i.shiftKey||(i.preventDefault(),V(t,e))}}>
    <span class="hit-head"><span class="session-title" dir="auto">${n.session_title||s("sidebar.untitled")}</span>${n.session_archived?a`<span class="badge">${s("archive.mark")}</span>`:r}<time datetime=${n.at}>${E(n.at)}</time></span>
    ${qe(n)}
  </a></li>`}customElements.define("navi-search",Ee);var Vn=6,Qn=8,Se=class extends St{static properties={_query:{state:!0},_at:{state:!0}};constructor(){super(),this._query="",this._at=0,this._finder=new G(this,Qn)}willUpdate(){this._finder.look(this._query.trim())}updated(){this.querySelector("[aria-selected=true]")?.scrollIntoView({block:"nearest"})}render(){let t=this._query.trim(),e=this.#t(t),i=e.flatMap(([,c])=>c),o=Math.min(this._at,i.length-1),l=-1;return a`<dialog class="palette" data-testid="palette" aria-label=${s("palette.label")} @close=${this.closed} @click=${this.pressed}>
      <label class="palette-field">${d.search}<input type="text" role="combobox" autocomplete="off" spellcheck="false" data-testid="palette-input"
        aria-label=${s("palette.label")} placeholder=${s("palette.placeholder")} aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
        aria-activedescendant=${o<0?r:`palette-${o}`} .value=${this._query}
        @input=${c=>{this._query=c.target.value,this._at=0}} @keydown=${c=>this.#e(c,i,o)}></label>
      <div id="palette-list" class="palette-list" role="listbox" aria-label=${s("palette.label")}>
        ${e.map(([c,p])=>a`<div role="group" aria-label=${c}><p class="palette-group" aria-hidden="true">${c}</p>
          ${p.map(m=>(l+=1,ti(m,l,l===o,()=>this.#s(m))))}</div>`)}
      </div>
      ${i.length>0||this._finder.answer.state==="loading"?r:a`<p class="quiet palette-none" role="status" data-testid="palette-empty">${s("palette.nothing")}</p>`}
    </dialog>`}#t(t){let{answer:e}=this._finder,i=t===""||e.state!=="found"?[]:e.hits;return[[s("sidebar.label"),K(C.get().list,t).slice(0,Vn).map(Jn)],[s("palette.actions"),kn(t).map(({id:l,name:c,run:p})=>({id:l,icon:"chevron",text:c,run:p}))],[s("search.title"),i.map(Zn)]].filter(([,l])=>l.length>0)}#e(t,e,i){if(w(t))return;let o={ArrowDown:1,ArrowUp:-1};if(t.key==="Enter"&&e[i]!==void 0)this.#s(e[i]);else if(t.key==="ArrowDown"||t.key==="ArrowUp")this._at=(i+o[t.key]+e.length)%Math.max(1,e.length);else return;t.preventDefault()}#s({run:t}){this.close(),this.closed(),t()}};function Jn(n){return{id:n.id,icon:"note",text:n.title||s("sidebar.untitled"),side:E(n.last_active),run:()=>V(n.id)}}function Zn(n){let t=n.session_archived?`${n.session_title} · ${s("archive.mark")}`:n.session_title;return{id:n.message_id??n.session_id,icon:"search",text:qe(n),side:t,run:()=>V(n.session_id,n.message_id)}}function ti({id:n,icon:t,text:e,side:i},o,l,c){return a`<div id="palette-${o}" class="palette-option" role="option" aria-selected=${String(l)} data-testid="palette-option" data-choice=${n}
    @click=${c}>${d[t]}<span class="palette-text" dir="auto">${e}</span>${i===void 0?r:a`<span class="palette-side" dir="auto">${i}</span>`}</div>`}customElements.define("navi-palette",Se);var Ce=class extends u{render(){let t=Ye.get();return t.length===0?r:a`<ul class="queue" aria-label=${s("queue.label")}>${f(t,e=>e.message_id,e=>this.#t(e))}</ul>`}#t(t){let e=z.get().get(t.message_id),i=t.mode??(t.client_id!==void 0&&as.get().has(t.client_id)?"steer":"queue");return a`<li class="queued" data-testid="queued-message" data-message-id=${t.message_id} data-mode=${i}>
      ${e!==void 0?this.#e(t,e):a`
        <span class="queued-tag">${s(`queue.mode.${i}`)}</span>
        <span class="queued-text" dir="auto">${t.content}</span>
        <button type="button" class="icon-button" data-testid="queued-edit" title=${s("queue.edit")} aria-label=${s("queue.edit")}
          @click=${()=>this.#s(t)}>${d.pencil}</button>
        <button type="button" class="icon-button" data-testid="queued-withdraw" title=${s("queue.withdraw")} aria-label=${s("queue.withdraw")}
          @click=${()=>Cs(t.message_id)}>${d.close}</button>`}
    </li>`}#e(t,e){let i=N.get()!=="open";return a`<form class="queued-form" @submit=${o=>this.#i(o,t)}>
      <textarea name="content" rows="2" aria-label=${s("queue.edit")} data-testid="queued-input" @input=${o=>$t(t.message_id,o.target.value)}
        @keydown=${o=>this.#n(o,t)} .value=${e}></textarea>
      <button type="submit" class="button small" data-testid="queued-save" ?disabled=${i}>${s("queue.save")}</button>
      <button type="button" class="button small plain" @click=${()=>D(t.message_id,void 0)}>${s("queue.cancel")}</button>
      ${i?a`<p class="quiet" role="status" data-testid="queued-offline">${s("queue.offline")}</p>`:r}
    </form>`}async#s({message_id:t,content:e}){D(t,e),await this.updateComplete,this.querySelector(`[data-message-id="${CSS.escape(t)}"] textarea`)?.focus()}#n(t,e){w(t)||(t.key==="Escape"?(t.stopPropagation(),D(e.message_id,void 0)):t.key==="Enter"&&!t.shiftKey&&(t.preventDefault(),N.get()==="open"&&t.target.form?.requestSubmit()))}#i(t,e){t.preventDefault();let i=String(new FormData(t.target).get("content")??"").trim();i===""||i===e.content?D(e.message_id,void 0):Ms(e.message_id,i)&&D(e.message_id,i)}};customElements.define("navi-queue",Ce);var Me=class extends u{static properties={session:{attribute:!1},current:{type:Boolean},_named:{state:!0}};constructor(){super(),this.session=null,this.current=!1,this._named=null}render(){let{session:t}=this,e=t.title||s("sidebar.untitled");if(this._named!==null)return this.#e(this._named);let i=(t.asks??0)>0?"asking":t.state,o=i==="idle"?"":s(`session.state.${i}`);return a`<div class="session-item ${this.current?"current":""}" data-testid="session-item" data-session-id=${t.id}
      data-state=${i} data-pinned=${String(t.pinned)}>
      <a class="session-link" href=${bt(t.id)} aria-current=${this.current?"page":r}
        title=${`${e}
${E(t.last_active)}`} @keydown=${l=>this.#i(l)}
        @dblclick=${()=>{this.#s()}}>
        <span class="session-title" dir="auto">${e}</span>
        ${(t.tags??[]).length===0?r:a`<span class="session-tags" dir="auto" data-testid="session-tags">${t.tags?.join(", ")}</span>`}
        ${o===""?r:a`<span class="state-dot ${i}" role="img" aria-label=${o} title=${o}></span>`}
      </a>
      <span class="session-actions">
        ${t.archived?r:this.#t("pin",t.pinned?"session.unpin":"session.pin",()=>vt(t))}
        ${this.#t("pencil","session.rename",()=>{this.#s()})}
        ${t.archived?this.#t("unarchive","session.unarchive",()=>_t(t)):this.#t("archive","session.archive",()=>{kt(t)})}
        ${this.#t("trash","session.delete",()=>{Vt(t)})}
      </span>
    </div>`}#t(t,e,i){return a`<button type="button" class="icon-button ${t==="pin"&&this.session.pinned?"on":""}" title=${s(e)}
      aria-label=${`${s(e)}: ${this.session.title||s("sidebar.untitled")}`} data-testid=${e.replace(".","-")} @click=${i}>${d[t]}</button>`}#e(t){return a`<form class="session-item renaming" @submit=${e=>{e.preventDefault(),this.#n(!0)}}><input class="rename-input" data-testid="rename-input" maxlength="200" aria-label=${s("session.rename_label")} .value=${t}
      @blur=${()=>this.#n(!0)} @keydown=${e=>{e.key!=="Escape"||w(e)||(e.stopPropagation(),this.#n(!1))}}></form>`}async#s(){this._named=this.session.title||s("sidebar.untitled"),await this.updateComplete,this.querySelector("input")?.select()}async#n(t){if(this._named===null)return;let e=this.querySelector("input"),i=document.activeElement===e;t&&e!==null&&e.value!==this._named&&Ks(this.session,e.value),this._named=null,await this.updateComplete,i&&this.querySelector("a")?.focus()}#i(t){if(t.key==="F2")this.#s();else if(t.key==="Delete")Vt(this.session);else return;t.preventDefault()}};customElements.define("navi-session-item",Me);var ei=300,Te=class extends u{static properties={query:{attribute:!1},tag:{attribute:!1}};constructor(){super(),this.query="",this.tag=null}render(){let{state:t,list:e}=st.get();return a`<details class="archived" data-testid="archived" data-state=${t} @toggle=${i=>{i.target.open&&(t==="unread"||t==="failed")&&Gt()}}>
      <summary>${d.chevron}<h2>${s("archive.title")}</h2></summary>
      ${t==="failed"?a`<p class="quiet failed" role="alert">${s("archive.failed")}
        <button type="button" class="link-button" @click=${()=>{Gt()}}>${s("subagent.retry")}</button></p>`:r}
      ${t==="unread"||t==="reading"&&e.length===0?a`<p class="quiet loading" role="status"><span class="spinner" aria-hidden="true"></span>${s("app.loading")}</p>`:r}
      ${t==="read"&&e.length===0?a`<p class="quiet" data-testid="archived-empty">${s("archive.empty")}</p>`:r}
      ${t==="unread"||e.length===0?r:a`<ul>${f(Dt(K(e,this.query),this.tag).slice(0,ei),i=>i.id,i=>a`<li><navi-session-item .session=${i}
        ?current=${i.id===g.get()}></navi-session-item></li>`)}</ul>`}
    </details>`}};customElements.define("navi-archived",Te);var si=[["auto",d.auto],["light",d.sun],["dark",d.moon]],De=class extends u{render(){let t=M.get(),e=tt(t),i=at.get()==="open";return a`<div class="settings">
      <p class="service"><span class="service-dot ${i&&e!==null?"ready":"off"}" aria-hidden="true"></span>
        <span>${i?e===null?s("header.no_model"):s("header.backend",{name:s(`backend.${e.kind}`)}):s("connection.connecting")}</span>
        ${t===null?r:a`<span class="version">${t.version}</span>`}</p>
      <div class="settings-row">
        <fieldset class="segments"><legend class="off-screen">${s("settings.theme")}</legend>
          ${si.map(([o,l])=>a`<label title=${s(`settings.theme.${o}`)}><input type="radio" name="theme" class="cover"
            data-testid=${`theme-${o}`} .checked=${pt.get()===o} @change=${()=>mt(o)} aria-label=${s(`settings.theme.${o}`)}>${l}</label>`)}
        </fieldset>
        <label class="select"><span class="off-screen">${s("settings.language")}</span>
          <select data-testid="language" @change=${o=>{ut(o.target.value)}}>
            ${Object.entries(J).map(([o,l])=>a`<option value=${o} ?selected=${Re.get()===o} lang=${o}>${l}</option>`)}
          </select></label>
      </div>
    </div>`}};customElements.define("navi-settings",De);var ni=300,Oe=class extends u{static properties={_query:{state:!0}};constructor(){super(),this._query=""}render(){let{loaded:t,list:e}=C.get(),i=an([...e,...st.get().list]),o=i.find(c=>c===Rt.get())??null,l=Dt(K(e,this._query),o).slice(0,ni);return a`
      <div class="sidebar-head">
        <a class="brand" href="#/">${q}<span>Navi</span></a>
        <button type="button" class="icon-button drawer-close" aria-label=${s("sidebar.close")} title=${s("sidebar.close")}
          @click=${()=>y.set(!1)}>${d.close}</button>
        <button type="button" class="icon-button sidebar-fold" aria-label=${s("sidebar.fold")} title=${s("sidebar.fold")} data-testid="sidebar-fold"
          @click=${()=>Nt(".sidebar-unfold")}>${d.sidebar}</button>
      </div>
      <button type="button" class="new-session" data-testid="new-session" title=${`${S}+Shift+O`} @click=${()=>this.#t()}>
        ${d.plus}<span>${s("sidebar.new")}</span></button>
      <label class="search">${d.search}<input type="search" data-testid="session-search" placeholder=${s("sidebar.search")} aria-label=${s("sidebar.search")}
        .value=${this._query} @input=${c=>{this._query=c.target.value}}
        @keydown=${c=>this.#e(c)}></label>
      ${i.length===0?r:a`<div class="tag-row" role="group" aria-label=${s("tags.filter")}>${i.map(c=>a`<button type="button" class="tag-chip" dir="auto" data-testid="tag-filter"
        aria-pressed=${String(c===o)} @click=${()=>Rt.set(c===o?null:c)}>${c}</button>`)}</div>`}
      <nav class="session-list" aria-label=${s("sidebar.label")} @keydown=${c=>this.#e(c)}>
        ${t?r:a`<div class="skeleton"><div class="bone"></div><div class="bone"></div><div class="bone short"></div></div>`}
        ${t&&e.length===0?a`<p class="quiet">${s("sidebar.empty")}</p>`:r}
        ${ii(l).map(([c,p])=>a`<h2>${s(`sidebar.group.${c}`)}</h2>
          <ul>${f(p,m=>m.id,m=>a`<li><navi-session-item .session=${m}
            ?current=${m.id===g.get()}></navi-session-item></li>`)}</ul>`)}
        ${t?a`<navi-archived .query=${this._query} .tag=${o}></navi-archived>`:r}
        ${this._query.trim()!==""?a`<navi-search .query=${this._query.trim()}></navi-search>`:r}
      </nav>
      <button type="button" class="open-memory" data-testid="open-palette" aria-haspopup="dialog" @click=${()=>{$("palette")}}>${d.command}<span>${s("palette.open")}</span><kbd>${S} K</kbd></button>
      <button type="button" class="open-memory" data-testid="open-memory" aria-haspopup="dialog" @click=${()=>{$("memory")}}>${d.memory}<span>${s("memory.open")}</span></button>
      <button type="button" class="open-memory" data-testid="open-permissions" aria-haspopup="dialog" @click=${()=>{$("permissions")}}>${d.key}<span>${s("permissions.open")}</span></button>
      <button type="button" class="open-memory" data-testid="open-setup" aria-haspopup="dialog" @click=${()=>{$("setup")}}>${d.sliders}<span>${s("setup.open")}</span></button>
      <navi-settings></navi-settings>`}#t(){F(),document.querySelector("navi-composer")?.focusInput()}#e(t){if(t.key!=="ArrowDown"&&t.key!=="ArrowUp"&&t.key!=="Home"&&t.key!=="End")return;let e=t.target instanceof HTMLInputElement;if(e&&t.key!=="ArrowDown"||e&&t.target.type!=="search")return;let i=[...this.querySelectorAll(".session-link")].filter(c=>c.closest("details:not([open])")===null);if(i.length===0)return;let o=i.findIndex(c=>c.closest("li")?.contains(t.target)),l=0;t.key==="ArrowDown"&&(l=Math.min(i.length-1,o+1)),t.key==="ArrowUp"&&(l=o-1),t.key==="End"&&(l=i.length-1),t.preventDefault(),l<0?this.querySelector("input[type=search]")?.focus():i[l].focus()}};function ii(n){let t=new Map,e=new Date;for(let i of n){let o=We(i,e);t.set(o,[...t.get(o)??[],i])}return[...t]}customElements.define("navi-sidebar",Oe);var Ae=class extends u{static properties={_open:{state:!0}};constructor(){super(),this._open=!1}render(){let t=nt.get();if(t.length===0||Qe.get())return r;let e=t.filter(et).length,i=t.find(o=>o.status==="in_progress")??t.find(o=>o.status==="pending");return a`<section class="todo ${v.get()?"running":""}" data-testid="todo" aria-label=${s("todo.label")}>
      <button type="button" class="fold todo-head" aria-expanded=${String(this._open)} aria-controls="todo-list"
        @click=${()=>{this._open=!this._open}}>
        ${d.steps}
        <span class="todo-progress">${s("todo.progress",{done:e,total:t.length})}</span>
        <progress max=${t.length} value=${e} aria-hidden="true"></progress>
        <span class="todo-current">${i?.text??r}</span>
        <span class="turn">${d.chevron}</span>
      </button>
      <ol id="todo-list" ?hidden=${!this._open}>${t.map(ai)}</ol>
    </section>`}};function ai(n){let t=s(`todo.state.${n.status}`);return a`<li class="todo-item ${n.status}" data-testid="todo-item" data-status=${n.status}>
    <span class="todo-mark" role="img" aria-label=${t} title=${t}>${n.status==="done"?d.check:n.status==="failed"?d.cross:r}</span>
    <span class="todo-text">${n.text}${n.note===void 0?r:a`<span class="todo-note">${n.note}</span>`}</span>
  </li>`}customElements.define("navi-todo",Ae);var oi=["plan","files","explain","draft"],Ie=class extends u{render(){let t=T.get(),e=es.get(),{profile_id:i,backend:o,model:l}=qt(),c=Ue(M.get(),l,o);return rt.get()?a`<div class="scroll"><div class="column">${At(lt)}</div></div>`:a`<div class="scroll"><div class="column welcome" data-testid="welcome">
      <span class="welcome-mark">${q}</span>
      <h2>${s("welcome.title")}</h2>
      <p class="welcome-text">${s("welcome.text")} <span data-testid="welcome-where">${c!==null?s("welcome.hosted",{host:c}):He(M.get(),l)?s("welcome.local"):r}</span></p>
      ${t.length<2?r:a`<fieldset class="profiles"><legend>${s("welcome.profile")}</legend>
        ${t.map(p=>a`<label class="profile"><input type="radio" name="profile" class="cover" data-testid="profile-choice" value=${p.id}
          .checked=${p.id===i} @change=${()=>ts.set(p.id)}>
          <span class="profile-name">${p.name}</span><span class="profile-text">${p.description}</span></label>`)}
      </fieldset>`}
      <section class="examples" aria-label=${s("welcome.examples")}>
        ${oi.map(p=>a`<button type="button" class="example" data-testid="example" @click=${()=>ri(s(`welcome.example.${p}`))}>${s(`welcome.example.${p}`)}</button>`)}
      </section>
      ${e===null?r:O(e)}
    </div></div>`}};function ri(n){document.querySelector("navi-composer")?.setText(n)}customElements.define("navi-welcome",Ie);var Le=class extends u{constructor(){super(),this._focused_for=void 0,this._drawer_was_open=!1,this._title="",this._asked=0,this._wide=matchMedia("(min-width: 52.01rem)"),this._onwide=()=>y.set(!1),this._onkey=t=>this.#s(t)}connectedCallback(){super.connectedCallback(),addEventListener("keydown",this._onkey),this._wide.addEventListener("change",this._onwide),Ns()}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("keydown",this._onkey),this._wide.removeEventListener("change",this._onwide)}updated(){Kt.get()&&(document.title=`${this._asked>0?`(${this._asked}) ${s("approval.page")} · `:""}${this._title===""?"":`${this._title} · `}Navi`,di(this._asked),this.#t())}#t(){let t=y.get();if(t!==this._drawer_was_open){this._drawer_was_open=t;let e=t?".drawer-close":".drawer-open";this.querySelector(e)?.focus()}g.get()!==this._focused_for&&(this._focused_for=g.get(),matchMedia("(hover: hover)").matches&&this.#e()?.focusInput())}#e(){return this.querySelector("navi-composer")}#s(t){if(!(t.defaultPrevented||w(t)||this.querySelector("dialog[open], [popover]:popover-open")!==null))if(t.key==="Escape"){if(t.target instanceof HTMLInputElement||t.target instanceof HTMLSelectElement)return;y.get()?y.set(!1):B()}else(t.ctrlKey||t.metaKey)&&!t.shiftKey&&!t.altKey&&t.code==="KeyK"?(t.preventDefault(),$("palette")):(t.ctrlKey||t.metaKey)&&t.shiftKey&&!t.altKey&&t.code==="KeyO"?(t.preventDefault(),F(),this.#e()?.focusInput()):t.key==="?"&&!(t.target instanceof Element&&t.target.closest("input, textarea, select")!==null)&&(t.preventDefault(),$("keys"))}render(){if(!Kt.get())return a`<main class="signin starting" aria-busy="true" data-testid="starting"><span class="welcome-mark">${q}</span></main>`;if(os.get())return ci();let t=y.get(),e=g.get(),i=it.get();return this._title=ct(),this._asked=vs(e,C.get().list,R.get().filter(H).length),a`
      <a class="skip" href="#composer" @click=${o=>{o.preventDefault(),this.#e()?.focusInput()}}>${s("app.skip")}</a>
      <div class="layout ${t?"drawer":""} ${U.get()?"folded":""}">
        <navi-sidebar class="sidebar" role="complementary" aria-label=${s("sidebar.label")} @click=${o=>{o.target instanceof Element&&o.target.closest(".session-link")!==null&&y.set(!1)}}></navi-sidebar>
        <div class="shade" @click=${()=>y.set(!1)}></div>
        <main class="main" ?inert=${t}>
          <navi-header></navi-header>
          <navi-banner></navi-banner>
          ${i!==null?a`<div class="scroll"><div class="column">${O(i,P(i.code)!=="gone"?a`<button type="button" class="button" data-testid="open-again" @click=${ws}>${d.again}${s("subagent.retry")}</button>`:r)}</div></div>`:e===null?a`<navi-welcome class="body"></navi-welcome>`:a`<navi-conversation class="body"></navi-conversation>`}
          <footer class="foot"><div class="column">
            ${e===null||i!==null?r:a`<navi-asks></navi-asks><navi-todo></navi-todo><navi-queue></navi-queue>`}
            <navi-composer></navi-composer>
          </div></footer>
        </main>
      </div>
      ${li(ns.get())}
      <div class="toasts">${f(rs.get(),o=>o.id,o=>a`<div class="toast ${o.error?"error":""}" role=${o.error?"alert":"status"} data-testid="toast">
        <span>${o.text}</span>
        ${o.action===null?r:a`<button type="button" class="link-button" data-testid="undo" @click=${()=>{o.action?.run(),Qt(o.id)}}>${o.action.label}</button>`}
        <button type="button" class="icon-button" aria-label=${s("banner.hide")} @click=${()=>Qt(o.id)}>${d.close}</button></div>`)}</div>
      <div class="off-screen" role="status" aria-live="polite" data-testid="announcer">${ls.get()}</div>`}};function li(n){switch(n){case"context":return a`<navi-context></navi-context>`;case"file":return a`<navi-file></navi-file>`;case"files":return a`<navi-files></navi-files>`;case"image":return a`<navi-image></navi-image>`;case"import":return a`<navi-import></navi-import>`;case"keys":return a`<navi-keys></navi-keys>`;case"memory":return a`<navi-memory></navi-memory>`;case"palette":return a`<navi-palette></navi-palette>`;case"permissions":return a`<navi-permissions></navi-permissions>`;case"run":return a`<navi-run-panel></navi-run-panel>`;case"setup":return a`<navi-setup></navi-setup>`;case"tags":return a`<navi-tags></navi-tags>`;case null:return r}}function di(n){let t=navigator;(n>0?t.setAppBadge?.(n):t.clearAppBadge?.())?.catch(()=>{})}function ci(){return a`<main class="signin" data-testid="sign-in">
    <span class="welcome-mark">${q}</span>
    <h1>${s("signin.title")}</h1>
    <p>${s("signin.text")}</p>
    <pre><code>navi link</code></pre>
  </main>`}customElements.define("navi-app",Le);
