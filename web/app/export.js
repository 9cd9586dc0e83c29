// Conversations as files, to keep or to take elsewhere.

import { t } from '../i18n/index.js';
import { api } from '../net/api.js';
import { fileName, toMarkdown } from '../state/export.js';
import { pageError, showError, showToast } from './actions.js';
import { sessions } from './signals.js';

/** One conversation. @param {string} id @param {'md' | 'json'} kind */
export async function exportSession(id, kind) {
  try {
    const session = await api.wholeSession(id);
    const text = kind === 'json' ? JSON.stringify(session, null, 2) : toMarkdown(session, { you: t('conversation.you'), result: t('tool.result') });
    save([text], fileName(session.title, kind));
  } catch (error) {
    showError(pageError(error));
  }
}

/** Every conversation, those too that are put away, one a line: JSON that is read piece by piece. */
export async function exportAll() {
  /** @type {Blob[]} */
  const lines = [];
  try {
    const list = [...sessions.get().list, ...await api.archived()];
    showToast(t('export.begun', { n: list.length }));
    for (const { id } of list) lines.push(new Blob([JSON.stringify(await api.wholeSession(id)), '\n']));
  } catch (error) {
    showError(pageError(error));
    return;
  }
  save(lines, fileName(`navi ${new Date().toISOString().slice(0, 10)}`, 'jsonl'));
}

/** Hands a file to the browser. @param {BlobPart[]} parts @param {string} name */
export function save(parts, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(parts));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS);
  showToast(t('export.done', { name }));
}

/** A browser has begun to read it by then. */
const RELEASE_MS = 60_000;
