// The Agent Client Protocol by `navi acp`, through the protocol's library for JavaScript: what clients.test.js has not.
// The editor's login is its user's, by the data directory; the tests look over REST with a token.

import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { methods } from '@agentclientprotocol/sdk';

import { LIMIT_MS } from '../browser/harness/program.js';
import { startWorld } from './adapters/world.js';
import { assertOnlyProtocol, CAPABILITIES, Editor, startBridge } from './editor.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const call = (name, args) => ({ tool_call: { name, arguments: args } });
const write = (path, content = 'one\n') => call('filesystem', { action: 'write', path, content });
/** What the model does that answers with thinking and with a tool of Navi's. */
const WORKING = [
  [{ thinking: 'First the list.' }, call('todo', { action: 'add', texts: ['look'] })],
  [{ text: 'All ' }, { text: 'done.' }],
];
const CANCELLED = { outcome: 'cancelled' };

let world, model, rest, env, editors;
before(async () => {
  world = await startWorld({ FS_ALLOWED_PATHS: '/srv' });
  ({ model, rest } = world);
  env = { NAVI_DATA_DIR: world.navi.dataDir, FS_ALLOWED_PATHS: '/srv' };
  editors = [];
});
after(async () => {
  for (const editor of editors) editor.bridge.child.kill('SIGKILL');
  await world?.close();
});

/** An editor, and one that ends with the tests where a test fails. */
async function open(options) {
  const editor = await Editor.open(env, options);
  editors.push(editor);
  return editor;
}

/** Waits until the condition holds on a session as it stands, and gives it. */
const sessionWhere = (session, holds) => world.until(`/sessions/${session}`, holds);

/** What the model was sent last, as text. */
const lastSent = async () => JSON.stringify((await model.runCallsWhere((runs) => runs.length > 0)).at(-1).body);

