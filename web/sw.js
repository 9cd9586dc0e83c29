// The page's service worker. Where Navi answers, all comes from it; where it is not running, the page
// comes from what it kept of itself (`app/shell.js`), and waits for Navi.

/** @typedef {Event & { request: Request, respondWith: (response: Promise<Response>) => void }} FetchEvent */

/** What runs this, of which the page's types know nothing. @type {any} */
const worker = self;

worker.addEventListener('install', () => worker.skipWaiting());

worker.addEventListener('fetch', (/** @type {FetchEvent} */ event) => {
  const { request } = event;
  const { scope } = worker.registration;
  const [address] = request.url.split('#', 1);
  const path = address.startsWith(scope) ? address.slice(scope.length) : null;
  if (request.mode === 'navigate' ? path === '' : path?.startsWith('web/')) event.respondWith(answer(request));
});

/** @param {Request} request */
async function answer(request) {
  const response = await fetch(request).catch(() => null);
  // A proxy answers by itself for a service that is away.
  if (response !== null && response.status < 500) return response;
  return await caches.match(request.url, { ignoreVary: true }) ?? response ?? Response.error();
}
