// What a screen reader is told, in plain words. What comes within a moment stands together, so that
// nothing is lost before it was said.

/** @import { Envelope, TodoItem } from '../state/wire.js' */

import { hasWords, loadTroubles, t } from '../i18n/index.js';
import { phraseText, summaryOf } from '../i18n/phrases.js';
import { beginning, plainText } from '../markdown/plain.js';
import { isChild } from '../state/children.js';
import { ruleOf } from '../state/events.js';
import { deedOf, isInSteps, isSubagent } from '../state/work.js';
import { announcements } from './signals.js';

/** What was told longer ago than this has been said, and goes with the next. */
const TOGETHER_MS = 1_000;
const KEPT = 8;
/** How much of an answer is read out, and of what a call is about; the rest is in the page. */
const ANSWER_CHARS = 400;
/** It is looked for in so much of it. */
const READ_CHARS = 4_000;
const DEED_CHARS = 120;

let last_id = 0;
/** The step that was told last: of a list that is told anew, only what goes on is news. */
let told_step = '';

/** @param {string} text */
export function announce(text) {
  const now = performance.now();
  last_id += 1;
  const list = announcements.get();
  // All of them go or none: a list that loses its first of two moves the other, which is read out again.
  const together = now - (list.at(-1)?.at ?? -Infinity) < TOGETHER_MS ? list : [];
  announcements.set([...together.slice(1 - KEPT), { id: last_id, at: now, text }]);
}

/** Another conversation is shown. @param {string} title */
export function announceOpened(title) {
  told_step = '';
  if (title !== '' && hasWords.get()) announce(t('announce.opened', { title }));
}

/** @param {Envelope} frame */
export async function announceEvent(frame) {
  // What is said aloud is not said anew once there are words for it.
  if (frame.type === 'error' && frame.phrase !== undefined) await loadTroubles().catch(() => {});
  const text = frame.seq === undefined ? '' : wordsFor(frame);
  if (text !== '') announce(text);
}

/** What a subagent does is not told, unless it is everyone's, as a question. @param {Envelope} frame */
function wordsFor(frame) {
  const { shared = false, aloud } = ruleOf(frame.type);
  return isChild(frame) && !shared ? '' : aloud?.(frame, WORDS) ?? '';
}

/** What stands for a part of an answer that cannot be read out. @type {import('../markdown/plain.js').Say} */
function partWords(part) {
  if (part.kind === 'table') return t('announce.table', { n: part.rows });
  if (part.kind === 'formula') return t('announce.formula');
  return part.language === '' ? t('announce.code') : t('announce.code_in', { language: part.language });
}

/** @param {string} name @param {unknown} args */
function callWords(name, args) {
  // The list itself tells what goes on in it.
  if (isInSteps({ name, state: 'running' })) return '';
  if (isSubagent({ name })) return t('announce.subagent');
  const { verb, what } = deedOf({ name, args });
  const x = what === '' ? t('work.workspace') : beginning(what, DEED_CHARS);
  return t('announce.tool', { what: t(`work.do.${verb}`, { x }) });
}

/** The step that goes on now. @param {TodoItem[]} items */
function stepWords(items) {
  const at = items.findIndex(({ status }) => status === 'in_progress');
  const step = at < 0 ? '' : `${items[at].id} ${items[at].text}`;
  if (step === told_step) return '';
  told_step = step;
  return at < 0
    ? ''
    : t('announce.step', { n: at + 1, total: items.length, text: plainText(items[at].text, partWords) });
}

/** @param {string} markdown */
const answerWords = (markdown) => beginning(plainText(markdown.slice(0, READ_CHARS), partWords), ANSWER_CHARS);

/** @type {import('../state/events.js').Words} */
const WORDS = { t, phrase: phraseText, request: summaryOf, answer: answerWords, call: callWords, step: stepWords };
