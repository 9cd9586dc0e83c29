// The list of sessions: new, pin, rename, put away, delete, and what is taken back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

describe('the session list', () => {
  const it_has = world();

  /** Starts a session by its first message, which gives it its title. */
  async function converse(text) {
    const { model, tab } = it_has;
    await tab.newSession.click();
    await model.script([{ text: `Answer to ${text}` }]);
    await tab.send(text);
    await tab.sees(`Answer to ${text}`);
    await tab.idle();
  }

  const item = (text) => it_has.tab.sessions.filter({ hasText: text });

  async function act(text, name) {
    await item(text).getByTestId('session-more').click();
    await it_has.tab.page.getByRole('menuitem', { name }).click();
  }

  const texts = () => it_has.tab.sessions.allInnerTexts();

  it('has a new session under the title that its first exchange gave it', async () => {
    await converse('Question one');
    await converse('Question two');
    await item('Question one').waitFor();
    await item('Question two').waitFor();
  });

  it('opens the session that is chosen', async () => {
    const { tab } = it_has;
    await item('Question one').click();
    await tab.sees('Answer to Question one');
    await item('Question two').click();
    await tab.sees('Answer to Question two');
  });

  it('takes what is typed into a new one before the browser has told of it', async () => {
    const { page, composer } = it_has.tab;
    await page.evaluate(() => {
      document.querySelector('[data-testid="new-session"]').click();
      const field = document.querySelector('[data-testid="composer"]');
      field.value = 'Typed at once';
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
    });
    await page.waitForFunction(() => location.hash === '#/');
    assert.equal(await composer.inputValue(), 'Typed at once');
    await composer.fill('');
    await item('Question two').click();
    await it_has.tab.sees('Answer to Question two');
    assert.equal(await composer.inputValue(), '');
  });

  it('puts a pinned session first', async () => {
    await act('Question one', /^pin/i);
    await it_has.tab.sessions.first().filter({ hasText: 'Question one' }).waitFor();
  });

  it('renames a session', async () => {
    const { tab } = it_has;
    await act('Question two', /rename/i);
    await tab.page.locator('[data-testid="rename-input"]:focus').waitFor();
    await tab.page.keyboard.press('ControlOrMeta+a');
    await tab.page.keyboard.type('Second of its name');
    await tab.page.keyboard.press('Enter');
    await item('Second of its name').waitFor();
  });

  it('keeps a name that is typed while a title comes', async () => {
    const { page } = it_has.tab;
    const id = await item('Second of its name').getAttribute('data-session-id');
    await act('Second of its name', /rename/i);
    const field = page.locator('[data-testid="rename-input"]:focus');
    await field.fill('Third');
    await page.evaluate((id) => {
      const headers = { 'content-type': 'application/json', 'x-navi-key': localStorage.getItem('navi.key') };
      return fetch(`sessions/${id}`, { method: 'PATCH', headers, body: JSON.stringify({ title: 'Not asked for' }) });
    }, id);
    await page.waitForFunction(() => document.title.startsWith('Not asked for'));
    assert.equal(await field.inputValue(), 'Third');
  });

  it('keeps a name whose page goes in the moment that it is given', async () => {
    const { tab } = it_has;
    await tab.page.evaluate(() => {
      document.querySelector('[data-testid="rename-input"]').form.requestSubmit();
      location.reload();
    });
    await item('Third').waitFor();
  });

  it('deletes a session, and takes that back', async () => {
    const { tab } = it_has;
    const before = await texts();
    await act('Third', /delete/i);
    await item('Third').waitFor({ state: 'detached' });
    await tab.undo.click();
    await item('Third').waitFor();
    assert.equal((await texts()).length, before.length);
    await item('Third').click();
    await tab.sees('Answer to Question two');
  });

  it('puts a session away, and takes that back', async () => {
    const { tab } = it_has;
    await act('Question one', /^archive/i);
    await item('Question one').waitFor({ state: 'detached' });
    await tab.undo.click();
    await it_has.tab.sessions.first().filter({ hasText: 'Question one' }).waitFor();
    assert.equal(await item('Question one').getAttribute('data-pinned'), 'true');
  });

  it('keeps what is put away in a fold, from where it opens and comes back', async () => {
    const { model, tab, window } = it_has;
    const { page } = tab;
    const fold = page.getByTestId('archived');
    await act('Third', /^archive/i);
    await item('Third').waitFor({ state: 'detached' });
    const other = await window.tabBeside(tab);
    const other_fold = other.page.getByTestId('archived');
    await other_fold.locator('summary').click();
    await other_fold.getByText('Third').waitFor();

    await fold.locator('summary').click();
    await fold.getByText('Third').click();
    await tab.sees('Answer to Question two');
    await page.getByTestId('archived-badge').waitFor();
    await assertLooks(tab, (size) => tab.screenshot(`archived-${size}`));
    await model.script([{ text: 'Good to hear from you.' }]);
    await tab.send('Are you there?');
    await tab.sees('Good to hear from you.');
    await tab.idle();
    await page.getByTestId('archived-empty').waitFor();
    await page.getByTestId('archived-badge').waitFor({ state: 'detached' });
    await other.page.getByTestId('archived-empty').waitFor();
    await other.page.close();

    await act('Third', /^archive/i);
    await page.getByTestId('session-search').fill('good to hear');
    await page.getByTestId('search-hit').filter({ hasText: 'archived' }).waitFor();
    await page.getByTestId('session-search').fill('');
    await act('Third', /^bring back/i);
    await page.getByTestId('archived-empty').waitFor();
    await item('Third').waitFor();
  });

  it('files a session under tags, and shows those that have one', async () => {
    const { tab } = it_has;
    const { page } = tab;
    await item('Question one').click();
    await tab.sees('Answer to Question one');
    await act('Third', 'Tags');
    for (const tag of ['trips', 'Карпати']) {
      await page.getByTestId('tag-new').fill(tag);
      await page.keyboard.press('Enter');
      await page.locator('[data-testid="tag"][aria-pressed="true"]').filter({ hasText: tag }).waitFor();
    }
    await assertLooks(tab, (size) => tab.screenshot(`tags-${size}`), 'dialog[open]');
    await page.getByTestId('tags-close').click();
    await item('Third').getByText('trips, Карпати').waitFor();
    const filter = page.getByTestId('tag-filter').filter({ hasText: 'trips' });
    await filter.click();
    await item('Question one').waitFor({ state: 'detached' });
    await item('Third').waitFor();
    await tab.screenshot('tag-filter');
    await page.reload();
    await tab.ready();
    await item('Question one').waitFor();
    await item('Third').getByText('trips, Карпати').waitFor();
  });

  it('hands out one that is not open as a file', async () => {
    const { page } = it_has.tab;
    const [saved] = await Promise.all([page.waitForEvent('download'), act('Third', /markdown/i)]);
    assert.match(saved.suggestedFilename(), /^Third.*\.md$/i);
  });

  it('marks what went wrong until one has looked at it, in every tab', async () => {
    const { model, tab, window } = it_has;
    const { page } = tab;
    const other = await window.tabBeside(tab);
    const mark = (one) => one.sessions.filter({ hasText: 'It goes wrong' }).locator('.state-dot.failed');
    await tab.newSession.click();
    await model.script([{ text: 'Half of it' }, { hold: 'leave' }, { error: 'the model fell over' }]);
    await tab.send('It goes wrong');
    await tab.sees('Half of it');
    await item('Question one').click();
    await tab.sees('Answer to Question one');
    await model.release('leave');
    await mark(tab).waitFor();
    await mark(other).waitFor();

    await item('It goes wrong').click();
    await tab.errorCard.waitFor();
    await mark(tab).waitFor({ state: 'detached' });
    await mark(other).waitFor({ state: 'detached' });
    assert.match(await item('It goes wrong').locator('a').getAttribute('title'), /failed/);
    await item('Question one').click();
    await tab.sees('Answer to Question one');
    await page.reload();
    await tab.ready();
    await item('It goes wrong').waitFor();
    assert.equal(await mark(tab).count(), 0);
    await other.page.close();
  });

  it('tells every tab', async () => {
    const { tab, window } = it_has;
    const other = await window.tabBeside(tab);
    await act('Question one', /delete/i);
    await other.sessions.filter({ hasText: 'Question one' }).waitFor({ state: 'detached' });
  });
});
