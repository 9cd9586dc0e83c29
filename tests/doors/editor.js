// An editor as people have them: it starts `navi acp`, speaks with it through the protocol's own library for
// JavaScript, and keeps all that it was told.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { PassThrough, Readable, Writable } from 'node:stream';
import { createInterface } from 'node:readline';

import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';

import { LIMIT_MS, required } from '../browser/harness/program.js';

export const CAPABILITIES = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };

/** `navi acp` with these settings. Whatever it writes to standard output is in `lines`. */
export function startBridge(env, { args = ['acp'] } = {}) {
  const { PATH, HOME, TMPDIR } = process.env;
  const child = spawn(required('NAVI_BIN'), args, { env: { PATH, HOME, TMPDIR, LOG_LEVEL: 'trace', ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const bridge = { child, lines: [], errors: '', exited: once(child, 'exit').then(([code]) => code) };
  child.stderr.on('data', (data) => { bridge.errors += data; });
  child.stdin.on('error', () => {});
  createInterface({ input: child.stdout }).on('line', (line) => bridge.lines.push(line));
  bridge.closed = once(child.stdout, 'close');
  return bridge;
}

/** Each line is a message of the protocol, whatever was logged. */
export function assertOnlyProtocol({ lines }) {
  for (const line of lines) assert.equal(JSON.parse(line).jsonrpc, '2.0', line);
}

export class Editor {
  #watchers = new Set();

  /**
   * `decide` answers requests for consent: an option's kind, or an outcome, or a promise of either; `told` hears each
   * update; `serves` has what the editor does for an agent, by method.
   */
  static async open(env, { decide = () => 'allow_once', capabilities = CAPABILITIES, initialize = true, told = () => {}, serves = {} } = {}) {
    const editor = new Editor();
    editor.bridge = startBridge(env);
    editor.updates = [];
    editor.loaded = new Set();
    editor.asked = [];
    editor.served = [];
    const app = client({ name: 'the-tests' })
      .onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
        editor.#note(editor.asked, { ...params, signal });
        const decided = await decide(params, signal);
        if (typeof decided !== 'string') return { outcome: decided };
        const option = params.options.find(({ kind }) => kind === decided);
        return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } };
      })
      .onNotification(methods.client.session.update, ({ params }) => {
        editor.#note(editor.updates, { session: params.sessionId, ...params.update });
        told(params);
      });
    for (const [method, serve] of Object.entries(serves)) {
      app.onRequest(method, ({ params }) => {
        editor.#note(editor.served, method);
        return serve(params);
      });
    }
    const input = new PassThrough();
    editor.bridge.child.stdout.pipe(input);
    editor.connection = app.connect(ndJsonStream(Writable.toWeb(editor.bridge.child.stdin), Readable.toWeb(input)));
    editor.agent = editor.connection.agent;
    if (initialize) editor.can = await editor.initialize(capabilities);
    return editor;
  }

  initialize(clientCapabilities = CAPABILITIES, protocolVersion = 1) {
    return this.agent.request(methods.agent.initialize, { protocolVersion, clientCapabilities, clientInfo: { name: 'the-tests', version: '1' } });
  }

  #note(list, entry) {
    list.push(entry);
    this.#watchers.forEach((watch) => watch());
  }

  /** Waits until something is told for which the condition holds, and gives what it gives. */
  until(holds) {
    return new Promise((resolve, reject) => {
      const done = (settle) => { clearTimeout(timer); this.#watchers.delete(watch); settle(); };
      const watch = () => { const found = holds(this); if (found) done(() => resolve(found)); };
      const timer = setTimeout(() => done(() => reject(new Error(`not in time: ${JSON.stringify(this.updates, null, 1)}`))), LIMIT_MS);
      this.#watchers.add(watch);
      watch();
    });
  }

  /** Until such an update came. */
  update(kind, holds = () => true) {
    return this.until(({ updates }) => updates.find((update) => update.sessionUpdate === kind && holds(update)));
  }

  async begin(cwd = tmpdir()) {
    this.made = await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    this.session = this.made.sessionId;
    this.loaded.add(this.session);
    return this.session;
  }

  async load(session) {
    this.session = session;
    this.loaded.add(session);
    return this.agent.request(methods.agent.session.load, { sessionId: session, cwd: tmpdir(), mcpServers: [] });
  }

  /** The answer to the prompt. */
  prompt(text, blocks = [], sessionId = this.session) {
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }, ...blocks] });
  }

  cancel(sessionId = this.session) {
    return this.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  text(kind = 'agent_message_chunk') {
    return this.updates.filter(({ sessionUpdate }) => sessionUpdate === kind).map(({ content }) => content.text).join('');
  }

  /** Calls as they stand: what each was told to be, and what changed since. */
  calls() {
    const calls = new Map();
    for (const { session: _, sessionUpdate, ...told } of this.updates) {
      if (!/^tool_call/.test(sessionUpdate)) continue;
      assert.equal(calls.has(told.toolCallId), sessionUpdate === 'tool_call_update', JSON.stringify(told));
      calls.set(told.toolCallId, { ...calls.get(told.toolCallId), ...told });
    }
    return [...calls.values()];
  }

  /** Goes away. All that it was sent was the protocol. */
  async close() {
    this.bridge.child.stdin.end();
    const code = await this.bridge.exited;
    await this.bridge.closed;
    assertOnlyProtocol(this.bridge);
    assert.doesNotMatch(this.bridge.errors, /panicked/);
    return code;
  }
}
