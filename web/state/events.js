// What the page makes of the service's events. All that there is to do for a new one is its rule
// here, and its words in the dictionaries: the type checker and a test find one that is forgotten.

/** @import { Envelope, Phrase, TodoItem } from './wire.js' */
/** @import { Child, Problem, SessionState, Thread } from './types.js' */

import { isDenied, withRequest, withResolution } from './approvals.js';
import {
  closeRun, closeThinking, mapAssistant, mapLastAssistant, withDelta, withOutput, withoutQueued, withoutWaiting,
} from './edits.js';
import { fromSnapshot, withHeld } from './model.js';
import { endRun, withAccepted, withPlan, withQueued, withRun } from './run.js';
import { withNotice, withPlanText, withResult, withStarted, withSwitch, withTurnThinking } from './thread.js';
import { withDecision, withUnknown } from './unknown_calls.js';

/**
 * What the caller has to do beside showing the new state. `reload`: the conversation is another
 * one now and has to be read again.
 * @typedef {{ state: SessionState, hole: boolean, reload: boolean, confirmed: string | null,
 *   refused: { client_id: string | null } & Problem | null }} Step
 */

/** @template {Envelope['type']} K @typedef {Extract<Envelope, { type: K }>} Of */

/**
 * What the list of a run's steps says beside the event's name: words, the same as a code where they
 * are Navi's own, and a word of the page's.
 * @typedef {{ text?: string, phrase?: Phrase, code?: string }} Row
 */

/**
 * What words are made with, which know the language.
 * @typedef {object} Words
 * @property {(key: string, params?: Record<string, string | number>) => string} t
 * @property {(phrase: Phrase | undefined, english: string) => string} phrase
 * @property {(request: Of<'approval_requested'>['request']) => string} request
 * @property {(markdown: string) => string} answer
 * @property {(tool: string, args: unknown) => string} call
 * @property {(items: TodoItem[]) => string} step
 */

/**
 * Each part is left out where there is nothing to do.
 * @template {Envelope['type']} K
 * @typedef {object} Rule
 * @property {boolean} [shared] whether it is the session's, whichever run tells it
 * @property {(state: SessionState, frame: Of<K>, step: Step) => SessionState | null} [session] null for a hole
 * @property {<T extends Thread>(thread: T, frame: Of<K>) => T | null} [thread] what it does to its run's
 *   thread, be that the session's own or a subagent's
 * @property {(child: Child, frame: Of<K>) => Child | null} [child] the same, where a subagent's is another
 * @property {(frame: Of<K>) => Row} [row] what the list of a run's steps has of it
 * @property {(frame: Of<K>, words: Words) => string} [aloud] what a screen reader is told; '' for nothing
 */

