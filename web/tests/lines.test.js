import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';

const CHARS = 120;
const root = new URL('..', import.meta.url);

test('no line of the page is longer than a person reads', async () => {
  const long = [];
  for (const folder of ['app', 'markdown', 'net', 'state', 'ui']) {
    for (const file of (await readdir(new URL(folder, root))).filter((name) => name.endsWith('.js'))) {
      const lines = (await readFile(new URL(`${folder}/${file}`, root), 'utf8')).split('\n');
      for (const [i, { length }] of lines.entries()) if (length > CHARS) long.push(`${folder}/${file}:${i + 1}: ${length}`);
    }
  }
  assert.deepEqual(long, [], `more than ${CHARS} characters`);
});
