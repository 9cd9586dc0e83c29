import assert from 'node:assert/strict';
import { test } from 'node:test';

import { conversationsIn } from '../state/import.js';

/** @param {unknown} value */
const read = (value) => conversationsIn(JSON.stringify(value));

test('an export of Navi\'s own is taken as it is, without what is the service\'s to say', () => {
  const messages = [
    { id: 'm', run_id: 'r', role: 'user', content: 'On?', images: ['iVBO'], client_id: 'c', state: 'complete', is_summary: false, is_plan: false, created_at: '2026-01-01T00:00:00Z' },
    { id: 'n', run_id: 'r', role: 'assistant', content: null, tool_calls: [{ id: 'k', name: 'lamp', arguments: { n: 1 } }], created_at: '2026-01-01T00:00:01Z' },
    { id: 'o', run_id: 'r', role: 'tool', content: 'on', tool_call_id: 'k', name: 'lamp', outcome: 'success', duration_ms: 3, outside: false, created_at: '2026-01-01T00:00:02Z' },
  ];
  const session = { id: 's', user_id: 'u', title: 'Lamps', profile_id: 'smart_home', pinned: true, tags: ['home'], mode: 'auto', created_at: '2026-01-01T00:00:00Z', last_active: '2026-01-02T00:00:00Z', messages };
  const one = {
    title: 'Lamps', tags: ['home'], profile_id: 'smart_home', created_at: '2026-01-01T00:00:00Z', last_active: '2026-01-02T00:00:00Z',
    messages: [
      { role: 'user', content: 'On?', run_id: 'r', images: ['iVBO'], state: 'complete', is_plan: false, created_at: '2026-01-01T00:00:00Z' },
      { role: 'assistant', content: null, run_id: 'r', tool_calls: [{ id: 'k', name: 'lamp', arguments: { n: 1 } }], created_at: '2026-01-01T00:00:01Z' },
      { role: 'tool', content: 'on', run_id: 'r', tool_call_id: 'k', outcome: 'success', duration_ms: 3, created_at: '2026-01-01T00:00:02Z' },
    ],
  };
  assert.deepEqual(read(session), [one]);
  const line = JSON.stringify(session);
  assert.deepEqual(conversationsIn(`\uFEFF${line}\n${line}\n`), [one, one]);
});

test('messages as OpenAI\'s API takes them', () => {
  const messages = [
    { role: 'system', content: 'Obey.' },
    { role: 'user', content: [{ type: 'text', text: 'What is' }, { type: 'text', text: 'this?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }] },
    { role: 'assistant', content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }, { id: 'l', type: 'function', function: { name: 'look', arguments: 'no JSON' } }] },
    { role: 'tool', tool_call_id: 'k', content: 'a cat' },
    { role: 'assistant', content: 'A cat.' },
  ];
  const expected = [{
    title: '', messages: [
      { role: 'user', content: 'What is\n\nthis?', images: ['data:image/png;base64,iVBO'] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'k', name: 'look', arguments: { at: 1 } }, { id: 'l', name: 'look', arguments: 'no JSON' }] },
      { role: 'tool', tool_call_id: 'k', content: 'a cat' },
      { role: 'assistant', content: 'A cat.' },
    ],
  }];
  assert.deepEqual(read({ model: 'x', messages }), expected);
  assert.deepEqual(read(messages), expected);
});

/** @param {string} id @param {string | null} parent @param {string[]} children @param {unknown} message */
const node = (id, parent, children, message) => ({ [id]: { id, parent, children, message } });

/** @param {string} role @param {unknown[]} parts @param {object} [more] */
const said = (role, parts, more = {}) => ({ author: { role }, create_time: 1_750_000_000.5, content: { content_type: 'text', parts }, recipient: 'all', ...more });

/** @param {string} asset_pointer */
const picture = (asset_pointer) => ({ content_type: 'image_asset_pointer', asset_pointer });

test('ChatGPT\'s conversations, each along the way that was shown last', () => {
  const mapping = {
    ...node('root', null, ['sys'], null),
    ...node('sys', 'root', ['q'], said('system', [''])),
    ...node('q', 'sys', ['old', 'code'], said('user', ['Where do rivers run?', picture('x')])),
    ...node('old', 'q', [], said('assistant', ['Nobody knows.'])),
    ...node('code', 'q', ['tool'], said('assistant', ['search("rivers")'], { recipient: 'web' })),
    ...node('tool', 'code', ['thought'], said('tool', ['found'])),
    ...node('thought', 'tool', ['new'], { author: { role: 'assistant' }, content: { content_type: 'thoughts', thoughts: [] } }),
    ...node('new', 'thought', [], said('assistant', ['To the sea.'], { create_time: null })),
  };
  const expected = {
    title: 'Rivers', created_at: '2025-06-15T15:06:40.000Z', last_active: '2025-06-15T15:06:41.000Z',
    messages: [
      { role: 'user', content: 'Where do rivers run?', files: [picture('x')], created_at: '2025-06-15T15:06:40.500Z' },
      { role: 'assistant', content: 'To the sea.' },
    ],
  };
  const one = { title: 'Rivers', create_time: 1_750_000_000, update_time: 1_750_000_001, mapping, current_node: 'new' };
  const empty = { title: 'Nothing', mapping: node('root', null, [], null) };
  assert.deepEqual(read([one, empty]), [expected]);
  // Where it is not said which is shown, the newest.
  assert.deepEqual(read([{ ...one, current_node: undefined }]), [expected]);
  // One that leads in a circle ends all the same.
  const circle = { ...node('a', 'b', [], said('user', ['x'])), ...node('b', 'a', [], null) };
  assert.equal(read({ mapping: circle, current_node: 'a' })?.[0].messages.length, 1);
});

test('pictures and files that ChatGPT\'s export only names are told of, each once', () => {
  const [photo, report] = [{ id: 'file-a', name: 'a.png' }, { id: 'file_b', name: 'b.pdf' }];
  const mapping = {
    ...node('photo', null, ['report'], said('user', [picture('file-service://file-a'), ''], { metadata: { attachments: [photo] } })),
    ...node('report', 'photo', ['drawn'], said('user', ['Read it.'], { metadata: { attachments: [report] } })),
    ...node('drawn', 'report', ['empty'], said('assistant', [picture('sediment://file_c')])),
    ...node('empty', 'drawn', [], said('assistant', [''], { metadata: { attachments: [] } })),
  };
  const created_at = '2025-06-15T15:06:40.500Z';
  assert.deepEqual(read({ mapping }), [{
    title: '', messages: [
      { role: 'user', content: null, files: [photo], created_at },
      { role: 'user', content: 'Read it.', files: [report], created_at },
      { role: 'assistant', content: null, files: [picture('sediment://file_c')], created_at },
    ],
  }]);
});

test('what holds no conversation', () => {
  for (const text of ['', 'words', '{', '[]', '{}', 'null', '3', '"x"', '[1, null]', '{"messages": []}', '{"messages": 3}', '{"messages": [{"role": "system", "content": "x"}]}', '{"mapping": {}}', '{"a": 1}\n{"b": 2}', '{"a": 1}\nx']) {
    assert.equal(conversationsIn(text), null, text);
  }
});
