// What the service says to a person: the page has words of its own for its codes.

/** @import { ApprovalRequest, BackendStatus, Check, Phrase } from '../state/wire.js' */

import { hasText, loadTroubles, t } from './index.js';

/** Whether the page has words for it, or none yet: most come with the first of them that is told. @param {string} code */
function isKnown(code) {
  const known = hasText(`said.${code}`);
  // Without them it is said in English.
  if (!known) loadTroubles().catch(() => {});
  return known;
}

/** In its English where this page does not know the code. @param {Phrase | undefined} phrase @param {string} english @returns {string} */
export function phraseText(phrase, english) {
  return phrase !== undefined && isKnown(phrase.code) ? t(`said.${phrase.code}`, standing(phrase)) : english;
}

/** What stands in it: words of Navi's own are the page's here too. @param {Phrase} phrase */
function standing({ params = {}, phrases = {} }) {
  const told = Object.entries(phrases).map(([name, phrase]) => [name, phraseText(phrase, params[name] ?? '')]);
  return { ...params, ...Object.fromEntries(told) };
}

/** Several, one after the other. @param {Phrase[]} phrases @param {string} english */
export const allPhrases = (phrases, english) => (phrases.length > 0 && phrases.every(({ code }) => isKnown(code))
  ? phrases.map((phrase) => phraseText(phrase, '')).join('; ') : english);

/** What would be done. @param {ApprovalRequest} request */
export const summaryOf = ({ phrases, summary }) => phraseText(phrases?.summary, summary);

/** The same without what a detail has word for word: that is said once. @param {ApprovalRequest} request */
export function headOf(request) {
  const { phrases, summary, details } = request;
  const once = details.filter(({ kind, code }) => kind === 'code' && code !== undefined).map(({ code }) => [code, '…']);
  if (phrases === undefined || once.length === 0) return summaryOf(request);
  const { params, ...phrase } = phrases.summary;
  return phraseText({ ...phrase, params: { ...params, ...Object.fromEntries(once) } }, summary).replaceAll('`…`', '…');
}

/** What a rule would cover; undefined where none can be made. @param {ApprovalRequest} request */
export const coveredBy = ({ phrases, always }) => (always === undefined ? undefined : phraseText(phrases?.always, always));

/** Why it is asked about. @param {ApprovalRequest} request */
export const reasonOf = ({ phrases, reason }) => allPhrases(phrases?.reason ?? [], reason);

/** What a detail is. @param {import('../state/wire.js').Detail} detail */
export function labelOf({ code, label }) {
  const key = `said.label.${code}`;
  return hasText(key) ? t(key) : label;
}

/** What keeps a model server from answering, and what to do. @param {Extract<BackendStatus, { state: 'down' }>} backend */
export const troubleOf = ({ phrases, problem, remedy }) => ({ problem: phraseText(phrases?.problem, problem), remedy: phraseText(phrases?.remedy, remedy) });

/** What a check of `navi doctor` says. @param {Check} check */
export function checkWords({ name, detail, remedy, phrases }) {
  const code = `check.${name}`;
  return { name: isKnown(code) ? t(`said.${code}`) : name, detail: allPhrases(phrases.detail, detail), remedy: remedy === undefined ? '' : phraseText(phrases.remedy, remedy) };
}

/**
 * The profiles that come with Navi, in the English of their files.
 * @type {Record<string, { name: string, description: string }>}
 */
export const OWN_PROFILES = {
  secretary: { name: 'Personal Secretary', description: 'Research, writing, analysis and everyday questions' },
  server_admin: { name: 'Server Administrator', description: 'Remote operations, monitoring and logs' },
  smart_home: { name: 'Smart Home Assistant', description: 'Home Assistant, devices and automations' },
};

/**
 * A profile in the page's words; what somebody wrote into its file stays theirs.
 * @template {{ name: string, description: string }} P
 * @param {string} id
 * @param {P} profile
 * @returns {P}
 */
export function inWords(id, profile) {
  /** @param {'name' | 'description'} what */
  const told = (what) => (OWN_PROFILES[id]?.[what] === profile[what] ? t(`profile.${id}.${what}`) : profile[what]);
  return { ...profile, name: told('name'), description: told('description') };
}
