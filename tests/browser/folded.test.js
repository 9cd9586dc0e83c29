// What is folded away or further down is not allowed: it is unfolded and read to its end first, by whatever way one answers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const LINES = Array.from({ length: 80 }, (_, at) => `line ${at + 1}`);
const write = (path, lines) => ({ tool_call: { name: 'filesystem', arguments: { action: 'write', path, content: lines.join('\n') } } });
const run = (command) => ({ tool_call: { name: 'terminal', arguments: { action: 'run', command } } });

describe('a question with more than the page shows at once', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' } });
  const card = () => it_has.tab.page.getByTestId('approval');
  const settled = (testId) => it_has.tab.page.locator(`[data-testid="${testId}"][aria-disabled="false"]`);

  /** Asks, and sees that it can be denied and not allowed. */
  async function asks(...calls) {
    const { model, tab } = it_has;
    await model.script(calls, [{ text: 'That was it.' }]);
    await tab.send('Go on.');
    await settled('approval-show-all').waitFor();
    for (const decision of ['once', 'always']) assert.equal(await card().getByTestId(`approve-${decision}`).count(), 0);
    await settled('approve-deny').waitFor();
  }

  /** Presses what reads on until the end is in view, by the keyboard. */
  async function readOn() {
    const further = settled('approval-show-all');
    const end = settled('approve-once');
    for (;;) {
      await further.or(end).waitFor();
      if (await end.count() > 0) return;
      await further.press('Enter');
    }
  }

  /** Unfolded, all of it is in one scroller, and nothing in it has one of its own. */
  async function allShown() {
    const { top, height } = await card().locator('.approval-scroll').evaluate((box) => ({ top: box.scrollTop + box.clientHeight, height: box.scrollHeight }));
    assert.ok(top >= height - 2, `${top} of ${height}`);
    for (const part of await card().locator('.approval-code, .diff-scroll').all()) {
      assert.ok(await part.evaluate((box) => box.scrollHeight <= box.clientHeight + 1));
    }
  }

  it('unfolds a long command, and allows it once its end was in view', async () => {
    const command = [...LINES.map((line) => `true ${line}`), 'echo pwned'].join('\n');
    await asks(run(command));
    const { page } = it_has.tab;
    assert.equal(await card().getByText('echo pwned').count(), 0);
    await settled('approval-show-all').focus();
    await page.keyboard.press('Enter');
    await card().getByText('Read on first').waitFor();
    for (const decision of ['once', 'always']) assert.equal(await card().getByTestId(`approve-${decision}`).count(), 0);
    await readOn();
    assert.equal(await card().getByTestId('approval-code').innerText(), command);
    await allShown();
    await it_has.tab.screenshot('unfolded-consent');
    await settled('approve-once').click();
    await it_has.tab.sees('That was it.');
    await it_has.tab.idle();
  });

  it('folds one line of many words too', async () => {
    await asks(run(`true ${'word '.repeat(2000)}; echo pwned`));
    assert.equal(await card().getByText('echo pwned').count(), 0);
    await card().getByTestId('approval-all').click();
    await readOn();
    assert.match(await card().getByTestId('approval-code').innerText(), /echo pwned$/);
    await allShown();
    await settled('approve-deny').click();
    await it_has.tab.idle();
  });

  it('unfolds a long difference by its own button or by that of the card', async () => {
    for (const testId of ['diff-all', 'approval-show-all']) {
      await asks(write('long.txt', LINES));
      assert.equal(await card().locator('.diff-row').filter({ hasText: /line 80$/ }).count(), 0);
      await card().getByTestId(testId).click();
      // Whoever scrolls there has read it as well.
      await card().locator('.diff-row').filter({ hasText: /line 80$/ }).waitFor();
      await card().locator('.approval-scroll').evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await settled('approve-once').waitFor();
      await card().locator('.diff-row').filter({ hasText: /line 80$/ }).waitFor();
      await allShown();
      await settled('approve-deny').click();
      await card().waitFor({ state: 'detached' });
      await it_has.tab.idle();
    }
  });

  it('asks for the next one anew', async () => {
    await asks(run(LINES.map((line) => `true ${line}`).join('\n')), run(LINES.map((line) => `false ${line}`).join('\n')));
    await settled('approval-show-all').click();
    await readOn();
    await settled('approve-deny').click();
    await card().getByText('false line 1', { exact: false }).first().waitFor();
    await settled('approval-show-all').waitFor();
    assert.equal(await card().getByTestId('approve-once').count(), 0);
  });

  it('is in sight however far one scrolled, wide and narrow, and names the address once', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    await settled('approve-deny').click();
    await tab.idle();
    await model.script([{ text: Array.from({ length: 80 }, (_, i) => `Line ${i}.`).join('\n\n') }, { tool_call: { name: 'web_fetch', arguments: { url: 'https://prices.invalid/today' } } }], [{ text: 'Then not.' }]);
    await tab.send('What does it cost?');
    await settled('approve-once').waitFor();
    for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
      await page.setViewportSize(viewport);
      await page.getByTestId('conversation').evaluate((log) => log.scrollTo(0, 0));
      for (const part of [card(), card().getByTestId('approve-once'), card().getByTestId('approve-deny'), tab.composer]) {
        const { y, height } = await part.boundingBox();
        assert.ok(y >= 0 && y + height <= viewport.height, `${y} and ${height} of ${viewport.height}`);
      }
      assert.ok((await page.getByTestId('conversation').boundingBox()).height > 80, 'the conversation can still be read');
      assert.equal((await card().innerText()).split('prices.invalid/today').length, 2, await card().innerText());
      await tab.screenshot(`${viewport.width}-docked-consent`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await settled('approve-deny').click();
    await tab.sees('Then not.');
    await tab.idle();
  });
});
