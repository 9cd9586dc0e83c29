import assert from 'node:assert/strict';
import { test } from 'node:test';

import { shares } from '../state/context.js';

test('a window is divided into what there is, and what is left is free', () => {
  const parts = { system: 100, memory: 0, summary: 0, turns: 300, tools: 50, answer: 200, window: 1_000, left_out_turns: 0, counted: 0 };
  assert.deepEqual(shares(parts), [
    { name: 'system', tokens: 100 }, { name: 'tools', tokens: 50 }, { name: 'turns', tokens: 300 }, { name: 'answer', tokens: 200 }, { name: 'free', tokens: 350 },
  ]);
  // A guess may be over the window.
  assert.deepEqual(shares({ ...parts, turns: 900 }).at(-1), { name: 'free', tokens: 0 });
});
