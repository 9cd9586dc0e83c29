// A long conversation opens at its end; what was before comes when it is wanted, and no more than
// some of it is drawn at once.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const TURNS = 170;
const MAX_DRAWN = 300;

describe('a long conversation', () => {
  // An imported answer has no run behind it.
  const it_has = world({ options: { expected: /status of 404/ } });
  const drawn = () => it_has.tab.messages.count();
  const said = (n) => it_has.tab.page.locator('[data-testid="message"][data-role="user"]').getByText(`Turn ${n}.`, { exact: true });

  /** Where one was led, or the page has another width, nothing is said to have come. */
  async function nothingIsNew() {
    const { page } = it_has.tab;
    await page.getByTestId('jump-latest').waitFor();
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    assert.equal(await page.getByTestId('unread').count(), 0);
  }

  /** Looks at it until that is so. */
  const until = (what) => it_has.tab.page.waitForFunction(what);

  it('opens at its end', async () => {
    const { tab } = it_has;
    const id = await tab.page.evaluate(async (turns) => {
      const headers = { 'content-type': 'application/json', 'x-navi-key': localStorage.getItem('navi.key') };
      const post = (path, body) => fetch(path, { method: 'POST', headers, body: JSON.stringify(body) }).then((answer) => answer.json());
      const messages = Array.from({ length: turns }, (_, n) => [
        { role: 'user', content: n === 2 ? 'The lighthouse.' : `Turn ${n + 1}.` },
        { role: 'assistant', content: `Answer ${n + 1}.` },
      ]).flat();
      const { session } = await post('sessions/import', { messages });
      return session.id;
    }, TURNS);
    await tab.page.evaluate((session) => { location.hash = `#/s/${session}`; }, id);
    await said(TURNS).waitFor();
    assert.ok(await drawn() <= 100, `${await drawn()} are drawn`);
    assert.equal(await said(1).count(), 0);
    await tab.page.getByTestId('show-earlier').waitFor();
  });

  it('is printed whole, and drawn as before afterwards', async () => {
    const { tab } = it_has;
    const before = await drawn();
    await tab.page.evaluate(() => {
      window.print = () => {
        const said = [...document.querySelectorAll('[data-testid="message"][data-role="user"]')].map((message) => message.innerText.split('\n', 1)[0]);
        window.printed = { first: said[0], messages: document.querySelectorAll('[data-testid="message"]').length };
      };
    });
    await tab.page.keyboard.press('Control+k');
    await tab.page.getByTestId('palette-input').fill('print');
    await tab.page.keyboard.press('Enter');
    await until(() => window.printed !== undefined);
    assert.deepEqual(await tab.page.evaluate(() => window.printed), { first: 'Turn 1.', messages: TURNS * 2 });
    await tab.page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await tab.page.waitForFunction((was) => document.querySelectorAll('[data-testid="message"]').length === was, before);

    // By the browser's own menu, too.
    await tab.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await said(1).waitFor({ state: 'attached' });
    await tab.page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await said(1).waitFor({ state: 'detached' });
    await tab.page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    const bubble = await said(TURNS).evaluate((element) => {
      const { borderTopWidth, maxHeight } = getComputedStyle(element.closest('.bubble'));
      return { borderTopWidth, maxHeight, scheme: getComputedStyle(document.documentElement).colorScheme };
    });
    assert.deepEqual(bubble, { borderTopWidth: '1px', maxHeight: 'none', scheme: 'light' });
    assert.ok(await tab.page.locator('.foot').isHidden());
    await tab.page.emulateMedia({ media: null, colorScheme: 'light' });
    // What was said before is read again when it is wanted.
    await tab.page.reload();
    await said(TURNS).waitFor();
  });

  it('goes back as far as one scrolls, and keeps the place', async () => {
    const { tab } = it_has;
    const scroller = tab.page.getByTestId('conversation');
    await scroller.hover();
    const first = () => tab.messages.first().getAttribute('data-message-id');
    const before = await first();
    // Measured before anything can come of the scrolling.
    const { id, top } = await scroller.evaluate((element) => {
      element.scrollTop = 300;
      const shown = element.querySelectorAll('[data-testid="message"]')[4];
      return { id: shown.dataset.messageId, top: shown.getBoundingClientRect().top };
    });
    const held = tab.page.locator(`article[data-message-id="${id}"]`);
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
    await nothingIsNew();
    await tab.page.getByTestId('show-later').dispatchEvent('click');
    await tab.page.getByTestId('jump-latest').click();
    await tab.sees('Still here.');
  });

  it('opens at the very words, however far down an answer they stand', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    await tab.newSession.click();
    await model.script([{ text: Array.from({ length: 200 }, (_, n) => `Line ${n} of the report${n === 150 ? ' saw a kingfisher by the **weir**' : ''}.`).join('\n\n') }]);
    await tab.send('Report.');
    await tab.sees('Line 199');
    await tab.idle();
    await page.getByTestId('session-search').fill('kingfisher weir');
    await page.locator('[data-testid="search-hit"]', { hasText: 'kingfisher' }).first().click();

    await page.waitForFunction(() => {
      const log = document.querySelector('[data-testid="conversation"]')?.getBoundingClientRect();
      const found = [...CSS.highlights.get('found') ?? []].map((range) => range.getBoundingClientRect());
      return log !== undefined && found.length === 2 && found.every(({ top, bottom }) => top > log.top && bottom < log.bottom);
    });
    assert.deepEqual(await page.evaluate(() => [...CSS.highlights.get('found')].map(String)), ['kingfisher', 'weir']);
    // What is laid out late, or anew, is not new.
    await page.getByTestId('conversation').evaluate((element) => { element.scrollTop = 0; });
    await page.setViewportSize({ width: 600, height: 800 });
    await nothingIsNew();
    await page.setViewportSize({ width: 1280, height: 800 });
    await nothingIsNew();
    await tab.screenshot('found-words');
  });
});
