// What can be done from the palette, by name.

import { languageNames, t } from '../i18n/index.js';
import { archive, bringBack, openPanel, showNew, showTags, showToast, togglePin } from './actions.js';
import { exportAll, exportSession } from './export.js';
import { askForFirstSteps } from './first_steps.js';
import { canNotify, notifies, toggleNotify } from './notify.js';
import { folded, setLanguage, setTheme, theme, toggleFolded } from './prefs.js';
import { printConversation } from './print.js';
import { continueRun, stop } from './session.js';
import {
  hasAccounts, isAdmin, isGuest, isLoaded, isRunning, mayChange, mayShare, openId, rowOf, session, sessions,
  sharedLink,
} from './signals.js';

/** @typedef {import('../i18n/index.js').Language} Language */
/** @typedef {{ id: string, name: string, run: () => void }} Command */

/** Those that would do something now. @returns {Command[]} */
export function commands() {
  const open = rowOf(openId.get());
  const mine = open !== undefined && mayChange(open) ? open : null;
  const is_guest = isGuest.get();
  /** @type {(Command | false)[]} */
  const all = [
    !is_guest && { id: 'new', name: t('sidebar.new'), run: showNew },
    !is_guest && isRunning.get() && { id: 'stop', name: t('composer.stop'), run: stop },
    !is_guest && session.get()?.can_continue === true
      && { id: 'continue', name: t('ending.continue'), run: continueRun },
    isLoaded.get() && { id: 'files', name: t('files.open'), run: () => void openPanel('files') },
    mayShare.get() && { id: 'share', name: t('share.open'), run: () => void openPanel('share') },
    isLoaded.get() && { id: 'context', name: t('context.open'), run: () => void openPanel('context') },
    isLoaded.get() && sharedLink.get() === null
      && { id: 'runs', name: t('runs.list'), run: () => void openPanel('runs') },
    { id: 'memory', name: t('memory.open'), run: () => void openPanel('memory') },
    { id: 'permissions', name: t('permissions.open'), run: () => void openPanel('permissions') },
    { id: 'setup', name: t('setup.open'), run: () => void openPanel('setup') },
    hasAccounts.get() && isAdmin.get() && { id: 'people', name: t('people.open'), run: () => void openPanel('people') },
    hasAccounts.get() && { id: 'account', name: t('account.open'), run: () => void openPanel('account') },
    !is_guest && { id: 'first-steps', name: t('first.open'), run: () => { askForFirstSteps(); showNew(); } },
    mine !== null
      && { id: 'pin', name: t(mine.pinned ? 'session.unpin' : 'session.pin'), run: () => togglePin(mine) },
    mine !== null && { id: 'tags', name: t('tags.open'), run: () => showTags(mine.id) },
    mine !== null
      && { id: 'archive', name: t(mine.archived ? 'session.unarchive' : 'session.archive'),
        run: () => (mine.archived ? bringBack(mine) : void archive(mine)) },
    open !== undefined && { id: 'export-md', name: t('export.markdown'), run: () => void exportSession(open.id, 'md') },
    open !== undefined && { id: 'export-json', name: t('export.json'), run: () => void exportSession(open.id, 'json') },
    sessions.get().list.length > 0 && { id: 'export-all', name: t('export.all'), run: () => void exportAll('jsonl') },
    sessions.get().list.length > 0
      && { id: 'export-all-md', name: t('export.all_md'), run: () => void exportAll('md') },
    !is_guest && { id: 'import', name: t('import.open'), run: () => void openPanel('import') },
    isLoaded.get() && { id: 'print', name: t('palette.print'), run: () => void printConversation() },
    { id: 'sidebar', name: t(folded.get() ? 'sidebar.unfold' : 'sidebar.fold'), run: toggleFolded },
    canNotify() && {
      id: 'notify', name: t(notifies.get() ? 'notify.off' : 'notify.on'), run: () => void changeNotify(),
    },
    { id: 'keys', name: t('keys.open'), run: () => void openPanel('keys') },
    ...(/** @type {const} */ (['auto', 'light', 'dark'])).filter((name) => name !== theme.get()).map((name) => (
      { id: `theme-${name}`, name: `${t('settings.theme')}: ${t(`settings.theme.${name}`)}`,
        run: () => setTheme(name) })),
    ...Object.entries(languageNames).map(([code, name]) => (
      { id: `language-${code}`, name: `${t('settings.language')}: ${name}`,
        run: () => void setLanguage(/** @type {Language} */ (code)) })),
  ];
  return all.filter((command) => command !== false);
}

export async function changeNotify() {
  if (await toggleNotify()) showToast(t(notifies.get() ? 'notify.is_on' : 'notify.is_off'));
  else showToast(t('notify.refused'), null, undefined, true);
}

/** Those whose name holds every word. @param {string} query */
export function matchingCommands(query) {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== '');
  return commands().filter(({ name }) => words.every((word) => name.toLocaleLowerCase().includes(word)));
}
