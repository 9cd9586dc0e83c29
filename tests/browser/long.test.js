// A long conversation opens at its end; what was before comes when it is wanted, and no more than
// some of it is drawn at once.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const TURNS = 170;
const MAX_DRAWN = 300;

describe('a long conversation', () => {
  const it_has = world();
  const drawn = () => it_has.tab.messages.count();
  const said = (n) => it_has.tab.page.locator('[data-testid="message"][data-role="user"]').getByText(`Turn ${n}.`, { exact: true });

  /** Looks at it until that is so. */
  const until = (what) => it_has.tab.page.waitForFunction(what);

  it('opens at its end', async () => {
    const { tab } = it_has;
    const id = await tab.page.evaluate(async (turns) => {
      const headers = { 'content-type': 'application/json', 'x-navi-key': localStorage.getItem('navi.key') };
      const post = (path, body) => fetch(path, { method: 'POST', headers, body: JSON.stringify(body) }).then((answer) => answer.json());
      const { session_id } = await post('sessions', {});
      for (let n = 1; n <= turns; n += 1) await post(`sessions/${session_id}/messages`, { content: n === 3 ? 'The lighthouse.' : `Turn ${n}.` });
      return session_id;
    }, TURNS);
    await tab.page.evaluate((session) => { location.hash = `#/s/${session}`; }, id);
    await said(TURNS).waitFor();
    assert.ok(await drawn() <= 100, `${await drawn()} are drawn`);
    assert.equal(await said(1).count(), 0);
    await tab.page.getByTestId('show-earlier').waitFor();
  });

  it('goes back as far as one scrolls, and keeps the place', async () => {
    const { tab } = it_has;
    const scroller = tab.page.getByTestId('conversation');
    await scroller.hover();
    const first = () => tab.messages.first().getAttribute('data-message-id');
    const before = await first();
    await scroller.evaluate((element) => { element.scrollTop = 300; });
    const shown = tab.messages.nth(4);
    const id = await shown.getAttribute('data-message-id');
    const held = tab.page.locator(`article[data-message-id="${id}"]`);
    const top = (await held.boundingBox()).y;
    await tab.page.waitForFunction((was) => document.querySelector('[data-testid="message"]').dataset.messageId !== was, before);
    assert.notEqual(await first(), before);
    await tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    assert.ok(Math.abs((await held.boundingBox()).y - top) < 40, `${top} and ${(await held.boundingBox()).y}`);
    while (await said(1).count() === 0) {
      const was = await first();
      await until(() => document.querySelector('[data-testid="conversation"]').scrollTop > 0);
      await scroller.evaluate((element) => { element.scrollTop = 0; });
      await tab.page.waitForFunction((id) => document.querySelector('[data-testid="message"]').dataset.messageId !== id, was);
      assert.ok(await drawn() <= MAX_DRAWN);
    }
    await until(() => document.querySelector('[data-testid="show-earlier"]') === null);
    await tab.page.getByTestId('show-later').waitFor({ state: 'attached' });
    assert.equal(await said(TURNS).count(), 0, 'the end is not drawn from so far away');
  });

  it('leads back to its end, and one who writes is there', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('jump-latest').click();
    await said(TURNS).waitFor();
    assert.ok(await drawn() <= 100);
    await tab.page.getByTestId('conversation').evaluate((element) => { element.scrollTop = 0; });
    await model.script([{ text: 'Still here.' }]);
    await tab.send('And now?');
    await tab.sees('Still here.');
    await tab.idle();
  });

  it('opens at what was looked for, though that is not there yet', async () => {
    const { tab } = it_has;
    await tab.page.reload();
    await tab.sees('Still here.');
    const looked_for = tab.messages.filter({ hasText: /^The lighthouse\./ });
    assert.equal(await looked_for.count(), 0);
    await tab.page.getByTestId('session-search').fill('lighthouse');
    const hit = tab.page.getByTestId('search-hit').first();
    await hit.waitFor();
    const id = await hit.getAttribute('data-message-id');
    await hit.click();
    const found = tab.page.locator(`article[data-message-id="${id}"]`);
    await found.waitFor();
    await tab.page.waitForFunction((element) => element.contains(document.activeElement), await found.elementHandle());
    assert.ok(await drawn() <= 100);
    await tab.page.getByTestId('show-later').dispatchEvent('click');
    await tab.page.getByTestId('jump-latest').click();
    await tab.sees('Still here.');
  });
});
