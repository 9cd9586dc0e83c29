// Everything that matters works without a mouse.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertAccessible } from './harness/looks.js';
import { world } from './harness/world.js';

describe('by keyboard alone', () => {
  const it_has = world();
  const focused = () => it_has.tab.page.evaluate(() => document.activeElement?.closest('[data-testid]')?.dataset.testid);

  /** Goes on by Tab until something has the focus. */
  async function tabTo(testId) {
    const { page } = it_has.tab;
    for (let step = 0; step < 60; step += 1) {
      if ((await focused()) === testId) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`${testId} is not reached by Tab`);
  }

  it('the keyboard is where one writes as soon as the page is there, after a reload and in a conversation too', async () => {
    const { model, tab } = it_has;
    const writes = () => tab.page.waitForFunction(() => document.activeElement?.id === 'composer');
    await writes();
    await tab.page.reload();
    await writes();
    await model.script([{ text: 'Here I am.' }]);
    await tab.page.keyboard.type('Are you there?');
    await tab.page.keyboard.press('Enter');
    await tab.sees('Here I am.');
    await tab.idle();
    await tab.page.reload();
    await tab.sees('Here I am.');
    await writes();
    await tab.newSession.click();
    await tab.messages.first().waitFor({ state: 'detached' });
    await writes();
  });

  it('one can write, send and stop', async () => {
    const { model, tab } = it_has;
    const { keyboard } = tab.page;
    await model.script([{ text: 'Going on' }, { hold: 'never' }]);

    await tabTo('composer');
    await keyboard.type('First line');
    await keyboard.press('Shift+Enter');
    await keyboard.type('second line');
    assert.match(await tab.composer.inputValue(), /First line\nsecond line/);
    await keyboard.press('Enter');
    await tab.sees('Going on');

    await tabTo('stop');
    await keyboard.press('Enter');
    await tab.idle();
  });

  it('one can start a session and come back to the first', async () => {
    const { tab } = it_has;
    const { keyboard } = tab.page;
    await tabTo('new-session');
    await keyboard.press('Enter');
    await tab.messages.first().waitFor({ state: 'detached' });
    await tabTo('session-item');
    await keyboard.press('Enter');
  });

  it('one can change what one said last', async () => {
    const { model, tab } = it_has;
    const { keyboard } = tab.page;
    await tab.newSession.click();
    await model.script([{ text: 'Four.' }], [{ text: 'Five.' }]);
    await tab.send('Two and two?');
    await tab.sees('Four.');
    await tab.idle();
    await tab.composer.focus();

    await keyboard.press('ArrowUp');

    await tab.page.waitForFunction(() => document.activeElement?.getAttribute('data-testid') === 'edit-input');
    await keyboard.press('End');
    await keyboard.press('Backspace');
    await keyboard.type(' and one?');
    // What is half written is gone on with.
    await tab.composer.focus();
    await keyboard.press('ArrowUp');
    assert.equal(await focused(), 'edit-input');
    assert.equal(await tab.page.getByTestId('edit-input').inputValue(), 'Two and two and one?');
    await keyboard.press('Enter');
    await tab.sees('Five.');
    await tab.idle();
    assert.deepEqual((await tab.conversation()).map(({ text }) => text), ['Two and two and one?', 'Five.']);
    await tab.composer.fill('A draft stays where it is');
    await keyboard.press('ArrowUp');
    assert.equal(await focused(), 'composer');
    await tab.composer.fill('');
  });

  /** The rows of the list, the one that has the focus marked, and where Tab leads. */
  const rows = () => it_has.tab.page.locator('.session-link').evaluateAll((links) => links.map((link) => ({ id: link.closest('[data-session-id]').dataset.sessionId, has: link === document.activeElement, tab: link.tabIndex === 0 })));
  const stop = async () => (await rows()).findIndex(({ tab }) => tab);
  const here = async () => (await rows()).findIndex(({ has }) => has);

  it('the list of conversations is one stop of Tab, however long it is', async () => {
    const { tab } = it_has;
    const { page } = tab;
    const { keyboard } = page;
    const before = (await rows()).length;
    await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json', 'x-navi-key': localStorage.getItem('navi.key') };
      for (let i = 0; i < 20; i += 1) await fetch('sessions', { method: 'POST', headers, body: '{}' });
    });
    await page.waitForFunction((count) => document.querySelectorAll('.session-link').length === count, before + 20);
    await tab.newSession.click();
    await tab.messages.first().waitFor({ state: 'detached' });
    await page.getByTestId('session-search').focus();
    let tabs = 0;
    while ((await focused()) !== 'composer' && tabs < 60) {
      await keyboard.press('Tab');
      tabs += 1;
    }
    assert.ok(tabs <= 16, `${tabs} times Tab from the search to where one writes`);

    await page.getByTestId('session-search').focus();
    await keyboard.press('Tab');
    assert.equal(await here(), await stop());
    await keyboard.press('Home');
    assert.equal(await here(), 0);
    for (let i = 0; i < 3; i += 1) await keyboard.press('ArrowDown');
    assert.equal(await here(), 3);
    await keyboard.press('End');
    assert.equal(await here(), (await rows()).length - 1);
    await keyboard.press('ArrowUp');
    const { id } = (await rows())[await here()];
    await keyboard.press('Tab');
    assert.equal(await here(), -1);
    await keyboard.press('Shift+Tab');
    assert.equal((await rows())[await here()].id, id);
    assert.equal((await rows()).filter((row) => row.tab).length, 1);
  });

  it('what can be done with a conversation is a menu of its row', async () => {
    const { tab } = it_has;
    const { page } = tab;
    const { keyboard } = page;
    const action = () => page.evaluate(() => document.activeElement?.getAttribute('data-action'));
    const opened = (id) => page.waitForFunction((id) => document.activeElement?.getAttribute('data-action') === id, id);
    const closed = () => page.getByTestId('session-action').first().waitFor({ state: 'detached' });
    await page.getByTestId('session-search').focus();
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    const at = await here();
    const { id } = (await rows())[at];

    for (const key of ['ArrowRight', 'Shift+F10', 'ContextMenu']) {
      await keyboard.press(key);
      await opened('pin');
      await keyboard.press('Escape');
      await closed();
      assert.equal(await here(), at, key);
    }
    await keyboard.press('ArrowRight');
    await opened('pin');
    await assertAccessible(page, 'the menu of a row');
    await keyboard.press('ArrowDown');
    assert.equal(await action(), 'rename');
    await keyboard.press('End');
    assert.equal(await action(), 'delete');
    await keyboard.press('ArrowDown');
    assert.equal(await action(), 'pin');
    await tab.screenshot('session-menu');

    // It moves to the head of the list, and the keyboard goes along.
    await keyboard.press('Enter');
    await page.locator(`[data-session-id="${id}"][data-pinned="true"]`).waitFor();
    assert.equal((await rows())[await here()]?.id, id);
    await keyboard.press('ArrowDown');
    const next = await here();
    const after = (await rows())[next + 1].id;
    const gone = (await rows())[next].id;
    await keyboard.press('ArrowRight');
    await opened('pin');
    await keyboard.press('ArrowUp');
    await keyboard.press('Enter');
    await page.locator(`[data-session-id="${gone}"]`).waitFor({ state: 'detached' });
    assert.equal((await rows())[await here()]?.id, after, 'the next one has the keyboard');
    await keyboard.press('F2');
    await page.locator('[data-testid="rename-input"]:focus').fill('Called so by keys');
    await keyboard.press('Enter');
    await tab.sessions.filter({ hasText: 'Called so by keys' }).waitFor();
    assert.equal((await rows())[await here()]?.id, after);
  });

  it('one is shown the keys', async () => {
    const { tab } = it_has;
    const { keyboard } = tab.page;
    await tab.composer.focus();
    await keyboard.type('?');
    assert.equal(await tab.composer.inputValue(), '?');
    await tab.composer.fill('');
    await tab.newSession.focus();
    await keyboard.press('?');
    const keys = tab.page.getByTestId('keys');
    await keys.getByText('Edit your last message').waitFor();
    await tab.screenshot('keys');
    await keyboard.press('Escape');
    await keys.waitFor({ state: 'detached' });
  });
});
