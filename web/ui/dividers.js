// Lines across the conversation: from here on something is otherwise.

/** @import { CompressionMark, SwitchEntry } from '../state/types.js' */

import { pageError } from '../app/actions.js';
import { openId, profileName } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import './markdown.js';

/** @param {SwitchEntry} entry */
export function switchDivider(entry) {
  const name = profileName(entry.profile_id, entry.profile_name || entry.profile_id);
  return html`<p class="divider" role="separator" aria-label=${t('divider.profile', { name })}
    data-testid="profile-divider" data-profile=${entry.profile_id}>
    <span>${t('divider.profile', { name })}</span></p>`;
}

/** Where the old part was summed up for the model. The summary is read when somebody wants it. */
export class NaviCompression extends NaviElement {
  static properties = { mark: { attribute: false }, _open: { state: true }, _read: { state: true } };

  constructor() {
    super();
    this.mark = /** @type {CompressionMark} */ (/** @type {unknown} */ (null));
    this._open = false;
    /** What was read for a mark that came without its summary.
     * @type {{ mark: CompressionMark, summary: string | null, error: { code: string, message:
     *  string } | null } | null}
     */
    this._read = null;
  }

  render() {
    const read = this._read?.mark === this.mark ? this._read : null;
    const summary = this.mark.summary ?? read?.summary ?? null;
    return html`<section class="compression" data-testid="compression-divider" data-open=${String(this._open)}>
      <button type="button" class="divider" aria-expanded=${String(this._open)} aria-controls="compression-body"
        data-testid="compression-toggle"
        title=${t('divider.compressed_hint')}
        @click=${() => this.#toggle()}><span>${t('divider.compressed')}<span
          class="turn">${icons.chevron}</span></span></button>
      <div id="compression-body" class="compression-body" ?hidden=${!this._open}>${!this._open ? nothing : html`
        <p class="quiet">${t('divider.compressed_hint')}</p>
        ${summary !== null
          ? html`<navi-markdown class="prose" dir="auto" data-testid="compression-summary" .text=${summary}
            .complete=${true}></navi-markdown>`
          : read?.error != null
            ? errorCard(read.error,
              html`<button type="button" class="button small"
                @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)
            : html`<p class="quiet loading"
              role="status"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`}`}</div>
    </section>`;
  }

  #toggle() {
    this._open = !this._open;
    if (this._open && this.mark.summary === null && this._read?.mark !== this.mark) void this.#load();
  }

  async #load() {
    const id = openId.get();
    const { mark } = this;
    if (id === null) return;
    this._read = null;
    try {
      const { compression } = await api.session(id, 1);
      this._read = { mark, summary: compression?.summary ?? '', error: null };
    } catch (error) {
      this._read = { mark, summary: null, error: pageError(error) };
    }
  }
}

customElements.define('navi-compression', NaviCompression);
