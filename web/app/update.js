// A page that stayed open while its service was updated: its files are yesterday's.

import { outdated } from './signals.js';

/** Where this page's files lie: the folder's name changes with any of them. */
const folder = new URL('.', import.meta.url).pathname.split('/').at(-2) ?? '';

/** Whether the service would send another page now. */
export async function lookForUpdate() {
  try {
    const html = await (await fetch('.', { cache: 'no-cache' })).text();
    if (html.includes('<navi-app>') && !html.includes(folder)) outdated.set(true);
  } catch {
    // It went away again: the next connection looks once more.
  }
}
