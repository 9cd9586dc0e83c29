import assert from 'node:assert/strict';
import { test } from 'node:test';

import { beginning, plainText } from '../markdown/plain.js';

/** @type {import('../markdown/plain.js').Say} */
const say = (part) => (part.kind === 'table' ? `a table of ${part.rows}` : part.kind === 'code' ? `code in ${part.language}` : 'a formula');

const ANSWER = `## What it *costs*

The **night train** is [cheaper](https://example.org), see \`prices.md\` and note[^1]:

- Lviv
- Kyiv, where $$a_1 * b$$ holds
  - by night

| from | to |
| --- | --- |
| 1 | 2 |
| 3 | 4 |

\`\`\`rust
let a_b = 1 | 2;
\`\`\`

[^1]: Prices of today.
`;

test('an answer is said without its marks, and what is no words in a few', () => {
  assert.equal(plainText(ANSWER, say),
    'What it costs. The night train is cheaper, see prices.md and note: Lviv. Kyiv, where a formula holds. by night. a table of 2. code in rust.');
  assert.equal(plainText('', say), '');
});

test('a table of many rows is counted whole', () => {
  const rows = Array.from({ length: 300 }, (_, i) => `| ${i} | x |`).join('\n');
  assert.equal(plainText(`| a | b |\n|---|---|\n${rows}`, say), 'a table of 300.');
});

test('a long text is cut where a sentence ends, else where a word does', () => {
  assert.equal(beginning('One. Two is next. Three', 100), 'One. Two is next. Three');
  assert.equal(beginning('One. Two is next. Three goes on', 20), 'One. Two is next.');
  assert.equal(beginning('words without an end', 12), 'words…');
  assert.equal(beginning('x'.repeat(30), 10), `${'x'.repeat(10)}…`);
});
