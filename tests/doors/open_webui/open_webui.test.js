// Open WebUI from its package, in a browser, with Navi as its connection.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';

import { newContext, startBrowser } from '../../browser/harness/browser.js';
import { startModel } from '../../browser/harness/model.js';
import { backendSettings, freePort, startNavi } from '../../browser/harness/navi.js';
import { LIMIT_MS, required, startProgram } from '../../browser/harness/program.js';

const KEY = 'a-token-of-the-tests';
const PERSON = { name: 'Anna', email: 'anna@example.org', password: 'a-password-of-the-tests' };
/** It reads its database in, and Python's modules, for the first time. */
const START_MS = 300_000;
const WORKING = [
  { streamed: true, steps: [{ thinking: 'First the list.' }, { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }] },
  { streamed: true, steps: [{ text: 'All ' }, { text: 'done.' }] },
];
/** What its own questions beside a conversation get; each ends in a form of its own. */
const SMALL_TASKS = [
  { streamed: false, always: true, last: '"title"', steps: [{ text: '{"title": "A list of one"}' }] },
  { streamed: false, always: true, last: '"tags"', steps: [{ text: '{"tags": ["lists"]}' }] },
];

let model, navi, base, places, openWebui, address, token, browser;
before(async () => {
  model = await startModel();
  navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY, NAVI_CONSENT_MODE: 'auto', LLM_PARALLEL: '8' });
  base = new URL(navi.link).origin;
  places = await mkdtemp(join(tmpdir(), 'navi-open-webui-'));
  const port = await freePort();
  address = `http://127.0.0.1:${port}`;
  openWebui = startProgram(required('NAVI_TEST_OPEN_WEBUI'), {
    args: ['serve', '--host', '127.0.0.1', '--port', String(port)],
    cwd: places,
    env: {
      DATA_DIR: places,
      WEBUI_SECRET_KEY: 'a-key-of-the-tests',
      OFFLINE_MODE: 'true',
      HF_HUB_OFFLINE: '1',
      ENABLE_VERSION_UPDATE_CHECK: 'false',
      // It has no models of its own to search documents with.
      RAG_EMBEDDING_ENGINE: 'openai',
      ENABLE_OLLAMA_API: 'false',
      OPENAI_API_BASE_URL: `${base}/v1`,
      OPENAI_API_KEY: KEY,
    },
  });
  await answers(`${address}/health`);
  ({ token } = await asked('POST', `${address}/api/v1/auths/signup`, null, PERSON));
  browser = await startBrowser();
}, { timeout: START_MS });
after(async () => {
  await browser?.close();
  await openWebui?.stop('SIGTERM');
  await navi?.remove();
  await model?.stop();
  if (places !== undefined) await rm(places, { recursive: true, force: true });
});

/** Waits for a server. */
async function answers(url) {
  const end = Date.now() + START_MS;
  for (;;) {
    if (await fetch(url).then(({ ok }) => ok, () => false)) return;
    if (Date.now() > end) throw new Error(`no answer from ${url}:\n${openWebui.output.join('\n')}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function asked(method, url, key, body) {
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${url}: ${response.status}`);
  return response.json();
}

/** Its page, logged in. */
async function page() {
  const context = await newContext(browser, { viewport: { width: 1280, height: 800 } });
  await context.addInitScript((token) => localStorage.setItem('token', token), token);
  const page = await context.newPage();
  await page.goto(address);
  await page.locator('#chat-input').waitFor();
  // Its news come when they come, and lie over all else.
  const news = page.getByRole('button', { name: "Okay, Let's Go!" });
  await page.addLocatorHandler(news, () => news.click());
  await page.getByText('navi', { exact: true }).first().waitFor();
  return page;
}

async function send(page, text) {
  await page.locator('#chat-input').click();
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

const isSmall = ({ body }) => body.stream === false;

/** Waits until it has asked for a title and for tags, and gives all that the model was asked. */
async function callsWithTasks(known) {
  const end = Date.now() + LIMIT_MS;
  for (;;) {
    const calls = (await model.calls()).slice(known);
    const tasks = calls.filter(isSmall).map(({ body }) => body.messages.at(-1).content);
    if (['title', 'tags'].every((word) => tasks.some((task) => task.includes(word)))) return calls;
    if (Date.now() > end) assert.fail(`not asked: ${JSON.stringify(tasks)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function assertSmall(calls) {
  for (const { body } of calls.filter(isSmall)) assert.deepEqual(body.tools ?? [], [], 'a small task has tools');
  for (const { body } of calls.filter((call) => !isSmall(call))) assert.ok(body.tools.length > 0, 'a chat has none');
}

it('chats with tools; its titles and tags ask none, and no session is left', async () => {
  await model.script(...WORKING, ...SMALL_TASKS);
  const open = await page();
  await send(open, 'Make a list.');
  await open.getByText('All done.').first().waitFor();
  await open.getByText('todo', { exact: true }).first().waitFor();
  await open.getByText(/^Thought for/).first().waitFor();
  await open.getByText('A list of one').first().waitFor();
  const calls = await callsWithTasks(0);
  assert.equal(calls.filter((call) => !isSmall(call)).length, 2, 'the answer is of two calls');
  assertSmall(calls);
  assert.deepEqual(await asked('GET', `${base}/sessions`, KEY), []);
  assert.deepEqual(await model.violations(), []);
  await open.context().close();
});

it('stops the run by its own Stop', async () => {
  await model.script({ streamed: true, steps: [{ text: 'It begins' }, { hold: 'for-ever' }, { text: ' and goes on.' }] }, ...SMALL_TASKS);
  const open = await page();
  await send(open, 'Tell me a long story.');
  await open.getByText('It begins').first().waitFor();
  await open.getByRole('button', { name: 'Stop' }).first().click();
  await model.runCallsWhere((runs) => runs.at(-1).closed_early_ms !== null);
  await open.context().close();
});

it('shows its chats on Navi’s page where the connection names them', async () => {
  await asked('POST', `${address}/openai/config/update`, token, {
    ENABLE_OPENAI_API: true,
    OPENAI_API_BASE_URLS: [`${base}/v1`],
    OPENAI_API_KEYS: [KEY],
    OPENAI_API_CONFIGS: { 0: { enable: true, headers: { 'X-Navi-Session': '{{CHAT_ID}}', 'X-Navi-Task': '{{TASK}}' } } },
  });
  const known = (await model.calls()).length;
  await model.script(...WORKING, ...SMALL_TASKS);
  const open = await page();
  await send(open, 'Make another list.');
  await open.getByText('All done.').first().waitFor();
  assertSmall(await callsWithTasks(known));
  await model.script({ streamed: true, steps: [{ text: 'It has one step.' }] });
  await send(open, 'How long is it?');
  await open.getByText('It has one step.').first().waitFor();
  const sessions = await asked('GET', `${base}/sessions`, KEY);
  assert.equal(sessions.length, 1, 'one chat is one session');
  const { messages } = await asked('GET', `${base}/sessions/${sessions[0].id}`, KEY);
  const said = messages.filter(({ role, content }) => role !== 'tool' && content).map(({ content }) => content);
  assert.deepEqual(said, ['Make another list.', 'All done.', 'How long is it?', 'It has one step.']);
  await open.context().close();
});
