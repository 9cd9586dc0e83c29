import { save } from '../app/export.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { people } from '../net/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText } from './fields.js';

/** Everything of one's own, in one file. */
export class NaviAccountArchive extends NaviElement {
  constructor() {
    super();
    this._asking = new Asking(this);
  }

  render() {
    const { busy, problem } = this._asking;
    return html`<h3>${t('archive_all.title')}</h3>
      <p class="quiet">${t('archive_all.hint')}</p>
      ${fault(faultText(problem))}
      <p class="row-actions"><button type="button" class="button small plain" data-testid="archive-all"
        ?disabled=${busy} aria-busy=${busy} @click=${() => this.#take()}>${t('archive_all.take')}</button></p>`;
  }

  /** A link would carry the cookie alone. */
  #take() {
    void this._asking.ask(async () => save([await people.archive()],
      `navi-${new Date().toISOString().slice(0, 10)}.zip`));
  }
}

customElements.define('navi-account-archive', NaviAccountArchive);
