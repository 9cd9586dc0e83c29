// The list of sessions: new, pin, rename, delete, and delete taken back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

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
    await item(text).hover();
    await item(text).getByRole('button', { name }).click();
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
    await tab.page.reload();
    await item('Second of its name').waitFor();
  });

  it('deletes a session, and takes that back', async () => {
    const { tab } = it_has;
    const before = await texts();
    await act('Second of its name', /delete/i);
    await item('Second of its name').waitFor({ state: 'detached' });
    await tab.undo.click();
    await item('Second of its name').waitFor();
    assert.equal((await texts()).length, before.length);
    await item('Second of its name').click();
    await tab.sees('Answer to Question two');
  });

  it('tells every tab', async () => {
    const { tab, window } = it_has;
    const other = await window.tabBeside(tab);
    await act('Question one', /delete/i);
    await other.sessions.filter({ hasText: 'Question one' }).waitFor({ state: 'detached' });
  });
});
