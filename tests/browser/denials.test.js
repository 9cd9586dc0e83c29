// A person says no: why not, and never again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const write = (path) => call('filesystem', { action: 'write', path, content: 'x' });
const WHY = 'not there, use drafts instead';

describe('a person who denies', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' } });
  let beside;

  const settled = (tab, testId) => tab.page.locator(`[data-testid="${testId}"][aria-disabled="false"]`);
  const outcome = (tab) => tab.page.getByTestId('approval-outcome').last();
  const focused = (tab) => tab.page.evaluate(() => document.activeElement?.getAttribute('data-testid'));

  /** Navi asks whether she may, and says this when she was told. */
  async function asks(tab, then, ...calls) {
    await it_has.model.script(calls, [{ text: then }]);
    await tab.send('Go on.');
    await settled(tab, 'approve-deny').waitFor();
  }

  it('says why, by the keyboard alone, and every tab shows it', async () => {
    const { tab, window, model } = it_has;
    await asks(tab, 'Then in drafts.', write('a.txt'));
    beside = await window.tabBeside(tab);
    await settled(beside, 'approve-deny').waitFor();
    await tab.page.getByTestId('approval').focus();
    while (await focused(tab) !== 'approval-why') await tab.page.keyboard.press('Tab');
    await tab.page.keyboard.press('Enter');
    await tab.page.locator('[data-testid="approval-note"]:focus').waitFor();
    // In the field N, Y and A are letters, and Escape closes it.
    await tab.page.keyboard.type('nya');
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('[data-testid="approval-why"]:focus').waitFor();
    assert.equal(await tab.page.getByTestId('approval').count(), 1);
    await tab.page.keyboard.press('Enter');
    await tab.page.locator('[data-testid="approval-note"]:focus').waitFor();
    await tab.page.keyboard.type(WHY);
    await assertLooks(tab, (name) => tab.screenshot(`${name}-why-not`));
    // Whoever looks elsewhere meanwhile finds the words again.
    const { hash } = new URL(tab.page.url());
    await tab.newSession.click();
    await tab.page.getByTestId('approval').waitFor({ state: 'detached' });
    await tab.page.evaluate((back) => { location.hash = back; }, hash);
    await settled(tab, 'approval-note-send').waitFor();
    assert.equal(await tab.page.getByTestId('approval-note').inputValue(), WHY);
    await tab.page.getByTestId('approval-note').press('Enter');

    await tab.sees('Then in drafts.');
    await tab.idle();
    for (const each of [tab, beside]) {
      await outcome(each).getByTestId('approval-said').getByText(WHY).waitFor();
      assert.equal(await outcome(each).getAttribute('data-decision'), 'deny');
    }
    assert.equal(await outcome(beside).getAttribute('data-elsewhere'), 'true');
    const sent = (await model.calls()).map(({ body }) => JSON.stringify(body));
    assert.ok(sent.some((body) => body.includes(`The user says: ${WHY}`)), 'the model reads it');
  });

  it('still denies at once by N', async () => {
    const { tab } = it_has;
    await asks(tab, 'Then not.', write('a.txt'));
    // The page may have led there: a press says that one means it.
    await tab.page.getByTestId('approval-summary').click();
    await tab.page.keyboard.press('n');
    await tab.sees('Then not.');
    await tab.idle();
    await outcome(tab).getByText('Denied').waitFor();
    assert.equal(await outcome(tab).getByTestId('approval-said').count(), 0);
  });

  it('forbids it for good, says why, and is not asked again in any mode', async () => {
    const { tab, model } = it_has;
    await asks(tab, 'Then never.', write('a.txt'));
    await settled(tab, 'approve-never').waitFor();
    await tab.page.getByTestId('approval-why').click();
    await tab.page.getByTestId('approval-note').fill('I write files myself');
    await settled(tab, 'approve-never').click();
    await tab.sees('Then never.');
    await tab.idle();
    await outcome(tab).getByText('Always denied').waitFor();
    await outcome(tab).getByTestId('approval-said').getByText('I write files myself').waitFor();

    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-auto').check();
    await tab.page.locator('[data-testid="mode"][data-mode="auto"]').waitFor();
    await tab.page.keyboard.press('Escape');
    await model.script([write('b.txt')], [{ text: 'It is forbidden.' }]);
    await tab.send('Try again.');
    await tab.sees('It is forbidden.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('approval').count(), 0);
    assert.equal(await tab.page.getByTestId('tool-card').last().getAttribute('data-state'), 'denied');

    await tab.page.getByTestId('open-permissions').click();
    await tab.page.locator('[data-testid="rule"][data-tool="filesystem"][data-decision="deny"]').waitFor();
    await tab.page.getByTestId('tab-log').click();
    const first = tab.page.locator('[data-testid="log-entry"][data-decision="deny"][data-by="rule"]').first();
    await first.getByTestId('log-rule').waitFor();
    await tab.page.getByTestId('log-note').getByText('I write files myself').waitFor();
    await tab.screenshot('denials-log');
    await tab.page.getByTestId('tab-rules').click();
    await tab.page.getByTestId('rule-delete').click();
    await tab.page.getByTestId('rules-empty').waitFor();
    await tab.page.getByTestId('permissions-close').click();
    await model.script([write('b.txt')], [{ text: 'It is written.' }]);
    await tab.send('And now?');
    await tab.sees('It is written.');
    await tab.idle();
  });
});
