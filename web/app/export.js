// Conversations as files, to keep or to take elsewhere.

import { t } from '../i18n/index.js';
import { api } from '../net/api.js';
import { fileName, leftOut, toMarkdown } from '../state/export.js';
import { pageError, showError, showToast } from './actions.js';
import { sessions } from './signals.js';

/** One conversation. @param {string} id @param {'md' | 'json'} kind */
export async function exportSession(id, kind) {
  try {
    const session = await api.wholeSession(id);
    const text = kind === 'json' ? JSON.stringify(session, null, 2) : toMarkdown(session, words());
    save([text], fileName(session.title, kind), kind === 'json' ? 0 : leftOut(session));
  } catch (error) {
    showError(pageError(error));
  }
}

/**
 * Every conversation, those too that are put away: as Markdown one after the other, or one a line as
 * JSON. They are read one by one, and what was read is the browser's to keep out of memory.
 * @param {'md' | 'jsonl'} kind
 */
export async function exportAll(kind) {
  /** @type {Blob[]} */
  const pieces = [];
  let left_out = 0;
  try {
    const list = [...sessions.get().list, ...await api.archived()];
    showToast(t('export.begun', { n: list.length }));
    for (const { id } of list) {
      const session = await api.wholeSession(id);
      pieces.push(new Blob([kind === 'md' ? toMarkdown(session, words()) : JSON.stringify(session), '\n']));
      if (kind === 'md') left_out += leftOut(session);
    }
  } catch (error) {
    showError(pageError(error));
    return;
  }
  save(pieces, fileName(`navi ${new Date().toISOString().slice(0, 10)}`, kind), left_out);
}

/** @returns {import('../state/export.js').Words} */
const words = () => ({
  you: t('conversation.you'),
  result: t('tool.result'),
  picture: (n) => t('conversation.image', { n }),
  left_out: (what) => t('export.not_in_it', { what }),
});

/**
 * Hands a file to the browser.
 * @param {BlobPart[]} parts
 * @param {string} name
 * @param {number} left_out how much is not in it
 */
export function save(parts, name, left_out = 0) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(parts));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS);
  showToast([t('export.done', { name }), ...(left_out > 0 ? [t('export.without', { n: left_out })] : [])].join('. '));
}

/** A browser has begun to read it by then. */
const RELEASE_MS = 60_000;
