// From outside: under a public name and a prefix, by TLS, through the proxies that people have. The same for each of them.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import OpenAI from 'openai';

import { logIn, newContext, startBrowser, Tab } from '../browser/harness/browser.js';
import { startModel } from '../browser/harness/model.js';
import { backendSettings, freePort, startNavi } from '../browser/harness/navi.js';
import { IS_LONG, LIMIT_MS, required, startProgram } from '../browser/harness/program.js';
import { certificate, NAME, outsider, switches } from './outside.js';
import { isThere, PROXIES, startProxy } from './proxy_servers.js';

const KEY = 'a-token-of-the-tests';
const OLENA = { name: 'Olena', password: 'a window by the river' };
const BOHDAN = { name: 'Bohdan', password: 'seven quiet lanterns' };
const MB = 1024 * 1024;
/** Many times what a proxy takes where it is not told otherwise. */
const FILE_MB = IS_LONG ? 200 : 20;
/** Another address of this machine. */
const ELSEWHERE = '127.0.0.2';

const part = (tab, id) => tab.page.getByTestId(id);

/** The pieces of a large file, none like the one before it. */
function* pieces() {
  for (let at = 0; at < FILE_MB; at += 1) yield Buffer.alloc(MB, `piece ${at} of ${FILE_MB}\n`);
}

/** The hash of what comes in pieces. */
async function hashed(stream) {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of stream) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

