// What stands over the page, and its looks, are loaded when it is first opened.

import { showError } from '../app/actions.js';
import { drawerOpen, memoryOpen, panel } from '../app/signals.js';

/** @type {Promise<void> | null} */
let styles = null;

/** The looks of panels and of what a search finds. */
export function withPanelStyles() {
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

/** @type {Record<'files' | 'permissions' | 'memory', () => Promise<unknown>>} */
const modules = {
  files: () => import('./files.js'),
  permissions: () => import('./permissions.js'),
  memory: () => import('./memory.js'),
};

/** @param {'files' | 'permissions' | 'memory'} name */
export async function openPanel(name) {
  try {
    await Promise.all([modules[name](), withPanelStyles()]);
  } catch {
    showError({ code: 'unreachable', message: '' });
    return;
  }
  drawerOpen.set(false);
  if (name === 'memory') memoryOpen.set(true);
  else panel.set(name);
}