describe('an editor, by the library for JavaScript', () => {
  it('says what it can, in the version that there is', async () => {
    const editor = await open();
    assert.equal(editor.can.protocolVersion, 1);
    assert.equal(editor.can.agentInfo.name, 'navi');
    assert.equal(editor.can.agentCapabilities.loadSession, true);
    assert.deepEqual(Object.keys(editor.can.agentCapabilities.sessionCapabilities).sort(), ['close', 'delete', 'list', 'resume']);
    const { image, embeddedContext } = editor.can.agentCapabilities.promptCapabilities;
    assert.deepEqual([image, embeddedContext], [true, true]);
    assert.equal((await editor.initialize(undefined, 99)).protocolVersion, 1);
    assert.equal(await editor.close(), 0);
  });

  it('streams an answer with thinking, a tool and the plan', async () => {
    await model.script(...WORKING);
    const editor = await open({ capabilities: { ...CAPABILITIES, session: { notices: {} } } });
    await editor.begin();
    assert.equal(editor.made.modes.currentModeId, 'ask');
    assert.deepEqual(editor.made.configOptions.map(({ id, category }) => [id, category]), [['mode', 'mode'], ['model', 'model'], ['profile', '_profile']]);
    const { stopReason } = await editor.prompt('Begin.');
    assert.deepEqual([stopReason, editor.text(), editor.text('agent_thought_chunk')], ['end_turn', 'All done.', 'First the list.']);
    const [todo] = editor.calls();
    assert.deepEqual([todo.name, todo.kind, todo.status, todo.rawInput.action], ['todo', 'think', 'completed', 'add']);
    assert.deepEqual(editor.updates.find(({ sessionUpdate }) => sessionUpdate === 'plan').entries, [{ content: 'look', priority: 'medium', status: 'pending' }]);
    assert.match((await editor.update('notice')).title, /fake:latest answers instead/);
    const usage = await editor.update('usage_update');
    assert.ok(usage.size > 0);
    await editor.update('session_info_update', ({ title }) => title);
    await editor.close();
  });

  it('sends links, embedded text and images, and the project where its files may be used', async () => {
    await model.script([{ text: 'Seen.' }]);
    const editor = await open();
    await editor.begin('/srv/project');
    const blocks = [
      { type: 'resource', resource: { uri: 'file:///srv/project/a.rs', text: 'fn a() {}' } },
      { type: 'image', data: PNG, mimeType: 'image/png' },
    ];
    assert.equal((await editor.prompt('Read ', blocks)).stopReason, 'end_turn');
    const sent = await lastSent();
    for (const part of ['Read [@a.rs](file:///srv/project/a.rs)', 'fn a() {}', 'The project is /srv/project.']) assert.ok(sent.includes(part), `${part}: ${sent}`);
    const { messages: [first] } = await rest(`/sessions/${editor.session}`);
    assert.equal(first.images.length, 1);
    await assert.rejects(editor.prompt('Hear.', [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }]), { code: -32602 });
    await assert.rejects(editor.agent.request(methods.agent.session.new, { cwd: 'here', mcpServers: [] }), { code: -32602 });
    await editor.close();
  });

  it('asks for consent: once, never mind, and always as a rule', async () => {
    const answers = ['allow_once', 'reject_once', 'allow_always'];
    const editor = await open({ decide: () => answers.shift() });
    await editor.begin();
    for (const [path, status] of [['a.txt', 'completed'], ['b.txt', 'failed'], ['c.txt', 'completed'], ['d.txt', 'completed']]) {
      await model.script([write(path)], [{ text: 'Done.' }]);
      assert.equal((await editor.prompt(`Write ${path}.`)).stopReason, 'end_turn');
      assert.equal(editor.calls().at(-1).status, status, path);
    }
    assert.equal(editor.asked.length, 3);
    const [{ toolCall, options }] = editor.asked;
    assert.deepEqual(options.map(({ kind }) => kind), ['allow_once', 'allow_always', 'reject_once', 'reject_always']);
    assert.match(toolCall.title, /a\.txt/);
    assert.deepEqual(toolCall.content.find(({ type }) => type === 'diff').newText, 'one\n');
    const [first] = editor.calls();
    assert.deepEqual([first.kind, first.content[0].type, first.locations[0].path], ['edit', 'diff', join(world.navi.dataDir, 'session_files', editor.session, 'a.txt')]);
    const { rules } = await rest('/consent/rules');
    assert.deepEqual(rules.map(({ tool, decision }) => [tool, decision]), [['filesystem', 'allow']]);
    for (const { id } of rules) await rest(`/consent/rules/${id}`, undefined, 'DELETE');
    await editor.close();
  });

  it('may give a question up, and then its turn; one that cannot ask has the call denied', async () => {
    const answers = [() => CANCELLED, () => { throw new Error('there is no dialog here'); }];
    const editor = await open({ decide: () => answers.shift()() });
    await editor.begin();
    await model.script([write('given-up.txt')]);
    assert.equal((await editor.prompt('Write.')).stopReason, 'cancelled');
    await model.script([write('no-dialog.txt')], [{ text: 'Not written.' }]);
    assert.equal((await editor.prompt('Write.')).stopReason, 'end_turn');
    assert.deepEqual(editor.calls().map(({ status }) => status), ['failed', 'failed']);
    assert.match(await lastSent(), /cannot ask for consent/);
    await editor.close();
  });

  it('is told when somebody else answers', async () => {
    await model.script([write('elsewhere.txt')], [{ text: 'Done.' }]);
    const gone = withResolvers();
    const editor = await open({ decide: (_, signal) => { signal?.addEventListener('abort', () => gone.resolve(CANCELLED)); return gone.promise; } });
    await editor.begin();
    const answer = editor.prompt('Write.');
    await editor.until(({ asked }) => asked.length > 0);
    const { approvals: [{ approval_id }] } = await rest(`/sessions/${editor.session}/approvals`);
    await rest(`/sessions/${editor.session}/approvals/${approval_id}`, { decision: 'once' });
    assert.equal((await answer).stopReason, 'end_turn');
    assert.equal(editor.calls()[0].status, 'completed');
    assert.ok(editor.bridge.lines.some((line) => JSON.parse(line).method === '$/cancel_request'));
    gone.resolve(CANCELLED);
    await editor.close();
  });

  /** An editor that does for an agent what there is. */
  function lender(files, exited) {
    const { fs, terminal } = methods.client;
    const serves = {
      [fs.readTextFile]: ({ path }) => ({ content: files.get(path) }),
      [fs.writeTextFile]: ({ path, content }) => { files.set(path, content); return {}; },
      [terminal.create]: () => ({ terminalId: 'one' }),
      [terminal.waitForExit]: () => exited,
      [terminal.output]: () => ({ output: 'all built', truncated: false }),
      [terminal.kill]: () => ({}),
      [terminal.release]: () => ({}),
    };
    return { serves, capabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true } };
  }

  it('lends its files and terminals: writes and commands are asked about, and nothing lies beside the project', async () => {
    const project = await mkdtemp(join(tmpdir(), 'navi-project-'));
    const at = (name) => join(project, name);
    await symlink('/etc', at('link'));
    const files = new Map([[at('a.txt'), 'old'], [at('large.txt'), 'x'.repeat(200_000)], [at('too_large.txt'), 'x'.repeat(300_000)]]);
    await model.script(
      [call('editor_read_file', { path: at('a.txt') })],
      [call('editor_write_file', { path: at('a.txt'), content: 'new' })],
      [call('editor_terminal', { command: 'make', args: ['all'] })],
      [call('editor_read_file', { path: at('large.txt') })],
      [call('editor_read_file', { path: at('too_large.txt') })],
      [call('editor_read_file', { path: '/etc/passwd' })],
      [call('editor_read_file', { path: at('link/passwd') })],
      [{ text: 'Done.' }],
    );
    const editor = await open(lender(files, { exitCode: 0 }));
    await editor.begin(project);
    assert.equal((await editor.prompt('Build it.')).stopReason, 'end_turn');
    assert.equal(files.get(at('a.txt')), 'new');
    assert.deepEqual(editor.served, ['fs/read_text_file', 'fs/write_text_file', 'terminal/create', 'terminal/wait_for_exit', 'terminal/output', 'terminal/release', 'fs/read_text_file', 'fs/read_text_file']);
    assert.deepEqual(editor.asked.map(({ options }) => options.map(({ kind }) => kind)), [['allow_once', 'reject_once'], ['allow_once', 'reject_once']]);
    const calls = editor.calls();
    assert.deepEqual(calls.map(({ kind, status }) => [kind, status]), [['read', 'completed'], ['edit', 'completed'], ['execute', 'completed'], ['read', 'completed'], ['read', 'failed'], ['read', 'failed'], ['read', 'failed']]);
    assert.deepEqual(calls[1].content, [{ type: 'diff', path: at('a.txt'), newText: 'new' }]);
    assert.match(calls[2].content[0].content.text, /exit code 0\nall built/);
    assert.ok(editor.updates.some(({ content }) => content?.[0]?.terminalId === 'one'), 'the terminal is shown while it runs');
    assert.match(calls[4].content[0].content.text, /300000 bytes/);
    for (const { content } of calls.slice(5)) assert.match(content[0].content.text, /not an absolute path inside the project/);
    await editor.close();
    await rm(project, { recursive: true });
  });

  it('ends the command in its terminal with the run, and lends nothing that was denied', async () => {
    let decision = 'allow_once';
    await model.script([call('editor_terminal', { command: 'sleep', args: ['infinity'] })]);
    const editor = await open({ ...lender(new Map(), new Promise(() => {})), decide: () => decision });
    await editor.begin();
    const answer = editor.prompt('Wait.');
    await editor.until(({ served }) => served.includes('terminal/wait_for_exit'));
    editor.cancel();
    assert.equal((await answer).stopReason, 'cancelled');
    await editor.until(({ served }) => served.includes('terminal/release'));
    assert.deepEqual(editor.served.slice(2), ['terminal/kill', 'terminal/output', 'terminal/release']);
    decision = 'reject_once';
    await model.script([call('editor_write_file', { path: join(tmpdir(), 'b.txt'), content: 'new' })], [{ text: 'Then not.' }]);
    await editor.prompt('Write it.');
    assert.equal(editor.served.length, 5);
    await editor.close();
  });

  it('dies in the middle of a call: the call ends, and the run goes on without it', async () => {
    await model.script([call('editor_terminal', { command: 'sleep', args: ['infinity'] })], [{ text: 'The editor has gone.' }]);
    const editor = await open(lender(new Map(), new Promise(() => {})));
    const session = await editor.begin();
    editor.prompt('Wait.').catch(() => {});
    await editor.until(({ served }) => served.includes('terminal/wait_for_exit'));
    editor.bridge.child.kill('SIGKILL');
    await editor.bridge.exited;
    await model.runCallsWhere((runs) => /the program that lent this tool has ended/.test(JSON.stringify(runs.at(-1).body.messages)));
    const other = await open();
    await other.load(session);
    await other.update('agent_message_chunk', ({ content }) => content.text.includes('The editor has gone.'));
    await other.close();
  });

  it('stops in mid-answer, and while it asks', async () => {
    await model.script([{ text: 'On and on' }, { hold: 'for ever' }]);
    const stopped = withResolvers();
    const editor = await open({ decide: () => stopped.promise });
    await editor.begin();
    const answer = editor.prompt('Stop me.');
    await editor.update('agent_message_chunk');
    await editor.cancel();
    assert.equal((await answer).stopReason, 'cancelled');
    await model.runCallsWhere((runs) => runs.some((run) => run.closed_early_ms !== null));

    await model.script([write('never.txt')]);
    const waiting = editor.prompt('Write.');
    await editor.until(({ asked }) => asked.length > 0);
    await editor.cancel();
    stopped.resolve(CANCELLED);
    assert.equal((await waiting).stopReason, 'cancelled');
    assert.equal(editor.calls().at(-1).status, 'failed');

    await model.script([{ text: 'Here again.' }]);
    assert.equal((await editor.prompt('Still there?')).stopReason, 'end_turn');
    await editor.close();
  });

  it('stops what waits with what goes', async () => {
    const editor = await open();
    await editor.begin();
    await model.script({ when: 'Long', steps: [{ text: 'One' }, { hold: 'never released' }] });
    const first = editor.prompt('Long');
    await editor.update('agent_message_chunk');
    const second = editor.prompt('Not any more');
    await sessionWhere(editor.session, ({ queue }) => queue.length > 0);
    await editor.cancel();
    assert.deepEqual((await Promise.all([first, second])).map(({ stopReason }) => stopReason), ['cancelled', 'cancelled']);
    const { queue, messages } = await rest(`/sessions/${editor.session}`);
    assert.equal(queue.length, 0);
    assert.ok(!JSON.stringify(messages).includes('Not any more'));
    await editor.close();
  });

  it('closes a session, and with it what it asked there', async () => {
    const editor = await open();
    await editor.begin();
    await model.script([{ text: 'On and on' }, { hold: 'closed' }]);
    const answer = editor.prompt('Close me.');
    await editor.update('agent_message_chunk');
    await editor.agent.request(methods.agent.session.close, { sessionId: editor.session });
    assert.equal((await answer).stopReason, 'cancelled');
    assert.equal((await rest(`/sessions/${editor.session}`)).run, null);
    await model.script([{ text: 'Open again.' }]);
    assert.equal((await editor.prompt('And again.')).stopReason, 'end_turn');
    await editor.close();
  });

  it('shows a conversation that two have open at once, live, and loads, resumes, lists and deletes it', async () => {
    await model.script(...WORKING);
    const [one, other] = [await open(), await open()];
    await one.begin();
    await one.prompt('Begin.');

    await other.load(one.session);
    const replayed = other.updates.map(({ sessionUpdate }) => sessionUpdate);
    assert.deepEqual(replayed.slice(0, 5), ['user_message_chunk', 'agent_thought_chunk', 'tool_call', 'tool_call_update', 'agent_message_chunk']);
    assert.deepEqual([other.text('user_message_chunk'), other.text()], ['Begin.', 'All done.']);
    assert.deepEqual(other.calls()[0].rawInput, one.calls()[0].rawInput);
    assert.ok(replayed.includes('plan') && replayed.includes('usage_update'));

    const third = await open();
    third.session = one.session;
    const resumed = await third.agent.request(methods.agent.session.resume, { sessionId: one.session, cwd: '/' });
    assert.equal(resumed.modes.currentModeId, 'ask');
    assert.equal(third.text() + third.text('user_message_chunk'), '');

    await model.script([{ text: 'More.' }]);
    assert.equal((await one.prompt('Go on.')).stopReason, 'end_turn');
    for (const editor of [other, third]) {
      await editor.update('user_message_chunk', ({ content }) => content.text === 'Go on.');
      await editor.until((it) => it.text().endsWith('More.'));
    }
    assert.equal(one.text('user_message_chunk'), '');

    await rest(`/sessions/${one.session}/mode`, { mode: 'auto' }, 'PATCH');
    await rest(`/sessions/${one.session}`, { title: 'By the page' }, 'PATCH');
    for (const editor of [one, other]) {
      await editor.update('current_mode_update', ({ currentModeId }) => currentModeId === 'auto');
      await editor.update('config_option_update', ({ configOptions }) => configOptions[0].currentValue === 'auto');
      await editor.update('session_info_update', ({ title }) => title === 'By the page');
    }
    const { configOptions } = await other.agent.request(methods.agent.session.setConfigOption, { sessionId: one.session, configId: 'mode', value: 'edits' });
    assert.equal(configOptions[0].currentValue, 'edits');
    await one.update('current_mode_update', ({ currentModeId }) => currentModeId === 'edits');
    await other.agent.request(methods.agent.session.setMode, { sessionId: one.session, modeId: 'ask' });
    const chosen = configOptions[1].options.at(-1).value;
    await other.agent.request(methods.agent.session.setConfigOption, { sessionId: one.session, configId: 'model', value: chosen });
    assert.equal((await rest(`/sessions/${one.session}`)).model, chosen);
    await one.update('config_option_update', (it) => it.configOptions[1].currentValue === chosen);
    await assert.rejects(other.agent.request(methods.agent.session.setMode, { sessionId: one.session, modeId: 'yolo' }), { code: -32602 });

    const { sessions } = await other.agent.request(methods.agent.session.list, {});
    assert.equal(sessions.find(({ sessionId }) => sessionId === one.session).title, 'By the page');
    await third.agent.request(methods.agent.session.close, { sessionId: one.session });
    await other.agent.request(methods.agent.session.delete, { sessionId: one.session });
    await assert.rejects(other.load(one.session), { code: -32002 });
    await assert.rejects(other.load('no-such-session'), { code: -32002 });
    for (const editor of [one, other, third]) await editor.close();
  });

  it('lists by pages', async () => {
    const editor = await open();
    await Promise.all(Array.from({ length: 55 }, () => rest('/sessions', {})));
    const seen = new Set();
    let cursor;
    do {
      const page = await editor.agent.request(methods.agent.session.list, { cwd: '/srv', cursor });
      for (const { sessionId, cwd } of page.sessions) { assert.equal(cwd, '/srv'); seen.add(sessionId); }
      cursor = page.nextCursor;
    } while (cursor);
    assert.equal(seen.size, (await rest('/sessions')).length);
    await assert.rejects(editor.agent.request(methods.agent.session.list, { cursor: 'x' }), { code: -32602 });
    await editor.close();
  });

  it("shows a command's output, and a subagent's steps, as they come", async () => {
    await model.script([call('terminal', { action: 'run', command: 'echo from the shell' })], [{ text: 'Ran.' }]);
    const editor = await open();
    await editor.begin();
    await editor.prompt('Run it.');
    const [ran] = editor.calls();
    assert.deepEqual([ran.kind, ran.title, ran.status], ['execute', 'echo from the shell', 'completed']);
    assert.match(ran.content[0].content.text, /from the shell/);

    await model.script([call('terminal', { action: 'run', command: 'echo begun; until [ -e gate ]; do sleep 0.05; done; echo over' })], [{ text: 'Waited.' }]);
    const waited = editor.prompt('Wait.');
    await editor.update('tool_call_update', ({ status, content }) => !status && content?.[0].content.text.includes('begun'));
    await writeFile(join(world.navi.dataDir, 'session_files', editor.session, 'gate'), '');
    assert.equal((await waited).stopReason, 'end_turn');
    assert.match(editor.calls().at(-1).content[0].content.text, /begun\nover/);

    await model.script(
      { when: 'Send one out.', steps: [call('spawn_agent', { task: 'count the files' })] },
      { when: 'count the files', steps: [call('filesystem', { action: 'list' })] },
      { when: 'count the files', steps: [{ text: 'None.' }] },
      { steps: [{ text: 'It found none.' }] },
    );
    assert.equal((await editor.prompt('Send one out.')).stopReason, 'end_turn');
    const sent = editor.calls().at(-1);
    assert.deepEqual([sent.name, sent.kind, sent.status, sent.title], ['spawn_agent', 'think', 'completed', 'subagent: count the files']);
    const steps = editor.updates.filter(({ toolCallId, status }) => toolCallId === sent.toolCallId && !status);
    assert.match(steps.at(-1).content[0].content.text, /- list\n- the subagent is done/);
    assert.equal(editor.text(), 'Ran.Waited.It found none.');
    await editor.close();
  });

  it('shows a plan, and says that a limit ended a run', async () => {
    const plan = '1. Read the notes - SELF\n2. Write the letter - SELF';
    await model.script(
      { streamed: false, system: "You sort a user's request", steps: [{ text: 'Work.\nREFLECT: no' }] },
      { streamed: false, system: 'You write the plan', steps: [{ text: plan }] },
      [call('todo', { action: 'mark', ids: [1], status: 'done' })], [{ text: 'Half of it.' }],
    );
    const editor = await open();
    await editor.begin();
    await editor.prompt('Write the letter.');
    const entries = (holds) => editor.update('plan', (it) => holds(it.entries.map(({ content, status }) => `${content}: ${status}`).join(', ')));
    await entries((list) => list === 'Read the notes: pending, Write the letter: pending');
    await entries((list) => list === 'Read the notes: completed, Write the letter: pending');

    const brief = 'id = "brief"\nname = "Brief"\ndescription = "One step"\nsystem_prompt = "Be brief."\nenabled_tools = ["todo"]\ntemperature = 0.5\nmax_iterations = 1\nplanning_enabled = false\n';
    await rest('/agents/profiles/brief/file', { text: brief, before: null }, 'PUT');
    const end = Date.now() + LIMIT_MS;
    while (!(await rest('/agents/profiles')).some(({ id }) => id === 'brief')) assert.ok(Date.now() < end, 'the profile is not there in time');
    const { configOptions } = await editor.agent.request(methods.agent.session.setConfigOption, { sessionId: editor.session, configId: 'profile', value: 'brief' });
    assert.equal(configOptions[2].currentValue, 'brief');
    await model.script([call('todo', { action: 'list' })], [{ text: 'No further.' }]);
    assert.equal((await editor.prompt('On and on.')).stopReason, 'max_turn_requests');
    assert.ok(editor.text().endsWith('No further.'));
    await editor.update('available_commands_update', ({ availableCommands: [command] }) => command?.name === 'continue');
    await editor.close();
  });

  it('may end: its run goes on', async () => {
    await model.script([{ text: 'Half' }, { hold: 'the-editor-ended' }, { text: ' and half.' }]);
    const editor = await open();
    await editor.begin();
    editor.prompt('Go on without me.').catch(() => {});
    await editor.update('agent_message_chunk');
    await editor.close();
    await model.release('the-editor-ended');
    await sessionWhere(editor.session, ({ messages }) => messages.at(-1).content === 'Half and half.');
  });

  for (const [how, end] of [
    ['ends', (editor) => editor.close()],
    ['has its agent end', ({ bridge }) => { bridge.child.kill('SIGTERM'); return bridge.exited; }],
  ]) {
    it(`${how} while it asks: the question waits for the page, and the run goes on from there`, async () => {
      await model.script([write('after-all.txt')], [{ text: 'Written after all.' }]);
      const editor = await open({ decide: () => new Promise(() => {}) });
      await editor.begin();
      editor.prompt('Write.').catch(() => {});
      await editor.until(({ asked }) => asked.length > 0);
      assert.equal(await end(editor), 0);
      const { approvals } = await rest(`/sessions/${editor.session}/approvals`);
      assert.equal(approvals.length, 1);
      await rest(`/sessions/${editor.session}/approvals/${approvals[0].approval_id}`, { decision: 'once' });
      const { messages } = await sessionWhere(editor.session, (it) => it.messages.at(-1).content === 'Written after all.');
      assert.deepEqual(messages.filter(({ role }) => role === 'tool').map(({ outcome }) => outcome), ['success']);
    });
  }

});

