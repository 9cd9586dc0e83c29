// What somebody meets who is new here: three steps on the page of a new conversation, which nobody has to take.

import assert from 'node:assert/strict';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const MODELS = ['small:1b', 'big:7b'];

describe('the first steps', () => {
  const it_has = world({ config: { models: MODELS }, settings: { OLLAMA_DEFAULT_MODEL: 'small:1b' }, options: { newcomer: true } });
  const part = (id) => it_has.tab.page.getByTestId(id);
  /** Another browser of the same person, which keeps nothing of what this one does. */
  async function elsewhere() {
    const { browser, window } = it_has;
    const { cookies, origins } = await window.context.storageState();
    const login = origins.map(({ origin, localStorage }) => ({ origin, localStorage: localStorage.filter(({ name }) => name === 'navi.key') }));
    return new Tab(await (await newContext(browser, { storageState: { cookies, origins: login } })).newPage());
  }
  const address = () => new URL('/', it_has.tab.page.url()).href;
  const step = (name) => it_has.tab.page.locator(`[data-testid="first-steps"][data-step="${name}"]`).waitFor();

  it('begin with language and name', async () => {
    const { tab } = it_has;
    await step('you');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-first-you`));
    await part('first-language-uk').check();
    await tab.page.getByText('Мова та ім’я').waitFor();
    await tab.screenshot('first-you-uk');
    await part('first-language-en').check();
    await tab.page.getByText('Language and name').waitFor();
  });

  it('go on with who answers, by the keyboard alone', async () => {
    const { tab } = it_has;
    await part('first-name').fill('Olena');
    await tab.page.keyboard.press('Enter');
    await step('model');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-first-model`));
    while (!await tab.page.locator('[data-testid="first-model"][value=""]').evaluate((radio) => radio === document.activeElement)) await tab.page.keyboard.press('Tab');
    while (!await tab.page.locator('[data-testid="first-model"][value="big:7b"]').evaluate((radio) => radio.checked)) await tab.page.keyboard.press('ArrowDown');
    await tab.page.getByTestId('model-name').getByText('big:7b', { exact: true }).waitFor();
    await tab.page.getByText('By an address and a key').click();
    await tab.page.getByTestId('server-address').waitFor();
    await part('first-next').click();
    await step('task');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-first-task`));
    await part('first-back').click();
    await part('first-back').click();
    assert.equal(await part('first-name').inputValue(), 'Olena');
  });

  it('end with a task, which is put where it can be changed, and do not come again', async () => {
    const { tab } = it_has;
    await part('first-next').click();
    await part('first-next').click();
    await tab.composer.fill('Half a thought\n');
    await part('first-task').click();
    await part('first-steps').waitFor({ state: 'detached' });
    assert.match(await tab.composer.inputValue(), /^Half a thought\n\n.*subagent/);
    await tab.page.reload();
    // Before the list is there nobody is new.
    await tab.page.getByText('Your conversations will be listed here').waitFor();
    await part('example').first().waitFor();
    assert.equal(await part('first-steps').count(), 0);
    await tab.page.getByTestId('open-memory').click();
    await tab.page.getByTestId('fact').getByText('Olena').waitFor();
    await tab.page.keyboard.press('Escape');
  });

  it('come to another browser as long as there is no conversation, and can be skipped', async () => {
    const other = await elsewhere();
    await other.page.goto(address());
    await other.page.getByTestId('first-skip').click();
    await other.page.getByTestId('example').first().waitFor();
    await other.page.reload();
    await other.page.getByText('Your conversations will be listed here').waitFor();
    await other.page.getByTestId('example').first().waitFor();
    await other.page.context().close();
  });

  it('do not come to who has a conversation, and come when they are asked for', async () => {
    const { tab } = it_has;
    await tab.send('Hello');
    await tab.sees('You said: Hello');
    await tab.idle();
    const other = await elsewhere();
    await other.page.goto(address());
    await other.sessions.first().waitFor();
    await other.page.getByTestId('example').first().waitFor();
    assert.equal(await other.page.getByTestId('first-steps').count(), 0);
    await other.page.keyboard.press('Control+k');
    await other.page.getByTestId('palette-input').fill('first steps');
    await other.page.locator('[data-choice="first-steps"]').click();
    await other.page.getByTestId('first-steps').waitFor();
    await other.page.context().close();
  });
});

describe('the first steps by an address and a key', () => {
  const KEY = 'sk-hunter2';
  const it_has = world({ backend: 'none', config: { models: ['first:1b', 'second:7b'], ollama: false, api_key: KEY },
    options: { newcomer: true, expected: /status of 502/ } });
  const part = (id) => it_has.tab.page.getByTestId(id);

  it('tell that a key is wrong, by the keyboard too, and write nothing', async () => {
    const { model, navi, tab } = it_has;
    await part('first-next').click();
    await part('first-no-model').waitFor();
    await part('first-address').locator('summary').click();
    await part('server-address').fill(model.address);
    assert.equal(await part('server-key').getAttribute('autocomplete'), 'new-password', 'a browser fills no password in');
    await part('server-key').fill('sk-wrong');
    await tab.page.keyboard.press('Enter');
    await part('error-card').filter({ hasText: 'refuses the key' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-first-server-refused`));
    assert.equal(await part('first-steps').getAttribute('data-step'), 'model');
    await assert.rejects(access(join(navi.dataDir, 'navi.toml')));
  });

  it('have the server that was tried answer the first message, and show its key nowhere', async () => {
    const { model, navi, tab } = it_has;
    await part('server-key').fill(KEY);
    await part('error-card').waitFor({ state: 'detached' });
    // What is tried while it is changed is another one: its answer is not told.
    let release;
    const asked = new Promise((resolve) => {
      void tab.page.route('**/api/models/try', (route) => { release = () => route.continue(); resolve(); }, { times: 1 });
    });
    await part('server-try').click();
    await asked;
    await part('server-address').fill(`${model.address}/v1`);
    await release();
    await tab.page.locator('[data-testid="server-try"]:enabled').waitFor();
    assert.equal(await part('server-found').count() + await part('error-card').count(), 0);
    await part('server-address').fill(model.address);
    await part('server-try').click();
    await part('server-found').filter({ hasText: '2 models' }).waitFor();
    await part('server-model').selectOption('second:7b');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-first-server-found`));
    await part('server-use').click();
    await tab.page.getByTestId('model-name').getByText('second:7b', { exact: true }).waitFor();
    // The page hears of the model before it is answered.
    await tab.page.waitForFunction(() => document.querySelector('[data-testid="server-key"]').value === '');
    const file = await readFile(join(navi.dataDir, 'navi.toml'), 'utf8');
    assert.match(file, /\[openai\][^]*second:7b/);
    assert.ok(file.includes(KEY));
    assert.doesNotMatch(await tab.page.content(), /hunter2/);
    // What stands in a field is no part of the markup.
    const written = await tab.page.locator('input, textarea').evaluateAll((fields) => fields.map(({ value }) => value));
    assert.doesNotMatch(written.join('\n'), /hunter2/);

    await tab.send('Hello');
    await tab.sees('You said: Hello');
    await tab.idle();
    const calls = await model.runCallsWhere((runs) => runs.length > 0);
    assert.equal(calls[0].body.model, 'second:7b');
  });
});

describe('the first steps without a model', () => {
  const it_has = world({ config: { models: [] }, options: { newcomer: true } });

  it('say how one is found, and are not in the way of who just writes', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('first-next').click();
    await tab.page.getByTestId('first-no-model').waitFor();
    await tab.screenshot('first-no-model');
    await tab.send('Anyone?');
    await tab.errorCard.waitFor();
    await tab.idle();
    await tab.newSession.click();
    await tab.page.getByTestId('example').first().waitFor();
  });
});
