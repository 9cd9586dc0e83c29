// What a run did, as a list: its events in their order with the calls of the model among them,
// each at its time since the run's start.

/** @import { CallInfo, Envelope, Phrase, ToolOutcome } from './wire.js' */

import { isKnown, ruleOf } from './events.js';

/**
 * Where a row stands in time: milliseconds since the run's start.
 * @typedef {{ key: string, at_ms: number }} RowHead
 */

/** A call of the model. @typedef {RowHead & { kind: 'call', call: CallInfo }} CallRow */
/** A call of a tool, from its start; without a state while nothing is told of its end.
 * @typedef {RowHead & { kind: 'tool', call_id: string, tool: string, args: unknown, state:
 *  ToolOutcome | 'running', duration_ms: number | null, result: string | null }} ToolRow
 */
/**
 * What the model said, or reasoned.
 * @typedef {RowHead & { kind: 'text', part: 'text' | 'thinking', part_id: string, from: number,
 *  text: string }} TextRow
 */
/** A subagent; what it did is its own run's. Without a state where only its id is known.
 * @typedef {RowHead & { kind: 'child', run_id: string, profile_id: string, task: string, state:
 *  'running' | 'completed' | 'limited' | null, duration_ms: number | null }} ChildRow
 */
/**
 * Any other event: what of it is worth a line, the same as a code where it is Navi's own words, and
 * the word of ours that it holds.
 * @typedef {RowHead & { kind: 'event', type: string, text: string, phrase: Phrase | undefined,
 *  code: string }} EventRow
 */
/** @typedef {CallRow | ToolRow | TextRow | ChildRow | EventRow} RunRow */

/**
 * @param {object} log
 * @param {string} log.run_id
 * @param {string} log.started_at
 * @param {Envelope[]} log.frames of the run and of its subagents, in order
 * @param {CallInfo[]} log.calls
 * @param {string[]} log.children ids of its subagents
 * @param {boolean} log.whole whether the frames reach to the run's end, or to now
 * @returns {RunRow[]}
 */
export function runRows({ run_id, started_at, frames, calls, children, whole }) {
  const begun = Date.parse(started_at);
  const since = (/** @type {string} */ at) => Math.max(0, Date.parse(at) - begun);
  /** @type {RunRow[]} */
  const rows = [];
  const waiting = [...calls].sort((a, b) => a.n - b.n);
  const tell = () => {
    const call = /** @type {CallInfo} */ (waiting.shift());
    rows.push({ kind: 'call', key: `call-${call.n}`, at_ms: since(call.started_at), call });
  };
  const next = nextSeqs(frames, whole ? Infinity : 0);
  let last_seq = 0;
  for (const [i, frame] of frames.entries()) {
    // What has no number came before the next that has one, and so did the call that brought it.
    const before = frame.seq ?? Math.max(next[i], last_seq + 1);
    while (waiting.length > 0 && waiting[0].after_seq < before) tell();
    last_seq = frame.seq ?? last_seq;
    addFrame(rows, frame, run_id, since(frame.at));
  }
  if (!whole) return rows;
  while (waiting.length > 0) tell();
  const told = new Set(rows.map((row) => (row.kind === 'child' ? row.run_id : '')));
  for (const id of children) {
    if (!told.has(id)) rows.push({
      kind: 'child', key: `child-${id}`, at_ms: 0, run_id: id, profile_id: '', task: '', state: null, duration_ms: null,
    });
  }
  return rows;
}

/**
 * For each frame the number of the next that has one.
 * @param {Envelope[]} frames
 * @param {number} end
 */
function nextSeqs(frames, end) {
  /** @type {number[]} */
  const next = [];
  let known = end;
  for (let i = frames.length - 1; i >= 0; i -= 1) {
    known = frames[i].seq ?? known;
    next[i] = known;
  }
  return next;
}

/**
 * When a text began. The log keeps texts without their time: the call that brought it knows.
 * @param {RunRow | undefined} last the row before it
 */
