// What a person wrote or sent is not lost: by large photos, another conversation, a reload, a
// connection that goes, a run that was quicker, a full disk, or a browser that keeps nothing.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { world } from './harness/world.js';

const folder = await mkdtemp(join(tmpdir(), 'navi-kept-'));
after(() => rm(folder, { recursive: true }));

/** A file on the disk, and its path. */
async function file(name, content) {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

/** A photo as a camera makes them: nothing in it repeats. With 1200 pixels a side, 5 MB. */
async function photo({ page }, name, side) {
  const base64 = await page.evaluate(async (width) => {
    const context = new OffscreenCanvas(width, width).getContext('2d');
    const pixels = context.createImageData(width, width);
    for (let at = 0; at < pixels.data.length; at += 1) pixels.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
    context.putImageData(pixels, 0, 0);
    const reader = new FileReader();
    reader.readAsDataURL(await context.canvas.convertToBlob());
    await new Promise((read) => { reader.onload = read; });
    return reader.result.split(',')[1];
  }, side);
  return file(name, Buffer.from(base64, 'base64'));
}

const previews = (tab) => tab.page.getByTestId('preview');
/** As the browser's dialog does it: the page is handed the files' places, and reads them itself. */
const put = (tab, ...paths) => tab.page.getByTestId('file-input').setInputFiles(paths);
const queued = (tab) => tab.page.getByTestId('queued-message');

/** Starts a conversation, and leaves it open. */
async function converse({ model, tab }, text) {
  await tab.newSession.click();
  await model.script([{ text: `Answer to ${text}` }]);
  await tab.send(text);
  await tab.sees(`Answer to ${text}`);
  await tab.idle();
}

describe('what is written and not yet sent', () => {
  const it_has = world();

  it('arrives as the first message of a conversation, with photos larger than a browser used to keep', async () => {
    const { model, tab } = it_has;
    const photos = [await photo(tab, 'a.png', 1200)];
    for (const name of ['b', 'c', 'd', 'e']) photos.push(await photo(tab, `${name}.png`, 500));
    await put(tab, ...photos);
    await model.script([{ text: 'Five photos.' }]);
    await tab.send('Look at these.');
    await tab.sees('Five photos.');
    await tab.idle();
    assert.equal(await tab.page.locator('.message.user .images img').count(), 5);
    const calls = await model.runCallsWhere((runs) => runs.length > 0);
    assert.equal(calls.at(-1).body.messages.at(-1).images.length, 5);
    await tab.page.reload();
    await tab.messages.first().waitFor();
    assert.equal(await tab.page.getByTestId('pending-message').count(), 0);
  });

  it('keeps words, pictures and files over another conversation and a reload', async () => {
    const { tab } = it_has;
    await converse(it_has, 'Question one');
    await put(tab, await photo(tab, 'kept.png', 40), await file('notes.txt', 'notes'));
    await tab.composer.fill('Half a thought');
    await previews(tab).waitFor();
    await tab.page.locator('[data-testid="upload"][data-state="done"]').waitFor();
    await tab.newSession.click();
    await previews(tab).waitFor({ state: 'detached' });
    assert.equal(await tab.composer.inputValue(), '');
    const back = async () => {
      await tab.sessions.filter({ hasText: 'Question one' }).click();
      await previews(tab).waitFor();
      assert.equal(await tab.composer.inputValue(), 'Half a thought');
      assert.equal(await tab.page.getByTestId('upload').count(), 1);
    };
    await back();
    await tab.page.reload();
    await back();
    const { model } = it_has;
    await model.script([{ text: 'A whole one now.' }]);
    await tab.sendButton.click();
    await tab.sees('A whole one now.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('file-chip').getByText('notes.txt').count(), 1);
    assert.equal(await previews(tab).count() + await tab.page.getByTestId('upload').count(), 0);
  });

  it('keeps what is typed while the first message of a conversation still sends its file', async () => {
    const { model, tab } = it_has;
    await tab.newSession.click();
    let let_go;
    const held = new Promise((resolve) => { let_go = resolve; });
    await tab.page.route('**/files', async (route) => {
      await held;
      await route.continue();
    });
    await put(tab, await file('long.txt', 'the long story'));
    await model.script([{ text: 'I have read it.' }]);
    await tab.send('Read this.');
    await tab.page.getByTestId('pending-message').waitFor();
    await tab.composer.pressSequentially('And then tell me');
    await tab.page.locator('[data-testid="pending-message"] [data-testid="upload"][data-state="sending"]').waitFor();
    for (const [name, width] of [['wide', 1280], ['narrow', 360]]) {
      await tab.page.setViewportSize({ width, height: 800 });
      await tab.screenshot(`${name}-first-message-under-way`);
    }
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    let_go();
    await tab.sees('I have read it.');
    await tab.idle();
    await tab.page.unroute('**/files');
    assert.equal(await tab.composer.inputValue(), 'And then tell me');
    assert.equal(await tab.page.getByTestId('file-chip').getByText('long.txt').count(), 1);
    await tab.composer.fill('');
  });

  it('gives the words back where no conversation can be begun', async () => {
    const { tab } = it_has;
    await tab.newSession.click();
    await tab.page.route('**/sessions', (route) => (route.request().method() === 'POST'
      ? route.abort()
      : route.continue()));
    await put(tab, await photo(tab, 'back.png', 40));
    await previews(tab).waitFor();
    await tab.send('Nobody hears this');
    await tab.errorCard.waitFor();
    assert.equal(await tab.composer.inputValue(), 'Nobody hears this');
    await previews(tab).waitFor();
    await tab.page.unroute('**/sessions');
    await it_has.model.script([{ text: 'I do.' }]);
    await tab.sendButton.click();
    await tab.sees('I do.');
    await tab.idle();
  });

  it('keeps another name of a conversation that is refused in its field', async () => {
    const { tab } = it_has;
    await converse(it_has, 'rivers');
    const before = await tab.page.locator('[aria-current] .session-title').innerText();
    const refuse = (route) => (route.request().method() === 'PATCH' ? route.fulfill({ status: 400, json: { code: 'invalid_field', message: 'not now' } }) : route.continue());
    await tab.page.route('**/sessions/*', refuse);
    await tab.page.locator('.session-link[aria-current]').press('F2');
    const field = tab.page.getByTestId('rename-input');
    await field.fill('All rivers');
    await field.press('Enter');
    await tab.page.getByTestId('toast').getByText('not now').waitFor();
    assert.equal(await field.inputValue(), 'All rivers');
    await tab.page.unroute('**/sessions/*', refuse);
    await field.press('Enter');
    await field.waitFor({ state: 'detached' });
    await tab.page.locator('[aria-current] .session-title').getByText('All rivers').waitFor();
    assert.notEqual(before, 'All rivers');
  });

  it('takes the cells of a spreadsheet as text, and a picture as a picture', async () => {
    const { tab, window } = it_has;
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copy = (with_text) => tab.page.evaluate(async (cells) => {
      const canvas = new OffscreenCanvas(4, 4);
      canvas.getContext('2d').fillRect(0, 0, 4, 4);
      const picture = await canvas.convertToBlob();
      const text = cells ? { 'text/plain': new Blob(['a\tb\n1\t2'], { type: 'text/plain' }) } : {};
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture, ...text })]);
    }, with_text);
    await tab.newSession.click();
    await tab.composer.fill('');
    await copy(true);
    await tab.page.keyboard.press('ControlOrMeta+v');
    await tab.page.waitForFunction(() => document.querySelector('#composer').value !== '');
    assert.equal(await tab.composer.inputValue(), 'a\tb\n1\t2');
    assert.equal(await previews(tab).count(), 0);
    await copy(false);
    await tab.page.keyboard.press('ControlOrMeta+v');
    await previews(tab).waitFor();
    assert.equal(await tab.composer.inputValue(), 'a\tb\n1\t2');
    await previews(tab).getByRole('button').click();
    await tab.composer.fill('');
  });
});

