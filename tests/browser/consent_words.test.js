// A question in the reader's own language: what would be done, why it is asked, and what its details are.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const call = (name, args) => [{ tool_call: { name, arguments: args } }];

describe('what is asked', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' } });
  const card = () => it_has.tab.page.locator('[data-testid="approval"]');
  const answer = (decision) => it_has.tab.page.locator(`[data-testid="approve-${decision}"][aria-disabled="false"]`).click();

  it('is said in the language of the page, and follows it', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('language').selectOption('uk');
    await tab.page.getByText('Особистий секретар').first().waitFor();
    await model.script(call('filesystem', { action: 'write', path: 'plan.md', content: 'one\n' }), [{ text: 'Готово.' }]);
    await tab.send('Запиши план');
    await card().getByText('створити').waitFor();
    await tab.page.getByTestId('notice').getByText(/Немає ні моделі профілю .* відповідає fake:latest/).waitFor();
    assert.match(await card().innerText(), /створити plan\.md[^]*шлях plan\.md \(у теці цієї розмови\)[^]*зміни[^]*У цій розмові перед будь-якою зміною треба спитати/);
    assert.match(await tab.page.getByTestId('approve-always').innerText(), /зміни файлів у теці цієї розмови/);
    await assertLooks(tab, (name) => tab.screenshot(`${name}-asked-uk`));
    await tab.page.getByTestId('language').selectOption('ru');
    await card().getByText('создать').waitFor();
    await tab.page.getByTestId('language').selectOption('en');
    await card().getByText('create').waitFor();
    assert.match(await card().innerText(), /create plan\.md[^]*path plan\.md \(in this conversation’s folder\)/);
    await tab.page.getByTestId('language').selectOption('uk');
    await answer('always');
    await tab.page.getByTestId('approval-outcome').getByText('зміни файлів у теці цієї розмови').waitFor();
    await tab.sees('Готово.');
    await tab.idle();
  });

  it('says what of a command is held, and shows its words as they are', async () => {
    const { model, tab } = it_has;
    await model.script(call('terminal', { action: 'run', command: 'cat {path} plan.md' }), [{ text: 'Так.' }]);
    await tab.send('Покажи');
    await card().getByText('виконати').waitFor();
    const text = await card().innerText();
    assert.match(text, /виконати …[^]*команда\s+cat \{path\} plan\.md\s+тека робоча тека[^]*час щонайбільше[^]*що перевіряється plan\.md: якщо/);
    assert.doesNotMatch(text, /workspace|at most|what is held|in this conversation/);
    await tab.screenshot('asked-command-uk');
    await answer('deny');
    await tab.sees('Так.');
    await tab.idle();
    await tab.page.getByTestId('language').selectOption('en');
  });
});
