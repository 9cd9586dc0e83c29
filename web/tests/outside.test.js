import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sourcesOf } from '../state/outside.js';

const at = (/** @type {number} */ minute) => `2026-01-01T00:0${minute}:00Z`;
const call = (/** @type {string} */ id, /** @type {string} */ name, /** @type {unknown} */ args, outside = true) => (/** @type {any} */ ({ id, name, args, outside, started_at: null }));
const said = (/** @type {string} */ id, /** @type {number} */ minute, /** @type {any[]} */ calls) => (/** @type {any} */ ({ kind: 'assistant', id, created_at: at(minute), calls }));

test('what was read from outside is listed once, the newest first, and leads to its message', () => {
  const entries = [
    /** @type {any} */ ({ kind: 'user', id: 'u', created_at: at(0), files: [{ name: 'minutes.txt', path: 'uploads/1f.txt' }] }),
    said('a', 1, [call('1', 'web_fetch', { url: 'https://example.org/prices' }), call('2', 'filesystem', { action: 'read', path: 'own.txt' }, false), call('6', 'filesystem', { action: 'read', path: 'uploads/1f.txt' })]),
    said('b', 2, [call('3', 'spawn_agent', {}, false)]),
    said('c', 4, [call('5', 'web_fetch', { url: 'https://example.org/prices' })]),
  ];
  const children = { r: /** @type {any} */ ({ call_id: '3', entries: [said('x', 3, [call('4', 'weather', { city: 'Lviv' })])] }) };
  assert.deepEqual(sourcesOf({ entries, children }), [
    { message_id: 'c', what: 'example.org/prices', at: at(4) },
    { message_id: 'b', what: 'weather', at: at(3) },
    { message_id: 'a', what: 'minutes.txt', at: at(1) },
  ]);
});
