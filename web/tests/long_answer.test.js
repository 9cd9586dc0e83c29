// What a long answer keeps in memory once its blocks are finished.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { showBlocks } from '../markdown/dom.js';
import { MarkdownStream } from '../markdown/stream.js';
import { FakeDocument } from './fake_dom.js';

const FENCES = 300;
const MIB = 1024 * 1024;

setFlagsFromString('--expose-gc');
/** @type {() => void} */
const collect = runInNewContext('gc');

function held() {
  collect();
  return process.memoryUsage().heapUsed / MIB;
}

test('code that is finished keeps nothing of the answer as it stood then', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const parent = document.createElement('div');
  const stream = new MarkdownStream();
  const before = held();
  let text = '';
  let shown = stream.update(text, false);
  for (let at = 0; at < FENCES; at += 1) {
    // A short one may come all at once.
    for (const piece of [`\`\`\`js\nconst row_${at} = "${'x'.repeat(1_000)}";\n\`\`\``, '\n', '\n']) {
      text += piece;
      const next = stream.update(text, false);
      showBlocks(/** @type {any} */ (parent), shown, next);
      shown = next;
    }
  }
  assert.ok(shown.length >= FENCES);
  // Each with the answer up to it, they were 40 MiB and more.
  const grown = held() - before;
  assert.ok(grown < 8, `${grown.toFixed(1)} MiB for an answer of ${(text.length / MIB).toFixed(1)}`);
});
