// Parts of the page that are loaded when they are first needed.

import { signal } from '../lit.js';

/** A browser that failed to load a module may keep that in mind: another try has another address. */
let failures = 0;

/** @param {URL} address of a module beside this one, as the page is served @returns {Promise<any>} */
export async function loadPart(address) {
  if (failures > 0) address.searchParams.set('again', String(failures));
  try {
    return await import(address.href);
  } catch (error) {
    failures += 1;
    throw error;
  }
}

/**
 * One whose `coloured` is null until it is here: whoever draws by it is drawn again then.
 * @template {(...args: any[]) => unknown} F
 * @param {string} file
 */
export function colourer(file) {
  const here = signal(/** @type {F | null} */ (null));
  let asked = false;
  return {
    coloured: here,
    /** Where it cannot be had there are no colours, until there is more to colour. */
    want() {
      if (asked) return;
      asked = true;
      loadPart(new URL(file, import.meta.url)).then(({ coloured }) => here.set(coloured), () => { asked = false; });
    },
  };
}
