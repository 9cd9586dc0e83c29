/** @import { Device } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { browserName } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

/** The browsers in which one is signed in; each can be signed out from here. */
export class NaviAccountDevices extends NaviElement {
  static properties = { _devices: { state: true } };

  constructor() {
    super();
    /** @type {Device[]} */
    this._devices = [];
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#ask(async () => {});
  }

  render() {
    const { busy, problem } = this._asking;
    return html`<p class="quiet">${t('account.devices_hint')}</p>
      ${fault(faultText(problem))}
      <ul class="rows">${repeat(this._devices, ({ id }) => id, (device) => this.#row(device))}</ul>
      ${this._devices.length < 2
        ? nothing
        : html`<p class="row-actions"><button type="button" class="button small plain danger"
          data-testid="devices-others" ?disabled=${busy}
          @click=${() => this.#others()}>${t('account.others')}</button></p>`}`;
  }

  /** @param {Device} device */
  #row({ id, agent, address, created_at, last_used_at, current }) {
    const name = browserName(agent) ?? t('account.device_unknown');
    return html`<li class="row" data-testid="device"
      data-current=${String(current)}><span class="row-icon">${icons.globe}</span>
      <div class="row-text"><p class="row-title"
        title=${agent ?? nothing}>${visible(name)}
          ${current ? html`<span class="tag">${t('account.device_here')}</span>` : nothing}</p>
        <p class="row-note">${address === null
          ? nothing
          : html`${address} · `}${t('account.device_since', { at: formatTime(created_at) })}${
            last_used_at === null
              ? nothing
              : html` · ${t('account.device_used', { at: formatTime(last_used_at) })}`}</p></div>
      ${current
        ? nothing
        : html`<button type="button" class="button small plain danger" data-testid="device-sign-out"
          aria-label="${t('account.sign_out')}: ${name}" ?disabled=${this._asking.busy}
        @click=${() => this.#ask(() => people.signOutDevice(id))}>${t('account.sign_out')}</button>`}</li>`;
  }

  #others() {
    this.#ask(async () => {
      const { signed_out } = await people.signOutOthers();
      showToast(t('account.others_done', { n: signed_out }));
    });
  }

  /** Does it, and shows who is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      this._devices = await people.devices();
    });
  }
}

customElements.define('navi-account-devices', NaviAccountDevices);
