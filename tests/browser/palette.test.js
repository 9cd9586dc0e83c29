// From one field everything is found and done; what is written down elsewhere goes with it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('the palette', () => {
  const it_has = world();
  const input = () => it_has.tab.page.getByTestId('palette-input');
  const option = (text) => it_has.tab.page.getByTestId('palette-option').filter({ hasText: text });
  const open = async () => {
    await it_has.tab.page.keyboard.press('ControlOrMeta+k');
    await input().waitFor();
  };

  /** Takes what is found by these words, by the keyboard. */
  async function take(words, text = words) {
    await open();
    await it_has.tab.page.keyboard.type(words);
    await option(text).first().waitFor();
    await it_has.tab.page.locator('[data-testid="palette-option"][aria-selected="true"]').filter({ hasText: text }).waitFor();
    await it_has.tab.page.keyboard.press('Enter');
    await input().waitFor({ state: 'detached' });
  }

  /** As if another window stood before the page, or went. */
  const becomes = (state) => it_has.tab.page.evaluate((now) => {
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => now });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);

  it('finds conversations, words in them, and what can be done', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Rivers run to the sea. `a`\n\n```js\nlet b = "```";\n```' }]);
    await tab.send('Where do rivers run?');
    await tab.sees('Rivers run to the sea.');
    await tab.idle();
    await tab.page.keyboard.press('ControlOrMeta+Shift+o');
    await tab.page.getByTestId('welcome').or(tab.page.locator('navi-welcome')).first().waitFor();
    await take('where do', 'Where do rivers run?');
    await tab.sees('Rivers run to the sea.');

    await open();
    await tab.page.keyboard.type('to the sea');
    await option('Rivers run').waitFor();
    await tab.screenshot('palette');
    await tab.page.keyboard.press('Enter');
    await tab.page.waitForFunction(() => document.activeElement?.matches('article[data-role]'));

    await open();
    await tab.page.keyboard.type('no such thing anywhere');
    await tab.page.getByTestId('palette-empty').waitFor();
    await tab.page.keyboard.press('Escape');
    await input().waitFor({ state: 'detached' });
  });

  it('goes through its choices by the arrows, and says where one is', async () => {
    const { tab } = it_has;
    await open();
    const at = () => input().getAttribute('aria-activedescendant');
    const selected = () => tab.page.locator('[data-testid="palette-option"][aria-selected="true"]').getAttribute('id');
    assert.equal(await at(), 'palette-0');
    await tab.page.keyboard.press('ArrowDown');
    await tab.page.waitForFunction(() => document.querySelector('#palette-1').ariaSelected === 'true');
    assert.equal(await at(), await selected());
    await tab.page.keyboard.press('ArrowUp');
    await tab.page.keyboard.press('ArrowUp');
    await tab.page.waitForFunction(() => document.querySelector('.palette-option:last-of-type[aria-selected=true], [role=group]:last-child > :last-child[aria-selected=true]') !== null);
    await tab.page.keyboard.press('Escape');
    await input().waitFor({ state: 'detached' });
  });

  it('is left for what it opens, and opens in the moment in which that is closed', async () => {
    const { tab } = it_has;
    const keys = tab.page.getByTestId('keys');
    await open();
    await tab.page.keyboard.type('show these keys');
    await option('Show these keys').first().waitFor();
    await tab.page.keyboard.press('Enter');
    await input().waitFor({ state: 'detached' });
    // A dialog tells that it was closed in a task of its own; a second one lets that pass.
    await tab.page.evaluate(() => new Promise((done) => { setTimeout(() => setTimeout(done)); }));
    await keys.waitFor();
    await tab.page.evaluate(() => {
      document.querySelector('[data-testid="keys"]').close();
      dispatchEvent(new KeyboardEvent('keydown', { key: 'k', code: 'KeyK', ctrlKey: true }));
    });
    await tab.page.evaluate(() => new Promise((done) => { setTimeout(() => setTimeout(done)); }));
    await keys.waitFor({ state: 'detached' });
    await input().waitFor();
    await tab.page.keyboard.press('Escape');
    await input().waitFor({ state: 'detached' });
  });

  it('folds the list of conversations, and a reload keeps it so', async () => {
    const { tab } = it_has;
    await tab.composer.focus();
    await take('fold the list');
    await tab.newSession.waitFor({ state: 'hidden' });
    const focused = (id) => tab.page.waitForFunction((wanted) => document.activeElement?.getAttribute('data-testid') === wanted, id);
    await focused('composer');
    await tab.screenshot('folded-sidebar');
    await tab.page.reload();
    await tab.ready();
    assert.equal(await tab.newSession.isVisible(), false);
    // The address is that of a message, which takes the keyboard once it is there.
    await tab.page.waitForFunction(() => document.activeElement?.matches('article'));
    await tab.page.getByTestId('sidebar-unfold').click();
    await tab.newSession.waitFor();
    await focused('sidebar-fold');
    await tab.page.keyboard.press('Enter');
    await focused('sidebar-unfold');
    await tab.page.keyboard.press('Enter');
    await focused('sidebar-fold');
  });

  it('exports the conversation, and all of them, as Markdown too', async () => {
    const { tab } = it_has;
    const saved = async (words) => {
      const [download] = await Promise.all([tab.page.waitForEvent('download'), take(words)]);
      return [download.suggestedFilename(), await readFile(await download.path(), 'utf8')];
    };
    const [name, text] = await saved('export the conversation as markdown');
    assert.match(name, /\.md$/);
    assert.match(text, /## You\n\nWhere do rivers run\?/);
    assert.match(text, /## Navi\n\nRivers run to the sea\./);
    const [, json] = await saved('export the conversation as json');
    assert.deepEqual(JSON.parse(json).messages.map(({ role }) => role), ['user', 'assistant']);
    const [all_name, all] = await saved('export all');
    assert.match(all_name, /\.jsonl$/);
    assert.equal(all.trimEnd().split('\n').length, 1);
    assert.equal(JSON.parse(all).messages.length, 2);
    const [book_name, book] = await saved('export all conversations as markdown');
    assert.match(book_name, /^navi .*\.md$/);
    assert.deepEqual(book.match(/^#+ .*$/gm).map((line) => line.split(' ')[0]), ['#', '##', '##']);
    assert.match(book, /## Navi\n\nRivers run to the sea\./);
  });

  it('has the system tell what happens while nobody looks', async () => {
    const { model, tab, window } = it_has;
    await window.context.grantPermissions(['notifications']);
    // Headless Chromium shows none: what would be shown is kept.
    await tab.page.evaluate(() => {
      window.told = [];
      window.Notification = class {
        static permission = 'granted';
        static requestPermission = async () => 'granted';
        constructor(title, { body }) { window.told.push([title, body]); }
      };
    });
    await take('notify me');
    await model.script([{ hold: 'elsewhere' }, { text: 'Ready.' }]);
    await tab.send('Take your time.');
    await tab.stopButton.waitFor();
    await becomes('hidden');
    await model.release('elsewhere');
    await tab.page.waitForFunction(() => window.told.length > 0);
    const told = await tab.page.evaluate(() => window.told);
    assert.equal(told.length, 1);
    assert.equal(told[0][1], 'Navi is done.');
    assert.equal(await tab.page.getByTestId('notify').getAttribute('aria-pressed'), 'true');
  });

  it('tells nothing of what somebody looks at in another tab', async () => {
    const { model, tab, window } = it_has;
    const lookedAt = (is) => tab.page.waitForFunction(async (wanted) => {
      const { held } = await navigator.locks.query();
      return held.some(({ name }) => name === 'navi.looks') === wanted;
    }, is);
    await tab.idle();
    await tab.page.evaluate(() => { window.told = []; });
    await lookedAt(false);
    const beside = await window.tabBeside(tab);
    const running = tab.page.locator('[data-testid="session-item"][data-state="running"]');
    for (const gate of ['seen', 'unseen']) {
      if (gate === 'unseen') await beside.page.close();
      await lookedAt(gate === 'seen');
      await model.script([{ hold: gate }, { text: `It was ${gate}.` }]);
      await tab.send('Who sees this?');
      await running.waitFor();
      await model.release(gate);
      await tab.sees(`It was ${gate}.`);
      await running.waitFor({ state: 'detached' });
    }
    await tab.page.waitForFunction(() => window.told.length > 0);
    assert.equal(await tab.page.evaluate(() => window.told.length), 1);
  });

  it('has the worker tell where a page may not, as on a phone, and the list goes on', async () => {
    const { model, tab } = it_has;
    await tab.idle();
    await tab.page.evaluate(() => {
      window.told = [];
      window.Notification = class {
        static permission = 'granted';
        constructor() { throw new TypeError('Illegal constructor'); }
      };
      navigator.serviceWorker.getRegistration = async () => ({ active: {}, showNotification: async (title, said) => { window.told.push([said.body, said.data]); } });
    });
    await model.script([{ hold: 'worker' }, { text: 'Ready again.' }]);
    await tab.send('Once more.');
    const row = tab.page.locator('[data-testid="session-item"]:has([aria-current])');
    await tab.page.locator('[data-testid="session-item"][data-state="running"]').waitFor();
    await model.release('worker');
    await tab.page.waitForFunction(() => window.told.length > 0);
    assert.deepEqual(await tab.page.evaluate(() => window.told), [['Navi is done.', new URL(tab.page.url()).hash.split('/').slice(0, 3).join('/')]]);
    assert.equal(await row.getAttribute('data-state'), 'idle');

    await tab.page.evaluate(() => { navigator.serviceWorker.getRegistration = async () => undefined; });
    await model.script([{ text: 'And again.' }]);
    await tab.send('And once more.');
    await tab.sees('And again.');
    await tab.idle();
    await tab.page.locator('[data-testid="session-item"][data-state="running"]').waitFor({ state: 'detached' });
    assert.equal(await tab.page.locator('[data-testid="notice"][data-code="unreadable_frame"]').count(), 0);
  });

  it('says how much came while one reads further up', async () => {
    const { model, tab } = it_has;
    await becomes('visible');
    await model.script([{ text: Array.from({ length: 60 }, (_, i) => `Line ${i}.`).join('\n\n') }]);
    await tab.send('Tell me a lot.');
    await tab.sees('Line 59.');
    await tab.idle();
    await model.script([{ hold: 'further' }, { text: 'And more.' }]);
    await tab.send('More?');
    await tab.stopButton.waitFor();
    await tab.page.getByTestId('conversation').evaluate((element) => { element.scrollTop = 0; });
    await tab.page.getByTestId('jump-latest').waitFor();
    await model.release('further');
    await tab.page.getByTestId('unread').getByText('1 new message').waitFor();
    await tab.page.getByTestId('jump-latest').click();
    await tab.sees('And more.');
    await tab.page.getByTestId('unread').waitFor({ state: 'detached' });
  });

  it('says how many lines came where one answer goes on below', async () => {
    const { model, tab } = it_has;
    const paragraphs = (/** @type {string} */ word, count) => Array.from({ length: count }, (_, i) => `${word} ${i}.\n\n`).join('');
    await model.script([{ text: paragraphs('Before', 30) }, { hold: 'lines' }, { text: `${paragraphs('After', 8)}The end.` }]);
    await tab.send('Tell me more.');
    await tab.sees('Before 29.');
    await tab.page.getByTestId('conversation').evaluate((element) => { element.scrollTop = 0; });
    await tab.page.getByTestId('jump-latest').waitFor();
    assert.equal(await tab.page.getByTestId('unread').count(), 0);
    await model.release('lines');
    await tab.sees('The end.');
    await tab.idle();
    const said = tab.page.getByTestId('unread').getByText(/^\d+ new lines$/);
    await said.waitFor();
    // They are counted with the frame after the one that drew them.
    await tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const lines = Number.parseInt(await said.innerText(), 10);
    assert.ok(lines >= 9 && lines <= 30, `${lines}`);
    assert.match(await tab.page.getByTestId('jump-latest').getAttribute('aria-label'), / new lines$/);
    await tab.screenshot('new-lines');
    await tab.page.getByTestId('jump-latest').click();
    await tab.page.getByTestId('unread').waitFor({ state: 'detached' });
  });
});