function begunAfter(last) {
  return last === undefined ? 0 : last.at_ms + (last.kind === 'call' ? last.call.first_chunk_ms ?? 0 : 0);
}

/**
 * @param {RunRow[]} rows
 * @param {Envelope} frame
 * @param {string} run_id
 * @param {number} at_ms
 */
function addFrame(rows, frame, run_id, at_ms) {
  if (frame.type === 'subagent_started' || frame.type === 'subagent_finished') {
    if (frame.parent_run_id === run_id && frame.run_id !== undefined) addChild(rows, frame, frame.run_id, at_ms);
    return;
  }
  // What a subagent did is its own run's.
  if (frame.run_id !== run_id) return;
  const key = `${frame.seq ?? `${frame.at}-${rows.length}`}`;
  switch (frame.type) {
    case 'stream_delta':
    case 'thinking_delta': {
      const last = rows[rows.length - 1];
      // A text that goes over the end of a page is one text. Where it ended meanwhile, the next page
      // has it from the start of its stretch.
      if (last?.kind === 'text' && last.part_id === frame.part_id) {
        const known = last.from + last.text.length - frame.offset;
        rows[rows.length - 1] = { ...last, text: last.text + frame.delta.slice(Math.max(0, known)) };
      } else rows.push({
        kind: 'text', from: frame.offset, key: `${frame.part_id}-${frame.offset}`, at_ms: begunAfter(last),
        part: frame.type === 'stream_delta' ? 'text' : 'thinking', part_id: frame.part_id, text: frame.delta,
      });
      return;
    }
    case 'tool_started':
      // Told again where a call had waited for a person.
      if (rows.some((row) => row.kind === 'tool' && row.call_id === frame.call_id)) return;
      rows.push({
        kind: 'tool', key: `tool-${frame.call_id}`, at_ms, call_id: frame.call_id, tool: frame.tool,
        args: frame.args, state: 'running', duration_ms: null, result: null,
      });
      return;
    case 'tool_call': {
      const { call_id, tool, args, duration_ms, result } = frame;
      const state = frame.outcome ?? (frame.success ? 'success' : 'failed');
      const index = rows.findIndex((row) => row.kind === 'tool' && row.call_id === call_id);
      /** @type {ToolRow} */
      const row = {
        kind: 'tool', key: `tool-${call_id}`, at_ms: index < 0 ? at_ms : rows[index].at_ms, call_id, tool, args,
        state, duration_ms, result,
      };
      if (index < 0) rows.push(row);
      else rows[index] = row;
      return;
    }
    default: {
      // What others tell stands in another row, or is no step of the run; of a newer service's the name is known.
      const { type } = frame;
      const row = isKnown(type) ? ruleOf(type).row?.(frame) : {};
      if (row !== undefined) rows.push({
        kind: 'event', key, at_ms, type, text: row.text ?? '', phrase: row.phrase, code: row.code ?? '',
      });
    }
  }
}

/**
 * @param {RunRow[]} rows
 * @param {Extract<Envelope, { type: 'subagent_started' | 'subagent_finished' }>} frame
 * @param {string} run_id
 * @param {number} at_ms
 */
function addChild(rows, frame, run_id, at_ms) {
  const index = rows.findIndex((row) => row.kind === 'child' && row.run_id === run_id);
  const known = rows[index];
  if (frame.type === 'subagent_started') {
    if (known === undefined) rows.push({
      kind: 'child', key: `child-${run_id}`, at_ms, run_id, profile_id: frame.profile_id, task: frame.task,
      state: 'running', duration_ms: null,
    });
    return;
  }
  const state = frame.completed_normally ? 'completed' : 'limited';
  if (known?.kind === 'child') rows[index] = { ...known, state, duration_ms: at_ms - known.at_ms };
  else rows.push({
    kind: 'child', key: `child-${run_id}`, at_ms, run_id, profile_id: '', task: '', state, duration_ms: null,
  });
}
