/** @import { Fork } from '../state/wire.js' */
/** @import { AssistantEntry, Call, Entry, NoticeEntry } from '../state/types.js' */
/** @import { Stretch } from '../state/work.js' */

import { showRun } from '../app/actions.js';
import { regenerate } from '../app/session.js';
import { approvals, isGuest, isRunning, printing, sharedLink } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { approvalOf } from '../state/approvals.js';
import { numbersOf } from '../state/children.js';
import { shownState } from '../state/outcome.js';
import { isFolded, isInSteps, isSubagent, unmended } from '../state/work.js';
import { branchPager } from './branch_pager.js';
import { withCode } from './cards.js';
import { copyButton } from './copy.js';
import { switchDivider } from './dividers.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons, mark } from './icons.js';
import { fileChips, isUnfolded, workHead } from './work.js';
import './alert.js';
import './code.js';
import './footnote.js';
import './markdown.js';
import './math.js';
import './pace.js';
import './plan.js';
import './remote_image.js';
import './subagent.js';
import './thinking.js';
import './tool_card.js';
import './user_message.js';

/** @type {string[]} */
const NONE = [];

/** One entry of the conversation. It is drawn again only when its entry is another object. */
export class NaviMessage extends NaviElement {
  static properties = {
    entry: { attribute: false }, first: { type: Boolean }, fork: { attribute: false },
    asked: { attribute: false }, work: { attribute: false }, made: { attribute: false },
    steps: { type: Boolean }, subagent: { type: Boolean }, _looked: { state: true },
  };

  constructor() {
    super();
    this.entry = /** @type {Entry} */ (/** @type {unknown} */ (null));
    /** Whether it begins an answer: then it carries Navi's mark. */
    this.first = false;
    /** The branches that begin here. @type {Fork | null} */
    this.fork = null;
    /** The user's message that it answers, where it ends an answer. @type {string | null} */
    this.asked = null;
    /** The work that it has a part in. @type {Stretch | null} */
    this.work = null;
    /** The files that its run left behind, where it ends that. @type {string[]} */
    this.made = NONE;
    /** Whether the list of steps shows what its calls did to it. */
    this.steps = false;
    /** Whether a subagent said it. */
    this.subagent = false;
    /** Whether somebody looked at what stands below it. */
    this._looked = false;
  }

  render() {
    const { entry } = this;
    if (entry.kind === 'user') return html`<navi-user-message .entry=${entry} .fork=${this.fork}></navi-user-message>`;
    if (entry.kind === 'switch') return switchDivider(entry);
    return entry.kind === 'notice' ? notice(entry) : this.#assistant(entry);
  }

