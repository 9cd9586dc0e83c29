// What stands over the page, its looks and its words are loaded when it is first opened.

import { showError } from '../app/actions.js';
import { drawerOpen, memoryOpen, panel, shownRun } from '../app/signals.js';
import { withPanelWords } from '../i18n/index.js';

/** @type {Promise<void> | null} */
let styles = null;

/** The looks and the words of panels and of what a search finds. */
export const withPanelLooks = () => Promise.all([withStyles(), withPanelWords()]);

function withStyles() {
  styles ??= new Promise((resolve, reject) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = '/web/styles/panels.css';
    link.onload = () => resolve();
    link.onerror = () => {
      styles = null;
      link.remove();
      reject(new Error('no styles'));
    };
    document.head.append(link);
  });
  return styles;
}

/** @typedef {'files' | 'permissions' | 'memory' | 'run'} PanelName */

/** @type {Record<PanelName, () => Promise<unknown>>} */
const modules = {
  files: () => import('./files.js'),
  permissions: () => import('./permissions.js'),
  memory: () => import('./memory.js'),
  run: () => import('./run_panel.js'),
};

/** What a run did, and what its model was sent. @param {string} run_id */
export function showRun(run_id) {
  shownRun.set(run_id);
  return openPanel('run');
}

/** @param {PanelName} name */
export async function openPanel(name) {
  try {
    await Promise.all([modules[name](), withPanelLooks()]);
  } catch {
    showError({ code: 'unreachable', message: '' });
    return;
  }
  drawerOpen.set(false);
  if (name === 'memory') memoryOpen.set(true);
  else panel.set(name);
}
