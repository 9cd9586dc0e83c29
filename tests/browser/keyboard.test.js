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
});