  /** @param {AssistantEntry} entry */
  #assistant(entry) {
    const streaming = entry.open && entry.content !== '';
    // A message that called tools is the middle of an answer; its foot would only part it.
    const isLast = entry.content !== '' && entry.calls.length === 0 && !entry.is_plan;
    const { work } = this;
    const calls = this.#calls(entry);
    const numbers = numbersOf(calls.filter(isSubagent));
    const head = work !== null && work.id === entry.id ? workHead(work) : nothing;
    const isWork = work !== null && (entry.content === '' || work.asides.includes(entry.id));
    const folded = isWork && !isUnfolded(work);
    // On paper nobody unfolds it.
    const silent = entry.content === '' || (folded && !printing.get());
    const bare = silent && calls.length === 0 && this.made.length === 0 && head === nothing
      && (folded || entry.thinking === '');
    return html`<article class="message assistant ${this.first ? 'first' : ''} ${work !== null
      ? 'worked'
      : ''} ${bare && !this.first ? 'bare' : ''}" data-testid="message" data-role="assistant"
      data-message-id=${entry.id} tabindex="-1" data-state=${entry.open ? 'streaming' : entry.state}
      aria-label=${t('conversation.navi')}>
      ${this.first ? html`<span class="avatar">${mark}</span>` : nothing}
      ${isWork ? head : nothing}
      ${entry.thinking === '' || folded ? nothing : html`<navi-thinking .entry=${entry}></navi-thinking>`}
      ${entry.is_plan
        ? html`<navi-plan .entry=${entry} ?subagent=${this.subagent}></navi-plan>`
        : silent ? nothing : html`<navi-markdown class="prose ${streaming ? 'streaming' : ''}" dir="auto"
        .text=${entry.content} .complete=${!entry.open}></navi-markdown>`}
      ${isWork ? nothing : head}
      ${repeat(sideBySide(calls), (group) => group[0].id, (group) => (group[0].name === AGENT
        ? html`<div class="agents">${repeat(group, (call) => call.id,
          (call) => html`<navi-subagent .call=${call} .run=${entry.run_id}
            .number=${numbers.get(call.id) ?? 0}></navi-subagent>`)}</div>`
        : html`<navi-tool-card .call=${group[0]}></navi-tool-card>`))}
      ${fileChips(this.made)}
      ${entry.open || !(isLast || this.asked !== null || this.fork !== null) ? nothing : this.#foot(entry, isLast)}
    </article>`;
  }

  /**
   * Its calls that are shown: of folded work those that a person is asked about, or that went
   * wrong.
   * @param {AssistantEntry} entry
   */
  #calls({ calls }) {
    const { work, steps } = this;
    const own = steps ? calls.filter((call) => !isInSteps(call)) : calls;
    if (work === null || isUnfolded(work)) return own;
    const asked = approvals.get();
    const wrong = unmended(work.calls, asked);
    return own.filter((call) => !isFolded(call) || wrong.includes(call)
      || ['asked', 'outcome_unknown'].includes(shownState(call, approvalOf(asked, call.id))));
  }

  /** @param {AssistantEntry} entry @param {boolean} isLast */
  #foot(entry, isLast) {
    const { asked } = this;
    const look = () => { this._looked = true; };
    return html`<div class="message-foot" @pointerenter=${look} @focusin=${look}>
      ${entry.state === 'complete'
        ? nothing
        : html`<span class="tag ${entry.state}">${t(`message.state.${entry.state}`)}</span>`}
      ${this.fork === null ? nothing : branchPager(this.fork)}
      <span class="message-actions">${isLast ? copyButton(() => entry.content, 'message.copy') : nothing}
        ${asked === null || isRunning.get() || isGuest.get()
          ? nothing
          : html`<button type="button" class="icon-button" data-testid="regenerate"
          title=${t('message.regenerate')} aria-label=${t('message.regenerate')}
          @click=${() => void regenerate(asked)}>${icons.again}</button>`}
        ${entry.run_id === null || sharedLink.get() !== null || !(isLast || asked !== null)
          ? nothing
          : html`<button type="button" class="icon-button" data-testid="run-details" data-run-id=${entry.run_id}
          aria-haspopup="dialog" title=${t('message.details')} aria-label=${t('message.details')}
          @click=${() => showRun(/** @type {string} */ (entry.run_id))}>${icons.history}</button>`}
        ${isLast ? html`<navi-pace .entry=${entry} ?wanted=${this._looked}></navi-pace>` : nothing}</span></div>`;
  }
}

const AGENT = 'spawn_agent';

/**
 * Subagents that were started together stand together; every other call stands alone.
 * @param {Call[]} calls
 * @returns {Call[][]}
 */
function sideBySide(calls) {
  /** @type {Call[][]} */
  const groups = [];
  for (const call of calls) {
    const last = groups[groups.length - 1];
    if (call.name === AGENT && last?.[0].name === AGENT) last.push(call);
    else groups.push([call]);
  }
  return groups;
}

/** @param {NoticeEntry} entry */
function notice({ tone, code, message, phrase }) {
  const resumed = code === 'run_resumed';
  return html`<p class="notice ${tone}" data-testid="notice"
    data-code=${code}>${resumed ? icons.resume : icons.warning}<span>${
    resumed || code === 'unreadable_frame'
      ? t(`notice.${code}`)
      : withCode(sentence(phraseText(phrase, message)))}</span></p>`;
}

customElements.define('navi-message', NaviMessage);
