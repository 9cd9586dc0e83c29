// Conversations from files: read here, checked and stored by the service, one after the other.

import { loadTroubles, t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { signal } from '../lit.js';
import { api, ApiError } from '../net/api.js';
import { errorGroup } from '../state/errors.js';
import { conversationsIn } from '../state/import.js';
import { goTo, pageError, showToast } from './actions.js';
import { panel } from './signals.js';

/** The largest file that is read: it is in memory whole. */
const MAX_FILE_MIB = 256;

/** @typedef {{ file: string, title: string, message: string }} Problem in a conversation of a file, or in the file */

/**
 * @typedef {object} Importing
 * @property {boolean} busy
 * @property {number} files that are still to be read
 * @property {number} done conversations that were asked for, in these files
 * @property {number} total
 * @property {number} imported
 * @property {number} left_out images and files that did not come with them
 * @property {Problem[]} problems
 */

/** @type {Importing} */
const NOTHING = { busy: false, files: 0, done: 0, total: 0, imported: 0, left_out: 0, problems: [] };

export const importing = signal(NOTHING);

/** @param {Partial<Importing>} change */
const note = (change) => importing.set({ ...importing.get(), ...change });

let stopped = false;

export function stopImport() {
  stopped = true;
}

/**
 * Takes in every conversation of these files, and opens the first.
 * @param {File[]} files
 * @returns {Promise<boolean>} whether all of them came in
 */
export async function importFiles(files) {
  if (importing.get().busy) return false;
  stopped = false;
  importing.set({ ...NOTHING, busy: true, files: files.length });
  /** @type {string | null} */
  let first = null;
  for (const file of files) {
    if (stopped) break;
    const { conversations, message } = await read(file);
    const { total, problems } = importing.get();
    note({ files: importing.get().files - 1, total: total + conversations.length });
    if (message !== null) note({ problems: [...problems, { file: file.name, title: '', message }] });
    for (const conversation of conversations) {
      if (stopped) break;
      first = (await take(file.name, conversation)) ?? first;
    }
  }
  note({ busy: false, files: 0 });
  // Who looks at something else by then is left there.
  if (first !== null && panel.get() === 'import') goTo(first);
  const { imported, left_out, problems } = importing.get();
  if (imported > 0)
    showToast([t('import.done', { n: imported }),
      ...(left_out === 0 ? [] : [t('import.left_out', { n: left_out })])].join(' '));
  return problems.length === 0;
}

/** @param {File} file */
async function read(file) {
  if (file.size > MAX_FILE_MIB * 1024 * 1024) return {
    conversations: [], message: t('import.too_large', { n: MAX_FILE_MIB }),
  };
  try {
    const conversations = conversationsIn(await file.text());
    return { conversations: conversations ?? [], message: conversations === null ? t('import.unknown') : null };
  } catch {
    return { conversations: [], message: t('import.unreadable') };
  }
}

/**
 * @param {string} file
 * @param {import('../state/import.js').ImportedSession} conversation
 * @returns {Promise<string | null>} its id, where it is the first
 */
async function take(file, conversation) {
  const before = importing.get();
  try {
    const { session, left_out } = await api.importSession(conversation);
    note({ imported: before.imported + 1, left_out: before.left_out + left_out.images + left_out.files });
    return before.imported === 0 ? session.id : null;
  } catch (error) {
    const { code, message, phrase } = pageError(error);
    // Without them it is said in English.
    if (phrase !== undefined) await loadTroubles().catch(() => {});
    note({ problems: [...before.problems, { file, title: conversation.title,
      message: phraseText(phrase, message) || t(`error.${errorGroup(code)}.title`) }] });
    // Nobody answers: so it is with the rest.
    if (error instanceof ApiError && (error.code === 'unreachable' || error.code === 'unauthorized')) stopped = true;
    return null;
  } finally {
    note({ done: before.done + 1 });
  }
}
