// Frames applied one after the other, and what two tabs have in common.

/** @import { SessionState } from '../state/types.js' */
/** @import { Envelope } from '../state/wire.js' */

import assert from 'node:assert/strict';

import { applyFrame } from '../state/session.js';

/** @param {SessionState} state @param {Envelope[]} frames */
export function play(state, frames) {
  for (const frame of frames) {
    const step = applyFrame(state, frame);
    assert.equal(step.hole, false, `a hole at ${JSON.stringify(frame)}`);
    state = step.state;
  }
  return state;
}

/** Without what only a tab that watched can know. @param {SessionState} state */
export function essence(state) {
  return {
    ...state,
    model: null,
    ending: state.ending?.kind === 'stopped' ? null : state.ending,
    entries: state.entries.map((entry) => (entry.kind !== 'assistant' ? entry : {
      ...entry,
      created_at: '', thinking_ms: null, thinking_started_at: null,
      calls: entry.calls.map((call) => ({ ...call, output: '', started_at: null, result_id: null })),
    })).map((entry) => ({ ...entry, created_at: '' })),
    queue: state.queue.map(({ run_id: _, created_at: __, images: ___, ...rest }) => rest),
  };
}
