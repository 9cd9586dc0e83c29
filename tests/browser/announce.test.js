// What a screen reader is told of a run: in plain words, and nothing wiped away by what follows it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const list = { tool_call: { name: 'filesystem', arguments: { action: 'list' } } };
const steps = (action, args) => ({ tool_call: { name: 'todo', arguments: { action, ...args } } });
const ANSWER = 'The **night train** is *cheaper*:\n\n| from | to |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n```rust\nlet a_b = 1;\n```\n';

describe('what a screen reader is told', () => {
  const it_has = world();

  /** Writes down all that is told from here on. */
  const listen = () => it_has.tab.page.evaluate(() => {
    window.told = [];
    window.teller?.disconnect();
    window.teller = new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const { textContent } of addedNodes) if (textContent.trim() !== '') window.told.push(textContent);
    });
    window.teller.observe(document.querySelector('[data-testid="announcer"]'), { childList: true });
  });
  const told = () => it_has.tab.page.evaluate(() => window.told);
  const hears = (text) => it_has.tab.page.waitForFunction((text) => window.told.includes(text), text);

  it('is in plain words: what is done, which step goes on, what waits, and the answer', async () => {
    const { model, tab } = it_has;
    await listen();
    await model.script([steps('add', { texts: ['look for **trains**', 'write'] })], [steps('mark', { ids: [1], status: 'in_progress' }), list], [{ text: ANSWER }, { hold: 'end' }], [{ text: 'Well.' }]);
    await tab.send('Which train?');
    await tab.sees('cheaper');
    await tab.composer.fill('And back?');
    await tab.page.keyboard.press('Enter');
    await hears('The message waits its turn');
    await model.release('end');
    await tab.sees('Well.');
    await tab.idle();

    await hears('Navi answered: Well.');
    assert.deepEqual(await told(), [
      'Navi is answering', 'Step 1 of 2: look for trains.', 'Now: look through the workspace', 'The message waits its turn',
      'Navi answered: The night train is cheaper: A table of 2 rows. Code: rust.', 'Navi is answering', 'Navi answered: Well.',
    ]);
  });

  it('is in the language of the page', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('language').selectOption('uk');
    await tab.page.locator('html[lang="uk"]').waitFor({ state: 'attached' });
    await listen();
    await model.script([list], [{ text: ANSWER }]);
    await tab.send('Ще раз.');
    await tab.idle();

    await hears('Navi відповіла: The night train is cheaper: Таблиця: 2 рядки. Код: rust.');
    assert.deepEqual((await told()).slice(0, 2), ['Navi відповідає', 'Зараз: переглянути робочу теку']);
  });

  it('says which conversation was opened', async () => {
    const { tab } = it_has;
    const title = await tab.page.locator('.session-link').first().innerText();
    await tab.page.getByTestId('new-session').click();
    await listen();
    await tab.page.locator('.session-link').first().click();
    await tab.page.waitForFunction(() => window.told.some((text) => text.startsWith('Розмова: ')));
    assert.ok(title.includes((await told())[0].slice('Розмова: '.length)));
  });
});
