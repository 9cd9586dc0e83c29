try{let t=localStorage.getItem("navi.theme");(t==="light"||t==="dark")&&(document.documentElement.dataset.theme=t)}catch{}