describe('an edit of a message that waits its turn', () => {
  const it_has = world();
  /** Whether the page's sockets reach the service. */
  let connected = true;
  let sockets = [];

  /** A run that goes, and a message that waits for it. */
  async function waits(gate) {
    const { model, tab } = it_has;
    await model.script({ when: `Begin ${gate}`, steps: [{ text: 'I begin.' }, { hold: gate }] }, { when: 'in', always: true, steps: [{ text: 'And then this.' }] });
    await tab.send(`Begin ${gate}`);
    await tab.sees('I begin.');
    await tab.send('Second, in few words');
    await queued(tab).waitFor();
    await queued(tab).getByTestId('queued-edit').click();
    await tab.page.getByTestId('queued-input').fill('Second, in other words');
  }

  it('stays open while there is no connection, and is saved when there is one', async () => {
    const { model, tab } = it_has;
    await tab.page.routeWebSocket(/\/ws\/sessions\//, (socket) => {
      if (!connected) return void socket.close({ code: 1001 });
      sockets.push(socket);
      socket.connectToServer();
    });
    await waits('first');
    connected = false;
    for (const socket of sockets) await socket.close({ code: 1001 });
    await tab.page.getByTestId('queued-offline').waitFor();
    assert.equal(await tab.page.getByTestId('queued-input').inputValue(), 'Second, in other words');
    await tab.page.getByTestId('queued-input').press('Enter');
    assert.equal(await tab.page.getByTestId('queued-input').inputValue(), 'Second, in other words');
    await tab.screenshot('edit-offline');
    connected = true;
    await tab.page.getByTestId('queued-offline').waitFor({ state: 'detached' });
    await tab.page.getByTestId('queued-save').click();
    await tab.page.getByTestId('queued-input').waitFor({ state: 'detached' });
    await queued(tab).getByText('Second, in other words').waitFor();
    await model.release('first');
    await tab.sees('And then this.');
    await tab.idle();
  });

  it('goes on in the conversation when the run was quicker, after a reload too', async () => {
    const { model, tab } = it_has;
    await tab.newSession.click();
    await waits('second');
    await model.release('second');
    await tab.sees('And then this.');
    await tab.idle();
    const form = tab.page.getByTestId('edit-input');
    await form.waitFor();
    assert.equal(await form.inputValue(), 'Second, in other words');
    await tab.page.reload();
    await form.waitFor();
    assert.equal(await form.inputValue(), 'Second, in other words');
    await tab.page.getByTestId('edit-send').click();
    await form.waitFor({ state: 'detached' });
    await tab.page.locator('.bubble').getByText('Second, in other words').waitFor();
    await tab.idle();
  });
});