/** @type {{ [K in Envelope['type']]: Rule<K> }} */
export const EVENTS = {
  message_accepted: {
    session: withAccepted,
    row: ({ content }) => ({ text: content }),
    aloud: ({ queued, mode }, { t }) => (queued ? t(`announce.queued.${mode}`) : ''),
  },
  queue_changed: {
    session: (state, { message_id, content, author }) => ({
      ...state,
      queue: content === null
        ? withoutQueued(state.queue, message_id)
        : state.queue.map((item) => (item.message_id === message_id ? { ...item, content, author } : item)),
    }),
  },
  message_steered: { session: (state, frame) => withQueued(state, frame, true), row: () => ({}) },
  branch_changed: {
    session: (state, _frame, step) => {
      step.reload = true;
      return state;
    },
  },
  stream_start: {
    // A message that waited joins the conversation when its run begins.
    session: (state, frame) => ({
      ...withQueued(state, frame, false),
      run: { run_id: frame.run_id ?? '', message_id: frame.message_id, model: frame.model, started_at: frame.at },
      model: frame.model,
      profile_id: frame.profile_id,
      waiting: null,
      ending: null,
      can_continue: false,
      loose_thinking: null,
    }),
    row: ({ model }) => ({ text: model }),
    aloud: (_frame, { t }) => t('announce.started'),
  },
  run_waiting: {
    session: (state, frame) => waits(withRun(state, frame, ''), frame),
    thread: waits,
    row: ({ detail, phrase, reason }) => ({ text: detail, phrase, code: reason }),
  },
  thinking_delta: { thread: (thread, frame) => withDelta(thread, frame, 'thinking') },
  thinking_end: {
    thread: (thread, frame) => withoutWaiting(mapLastAssistant(thread, frame,
      (entry) => closeThinking(entry, frame.at))),
  },
  turn_thinking: { thread: withTurnThinking },
  plan_ready: {
    session: withPlan,
    thread: withPlanText,
    row: ({ plan }) => ({ text: plan }),
    aloud: ({ steps }, { t }) => t('announce.plan', { n: steps.length }),
  },
  subagent_started: {
    child: (child, { call_id, profile_id, task, parent_run_id }) => ({
      ...child, call_id, profile_id, task, parent_run_id: parent_run_id ?? null,
    }),
  },
  subagent_finished: {
    child: (child, { call_id, completed_normally, at }) => ({
      ...closeRun(child, child.run_id, at, completed_normally ? 'complete' : 'interrupted', 'outcome_unknown'),
      call_id,
      state: completed_normally ? 'completed' : 'limited',
    }),
  },
  profile_switched: {
    session: (state, frame) => ({ ...withSwitch(state, frame), profile_id: frame.profile_id }),
    thread: withSwitch,
    row: ({ profile_name }) => ({ text: profile_name }),
    aloud: ({ profile_name }, { t }) => t('announce.profile', { name: profile_name }),
  },
  context_compressed: {
    session: (state, { first_kept }) => {
      const after = state.entries[state.entries.length - 1]?.id ?? null;
      return { ...state, compression: { before: first_kept, after, summary: null }, context_tokens: 0 };
    },
    row: ({ messages_before, messages_after }) => ({ text: `${messages_before} → ${messages_after}` }),
    aloud: (_frame, { t }) => t('announce.compressed'),
  },
  stream_delta: { thread: (thread, frame) => withDelta(thread, frame, 'text') },
  tool_started: { thread: withStarted, aloud: ({ tool, args }, { call }) => call(tool, args) },
  tool_output: { thread: withOutput },
  tool_call: {
    session: (state, frame) => {
      const next = withResult(state, frame);
      return next === null ? null : withUnknown(next, frame);
    },
    thread: withResult,
  },
  approval_requested: {
    shared: true,
    session: withRequest,
    row: ({ request }) => ({ text: request.summary, phrase: request.phrases?.summary }),
    aloud: (frame, { t, request }) => t('announce.approval', { summary: request(frame.request).replaceAll('`', '') }),
  },
  approval_resolved: {
    shared: true,
    session: withResolution,
    row: ({ by, decision }) => ({ code: by === 'user' ? decision : by }),
    aloud: (frame, { t }) => t(isDenied(frame) ? 'announce.denied' : 'announce.allowed'),
  },
  call_resolved: { shared: true, session: withDecision, row: ({ decision }) => ({ code: decision }) },
  mode_changed: {
    session: (state, { mode }) => ({ ...state, mode }),
    aloud: ({ mode }, { t }) => t('announce.mode', { mode: t(`mode.${mode}`) }),
  },
  model_changed: {
    session: (state, { model }) => ({ ...state, chosen_model: model }),
    aloud: ({ model }, { t }) => (model === null ? t('announce.model_own') : t('announce.model', { name: model })),
  },
  todo_updated: {
    shared: true,
    session: (state, { items }) => ({ ...state, todo: items }),
    row: ({ items }) => ({ text: `${items.filter(({ status }) => status === 'done').length} / ${items.length}` }),
    aloud: ({ items }, { step }) => step(items),
  },
  stream_end: {
    session: (state, frame) => {
      const { at, content, completed, context_tokens, max_context_tokens, message_id } = frame;
      const written = mapAssistant(state, message_id, frame, (entry) => ({
        ...closeThinking(entry, at), content, open: false, state: 'complete',
      }));
      return {
        ...endRun(written, frame, 'complete', 'outcome_unknown'),
        context_tokens,
        max_context_tokens,
        ending: completed ? null : { kind: 'limited' },
        can_continue: !completed,
      };
    },
    child: (child, frame) => mapAssistant(child, frame.message_id, frame, (entry) => ({
      ...entry, content: frame.content, open: false, thinking_open: false,
    })),
    row: () => ({}),
    aloud: ({ content }, { t, answer }) => t('announce.finished', { text: answer(content) }),
  },
  stream_stopped: {
    session: (state, frame) => ({ ...endRun(state, frame, 'stopped', 'stopped'), ending: withHeld(null) }),
    child: (child, { at }) => closeRun(child, child.run_id, at, 'stopped', 'stopped'),
    row: () => ({}),
    aloud: (_frame, { t }) => t('announce.stopped'),
  },
  run_interrupted: {
    session: (state, frame) => ({
      ...endRun(state, frame, 'interrupted', 'outcome_unknown'),
      ending: { kind: 'interrupted', reason: frame.reason, phrase: frame.phrase },
      can_continue: frame.can_continue,
    }),
    row: ({ reason, phrase }) => ({ text: reason, phrase }),
    aloud: (_frame, { t }) => t('announce.interrupted'),
  },
  notice: {
    session: (state, frame) => {
      const told = withNotice(state, frame);
      // A run that ended otherwise as Stop came: what waits is held all the same, until somebody goes on.
      return frame.code === 'queue_held' ? { ...told, ending: withHeld(told.ending) } : told;
    },
    child: withNotice,
    row: ({ message, phrase }) => ({ text: message, phrase }),
  },
  error: {
    session: failed,
    child: withNotice,
    row: ({ message, phrase }) => ({ text: message, phrase }),
    aloud: ({ recoverable, phrase, message }, words) => (recoverable
      ? ''
      : words.t('announce.failed', { text: words.phrase(phrase, message) })),
  },
  resync: { session: (_state, { session }) => fromSnapshot(session) },
  pong: {},
};

/** Whether it is none that only a newer service tells. @param {string} type @returns {type is keyof typeof EVENTS} */
export const isKnown = (type) => Object.hasOwn(EVENTS, type);

/** @param {string} type @returns {Rule<any>} */
export const ruleOf = (type) => (isKnown(type) ? EVENTS[type] : {});

/** @template {Thread} T @param {T} thread @param {Of<'run_waiting'>} frame @returns {T} */
function waits(thread, { reason, detail, phrase, at }) {
  return { ...thread, waiting: { reason, detail, phrase, since: at } };
}

/** @param {SessionState} state @param {Of<'error'>} frame @param {Step} step @returns {SessionState} */
function failed(state, frame, step) {
  const { seq, client_id = null, code, message, phrase } = frame;
  if (seq === undefined) {
    // The answer to a frame of this tab; the run, if there is one, does not know of it.
    step.refused = { client_id, code, message, phrase };
    return state;
  }
  if (frame.recoverable) return withNotice(state, frame);
  return {
    ...endRun(state, frame, 'failed', 'failed'),
    ending: { kind: 'failed', code, message, phrase },
    can_continue: true,
  };
}
