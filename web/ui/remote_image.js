// A picture of an answer that stands elsewhere. Asking for it would tell its host that the answer is being read,
// and whatever its address says: it is a link until a person asks to see it. What offers that comes later.

import { loadPanels } from '../app/actions.js';
import { isGuest, openId } from '../app/signals.js';

/** It owns its children. */
export class NaviRemoteImage extends HTMLElement {
  static observedAttributes = ['href', 'alt'];

  connectedCallback() {
    this.#draw();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#draw();
  }

  #draw() {
    const href = this.getAttribute('href') ?? '';
    const link = Object.assign(document.createElement('a'), {
      href, target: '_blank', rel: 'noopener noreferrer', textContent: `🖼 ${this.getAttribute('alt') || href}`,
    });
    this.replaceChildren(link);
    const session = openId.get();
    if (session === null || isGuest.get()) return;
    // Where it cannot be had the link stays.
    loadPanels().then(({ offerPicture }) => offerPicture(this, session, link), () => {});
  }
}

customElements.define('navi-remote-image', NaviRemoteImage);
