// The types of the wire are those of the service's schemas (`npm run types`); what of them is a
// list in the page is compared here.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { EVENTS } from '../state/events.js';

const { $defs } = JSON.parse(await readFile(new URL('../state/wire.json', import.meta.url), 'utf8'));

test('the page knows every event of the protocol', () => {
  const told = $defs.Envelope.oneOf.map((/** @type {any} */ event) => event.properties.type.const);
  assert.ok(told.length > 20);
  assert.deepEqual(Object.keys(EVENTS).sort(), told.sort());
});
