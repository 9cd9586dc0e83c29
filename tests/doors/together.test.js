// One conversation, begun in any door and gone on in each other one: every one of them answers with what was
// said before, and who watches, by events or on the page, is told all of it as it comes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

import { methods } from '@agentclientprotocol/sdk';
import OpenAI from 'openai';

import { logIn, startBrowser } from '../browser/harness/browser.js';
import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { required } from '../browser/harness/program.js';
import { Editor } from './editor.js';
import { javascript as mcpClient } from './mcp.js';

const KEY = 'a-token-of-the-tests';
const authorization = `Bearer ${KEY}`;

let model, navi, origin, openai, mcp, editor, browser, person;
before(async () => {
  model = await startModel();
  navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY, LLM_PARALLEL: '8' });
  origin = new URL(navi.link).origin;
  openai = new OpenAI({ baseURL: `${origin}/v1`, apiKey: KEY });
  mcp = await mcpClient({ url: `${origin}/api/mcp`, token: KEY });
  editor = await Editor.open({ NAVI_DATA_DIR: navi.dataDir });
  browser = await startBrowser();
  person = await logIn(browser, navi);
});
after(async () => {
  await person?.close();
  await browser?.close();
  await mcp?.close();
  await editor?.close();
  await navi?.remove();
  await model?.stop();
});

async function rest(path, body) {
  const response = await fetch(origin + path, { method: body ? 'POST' : 'GET', headers: { authorization, 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** `navi chat -p`. */
async function terminal(said, session) {
  const { PATH, HOME } = process.env;
  const args = ['chat', '-p', said, '--json', ...(session ? ['--session', session] : [])];
  const child = spawn(required('NAVI_BIN'), args, { env: { PATH, HOME, NAVI_DATA_DIR: navi.dataDir }, stdio: ['ignore', 'pipe', 'inherit'] });
  const [told] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(told);
}

const uuid = (id) => id.replaceAll('-', '');

/** What an editor was told as the answer since it had so many updates. */
const answerSince = (count, session) => editor.updates.slice(count)
  .filter((update) => uuid(update.session) === uuid(session) && update.sessionUpdate === 'agent_message_chunk').map(({ content }) => content.text).join('');

const loaded = new Set();

/** Each way in: says something in a session, or in a new one where there is none. Gives the answer, and the session. */
const DOORS = {
  async page(said, session) {
    session ??= (await rest('/sessions', {})).session_id;
    const { content } = await rest(`/sessions/${session}/messages`, { content: said });
    return { answer: content, session };
  },
  async completions(said, session) {
    const asked = { model: 'navi', messages: [{ role: 'user', content: said }] };
    const { data, response } = await openai.chat.completions.create(asked, { headers: { 'X-Navi-Session': session ?? `of ${said}` } }).withResponse();
    return { answer: data.choices[0].message.content, session: response.headers.get('x-navi-session') };
  },
  async responses(said, session) {
    const told = await openai.responses.create({ model: 'navi', input: said, ...(session && { conversation: session }) });
    return { answer: told.output_text, session: session ?? told.conversation.id.replace('conv_', '') };
  },
  async ollama(said, session) {
    const response = await fetch(`${origin}/api/chat`, {
      method: 'POST',
      headers: { authorization, 'X-Navi-Session': session ?? `of ${said}` },
      body: JSON.stringify({ model: 'navi', messages: [{ role: 'user', content: said }], stream: false }),
    });
    const { message } = await response.json();
    return { answer: message.content, session: response.headers.get('x-navi-session') };
  },
  async mcp(said, session) {
    const { data } = await mcp.call('message_send', { text: said, wait_seconds: 60, ...(session && { session_id: session }) });
    return { answer: data.answer.text, session: data.session_id };
  },
  async acp(said, session) {
    if (!session) {
      session = (await editor.agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })).sessionId;
    } else if (!loaded.has(session)) {
      await editor.agent.request(methods.agent.session.load, { sessionId: session, cwd: '/', mcpServers: [] });
    }
    loaded.add(session);
    const count = editor.updates.length;
    await editor.agent.request(methods.agent.session.prompt, { sessionId: session, prompt: [{ type: 'text', text: said }] });
    return { answer: answerSince(count, session).trim(), session };
  },
  async terminal(said, session) {
    const told = await terminal(said, session);
    return { answer: told.answer, session: told.session_id };
  },
};

/** Follows a session as a tab does. Gives its answers, in order, when there are so many. */
async function answersOf(session, count) {
  const response = await fetch(`${origin}/sessions/${session}/events?after=0`, { headers: { authorization } });
  const told = [];
  let rest = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + piece).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.split('\n').find((line) => line.startsWith('data: '));
      const frame = data && JSON.parse(data.slice('data: '.length));
      if (frame?.type === 'stream_end') told.push(frame.content);
    }
    if (told.length >= count) return told;
  }
  return told;
}

describe('one conversation through every door', () => {
  for (const first of Object.keys(DOORS)) {
    it(`is begun by ${first}, and gone on by each other one`, async () => {
      const order = [first, ...Object.keys(DOORS).filter((name) => name !== first)];
      const words = order.map((name) => `${first}-${name}`);
      await model.script(...words.map((word) => ({ last: word, steps: [{ text: `To ${word}.` }] })));
      const tab = person.first;
      let session, following;
      for (const [place, name] of order.entries()) {
        const told = await DOORS[name](`Say ${words[place]}`, session);
        assert.equal(told.answer, `To ${words[place]}.`, name);
        if (session) assert.equal(uuid(told.session), uuid(session), name);
        if (!session) {
          session = told.session;
          following = answersOf(session, order.length);
          await tab.page.evaluate((id) => { location.hash = `#/s/${id}`; }, session);
        }
        await tab.sees(told.answer);
      }
      await tab.idle();
      const shown = await tab.conversation();
      const answers = words.map((word) => `To ${word}.`);
      assert.deepEqual(await following, answers);
      assert.deepEqual(shown.map(({ text }) => text), words.flatMap((word, place) => [`Say ${word}`, answers[place]]));
      const { messages } = await rest(`/sessions/${session}`);
      assert.deepEqual(messages.map(({ content }) => content), words.flatMap((word, place) => [`Say ${word}`, answers[place]]));
      const asked = JSON.stringify((await model.runCallsWhere(() => true)).at(-1).body);
      for (const word of words) assert.ok(asked.includes(`Say ${word}`), word);
    });
  }
});
