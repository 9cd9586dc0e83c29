import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { en } from '../i18n/en.js';
import { changed, NAMES, standing, written } from '../state/limits.js';

/** @type {import('../state/wire.js').OwnLimits} */
const none = { runs: null, uploads: null, sessions: null, files_mb: null, tokens_a_day: null, tabs: null };

test('what is written in the fields of limits becomes the changes that it means', () => {
  const own = { ...none, runs: 2, tokens_a_day: 0 };
  const fields = written(own);
  assert.deepEqual([fields.runs, fields.tokens_a_day, fields.tabs], ['2', '0', '']);
  assert.deepEqual(changed(fields, own), { changes: {}, fault: null });
  assert.deepEqual(changed({ ...fields, runs: ' ', tabs: '7' }, own), { changes: { runs: null, tabs: 7 }, fault: null });
  for (const [name, text] of /** @type {const} */ ([['runs', '0'], ['runs', '1.5'], ['tabs', '4001'], ['tokens_a_day', '-1'], ['files_mb', 'x']])) {
    assert.equal(changed({ ...fields, [name]: text }, own).fault, name, `${name} ${text}`);
  }
});

test('files are counted in megabytes, and tokens without a limit have none', () => {
  const limits = {
    own: none,
    in_force: { runs: 16, uploads: 4, sessions: 100, files_mb: 2, tokens_a_day: 0, tabs: 200 },
    used: { runs: 1, uploads: 0, sessions: 3, file_bytes: 1024, tokens_a_day: 5, tabs: 2 },
  };
  assert.deepEqual(standing(limits, 'files_mb'), { used: 0.1, most: 2 });
  assert.deepEqual(standing(limits, 'tokens_a_day'), { used: 5, most: null });
  assert.deepEqual(standing(limits, 'sessions'), { used: 3, most: 100 });
});

test('the limits of the page are those of the service, with their words', async () => {
  const { $defs } = JSON.parse(await readFile(new URL('../state/wire.json', import.meta.url), 'utf8'));
  for (const type of ['OwnLimits', 'LimitsChange']) assert.deepEqual([...NAMES].sort(), Object.keys($defs[type].properties).sort());
  for (const name of NAMES) assert.ok(`limits.${name}` in en, name);
});