describe('a browser that keeps nothing', () => {
  const it_has = world();
  const told = (tab) => tab.page.locator('[data-testid="banner"][data-kind="unkept"]');

  it('is told when its storage is full, and what was written stays in the page', async () => {
    const { model, tab, window } = it_has;
    const control = await window.context.newCDPSession(tab.page);
    await control.send('Storage.overrideQuotaForOrigin', { origin: new URL(tab.page.url()).origin, quotaSize: 1 });
    await put(tab, await photo(tab, 'large.png', 1200));
    await previews(tab).waitFor();
    await tab.composer.fill('With a large photo');
    await told(tab).waitFor();
    assert.match(await told(tab).innerText(), /storage is full/);
    for (const [name, width] of [['wide', 1280], ['narrow', 360]]) {
      await tab.page.setViewportSize({ width, height: 800 });
      await tab.screenshot(`${name}-storage-full`);
    }
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    await model.script([{ text: 'It came all the same.' }]);
    await tab.sendButton.click();
    await tab.sees('It came all the same.');
    await tab.idle();
    assert.equal(await tab.page.locator('.message.user .images img').count(), 1);
    await told(tab).waitFor({ state: 'detached' });
    await control.send('Storage.overrideQuotaForOrigin', { origin: new URL(tab.page.url()).origin });
  });

  it('is told where it has no storage, and loses nothing between conversations', async () => {
    const { navi, tab, window, browser } = it_has;
    assert.ok(navi);
    const state = await window.context.storageState();
    const context = await newContext(browser, { storageState: state });
    await context.addInitScript(() => Object.defineProperty(globalThis, 'indexedDB', { value: undefined }));
    const private_tab = new Tab(await context.newPage());
    await private_tab.page.goto(tab.page.url());
    await private_tab.messages.first().waitFor();
    assert.equal(await told(private_tab).count(), 0, 'there is nothing to lose yet');
    await private_tab.composer.fill('Only here');
    await put(private_tab, await photo(private_tab, 'here.png', 40));
    await previews(private_tab).waitFor();
    await told(private_tab).waitFor();
    await private_tab.newSession.click();
    await previews(private_tab).waitFor({ state: 'detached' });
    await private_tab.sessions.first().click();
    await previews(private_tab).waitFor();
    assert.equal(await private_tab.composer.inputValue(), 'Only here');
    await context.close();
  });
});
