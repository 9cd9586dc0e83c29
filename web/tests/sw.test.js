import assert from 'node:assert/strict';
import { test } from 'node:test';

/** @type {Record<string, (event: any) => void>} */
const listeners = {};
/** @type {{ url: string, focus: () => void, postMessage: (message: unknown) => void }[]} */
let pages = [];
/** @type {unknown[]} */
let told = [];
const SCOPE = 'https://navi.example/a/';
const worker = {
  addEventListener: (/** @type {string} */ name, /** @type {(event: any) => void} */ run) => { listeners[name] = run; },
  registration: { scope: SCOPE },
  clients: {
    matchAll: async () => pages,
    openWindow: async (/** @type {string} */ url) => { told.push(['opened', url]); },
  },
};
Object.assign(globalThis, { self: worker });
await import('../sw.js');

/** @param {string} url */
const page = (url) => ({ url, focus: () => { told.push(['focus', url]); }, postMessage: (/** @type {unknown} */ message) => { told.push([url, message]); } });

/** Presses a note, and waits for what comes of it. @param {string} data */
async function press(data) {
  told = [];
  /** @type {Promise<unknown> | undefined} */
  let done;
  listeners.notificationclick({ notification: { data, close: () => { told.push('closed'); } }, waitUntil: (/** @type {Promise<unknown>} */ work) => { done = work; } });
  await done;
  return told;
}

test('a note that is pressed leads to its conversation, in the page that is open or in a new one', async () => {
  pages = [page('https://navi.example/other/'), page(`${SCOPE}#/s/1`)];
  assert.deepEqual(await press('#/s/2'), ['closed', [`${SCOPE}#/s/1`, { open: '#/s/2' }], ['focus', `${SCOPE}#/s/1`]]);
  pages = [];
  assert.deepEqual(await press('#/s/2'), ['closed', ['opened', `${SCOPE}#/s/2`]]);
});

test('a file that an update took away comes from what was kept, a page that is none does not', async (context) => {
  const kept = new Response('kept');
  const gone = new Response('', { status: 404 });
  Object.assign(globalThis, { caches: { match: async () => kept } });
  context.mock.method(globalThis, 'fetch', async () => gone);
  /** @param {string} path @param {string} mode */
  const answer = async (path, mode) => {
    /** @type {Promise<Response> | undefined} */
    let response;
    listeners.fetch({ request: { url: `${SCOPE}${path}`, mode }, respondWith: (/** @type {Promise<Response>} */ given) => { response = given; } });
    return response;
  };
  assert.equal(await answer('web/0123/panels.js', 'cors'), kept);
  assert.equal(await answer('', 'navigate'), gone);
  assert.equal(await answer('api/status', 'cors'), undefined);
});
