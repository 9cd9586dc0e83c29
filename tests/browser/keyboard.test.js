// Everything that matters works without a mouse.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

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
