/** @import { RecordLine, Recorded } from '../state/wire.js' */

import { save } from '../app/export.js';
import { hasText, t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { people, RECORD_PAGE } from '../net/people.js';
import { kindOf, nameOf } from '../state/powers.js';
import { apart, limitIn } from '../state/record.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText } from './fields.js';
import { formatCount, formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

const FILE = 'navi-record.jsonl';
/** What takes something away, or was refused. @type {ReadonlySet<Recorded>} */
const GRAVE = new Set(/** @type {const} */ (['sign_in_failed', 'person_removed', 'tool_forbidden', 'mcp_server_removed',
  'token_removed', 'passkey_removed', 'invitation_removed', 'identity_unlinked', 'role_kept']));

/** Who came in and who changed what, the newest first. */
export class NaviPeopleRecord extends NaviElement {
  static properties = { _lines: { state: true }, _more: { state: true } };

  constructor() {
    super();
    /** @type {RecordLine[] | null} */
    this._lines = null;
    /** Whether there may be older ones. */
    this._more = false;
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#read();
  }

  render() {
    const lines = this._lines;
    const { busy, problem } = this._asking;
    return html`<p class="quiet">${t('record.hint')}</p>
      <div class="panel-tools"><button type="button" class="button small plain" data-testid="record-export"
        ?disabled=${busy}
        @click=${() => this.#export()}>${icons.download}<span>${t('record.export')}</span></button></div>
      ${fault(faultText(problem))}
      ${lines === null
        ? nothing
        : lines.length === 0
          ? html`<p class="quiet panel-empty">${t('record.empty')}</p>`
          : html`<ul class="rows">${repeat(lines, ({ id }) => id, row)}</ul>`}
      ${this._more
        ? html`<button type="button" class="link-button" data-testid="record-older" ?disabled=${busy}
          @click=${() => this.#read()}>${t('permissions.more')}</button>`
        : nothing}`;
  }

  #read() {
    void this._asking.ask(async () => {
      const before = this._lines ?? [];
      const lines = await people.record(before.at(-1)?.id ?? null);
      this._lines = [...before, ...lines];
      this._more = lines.length === RECORD_PAGE;
    });
  }

  /** A link would carry the cookie alone. */
  #export() {
    void this._asking.ask(async () => save([await people.exportRecord()], FILE));
  }
}

/** @param {RecordLine} line */
function row({ at, what, name, about, address }) {
  const { who, more } = about === null ? { who: null, more: [] } : inWords(what, about);
  return html`<li class="row" data-testid="record-line"
    data-what=${what}><span class="row-icon ${GRAVE.has(what)
      ? 'warn'
      : ''}">${GRAVE.has(what) ? icons.warning : icons.check}</span>
    <div class="row-text"><p class="row-title">${t(`record.what.${what}`)}${who === null
        ? nothing
        : html`: <span dir="auto">${visible(who)}</span>`}</p>
      ${more.length === 0
        ? nothing
        : html`<p class="row-note" dir="auto">${more.map((part, i) => html`${i === 0 ? nothing : ' · '}${part}`)}</p>`}
      <p class="row-note">${name === null ? nothing : html`<b dir="auto">${visible(name)}</b> · `}<time
        datetime=${at}>${formatTime(at)}</time>${address === null ? nothing : html` · ${address}`}</p></div></li>`;
}

/**
 * In the page's words, as far as it has them.
 * @param {Recorded} what
 * @param {string} about
 * @returns {{ who: string, more: unknown[] }}
 */
function inWords(what, about) {
  const { whose, told } = apart(about);
  const list = told.split(', ').filter((one) => one !== '');
  switch (what) {
    case 'powers_granted': return {
      who: whose === 'users' ? t('powers.users') : whose,
      more: list.length === 0 ? [t('powers.none')] : list.map(powerName),
    };
    case 'limits_changed': return { who: whose, more: list.map(limitName) };
    case 'role_changed': return { who: whose, more: [wordOr(`role.${told}`, told)] };
    case 'invited': return { who: wordOr(`role.${about}`, about), more: [] };
    case 'signed_in': return {
      who: wordOr(`record.way.${whose.replaceAll(/[ -]/g, '_')}`, whose), more: told === '' ? [] : [visible(told)],
    };
    default: return { who: about, more: [] };
  }
}

/** @param {string} key @param {string} text */
const wordOr = (key, text) => (hasText(key) ? t(key) : text);

/** @param {string} power */
const powerName = (power) =>
  visible([wordOr(`power.${kindOf(power)}`, kindOf(power)), nameOf(power)].filter((part) => part !== '').join(': '));

/** @param {string} text */
function limitName(text) {
  const { name, value } = limitIn(text);
  const key = `limits.${name}`;
  return hasText(key) && !Number.isNaN(value)
    ? `${t(key)}: ${value === null ? t('record.as_all') : formatCount(value)}`
    : visible(text);
}

customElements.define('navi-people-record', NaviPeopleRecord);
