// What the service says to a person: the page has words of its own for its codes.

/** @import { ApprovalRequest, Phrase, Profile } from '../state/wire.js' */

import { hasText, t } from './index.js';

/** In its English where this page does not know the code. @param {Phrase | undefined} phrase @param {string} english */
export function said(phrase, english) {
  const key = `said.${phrase?.code}`;
  return hasText(key) ? t(key, phrase?.params) : english;
}

/** What would be done. @param {ApprovalRequest} request */
export const summaryOf = ({ phrases, summary }) => said(phrases?.summary, summary);

/** What a rule would cover; undefined where none can be made. @param {ApprovalRequest} request */
export const coveredBy = ({ phrases, always }) => (always === undefined ? undefined : said(phrases?.always, always));

/** Why it is asked about. @param {ApprovalRequest} request */
export function reasonOf({ phrases, reason }) {
  const parts = phrases?.reason ?? [];
  return parts.length > 0 && parts.every(({ code }) => hasText(`said.${code}`)) ? parts.map((part) => said(part, '')).join('; ') : reason;
}

/** What a detail is. @param {import('../state/wire.js').Detail} detail */
export function labelOf({ code, label }) {
  const key = `said.label.${code}`;
  return hasText(key) ? t(key) : label;
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

/** A profile in the page's words; what somebody wrote into its file stays theirs. @param {Profile} profile @returns {Profile} */
export function inWords(profile) {
  /** @param {'name' | 'description'} what */
  const told = (what) => (OWN_PROFILES[profile.id]?.[what] === profile[what] ? t(`profile.${profile.id}.${what}`) : profile[what]);
  return { ...profile, name: told('name'), description: told('description') };
}
