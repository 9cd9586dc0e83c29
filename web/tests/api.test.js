import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { call, download } from '../net/api.js';

const PATIENCE_MS = 60_000;

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
afterEach(() => {
  mock.timers.reset();
  mock.restoreAll();
});

/**
 * A service that sends a file in pieces, each after so long; it ends with the last one.
 * @param {{ text: string, after_ms: number }[]} pieces
 */
function sends(pieces) {
  mock.method(globalThis, 'fetch', async (/** @type {string} */ _path, /** @type {RequestInit} */ { signal }) => {
    const left = [...pieces];
    return new Response(new ReadableStream({
      start: (out) => signal?.addEventListener('abort', () => out.error(signal.reason)),
      pull(out) {
        const piece = left.shift();
        if (piece === undefined) return out.close();
        mock.timers.tick(piece.after_ms);
        if (signal?.aborted !== true) out.enqueue(new TextEncoder().encode(piece.text));
      },
    }, { highWaterMark: 0 }));
  });
}

test('a download takes as long as it takes, while more of it comes', async () => {
  sends(['a', 'b', 'c', 'd'].map((text) => ({ text, after_ms: PATIENCE_MS - 1 })));
  assert.equal(await (await download('api/account/archive')).text(), 'abcd');
});

test('a download of which nothing more comes is given back', async () => {
  sends([{ text: 'a', after_ms: 0 }, { text: 'b', after_ms: PATIENCE_MS }]);
  await assert.rejects(download('api/account/archive'), { code: 'unreachable' });
});

test('a download that is refused says why', async () => {
  mock.method(globalThis, 'fetch', async () => Response.json({ code: 'rate_limited', message: 'no' }, { status: 429 }));
  await assert.rejects(download('api/account/archive'), { code: 'rate_limited', status: 429 });
});

test('what a proxy refuses is told as what it is, and as no fault of Navi', async () => {
  for (const [status, code, message] of /** @type {const} */ ([
    [413, 'body_too_large', ''], [429, 'rate_limited', ''], [502, 'unreachable', ''], [504, 'unreachable', ''],
    [500, 'internal', 'HTTP 500'],
  ])) {
    mock.method(globalThis, 'fetch', async () => new Response('<h1>No</h1>', { status }));
    await assert.rejects(call('GET', 'sessions'), { code, status, message });
    mock.restoreAll();
  }
});
