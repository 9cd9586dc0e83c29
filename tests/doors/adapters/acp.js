// Editors: by the Agent Client Protocol's libraries for JavaScript and for Python, and acpx.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { methods } from '@agentclientprotocol/sdk';

import { required } from '../../browser/harness/program.js';
import { Editor } from '../editor.js';
import { PYTHON, SKIPPED, startPython } from '../python.js';
import { Answer, weather } from './answer.js';

const ACP = {
  call: { name: 'editor_read_file', arguments: { path: join(tmpdir(), 'weather.txt') } },
  ends: { done: /^end_turn$/, stopped: /^cancelled$/, failed: /broke/, refused: /the token is not known/ },
};
const KINDS = { once: 'allow_once', deny: 'reject_once' };
/** What is asked where a session is taken up again: it is answered behind what goes there. */
const BEHIND = 'And then?';

/** `navi acp` logs in as its user, unless it is given a token. */
const environment = (world, { token }) => ({ NAVI_DATA_DIR: world.navi.dataDir, ...(token !== world.token && { NAVI_API_TOKEN: token }) });

/** An update as part of an answer; of no other than the message where one is named. */
function take(answer, { sessionUpdate, messageId, content, name, title }, message = messageId) {
  if (sessionUpdate === 'tool_call') answer.add({ did: name ?? title });
  if (!messageId || messageId !== message) return;
  if (sessionUpdate === 'agent_thought_chunk') answer.add({ thinking: content.text });
  if (sessionUpdate === 'agent_message_chunk') answer.add({ text: content.text, message: messageId });
}

/** The editor's own file. */
function read(answer) {
  answer.add({ calls: ACP.call.name });
  return { content: weather({ city: 'Kyiv' }) };
}

/** One client for all that is asked; what is to be cut off, or refused, is asked of one of its own. */
function clients(world, start) {
  const all = [];
  const begin = (options) => {
    all.push(start(options));
    return all.at(-1);
  };
  let shared;
  const ask = (text, options, message) => new Answer(async (answer) => {
    answer.client = await (options.key || options.token !== world.token ? begin(options) : (shared ??= begin(options)));
    return answer.client.ask(answer, text, options, message);
  });
  return {
    ask,
    again: ({ session, message }, options) => ask(BEHIND, { ...options, key: undefined, session }, message),
    cut: ({ client }) => client.kill(),
    close: () => Promise.all(all.map(async (client) => (await client).close())),
  };
}

const javascript = {
  ...ACP,
  name: "the Agent Client Protocol's library for JavaScript",
  open: (world) => clients(world, async (options) => {
    /** What was asked in each session and is not answered yet. */
    const going = new Map();
    const here = (session) => going.get(session) ?? going.set(session, []).get(session);
    const editor = await Editor.open(environment(world, options), {
      capabilities: { fs: { readTextFile: true } },
      serves: { [methods.client.fs.readTextFile]: ({ sessionId }) => here(sessionId)[0].read() },
      decide: ({ sessionId }) => here(sessionId)[0].decide,
      told: ({ sessionId, update }) => here(sessionId)[0]?.take(update),
    });
    return {
      async ask(answer, text, { session, decide }, message) {
        const asked = { decide: KINDS[decide], take: (update) => take(answer, update, message), read: () => read(answer) };
        if (session === undefined) session = await editor.begin();
        answer.session = session;
        answer.stop = () => editor.cancel(session);
        here(session).push(asked);
        if (!editor.loaded.has(session)) await editor.load(session);
        const { stopReason } = await editor.prompt(text, [], session);
        here(session).shift();
        return stopReason;
      },
      kill: () => editor.bridge.child.kill('SIGKILL'),
      close: () => editor.close(),
    };
  }),
};

const python = {
  ...ACP,
  skip: PYTHON ? false : SKIPPED,
  name: "the Agent Client Protocol's library for Python",
  open: (world) => clients(world, (options) => {
    const client = startPython('acp_client.py', JSON.stringify(environment(world, options)));
    return {
      async ask(answer, text, { session, decide }, message) {
        const told = (_, { update, ...more }) => (update ? take(answer, update, message) : answer.add(more));
        const asked = client.ask({ text, session, decide: KINDS[decide] }, told);
        answer.stop = () => asked.stop();
        return (await asked.ended).end;
      },
      kill: client.kill,
      close: client.close,
    };
  }),
};

const acpx = {
  ...ACP,
  name: 'acpx',
  // It stands on the library for JavaScript, and starts two processes for each question.
  usually: ['a streamed answer with thinking', 'an approval given and denied'],
  ends: {
    done: /^end_turn, [05]$/,
    // It gives itself two and a half seconds to hear of its end.
    stopped: /^(cancelled, 0|no end, (130|SIGINT))$/,
    failed: /broke.*, 1$/,
    refused: /the token is not known.*, 1$/,
  },
  async open(world) {
    const cli = new URL('../node_modules/acpx/dist/cli.js', import.meta.url).pathname;
    const root = await mkdtemp(join(tmpdir(), 'navi-acpx-'));
    const path = join(root, 'weather.txt');
    await writeFile(path, weather({ city: 'Kyiv' }));

    /** Starts it. Each home has its own processes that hold a session open, which end when they are idle. */
    function start(home, options, ...args) {
      const agent = ['--agent', `${required('NAVI_BIN')} acp`, '--cwd', root, '--format', 'json', '--ttl', '1'];
      const consent = options.decide === 'once' || options.tools ? '--approve-all' : '--deny-all';
      const env = { PATH: process.env.PATH, HOME: home, LOG_LEVEL: 'trace', ...environment(world, options) };
      const child = spawn(process.execPath, [cli, ...agent, consent, ...args], { env, stdio: ['ignore', 'pipe', 'ignore'] });
      return { child, exited: once(child, 'close') };
    }

    const ask = (text, options, message) => new Answer(async (answer) => {
      let how = ['exec'];
      let home = root;
      // What `exec` asks is in a session of its own, and so is what is asked about consent.
      if (options.session && !options.decide) {
        home = await mkdtemp(join(root, 'home-'));
        await start(home, options, 'sessions', 'new', '--name', 'it', '--resume-session', options.session).exited;
        how = ['prompt', '--session', 'it'];
      }
      const { child, exited } = start(home, options, ...how, text);
      answer.child = child;
      answer.stop = () => child.kill('SIGINT');
      let end = 'no end';
      for await (const line of createInterface({ input: child.stdout })) {
        const { method, params, result, error } = JSON.parse(line);
        if (method === 'session/update' && end === 'no end') {
          // It is told what others ask in the session, too; its own answer is the last.
          const { messageId = answer.message } = params.update;
          if (!message && messageId !== answer.message) answer.text = '';
          take(answer, params.update, message);
        }
        if (method === 'fs/read_text_file') answer.add({ calls: ACP.call.name });
        if (result?.sessionId) answer.session = result.sessionId;
        end = result?.stopReason ?? error?.message ?? end;
      }
      const [code, signal] = await exited;
      return `${end}, ${signal ?? code}`;
    });
    return {
      ask,
      call: { ...ACP.call, arguments: { path } },
      async again({ session, message }, options) {
        const answer = ask(BEHIND, { ...options, session }, message);
        // It resumes a session, which tells what goes and not what has been.
        await answer.until(({ text }) => text !== '');
        return answer;
      },
      cut: ({ child }) => child.kill('SIGKILL'),
      close: () => rm(root, { recursive: true, force: true, maxRetries: 10 }),
    };
  },
};

export default [javascript, python, acpx];
