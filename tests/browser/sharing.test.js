// Two people in two browsers watch and steer one run; a third looks by a link.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const OLENA = { name: 'Olena', password: 'a window by the river' };
const BOHDAN = { name: 'Bohdan', password: 'seven quiet lanterns' };

const part = (tab, id) => tab.page.getByTestId(id);

describe('a conversation of two', () => {
  const it_has = world({ settings: { NAVI_ACCOUNTS: 'on', NAVI_CONSENT_MODE: 'ask' }, options: { expected: /status of 40[1349]/ } });
  /** Bohdan's tab and the tab of whoever has the link, in browsers of their own. */
  let his;
  let looker;
  let link;

  async function elsewhere(url) {
    const context = await newContext(it_has.browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
    const tab = new Tab(await context.newPage());
    await tab.page.goto(url);
    return tab;
  }

  const authors = (tab) => part(tab, 'author').allInnerTexts();

  it('both have accounts', async () => {
    const { tab } = it_has;
    await part(tab, 'choose-password').click();
    await part(tab, 'account-new-name').fill(OLENA.name);
    await part(tab, 'account-password').fill(OLENA.password);
    await tab.page.keyboard.press('Enter');
    await part(tab, 'account-name').filter({ hasText: OLENA.name }).waitFor();
    await tab.page.keyboard.press('Escape');
    await part(tab, 'open-people').click();
    await part(tab, 'tab-invitations').click();
    await part(tab, 'invite-make').click();
    const invitation = (await part(tab, 'invite-link').locator('pre').innerText()).trim();
    await tab.page.keyboard.press('Escape');
    his = await elsewhere(invitation);
    await part(his, 'invitation-name').fill(BOHDAN.name);
    await part(his, 'invitation-password').fill(BOHDAN.password);
    await part(his, 'invitation-accept').click();
    await his.ready();
  });

  it('she shares it, and is told what of her memory', async () => {
    const { tab } = it_has;
    await tab.send('Ours from now on');
    await tab.sees('You said: Ours from now on');
    await tab.idle();
    await part(tab, 'open-share').click();
    await part(tab, 'share-memory').filter({ hasText: 'nothing that is remembered of you' }).waitFor();
    await part(tab, 'share-name').fill('Nobody');
    await part(tab, 'share-add').click();
    await part(tab, 'fault').filter({ hasText: 'Nobody here has that name' }).waitFor();
    await part(tab, 'share-name').fill('bohdan');
    await tab.page.keyboard.press('Enter');
    await part(tab, 'share-person').filter({ hasText: 'Bohdan' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-share`));
    await part(tab, 'share-make').click();
    link = (await part(tab, 'share-link').locator('pre').innerText()).trim();
    assert.match(link, /#\/shared\/[\w-]{20,}$/);
    await tab.page.keyboard.press('Escape');
    await part(tab, 'shared-badge').filter({ hasText: 'Bohdan' }).waitFor();
  });

  it('it comes to his list by itself, and says whose it is', async () => {
    await part(his, 'session-item').waitFor();
    assert.match(await part(his, 'session-shared').innerText(), /Olena/);
    await part(his, 'session-item').locator('a').click();
    await his.sees('You said: Ours from now on');
    await part(his, 'shared-badge').filter({ hasText: 'Olena' }).waitFor();
    await part(his, 'session-more').click();
    assert.deepEqual(await part(his, 'session-action').evaluateAll((actions) => actions.map(({ dataset }) => dataset.action)), ['export-md', 'export-json'], 'nothing of hers to delete');
    await his.page.keyboard.press('Escape');
    assert.deepEqual(await authors(his), ['Olena']);
    await part(his, 'mode-button').click();
    await part(his, 'mode-others').waitFor();
    await his.page.keyboard.press('Escape');
  });

  it('a third looks by the link, without an account', async () => {
    looker = await elsewhere(link);
    await part(looker, 'shared').waitFor();
    await looker.page.getByText('Ours from now on').first().waitFor();
    assert.equal(await looker.page.locator('navi-composer').count(), 0);
    await assertLooks(looker, (name) => looker.screenshot(`${name}-shared-link`));
    await looker.page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); });
    await looker.answers.last().locator('.message-foot .copy').click();
    await part(looker, 'toast').waitFor();
  });

  it('both watch one run, and one steers what the other began', async () => {
    const { tab, model } = it_has;
    await model.script([{ tool_call: { name: 'filesystem', arguments: { action: 'write', path: 'a.txt', content: 'x' } } }], [{ text: 'It is written.' }]);
    await his.send('Write it down');
    for (const one of [tab, his]) await part(one, 'approval').waitFor();
    await looker.page.getByText('Write it down').first().waitFor();
    assert.equal(await part(his, 'approve-always').count(), 0, 'a rule would be hers');
    assert.equal(await part(looker, 'approve-once').count(), 0);
    await part(tab, 'approve-once').click();
    await part(his, 'approval-author').filter({ hasText: 'Olena' }).waitFor();
    for (const one of [tab, his]) {
      await one.sees('It is written.');
      await one.idle();
    }
    await looker.page.getByText('It is written.').first().waitFor();
    await part(his, 'made-file').waitFor();
    assert.equal(await part(looker, 'made-file').count(), 0, 'the link opens no files');
    assert.deepEqual(await authors(tab), ['Bohdan']);
    assert.deepEqual(await authors(looker), ['Olena', 'Bohdan']);
  });

  it('who looks by the link is shown what came of a subagent, and waits for nothing more', async () => {
    const { tab, model } = it_has;
    await model.script(
      { when: 'Have it counted', steps: [{ tool_call: { name: 'spawn_agent', arguments: { task: 'Count the lines.' } } }] },
      { when: 'Count the lines.', steps: [{ text: 'There are three.' }] },
      { when: 'Have it counted', steps: [{ text: 'It is counted.' }] },
    );
    await tab.send('Have it counted.');
    await tab.sees('It is counted.');
    await tab.idle();
    await looker.page.reload();
    await looker.page.getByText('It is counted.').first().waitFor();
    await part(looker, 'subagent-toggle').click();
    await part(looker, 'subagent-result').waitFor();
    assert.equal(await part(looker, 'subagent-loading').count(), 0);
  });

  it('whoever is taken out has it no more but for what they were writing, and the link ends', async () => {
    const { tab } = it_has;
    await his.composer.fill('Half a thought');
    await part(tab, 'open-share').click();
    await part(tab, 'share-end').click();
    await part(looker, 'shared-ended').waitFor();
    await part(tab, 'share-remove').click();
    // Looked for first: it goes by itself.
    await part(his, 'toast').filter({ hasText: 'It is not there any more: ' }).waitFor();
    await part(tab, 'share-remove').waitFor({ state: 'detached' });
    await part(his, 'session-item').waitFor({ state: 'detached' });
    await part(his, 'welcome').waitFor();
    assert.equal(await his.composer.inputValue(), 'Half a thought');
    await tab.page.keyboard.press('Escape');
    await tab.sees('It is counted.');
  });
});
