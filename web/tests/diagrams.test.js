import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { DiagramError, Diagrams, DRAW_SECONDS } from '../app/diagrams.js';
import { imageAddress, kindOf, MAX_IMAGE_CHARS, MAX_SOURCE_CHARS, problemOf, titleOf } from '../state/diagrams.js';

// A frame that is idle is kept for a minute: nobody here waits for that.
beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
afterEach(() => mock.timers.reset());

/** The frames that were opened: what each was sent, and how it is spoken from. */
function frames() {
  /** @type {{ sent: any[], heard: (message: unknown) => void, removed: boolean }[]} */
  const opened = [];
  const diagrams = new Diagrams((heard) => {
    const frame = { sent: /** @type {any[]} */ ([]), heard, removed: false };
    opened.push(frame);
    return { send: (message) => frame.sent.push(message), remove: () => { frame.removed = true; } };
  });
  const draw = (/** @type {string} */ source, signal = new AbortController().signal) => diagrams.draw(source, false, signal);
  return { opened, draw };
}

/** @param {number} id */
const picture = (id, svg = `<svg>${id}</svg>`) => ({ id, svg, width: 2, height: 1, kind: 'pie' });

/** Why it is no picture. @param {Promise<unknown>} drawn */
const why = (drawn) => drawn.then(() => assert.fail('drawn'), (error) => {
  assert.ok(error instanceof DiagramError);
  return error.problem;
});

test('diagrams are drawn one after the other, in one frame', async () => {
  const { opened, draw } = frames();
  const all = ['a', 'b', 'c'].map((source) => draw(source));
  assert.equal(opened.length, 1);
  const [frame] = opened;
  assert.deepEqual(frame.sent, [], 'it is not there yet');
  frame.heard({ ready: true });
  for (const [i, source] of ['a', 'b', 'c'].entries()) {
    assert.deepEqual(frame.sent.length, i + 1);
    assert.deepEqual(frame.sent[i], { id: i + 1, source, dark: false });
    frame.heard(picture(i));
    frame.heard(picture(i + 1));
    assert.equal((await all[i]).svg, `<svg>${i + 1}</svg>`);
  }
  assert.equal(opened.length, 1);
});

test('a source that takes too long costs its frame, and not what comes after it', async () => {
  const { opened, draw } = frames();
  const slow = why(draw('slow'));
  const next = draw('next');
  opened[0].heard({ ready: true });
  mock.timers.tick(DRAW_SECONDS * 1_000);
  assert.deepEqual(await slow, { why: 'time' });
  assert.deepEqual(opened.map(({ removed }) => removed), [true, false]);
  opened[0].heard(picture(2, 'late'));
  opened[1].heard({ ready: true });
  opened[1].heard(picture(1, 'late'));
  opened[1].heard(picture(2));
  assert.equal((await next).svg, '<svg>2</svg>');

  // Where there is nothing more to draw it goes, and the next one gets another.
  mock.timers.tick(3_600_000);
  assert.equal(opened[1].removed, true);
  const absent = why(draw('absent'));
  assert.equal(opened.length, 3);
  mock.timers.tick(3_600_000);
  assert.deepEqual(await absent, { why: 'load' });
});

test('what nobody waits for any more is not drawn, and neither is what is too large', async () => {
  const { opened, draw } = frames();
  const gone = new AbortController();
  void draw('first').catch(() => {});
  void draw('gone', gone.signal);
  const third = why(draw('third'));
  gone.abort();
  opened[0].heard({ ready: true });
  opened[0].heard({ id: 1, error: 'Parse error on line 3: ...' });
  assert.deepEqual(opened[0].sent.map(({ source }) => source), ['first', 'third']);
  opened[0].heard(picture(2, 'x'.repeat(MAX_IMAGE_CHARS + 1)));
  assert.deepEqual(await third, { why: 'large' });
  assert.deepEqual(await why(draw('x'.repeat(MAX_SOURCE_CHARS + 1))), { why: 'size' });
  const wrong = why(draw('wrong'));
  opened[0].heard({ id: 3, svg: { not: 'a text' } });
  assert.deepEqual(await wrong, { why: 'large' });
});

test('a diagram has its kind and its title, and a complaint its line where that is known', () => {
  const kinds = { 'flowchart-v2': 'flowchart', sequence: 'sequence', classDiagram: 'class', stateDiagram: 'state', er: 'er', gitGraph: 'git', xychart: 'chart', mindmap: 'mindmap', packet: 'other' };
  for (const [name, kind] of Object.entries(kinds)) assert.equal(kindOf(name), kind, name);
  assert.equal(titleOf('---\ntitle: "How it goes"\n---\nflowchart TD\n  A --> B', 'flowchart'), 'How it goes');
  assert.equal(titleOf('pie showData title Pets\n "Dogs": 3', 'pie'), 'Pets');
  assert.equal(titleOf('gantt\n    title A plan\n    section One', 'gantt'), 'A plan');
  assert.equal(titleOf('flowchart TD\n  title --> B', 'flowchart'), '');
  assert.equal(titleOf('flowchart TD\n  accTitle: For those who listen\n  A --> B', 'flowchart'), 'For those who listen');
  assert.deepEqual(problemOf('Parse error on line 2:\n...', 'flowchart TD\n A --> '), { why: 'syntax', line: 2 });
  assert.deepEqual(problemOf('Parse error on line 2:\n...', '%% a word\nflowchart TD\n A --> '), { why: 'syntax' });
  assert.deepEqual(problemOf('No diagram type detected matching given configuration for text: x', 'x'), { why: 'unknown' });
  const blank = '\n'.repeat(19_000);
  assert.equal(titleOf(`---\nconfig: x${blank}flowchart TD`, 'sequence'), '');
  assert.equal(titleOf(`sequenceDiagram${blank}title How it goes`, 'sequence'), 'How it goes');
  assert.deepEqual(problemOf('Parse error on line 2:', `pie${blank}x`), { why: 'syntax', line: 2 }, 'blank lines cost no more than others');
  assert.deepEqual(imageAddress('<svg a="#b">ї</svg>'), 'data:image/svg+xml;charset=utf-8,%3Csvg%20a%3D%22%23b%22%3E%D1%97%3C%2Fsvg%3E');
});
