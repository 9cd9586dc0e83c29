// Elements that are loaded with the first of them that is drawn: until then their place is empty.

import { withPanelWords } from '../i18n/index.js';
import { nothing } from '../vendor/lit.js';

const AGAIN_MS = 2_000;

/** @typedef {'approval' | 'plan' | 'queue' | 'subagent' | 'todo' | 'unknown'} Name */

/** @type {Set<Name>} */
const asked = new Set();

/** Stands before the element. @param {Name} name */
export function later(name) {
  if (!asked.has(name)) {
    asked.add(name);
    void load(name);
  }
  return nothing;
}

/** @param {Name} name */
async function load(name) {
  for (let failures = 0; ; failures += 1) {
    try {
      // The words first: the elements come to life as soon as they are known.
      if (name === 'unknown') await withPanelWords();
      // A browser that failed to load a module may keep that in mind: another try has another address.
      await import(`./${name}.js${failures === 0 ? '' : `?again=${failures}`}`);
      return;
    } catch {
      await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
    }
  }
}
