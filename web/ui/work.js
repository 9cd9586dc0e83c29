// The work of a run as a person reads it: each call in a few words, a stretch of them in one line.

/** @import { Call } from '../state/types.js' */
/** @import { Stretch } from '../state/work.js' */

import { showFile } from '../app/actions.js';
import { approvals, unfolded } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { deedOf, deeds, undone } from '../state/work.js';
import { formatDuration } from './format.js';
import { icons } from './icons.js';

/** More kinds of work than this are counted. */
const KINDS = 4;
/** More of what was done is cut off: a command may be a page long. */
const WHAT = 120;
/** What took less was done at once. */
const WORTH_TELLING_MS = 1_000;
/** Stands for what it was done to, until that is put in as an element. */
const PLACE = '\u0000';

/** Whether a stretch of work shows its calls. @param {Stretch} stretch */
export const isUnfolded = ({ id, live }) => unfolded.get().get(id) ?? live;

/** What a call does, or did, as a sentence. @param {Call} call @param {boolean} done */
export function deed(call, done) {
  const { verb, what } = deedOf(call);
  const [before, after] = sentenceCase(t(`work.${done ? 'did' : 'do'}.${verb}`, { x: PLACE })).split(PLACE);
  return html`${before}<span class="deed-what">${shown(what)}</span>${after}`;
}

/** The line that stands for a stretch of work, and folds it. @param {Stretch} stretch */
export function workHead(stretch) {
  const open = isUnfolded(stretch);
  const { id, live, calls, ms } = stretch;
  const done = deeds(calls);
  const { failed, denied } = undone(calls, approvals.get());
  const said = [
    live ? t('work.live') : ms < WORTH_TELLING_MS ? t('work.done') : t('work.done_in', { time: formatDuration(ms) }),
    ...done.slice(0, KINDS).map(({ verb, whats }) => (whats.length === 1
      ? t(`work.did.${verb}`, { x: shown(whats[0]) })
      : t(`work.many.${verb}`, { n: whats.length }))),
    ...(done.length > KINDS ? [t('work.more', { n: done.length - KINDS })] : []),
    ...(failed > 0 ? [t('work.failed', { n: failed })] : []),
    ...(denied > 0 ? [t('work.denied', { n: denied })] : []),
  ];
  return html`<button type="button" class="fold work-head ${live ? 'live' : ''}" aria-expanded=${String(open)}
    data-testid="work" data-live=${String(live)}
    @click=${() => unfolded.set(new Map([...unfolded.get(), [id, !open]]))}>
    ${icons.wrench}<span
      class="fold-label">${
        said.map((part, i) => html`${i === 0
          ? nothing
          : html`<span aria-hidden="true"> · </span>`}<span>${part}</span>`)}</span><span
            class="turn">${icons.chevron}</span></button>`;
}

/** Files of the workspace that open. @param {string[]} paths */
export function fileChips(paths) {
  if (paths.length === 0) return nothing;
  return html`<ul class="file-row"
    aria-label=${t('workspace.made')}>${
      paths.map((path) => html`<li><button type="button" class="file-chip" data-testid="made-file"
        title=${t('workspace.open', { name: path })}
    @click=${() => showFile(path)}>${icons.file}<span class="file-name" dir="ltr">${path}</span></button></li>`)}</ul>`;
}

/** @param {string} what */
function shown(what) {
  if (what === '') return t('work.workspace');
  return what.length > WHAT ? `${what.slice(0, WHAT)}…` : what;
}

/** @param {string} text */
const sentenceCase = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);
