/** @import { Connection } from '../net/socket.js' */

import { silentSince, wasOpen } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { Clock, NaviElement } from './element.js';
import { formatDuration } from './format.js';

/** What keeps the page from the service; of one that is silent, for how long. */
export class NaviConnection extends NaviElement {
  static properties = { state: { attribute: false } };

  constructor() {
    super();
    this.state = /** @type {Connection} */ ('connecting');
    this._clock = new Clock(this);
  }

  render() {
    const seconds = Math.max(0, Math.round((this._clock.now - silentSince.get()) / 1000));
    return html`<span class="connection" role="status" data-testid="connection"
      data-state=${this.state}><span class="spinner" aria-hidden="true"></span>
      <span class="connection-text">${linkWords(this.state)}</span>
      ${this.state === 'silent'
        ? html`<span class="connection-text" aria-hidden="true"
          data-testid="silent-for">· ${formatDuration(seconds * 1000)}</span>`
        : ''}</span>`;
  }
}

/** What there is to say of a connection. @param {Connection} state */
export const linkWords = (state) => t(`connection.${state === 'lost' && !wasOpen.get() ? 'absent' : state}`);

customElements.define('navi-connection', NaviConnection);