for (const [kind, proxy] of Object.entries(PROXIES)) {
  const skip = isThere(proxy) ? false : `${proxy.program} is not installed: run ./check --only doors`;

  describe(`behind ${kind}`, { skip }, () => {
    let folder, cert, model, navi, running, browser, window, tab, address, ask, prefixed, upstream;

    /** Asks the API from outside, with the token; gives the answer's JSON. */
    async function rest(path, body, method = body === undefined ? 'GET' : 'POST') {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      const answer = await ask(`${address}${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      const text = await answer.text();
      assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
      return text === '' ? null : JSON.parse(text);
    }

    /** The first line that a command of Navi says on its standard output. */
    const said = async (args, pattern) => (await startProgram(required('NAVI_BIN'), { args, cwd: navi.dataDir, env: { NAVI_DATA_DIR: navi.dataDir, NAVI_ACCOUNTS: 'on', NAVI_PUBLIC_URL: address } }).line(pattern))[0];

    async function elsewhere(url) {
      const context = await newContext(browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
      const other = new Tab(await context.newPage());
      await other.page.goto(url);
      return other;
    }

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), `navi-${kind}-`));
      cert = certificate(folder);
      const port = await freePort();
      upstream = await freePort();
      address = `https://${NAME}:${port}/navi/`;
      model = await startModel();
      navi = await startNavi({
        ...backendSettings('ollama', model.address), LLM_PARALLEL: '4', NAVI_API_TOKEN: KEY, NAVI_ACCOUNTS: 'on',
        NAVI_PUBLIC_URL: address, NAVI_TRUSTED_PROXIES: '127.0.0.1', SESSION_FILES_MAX_SIZE_MB: String(FILE_MB),
      }, { port: upstream });
      prefixed = { port, upstream, cert, folder: join(folder, 'proxy') };
      running = await startProxy(proxy, prefixed);
      ask = outsider(cert.pem);
      browser = await startBrowser(switches(cert));
      window = await logIn(browser, navi, { expected: /status of (40[139]|502)/ });
      tab = window.first;
    });
    after(async () => {
      try {
        await window?.close();
        assert.deepEqual(await model.violations(), [], 'the model was sent a broken history');
      } finally {
        await browser?.close();
        await running?.kill();
        await navi?.remove();
        await model?.stop();
        await rm(folder, { recursive: true, force: true });
      }
    });

    it('the link names the public address and signs in, by a cookie that nobody else can set or read', async () => {
      assert.ok(navi.link.startsWith(`${address}login/`), navi.link);
      assert.ok(tab.page.url().startsWith(address), tab.page.url());
      const cookies = await window.context.cookies();
      assert.deepEqual(cookies.map(({ name, domain, path, secure, httpOnly, sameSite }) => ({ name, domain, path, secure, httpOnly, sameSite })), [
        { name: `__Host-navi_${upstream}`, domain: NAME, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' },
      ]);
      await part(tab, 'choose-password').click();
      await part(tab, 'account-new-name').fill(OLENA.name);
      await part(tab, 'account-password').fill(OLENA.password);
      await tab.page.keyboard.press('Enter');
      await tab.page.locator('[data-testid="banner"][data-kind="password"]').waitFor({ state: 'detached' });
      await tab.page.keyboard.press('Escape');
    });

    it('who leaves out the last slash gets there', async () => {
      const answer = await ask(address.slice(0, -1));
      assert.ok([301, 302, 307, 308].includes(answer.status), `${answer.status}`);
      assert.equal(new URL(answer.headers.get('location'), address).href, address);
    });

    it('an answer is shown as it comes', async () => {
      await model.script([{ text: 'The first half, ' }, { hold: 'half' }, { text: 'and the second.' }]);
      await tab.send('Tell me in two halves.');
      await tab.sees('The first half,');
      await model.release('half');
      await tab.sees('and the second.');
      await tab.idle();
    });

    it('an invitation names the public address, and whoever opens it signs out and in again', async () => {
      const { link } = await rest('api/invitations', { role: 'user' });
      assert.ok(link.startsWith(`${address}#invitation=`), link);
      const made = await said(['user', 'add'], /^https:\S+$/);
      assert.ok(made.startsWith(`${address}#invitation=`), made);
      const his = await elsewhere(link);
      await part(his, 'invitation-name').fill(BOHDAN.name);
      await part(his, 'invitation-password').fill(BOHDAN.password);
      await part(his, 'invitation-accept').click();
      await his.ready();
      await part(his, 'first-skip').click();
      await part(his, 'open-account').click();
      await part(his, 'tab-profile').click();
      await part(his, 'sign-out').click();
      await part(his, 'signin-name').fill(BOHDAN.name);
      await part(his, 'signin-password').fill(BOHDAN.password);
      await part(his, 'signin-submit').click();
      await his.ready();
      assert.equal(his.page.url(), address);
      await his.page.context().close();
    });

    it(`a file of ${FILE_MB} MB goes in by the page and out again as it was, and none that is larger`, async () => {
      const path = join(folder, 'large.bin');
      const file = await open(path, 'w');
      for (const piece of pieces()) await file.write(piece);
      await file.close();
      await tab.newSession.click();
      await tab.send('A place for a file.');
      await tab.sees('A place for a file.');
      await tab.idle();
      await part(tab, 'file-input').setInputFiles(path);
      const upload = tab.page.locator('[data-testid="upload"]');
      await tab.page.locator('[data-testid="upload"][data-state="done"], [data-testid="upload"][data-state="failed"]').waitFor({ timeout: 600_000 });
      assert.equal(await upload.getAttribute('data-state'), 'done', await upload.innerText());
      const session = /^#\/s\/([\w-]+)/.exec(new URL(tab.page.url()).hash)[1];
      const { files: [stored] } = await rest(`sessions/${session}/files`);
      const answer = await ask(`${address}sessions/${session}/files/${stored.file_id}`, { headers: { authorization: `Bearer ${KEY}` } });
      assert.equal(answer.status, 200);
      assert.deepEqual(await hashed(answer.body), await hashed(pieces()));

      const boundary = 'a-boundary';
      async function* form() {
        yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="larger.bin"\r\n\r\n`);
        yield* pieces();
        yield Buffer.from(`and more\r\n--${boundary}--\r\n`);
      }
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': `multipart/form-data; boundary=${boundary}` };
      const refused = await ask(`${address}sessions/${session}/files`, { method: 'POST', headers, body: form() });
      assert.equal(refused.status, 413);
      assert.equal((await refused.json()).code, 'file_too_large');
      await upload.getByTestId('upload-remove').click();
    });

    it('the page finds back after the proxy was gone, in mid-answer', async () => {
      await model.script([{ text: 'Before, ' }, { hold: 'proxy' }, { text: 'and after.' }]);
      await tab.send('What if the proxy goes?');
      await tab.sees('Before,');
      await running.kill();
      await tab.page.getByText(/reconnecting/i).first().waitFor();
      await model.release('proxy');
      await running.start();
      await tab.sees('and after.');
      await tab.idle();
    });

    it('and after Navi was killed, while the proxy stood', async () => {
      const words = Array.from({ length: 10 }, (_, at) => [{ text: `word${at + 1}. ` }, { delay_ms: 100 }]).flat();
      await model.script([...words, { hold: 'never' }]);
      await tab.send('What if Navi goes?');
      await tab.sees('word10.');
      // Answered when all that is on its way to the disk is there.
      await rest(`sessions/${/^#\/s\/([\w-]+)/.exec(new URL(tab.page.url()).hash)[1]}`);
      await navi.kill();
      await tab.page.getByText(/reconnecting/i).first().waitFor();
      await navi.start();
      await tab.conversationWhere((now) => now.at(-1)?.state === 'interrupted');
      await model.script([{ text: 'Back again.' }]);
      await tab.send('Are you back?');
      await tab.sees('Back again.');
      await tab.idle();
    });

    it('no other name and no other page is let in', async () => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      for (const host of ['evil.example', 'navi.test.evil.example', NAME]) {
        const answer = await ask(`${address}sessions`, { headers: { ...headers, host } });
        const text = await answer.text();
        // Caddy itself has nothing under another name.
        if (answer.status === 200) assert.equal(text, '', host);
        else assert.equal(JSON.parse(text).code, 'forbidden_host', host);
      }
      for (const origin of ['https://evil.example', `https://${NAME}`, `http://${new URL(address).host}`, 'null']) {
        const answer = await ask(`${address}sessions`, { method: 'POST', headers: { ...headers, origin }, body: '{}' });
        assert.equal(answer.status, 403, origin);
        assert.equal((await answer.json()).code, 'forbidden_origin', origin);
      }
      const ours = await ask(`${address}sessions`, { method: 'POST', headers: { ...headers, origin: new URL(address).origin }, body: '{}' });
      assert.equal(ours.status, 201);
    });

    it('whoever comes is counted where they are, whatever they claim', async () => {
      const sign_in = (fetching, to, claimed) => fetching(to, {
        method: 'POST', headers: { 'content-type': 'application/json', ...(claimed && { 'x-forwarded-for': claimed }) },
        body: JSON.stringify({ name: BOHDAN.name, password: BOHDAN.password }),
      });
      const from = outsider(cert.pem, { from: ELSEWHERE });
      for (const claimed of [null, '203.0.113.9', '127.0.0.1', '203.0.113.9, 127.0.0.1']) {
        const answer = await sign_in(from, `${address}api/sign-in`, claimed);
        assert.equal(answer.status, 200);
        const [newest] = await rest('api/record?limit=1');
        assert.deepEqual([newest.what, newest.address], ['signed_in', ELSEWHERE], `${claimed}`);
        // And so it stands among his devices.
        const [cookie] = answer.headers.get('set-cookie').split(';');
        const { key } = await answer.json();
        const devices = await (await ask(`${address}api/account/devices`, { headers: { cookie, 'x-navi-key': key } })).json();
        assert.equal(devices.find(({ current }) => current).address, ELSEWHERE);
      }
    });

    it('a token comes in, and a wrong one does not', async () => {
      const { token } = await rest('api/tokens', { name: 'phone', scopes: ['read'] });
      const get = (bearer) => ask(`${address}api/status`, { headers: { authorization: `Bearer ${bearer}` } });
      assert.equal((await get(token)).status, 200);
      assert.equal((await get(`${token}x`)).status, 401);
      const refused = await ask(`${address}sessions`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: '{}' });
      assert.equal((await refused.json()).code, 'forbidden');
    });

    it("OpenAI's client is told an answer as it comes", async () => {
      const openai = new OpenAI({ baseURL: `${address}v1`, apiKey: KEY, fetch: ask, maxRetries: 0 });
      await model.script([{ text: 'One, ' }, { hold: 'sse' }, { text: 'two.' }]);
      const stream = await openai.chat.completions.create({ model: 'navi', stream: true, messages: [{ role: 'user', content: 'Count.' }] });
      let told = '';
      for await (const { choices: [choice] } of stream) {
        told += choice?.delta?.content ?? '';
        if (told === 'One, ') await model.release('sse');
      }
      assert.equal(told, 'One, two.');
    });

    it("Ollama's door and the events of a session come in pieces, too", async () => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      const { session_id } = await rest('sessions', {});
      const events = await ask(`${address}sessions/${session_id}/events`, { headers: { ...headers, accept: 'text/event-stream' } });
      await model.script([{ text: 'Three, ' }, { hold: 'events' }, { text: 'four.' }]);
      const answered = rest(`sessions/${session_id}/messages`, { content: 'Go on.' });
      let text = '';
      for await (const piece of events.body.pipeThrough(new TextDecoderStream())) {
        text += piece;
        if (text.includes('Three, ')) break;
      }
      await model.release('events');
      assert.equal((await answered).content, 'Three, four.');

      await model.script([{ text: 'Five, ' }, { hold: 'lines' }, { text: 'six.' }]);
      const chat = await ask(`${address}api/chat`, { method: 'POST', headers, body: JSON.stringify({ model: 'navi', messages: [{ role: 'user', content: 'And on.' }] }) });
      let lines = '';
      for await (const piece of chat.body.pipeThrough(new TextDecoderStream())) {
        lines += piece;
        if (lines.includes('Five, ') && !lines.includes('six.')) await model.release('lines');
      }
      const words = lines.trim().split('\n').map((line) => JSON.parse(line).message.content);
      assert.equal(words.join(''), 'Five, six.');
    });

    it('is an MCP server for those outside', async () => {
      const client = new Client({ name: 'navi-tests', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL(`${address}api/mcp`), { fetch: ask, requestInit: { headers: { authorization: `Bearer ${KEY}` } } }));
      const { tools } = await client.listTools();
      assert.ok(tools.some(({ name }) => name === 'message_send'), JSON.stringify(tools.map(({ name }) => name)));
      await model.script([{ text: 'Asked and answered.' }]);
      const { content } = await client.callTool({ name: 'message_send', arguments: { text: 'Are you there?', wait_seconds: 60 } });
      assert.match(JSON.stringify(content), /Asked and answered/);
      await client.close();
    });

    it('its documentation leads there, too', async () => {
      const { servers: [{ url }], paths } = await rest('api/openapi.json');
      assert.equal(`${url}/`, address);
      assert.ok('/api/version' in paths);
      assert.equal((await ask(`${url}/api/version`, { headers: { authorization: `Bearer ${KEY}` } })).status, 200);
      const docs = await (await ask(`${address}api/docs`)).text();
      for (const [, path] of docs.matchAll(/(?:href|src)="([^"#]+)"/g)) {
        assert.equal((await ask(new URL(path, `${address}api/docs`))).status, 200, path);
      }
    });

    it('is found under the prefix where the proxy leaves it on, too', async () => {
      const host = new URL(address).host;
      const direct = (path) => fetch(`http://127.0.0.1:${upstream}${path}`, { redirect: 'manual', headers: { authorization: `Bearer ${KEY}` } });
      for (const path of ['/api/status', '/navi/api/status', '/navi/', '/']) assert.equal((await direct(path)).status, 200, path);
      const bare = await direct('/navi');
      assert.deepEqual([bare.status, bare.headers.get('location')], [308, address]);
      assert.equal((await direct('/navi/navi/api/status')).status, 404, host);
      assert.equal((await direct('/navigate')).status, 404);
    });
  });
}

describe('by TLS of its own', () => {
  let folder, cert, renewed, model, navi, browser, window, tab, address;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'navi-tls-'));
    cert = certificate(folder);
    const port = await freePort();
    address = `https://${NAME}:${port}/`;
    model = await startModel();
    navi = await startNavi({
      ...backendSettings('ollama', model.address), NAVI_ACCOUNTS: 'on', NAVI_PUBLIC_URL: address,
      NAVI_TLS_CERTIFICATE: cert.file, NAVI_TLS_KEY: cert.key,
    }, { port });
    renewed = certificate(await mkdtemp(join(folder, 'renewed-')));
    browser = await startBrowser(switches(cert, renewed));
    window = await logIn(browser, navi);
    tab = window.first;
  });
  after(async () => {
    try {
      await window?.close();
    } finally {
      await browser?.close();
      await navi?.remove();
      await model?.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('the page opens by its link, and an answer is shown as it comes', async () => {
    assert.ok(tab.page.url().startsWith(address), tab.page.url());
    const [cookie] = await window.context.cookies();
    assert.ok(cookie.secure && cookie.name.startsWith('__Host-navi_'), JSON.stringify(cookie));
    await model.script([{ text: 'The first half, ' }, { hold: 'half' }, { text: 'and the second.' }]);
    await tab.send('Tell me in two halves.');
    await tab.sees('The first half,');
    await model.release('half');
    await tab.sees('and the second.');
    await tab.idle();
  });

  it('a certificate is renewed under an open page, which does not notice', async () => {
    let connections = 0;
    tab.page.on('websocket', () => { connections += 1; });
    await copyFile(renewed.key, cert.key);
    await copyFile(renewed.file, cert.file);
    const shown = (pem) => outsider(pem)(`${address}health`).then(() => true, () => false);
    for (const end = Date.now() + LIMIT_MS; !await shown(renewed.pem);) assert.ok(Date.now() < end, 'it is not shown');
    assert.equal(await shown(cert.pem), false);
    await model.script([{ text: 'Of course.' }]);
    await tab.send('Are you still there?');
    await tab.sees('Of course.');
    await tab.idle();
    assert.equal(connections, 0, 'the sockets are those of before');
  });

  it('and finds back after Navi was killed', async () => {
    await navi.kill();
    await tab.page.getByText(/reconnecting/i).first().waitFor();
    await navi.start();
    await model.script([{ text: 'Back again.' }]);
    await tab.send('Are you back?');
    await tab.sees('Back again.');
    await tab.idle();
  });
});
