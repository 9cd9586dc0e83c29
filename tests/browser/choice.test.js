// Who answers, by which model and how freely: one button of the header, in a new conversation and
// in an open one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const MODELS = ['small:1b', 'big:7b'];

describe('the menu of the header', () => {
  const it_has = world({ config: { models: MODELS }, settings: { OLLAMA_DEFAULT_MODEL: 'small:1b' } });
  let beside;

  const choice = (tab, what, value) => tab.page.locator(`[data-testid="choice-${what}"][value="${value}"]`);
  const answering = (tab, name) => tab.page.getByTestId('model-name').getByText(name, { exact: true });
  /** The model of the newest answer. */
  const asked = async (text) => (await it_has.model.calls()).findLast(({ body }) => JSON.stringify(body.messages.at(-1)).includes(text))?.body.model;

  it('chooses the model of a new conversation, by the keyboard alone', async () => {
    const { tab } = it_has;
    await answering(tab, 'small:1b').waitFor();
    await tab.page.getByTestId('mode-button').focus();
    await tab.page.keyboard.press('Enter');
    await choice(tab, 'model', '').waitFor();
    while (!await choice(tab, 'model', '').evaluate((radio) => radio === document.activeElement)) await tab.page.keyboard.press('Tab');
    while (!await choice(tab, 'model', 'big:7b').evaluate((radio) => radio.checked)) await tab.page.keyboard.press('ArrowDown');
    await answering(tab, 'big:7b').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-choice-new`));
    await tab.page.keyboard.press('Escape');
    await tab.page.getByTestId('mode-panel').waitFor({ state: 'hidden' });
    await tab.send('Hello there.');
    await tab.sees('You said: Hello there.');
    await tab.idle();
    assert.equal(await asked('Hello there.'), 'big:7b');
    await answering(tab, 'big:7b').waitFor();
  });

  it('changes the model of an open one from the next message on, in every tab, after a reload too', async () => {
    const { tab, window } = it_has;
    beside = await window.tabBeside(tab);
    await beside.messages.first().waitFor();
    await answering(beside, 'big:7b').waitFor();
    await tab.page.getByTestId('mode-button').click();
    await choice(tab, 'model', '').check();
    for (const each of [tab, beside]) await answering(each, 'small:1b').waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.send('And now?');
    await tab.sees('You said: And now?');
    await tab.idle();
    assert.equal(await asked('And now?'), 'small:1b');
    await beside.page.getByTestId('mode-button').click();
    await choice(beside, 'model', 'big:7b').check();
    await answering(tab, 'big:7b').waitFor();
    await beside.page.reload();
    await answering(beside, 'big:7b').waitFor();
  });

  it('changes who answers, and how freely, in the same place', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await choice(tab, 'profile_id', 'server_admin').check();
    for (const each of [tab, beside]) await each.page.getByTestId('profile-name').getByText('Server Administrator').waitFor();
    await tab.page.getByTestId('consent-ask').check();
    for (const each of [tab, beside]) await each.page.locator('[data-testid="mode"][data-mode="ask"]').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-choice-open`));
    await tab.page.keyboard.press('Escape');
    await tab.send('Who are you?');
    await tab.sees('You said: Who are you?');
    await tab.idle();
    assert.equal(await asked('Who are you?'), 'big:7b', 'the model stays');
  });

  it('chooses how freely a new conversation goes, for that one alone', async () => {
    const { model, tab } = it_has;
    const mode = (name) => tab.page.locator(`[data-testid="mode"][data-mode="${name}"]`).waitFor();
    await tab.newSession.click();
    await mode('edits');
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-ask').check();
    await mode('ask');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-choice-mode-new`));
    await tab.page.keyboard.press('Escape');
    await model.script([{ tool_call: { name: 'filesystem', arguments: { action: 'write', path: 'a.txt', content: 'x' } } }], [{ text: 'As you like.' }]);
    await tab.send('Write something.');
    await mode('ask');
    await tab.page.locator('[data-testid="approve-deny"][aria-disabled="false"]').click();
    await tab.sees('As you like.');
    await tab.idle();
    await tab.newSession.click();
    await mode('edits');
    await tab.sessions.first().click();
    await mode('ask');
  });

  it('says what a model lacks, and that one is gone', async () => {
    const { model, tab } = it_has;
    await model.configure({ models: ['small:1b'], capabilities: ['completion'] });
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('choice-models').getByText('It is not there now').waitFor();
    assert.equal(await choice(tab, 'model', 'big:7b').isChecked(), true);
    await tab.screenshot('choice-gone');
    await tab.page.keyboard.press('Escape');
  });
});

describe('a server whose models cannot use tools', () => {
  const it_has = world({ config: { models: MODELS, capabilities: ['completion'] } });

  it('is said so of each', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('model-problem').nth(2).getByText('It cannot use tools').waitFor();
    await tab.screenshot('choice-no-tools');
  });
});
