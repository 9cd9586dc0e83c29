// The page's service worker. Where Navi answers, all comes from it; where it is not running, the page
// comes from what it kept of itself (`app/shell.js`), and waits for Navi.

/** @typedef {Event & { request: Request, respondWith: (response: Promise<Response>) => void }} FetchEvent */

/** What runs this, of which the page's types know nothing. @type {any} */
const worker = self;

worker.addEventListener('install', () => worker.skipWaiting());

// A note that was pressed leads to its conversation, in the page that is open, or else in a new one.
worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(openAt(event.notification.data));
});

/** @param {string} place */
async function openAt(place) {
  const pages = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const page = pages.find((/** @type {{ url: string }} */ { url }) => url.startsWith(worker.registration.scope));
  if (page === undefined) return worker.clients.openWindow(`${worker.registration.scope}${place}`);
  page.postMessage({ open: place });
  return page.focus();
}

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
  // A proxy answers by itself for a service that is away. Files of a page that an update replaced are gone there.
  if (response !== null && (response.ok || (request.mode === 'navigate' && response.status < 500))) return response;
  return await caches.match(request.url, { ignoreVary: true }) ?? response ?? Response.error();
}
