// What the page keeps of itself, so that it opens where Navi is not running (`sw.js`).

/** Where this page's files lie: the folder's name changes with any of them. */
const folder = new URL('.', import.meta.url).href;

/** Says that a page was not sent by Navi just now, as a `Server-Timing`: a script sees no other header of its page. */
const KEPT = 'kept';

/** Whether this page was opened from what was kept: Navi may have been updated since. */
export function isKept() {
  const [opened] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType('navigation'));
  return opened?.serverTiming.some(({ name }) => name === KEPT) ?? false;
}

/** Whether it is the page that these files belong to. @param {Response | undefined} page */
const isOurs = async (page) => page !== undefined
  && (await page.clone().text()).includes(folder.split('/').at(-2) ?? '');

/** Keeps the files that this page was made of, in place of an older page's. */
export async function keepShell() {
  try {
    const { scope } = await navigator.serviceWorker.register('sw.js', { updateViaCache: 'all' });
    const cache = await caches.open(`navi ${new URL(scope).pathname}`);
    const known = (await cache.keys()).map(({ url }) => url);
    const used = new Set(performance.getEntriesByType('resource').map(({ name }) => name)
      .filter((name) => name.startsWith(folder)));
    // What is opened now and then belongs to it, too.
    const files = [...used.add(new URL('panels.js', folder).href)];
    await cache.addAll(files.filter((url) => !known.includes(url)));
    if (await isOurs(await cache.match(scope, { ignoreVary: true }))) return;
    const page = await fetch(scope, { cache: 'no-cache' });
    // One that came with an update just now keeps itself.
    if (!await isOurs(page)) return;
    const headers = new Headers(page.headers);
    headers.set('server-timing', KEPT);
    await cache.put(scope, new Response(page.body, { headers }));
    const older = known.filter((url) => url !== scope && !url.startsWith(folder));
    await Promise.all(older.map((url) => cache.delete(url, { ignoreVary: true })));
  } catch {
    // Neither by https nor from this machine, or the browser keeps nothing: without Navi there is no page.
  }
}
