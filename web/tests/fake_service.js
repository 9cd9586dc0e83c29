// A service in small, for the reducer's tests: it tells a session's frames, and like the real
// one it serves a tab that comes back (what it missed, deltas joined, then open parts from their
// start) and a tab that loads the session anew (a snapshot of what is committed).

/** @import { Envelope, Message, SessionSnapshot } from '../state/wire.js' */

/** @typedef {Partial<Message> & Pick<Message, 'id' | 'role'>} SomeOfMessage */

const AT = Date.parse('2026-01-02T03:04:05Z');

export class FakeService {
  /** @type {Envelope[]} everything told, in order */
  frames = [];
  seq = 0;
  clock = 0;
  /** @type {Map<string, { frame: any, text: string }>} parts that are still being written */
  open = new Map();
  /** @type {SessionSnapshot} */
  snapshot = {
    id: 's1', user_id: 'u1', title: 'Test', profile_id: 'secretary', pinned: false, archived: false, context_token_count: 0,
    state: 'idle', created_at: at(0), last_active: at(0), messages: [], todo: [], plan: null, compression: null, forks: [], queue: [], run: null, mode: 'edits', approvals: [], unknown_calls: [],
    can_continue: false, reason: null, notices: [], max_context_tokens: 4096, last_seq: 0, epoch: 1,
  };

  /**
   * @param {Record<string, unknown>} event
   * @param {string} [run_id]
   */
  tell(event, run_id = 'r1') {
    this.seq += 1;
    this.clock += 10;
    const frame = /** @type {Envelope} */ (/** @type {unknown} */ ({ seq: this.seq, run_id, at: at(this.clock), ...event }));
    this.frames.push(frame);
    this.snapshot = { ...this.snapshot, last_seq: this.seq };
  }

  /**
   * @param {'stream_delta' | 'thinking_delta' | 'tool_output'} type
   * @param {string} part_id
   * @param {string} text
   * @param {Record<string, unknown>} [more]
   */
  stream(type, part_id, text, more = {}) {
    for (let i = 0; i < text.length; i += 3) {
      this.clock += 1;
      const had = this.open.get(part_id)?.text ?? '';
      const delta = text.slice(i, i + 3);
      const frame = /** @type {Envelope} */ (/** @type {unknown} */ ({
        run_id: 'r1', at: at(this.clock), type, part_id, offset: had.length, delta, ...more,
      }));
      this.frames.push(frame);
      this.open.set(part_id, { frame, text: had + delta });
    }
  }

  /** @param {string} part_id */
  close(part_id) {
    this.open.delete(part_id);
  }

  /** @param {SomeOfMessage} message */
  commit(message) {
    this.snapshot = { ...this.snapshot, messages: [...this.snapshot.messages, messageOf({ created_at: at(this.clock), ...message })] };
  }
}

/** @param {SomeOfMessage} message @returns {Message} */
export function messageOf(message) {
  return { run_id: 'r1', content: null, created_at: at(0), state: 'complete', is_summary: false, is_plan: false, ...message };
}

/** @param {number} ms */
export function at(ms) {
  return new Date(AT + ms).toISOString();
}

/**
 * A session with all that can happen in it. `steps` are cumulative: after each, what a tab
 * would get that attaches just then.
 */