describe('what cannot be served', () => {
  /** A bridge that is refused: what it said, and how it ended. */
  async function refused(settings, pattern) {
    const bridge = await Editor.open({ ...env, ...settings }, { initialize: false });
    await assert.rejects(bridge.initialize(), ({ message }) => pattern.test(message));
    assert.equal(await bridge.close(), 1);
    assert.match(bridge.bridge.errors, pattern);
  }

  it('is told in the protocol, and on standard error', async () => {
    const nowhere = await mkdtemp(join(tmpdir(), 'navi-acp-'));
    await refused({ NAVI_DATA_DIR: nowhere }, /navi does not run on .*; start it with `navi`/);
    await refused({ NAVI_DOORS: 'events,openai' }, /the door acp is closed; NAVI_DOORS/);
    await rm(nowhere, { recursive: true });
  });

  it('is wrong settings: nothing on standard output', async () => {
    const bridge = startBridge({ ...env, LOG_LEVEL: 'LOUD' });
    assert.equal(await bridge.exited, 1);
    assert.deepEqual(bridge.lines, []);
    assert.match(bridge.errors, /LOG_LEVEL/);
  });

  it('is what is no message: it is answered, and the next one is too', async () => {
    const bridge = startBridge(env);
    bridge.child.stdin.write('not json\n[]\n{"jsonrpc":"2.0","id":1,"method":"session/fly","params":{}}\n{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}\n');
    bridge.child.stdin.end();
    assert.equal(await bridge.exited, 0);
    await bridge.closed;
    assertOnlyProtocol(bridge);
    assert.deepEqual(bridge.lines.map((line) => JSON.parse(line).error.code).sort(), [-32700, -32602, -32601, -32600].sort());
  });
});

/** `Promise.withResolvers` of newer engines. */
function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
