// Elements that are loaded with the first of them that is drawn: until then their place is empty.

import { withPanelWords } from '../i18n/index.js';
import { nothing } from '../vendor/lit.js';

const AGAIN_MS = 2_000;

const modules = {
  approval: () => import('./approval.js'),
  plan: () => import('./plan.js'),
  queue: () => import('./queue.js'),
  subagent: () => import('./subagent.js'),
  todo: () => import('./todo.js'),
  // The words first: the elements come to life as soon as they are known.
  unknown: () => withPanelWords().then(() => import('./unknown.js')),
};

/** @type {Set<keyof typeof modules>} */
const asked = new Set();

/** Stands before the element. @param {keyof typeof modules} name */
export function later(name) {
  if (!asked.has(name)) {
    asked.add(name);
    load(name);
  }
  return nothing;
}

/** @param {keyof typeof modules} name */
function load(name) {
  modules[name]().catch(() => setTimeout(() => load(name), AGAIN_MS));
}
