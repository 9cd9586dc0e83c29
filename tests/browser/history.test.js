// What was said can be said in other words, answered once more, and found again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('the past of a conversation', () => {
  const it_has = world();

  async function converse(text, answer) {
    const { model, tab } = it_has;
    await model.script([{ text: answer }]);
    await tab.send(text);
    await tab.sees(answer);
    await tab.idle();
  }

  const texts = async () => (await it_has.tab.conversation()).map(({ text }) => text);
  const pager = () => it_has.tab.page.getByTestId('branch-pager');
  const pagerIs = (shown, total) => it_has.tab.page.locator(`[data-testid="branch-pager"][data-shown="${shown}"][data-total="${total}"]`).waitFor();

  it('goes on from a message that is said in other words, and the first words stay', async () => {
    const { model, tab } = it_has;
    await converse('Where is the lighthouse?', 'By the harbour.');
    await converse('And how tall is it?', 'Thirty metres.');

    await model.script([{ text: 'White and red.' }]);
    await tab.messages.nth(2).hover();
    await tab.page.getByTestId('edit-message').nth(1).click();
    await tab.page.getByTestId('edit-input').fill('And what colour has it?');
    await tab.page.getByTestId('edit-send').click();
    await tab.sees('White and red.');
    await tab.idle();

    await pagerIs(2, 2);
    assert.deepEqual(await texts(), ['Where is the lighthouse?', 'By the harbour.', 'And what colour has it?', 'White and red.']);
    const calls = await model.runCallsWhere((runs) => runs.length === 3);
    assert.doesNotMatch(JSON.stringify(calls[2].body.messages), /how tall|Thirty/);
  });

  it('shows the other branch, also after a reload, and comes back', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('branch-previous').click();
    await pagerIs(1, 2);
    const first = ['Where is the lighthouse?', 'By the harbour.', 'And how tall is it?', 'Thirty metres.'];
    assert.deepEqual(await texts(), first);
    await tab.page.reload();
    await pagerIs(1, 2);
    assert.deepEqual(await texts(), first);

    await tab.page.getByTestId('branch-next').click();
    await pagerIs(2, 2);
    await tab.sees('White and red.');
  });

  it('has an answer anew', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Red and white, ' }, { hold: 'anew' }, { text: 'I should say.' }]);
    await tab.answers.last().hover();
    await tab.page.getByTestId('regenerate').last().click();
    await tab.sees('Red and white,');
    await model.release('anew');
    await tab.sees('Red and white, I should say.');
    await tab.idle();

    // The question has its branches, the answer its own.
    await pager().nth(1).waitFor();
    assert.equal((await texts()).length, 4);
    await tab.answers.last().getByTestId('branch-previous').click();
    await tab.sees('White and red.');
    assert.equal((await texts()).at(-1), 'White and red.');
  });

  it('is found from another conversation', async () => {
    const { tab } = it_has;
    await tab.newSession.click();
    await converse('Something else entirely', 'As you like.');

    await tab.page.getByTestId('session-search').fill('harbour');
    const hit = tab.page.getByTestId('search-hit');
    await hit.first().waitFor();
    assert.match(await hit.first().innerText(), /By the harbour/);
    await hit.first().click();

    const found = await tab.page.locator(`article[data-message-id="${await hit.first().getAttribute('data-message-id')}"]`);
    await found.waitFor();
    assert.match(await found.innerText(), /By the harbour\./);
    await tab.page.waitForFunction((element) => element.contains(document.activeElement), await found.elementHandle());
  });

  it('and what was never said is not', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('session-search').fill('submarine');
    await tab.page.getByTestId('search-empty').waitFor();
  });
});
