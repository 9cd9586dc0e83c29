import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fileName, leftOut, toMarkdown } from '../state/export.js';
import { newsOf } from '../state/sessions.js';
import { at, FakeService, messageOf } from './fake_service.js';

/** @import { SomeOfMessage } from './fake_service.js' */

const words = { you: 'You', result: 'Result', picture: (/** @type {number} */ n) => `Picture ${n}`, left_out: (/** @type {string} */ what) => `${what} (left out)` };

test('a conversation as Markdown has every word, and no fence that something in it closes', () => {
  const { snapshot } = new FakeService();
  const messages = /** @type {SomeOfMessage[]} */ ([
    { id: 'u', role: 'user', content: 'Look.', images: ['aaaa', 'bbbb'], files: [{ file_id: 'f', name: 'a.txt', path: 'uploads/a.txt', media_type: 'text/plain', bytes: 3, image: false }], created_at: at(0) },
    { id: 'a', role: 'assistant', content: 'I look.', tool_calls: [{ id: 'k', name: 'filesystem', arguments: { path: 'a.md' } }], created_at: at(1) },
    { id: 't', role: 'tool', name: 'filesystem', tool_call_id: 'k', content: '```\ncode\n````', created_at: at(2) },
    { id: 'n', role: 'assistant', content: '', created_at: at(3) },
    { id: 'e', role: 'assistant', content: 'Done.', created_at: at(4) },
  ]).map(messageOf);
  assert.equal(toMarkdown({ ...snapshot, title: 'A look', messages }, words), `# A look

${at(0)}

## You

Look.

- Picture 1 (left out)
- Picture 2 (left out)
- a.txt (left out)

## Navi

I look.

\`filesystem\`:

\`\`\`json
{
  "path": "a.md"
}
\`\`\`

Result \`filesystem\`:

\`\`\`\`\`
\`\`\`
code
\`\`\`\`
\`\`\`\`\`

## Navi

Done.
`);
  assert.equal(leftOut({ messages }), 3);
  assert.equal(leftOut({ messages: messages.slice(1) }), 0);
});

test('a file gets a name that every system takes', () => {
  assert.equal(fileName('What: is/this? <a> "b"', 'md'), 'What is this a b.md');
  assert.equal(fileName('..', 'json'), 'navi.json');
  assert.equal(fileName('', 'json'), 'navi.json');
  assert.equal([...fileName('🌊'.repeat(200), 'md')].length, 83);
});

test('what a person who looks elsewhere would want to know', () => {
  const { snapshot } = new FakeService();
  const was = (/** @type {string} */ state, asks = 0) => /** @type {any} */ ({ ...snapshot, state, asks });
  assert.equal(newsOf(undefined, was('idle')), null);
  assert.equal(newsOf(was('running'), was('idle')), 'done');
  assert.equal(newsOf(was('running'), was('failed')), 'failed');
  assert.equal(newsOf(was('running'), was('interrupted')), 'failed');
  assert.equal(newsOf(was('running'), was('running', 1)), 'asks');
  assert.equal(newsOf(was('running', 1), was('running', 1)), null);
  assert.equal(newsOf(was('idle'), was('running')), null);
  assert.equal(newsOf(was('idle'), was('idle')), null);
});