export function story() {
  const service = new FakeService();
  /** @type {{ told: number, snapshot: SessionSnapshot, open: Envelope[] }[]} */
  const moments = [];
  const moment = () => moments.push({
    told: service.frames.length,
    snapshot: service.snapshot,
    open: [...service.open.values()].map(({ frame, text }) => ({ ...frame, offset: 0, delta: text })),
  });
  moment();

  service.commit({ id: 'm1', role: 'user', content: 'Hello 👋', client_id: 'c1' });
  service.tell({ type: 'message_accepted', client_id: 'c1', message_id: 'm1', queued: false, content: 'Hello 👋' });
  service.snapshot = { ...service.snapshot, state: 'running', run: { run_id: 'r1', message_id: 'm1', model: '', started_at: at(0), waiting: null } };
  moment();
  service.snapshot = { ...service.snapshot, run: { run_id: 'r1', message_id: 'm1', model: 'demo', started_at: at(0), waiting: null } };
  service.tell({ type: 'stream_start', message_id: 'm1', model: 'demo', profile_id: 'secretary' });
  moment();
  service.tell({ type: 'run_waiting', reason: 'prefill', detail: '12 of 400 tokens' });
  service.stream('thinking_delta', 'a1.thinking', 'I think about it 🤔 long.');
  moment();
  service.tell({ type: 'thinking_end' });
  service.stream('stream_delta', 'a1.text', 'Let me look.');
  moment();
  service.close('a1.thinking');
  service.close('a1.text');
  service.commit({
    id: 'a1', role: 'assistant', content: 'Let me look.', thinking: 'I think about it 🤔 long.',
    tool_calls: [{ id: 'k1', name: 'filesystem', arguments: { path: '.', action: 'list' } }],
  });
  service.tell({ type: 'turn_thinking', thinking: 'I think about it 🤔 long.', is_subagent: false });
  service.tell({ type: 'tool_started', tool: 'filesystem', args: { action: 'list', path: '.' }, is_subagent: false, call_id: 'k1', message_id: 'a1' });
  moment();
  service.stream('tool_output', 'k1.output', 'a.txt\nb.txt\n', { call_id: 'k1' });
  moment();
  service.close('k1.output');
  service.commit({ id: 't1', role: 'tool', content: 'a.txt\nb.txt', tool_call_id: 'k1', name: 'filesystem', outcome: 'success', duration_ms: 7 });
  service.tell({ type: 'tool_call', tool: 'filesystem', args: { action: 'list', path: '.' }, result: 'a.txt\nb.txt', success: true, is_subagent: false, call_id: 'k1', duration_ms: 7 });
  moment();
  service.snapshot = { ...service.snapshot, todo: [{ id: 1, text: 'look', status: 'done' }] };
  service.tell({ type: 'todo_updated', items: [{ id: 1, text: 'look', status: 'done' }] });
  service.snapshot = { ...service.snapshot, queue: [{ message_id: 'm2', run_id: 'r2', content: 'And then?', client_id: 'c2', mode: 'queue', created_at: at(service.clock) }] };
  service.tell({ type: 'message_accepted', client_id: 'c2', message_id: 'm2', queued: true, content: 'And then?' }, 'r2');
  moment();
  service.snapshot = { ...service.snapshot, queue: [{ ...service.snapshot.queue[0], content: 'And after that?' }] };
  service.tell({ type: 'queue_changed', message_id: 'm2', content: 'And after that?' }, 'r2');
  service.stream('stream_delta', 'a2.text', 'There are **two** files.');
  moment();
  service.close('a2.text');
  service.commit({ id: 'a2', role: 'assistant', content: 'There are **two** files.' });
  service.snapshot = { ...service.snapshot, state: 'idle', run: null, context_token_count: 321 };
  service.tell({ type: 'stream_end', content: 'There are **two** files.', message_id: 'a2', context_tokens: 321, max_context_tokens: 4096, completed: true });
  moment();
  service.commit({ id: 'm2', role: 'user', content: 'And after that?', client_id: 'c2', run_id: 'r2' });
  service.snapshot = { ...service.snapshot, state: 'running', queue: [], run: { run_id: 'r2', message_id: 'm2', model: 'demo', started_at: at(0), waiting: null } };
  service.tell({ type: 'stream_start', message_id: 'm2', model: 'demo', profile_id: 'secretary' }, 'r2');
  service.stream('stream_delta', 'a3.text', 'Nothing mo', { run_id: 'r2' });
  moment();
  service.close('a3.text');
  service.commit({ id: 'a3', role: 'assistant', content: 'Nothing mo', state: 'stopped', run_id: 'r2' });
  service.snapshot = { ...service.snapshot, state: 'idle', run: null };
  service.tell({ type: 'stream_stopped' }, 'r2');
  moment();
  return { frames: service.frames, moments, snapshot: service.snapshot };
}

/**
 * What a tab gets that comes back with `after`, when `told` frames have been told: what it
 * missed with consecutive deltas of a part joined, then the open parts from their start.
 * @param {Envelope[]} frames
 * @param {number} told
 * @param {number} after
 */
export function missed(frames, told, after) {
  const from = after === 0 ? 0 : frames.findIndex((frame) => frame.seq === after) + 1;
  /** @type {Envelope[]} */
  const out = [];
  for (const frame of frames.slice(from, told)) {
    const last = out[out.length - 1];
    if (last !== undefined && 'part_id' in frame && 'part_id' in last && last.part_id === frame.part_id) {
      out[out.length - 1] = { ...last, delta: last.delta + frame.delta };
    } else {
      out.push(frame);
    }
  }
  return out;
}
