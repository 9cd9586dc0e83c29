// How the page comes to a browser: in few requests, kept for good, behind any prefix, and anew
// once the service was updated.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { prefixed } from './harness/proxy.js';
import { world } from './harness/world.js';

const FIRST_LOAD_BYTES = 150 * 1024;

/** Loads the page's address in a tab of its own; every request that took the wire, with its bytes there. */
async function visit(context, url) {
  const tab = new Tab(await context.newPage());
  const devtools = await context.newCDPSession(tab.page);
  const requests = new Map();
  devtools.on('Network.requestWillBeSent', ({ requestId, request: { url: address } }) => requests.set(requestId, { address, bytes: 0 }));
  devtools.on('Network.webSocketCreated', ({ requestId, url: address }) => requests.set(requestId, { address, bytes: 0 }));
  devtools.on('Network.requestServedFromCache', ({ requestId }) => requests.delete(requestId));
  devtools.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.fromDiskCache || response.fromPrefetchCache) requests.delete(requestId);
  });
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (requests.has(requestId)) requests.get(requestId).bytes = encodedDataLength;
  });
  await devtools.send('Network.enable');
  await tab.page.goto(url, { waitUntil: 'networkidle' });
  await tab.ready();
  return { tab, requests: [...requests.values()] };
}

describe('a visit', () => {
  const it_has = world();

  it('is a few requests, and the next one hardly any', async () => {
    const { browser, navi, window } = it_has;
    const { origin } = new URL(navi.link);
    const state = await window.context.storageState();
    // Another browser, which has nothing of the page yet. What its worker keeps is in `offline.test.js`.
    const context = await newContext(browser, { storageState: state, serviceWorkers: 'block' });
    try {
      const first = await visit(context, `${origin}/`);
      const bytes = first.requests.reduce((sum, request) => sum + request.bytes, 0);
      assert.ok(first.requests.length <= 10, JSON.stringify(first.requests, null, 2));
      assert.ok(bytes > 50_000 && bytes < FIRST_LOAD_BYTES, `${bytes} bytes on the wire`);
      await first.tab.page.close();

      const next = await visit(context, `${origin}/`);
      const files = next.requests.filter(({ address }) => /^http:\/\/[^/]+\/(?:$|web\/|favicon)/.test(address));
      assert.deepEqual(files.map(({ address }) => address), [`${origin}/`]);
      const again = files.reduce((sum, request) => sum + request.bytes, 0);
      assert.ok(again < 1_000, `${again} bytes on the wire`);
    } finally {
      await context.close();
    }
  });

  it('loads the colours of code with the first, once its fence is closed, and tries again where that failed', async () => {
    const { model, tab } = it_has;
    const coloured = tab.answers.last().locator('.code-keyword');
    await tab.page.route('**/colours.js*', (route) => route.abort());
    const failed = tab.page.waitForEvent('requestfailed', (request) => request.url().includes('/colours.js'));
    await model.script([{ text: 'Plain:\n\n```js\nlet plain = 1;\n```\n\nSo far.' }]);
    await tab.send('Write some code.');
    await tab.sees('So far.');
    await tab.idle();
    await failed;
    assert.equal(await tab.answers.last().locator('pre').innerText(), 'let plain = 1;');
    assert.equal(await coloured.count(), 0);
    await tab.page.unroute('**/colours.js*');

    await model.script([{ text: 'In colours:\n\n```js\nlet first = 1;\n' }, { hold: 'fence' }, { text: 'let second = 2;\n```\n\nThat is all.' }]);
    await tab.send('Write more.');
    await tab.sees('let first');
    assert.equal(await coloured.count(), 0);
    await model.release('fence');
    await tab.sees('That is all.');
    await coloured.nth(1).waitFor();
    assert.deepEqual(await coloured.allInnerTexts(), ['let', 'let']);

    const pre = tab.answers.last().locator('pre');
    assert.equal(await pre.evaluate((element) => getComputedStyle(element).whiteSpaceCollapse + getComputedStyle(element).textWrapMode), 'preservenowrap');
    await tab.answers.last().getByTestId('code-wrap').click();
    assert.equal(await pre.evaluate((element) => getComputedStyle(element).textWrapMode), 'wrap');
    await tab.idle();
  });

  it('of a page that was open while Navi was updated offers the new one', async () => {
    const { model, navi, tab } = it_has;
    await model.script([{ text: 'Said before the update.' }]);
    await tab.send('Is this yesterday?');
    await tab.sees('Said before the update.');
    await tab.idle();
    const { origin } = new URL(navi.link);
    const html = await (await fetch(`${origin}/`)).text();
    // As the next version's: its files lie in another folder.
    await tab.page.route(`${origin}/`, (route) => route.fulfill({ contentType: 'text/html', body: html.replaceAll(/web\/[0-9a-f]+\//g, 'web/0123456789abcdef/') }));
    await navi.kill();
    await navi.start();
    const note = tab.page.locator('[data-testid="banner"][data-kind="outdated"]');
    await note.waitFor();
    await tab.composer.fill('Half of a thought');
    // What was not loaded yet is gone with the old folder.
    await tab.page.route('**/panels.js*', (route) => route.abort());
    await tab.page.getByTestId('open-memory').click();
    const toast = tab.page.getByTestId('toast');
    await toast.getByText('Navi was updated').waitFor();
    await toast.getByRole('button', { name: 'Reload' }).waitFor();
    assert.equal(await tab.page.getByText('Navi does not answer').count(), 0);
    await tab.page.unroute('**/panels.js*');

    await tab.page.unroute(`${origin}/`);
    await note.getByTestId('reload').click();

    await note.waitFor({ state: 'detached' });
    await tab.sees('Said before the update.');
    // The browser's own copy is read beside the conversation.
    await tab.page.waitForFunction(() => document.querySelector('#composer')?.value === 'Half of a thought');
  });
});

describe('behind a prefix', () => {
  const it_has = world();
  let proxy;
  before(async () => {
    proxy = await prefixed(new URL(it_has.navi.link).origin);
  });
  after(() => proxy?.close());

  it('a link logs in, and a conversation with a file is held', async () => {
    const { browser, model, navi } = it_has;
    await navi.kill();
    await navi.start();
    const context = await newContext(browser);
    try {
      const tab = new Tab(await context.newPage());
      await tab.page.goto(navi.link.replace(new URL(navi.link).origin, proxy.address));
      await tab.ready();
      assert.equal(tab.page.url(), `${proxy.address}/`);
      await model.script([{ text: 'Heard through a proxy.' }]);
      await tab.page.getByTestId('file-input').setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note.') });
      await tab.send('Do you hear me?');
      await tab.sees('Heard through a proxy.');
      await tab.idle();
      const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByTestId('file-chip').first().click()]);
      assert.equal(download.suggestedFilename(), 'note.txt');
      assert.equal(await download.failure(), null);
      await tab.page.reload();
      await tab.sees('Heard through a proxy.');
      assert.deepEqual(proxy.asked.filter((path) => !path.startsWith('/a/prefix/') && path !== '/favicon.ico'), []);
    } finally {
      await context.close();
    }
  });
});
