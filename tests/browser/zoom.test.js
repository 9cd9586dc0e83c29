// Twice as large, and four times (WCAG 1.4.10: 1280 px wide at 400 % are 320): nothing has to be scrolled sideways, and all that can be pressed is there.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertFits } from './harness/looks.js';
import { world } from './harness/world.js';

const ANSWER = '## Three ways\n\nThe wall holds, says https://example.org/a-rather-long-address/that-does-not-fit/anywhere-at-all.\n\n'
  + '| way | time | what it takes | what it costs |\n| --- | --- | --- | --- |\n| on foot | 2 h | good shoes | nothing |\n\n'
  + '```rust\nfn main() { println!("a rather long line of code that does not fit on a narrow screen at all"); }\n```\n';
/** Each with what opens it, from the palette or by its button in what lies beside the conversation. */
const VIEWS = [
  { name: 'memory', opens: 'open-memory', shows: 'memory' },
  { name: 'permissions', opens: 'open-permissions', shows: 'permissions' },
  { name: 'extensions', opens: 'open-permissions', then: 'tab-extensions', shows: 'permissions' },
  { name: 'settings', opens: 'open-setup', shows: 'setting' },
  { name: 'models', opens: 'open-setup', then: 'tab-models', shows: 'profile-model' },
  { name: 'profiles', opens: 'open-setup', then: 'tab-profiles', shows: 'profile' },
  { name: 'diagnostics', opens: 'open-setup', then: 'tab-diagnostics', shows: 'check' },
];
const SIZES = [
  { name: '200 %', viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 },
  { name: '400 %', viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 },
];

for (const { name, ...options } of SIZES) {
  describe(`the page at ${name}`, () => {
    const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' }, options });
    const file = name.replace(/\D/g, '');

    /** Nothing goes over an edge, and each button can be brought into sight by scrolling up and down alone. */
    async function assertUsable(what, part = 'body') {
      const { tab } = it_has;
      await tab.screenshot(`zoom-${file}-${what}`);
      await assertFits(tab.page, `${what} at ${name}`);
      const lost = await tab.page.locator(part).first().evaluate((box) => {
        const out = [];
        for (const button of box.querySelectorAll('button, a[href], input, select, textarea')) {
          if (!button.checkVisibility({ checkVisibilityCSS: true, checkOpacity: false }) || button.closest('[inert], .off-screen, .skip, .tabs, .table-scroll, pre') !== null) continue;
          button.scrollIntoView({ block: 'nearest', inline: 'nearest' });
          const { left, right, top, bottom, width } = button.getBoundingClientRect();
          if (width > 1 && (left < -1 || right > innerWidth + 1 || bottom < 1 || top > innerHeight - 1)) out.push(button.outerHTML.slice(0, 100));
        }
        return out;
      });
      assert.deepEqual(lost, [], `${what} at ${name}`);
      assert.equal(await tab.page.evaluate(() => document.documentElement.scrollLeft + document.body.scrollLeft), 0, `${what} at ${name} was scrolled sideways`);
    }

    it('begins a conversation', async () => {
      await assertUsable('empty');
    });

    it('asks for consent, with all that is asked about and every answer', async () => {
      const { model, tab } = it_has;
      await model.script([{ tool_call: { name: 'terminal', arguments: { action: 'run', command: 'printf "%s\\n" one two three four five six seven' } } }], [{ text: ANSWER }]);
      await tab.send('Compare the ways.');
      await tab.page.locator('[data-testid="approve-deny"][aria-disabled="false"]').waitFor();
      await assertUsable('consent');
      const further = tab.page.locator('[data-testid="approval-show-all"][aria-disabled="false"]');
      const end = tab.page.locator('[data-testid="approve-once"][aria-disabled="false"]');
      for (;;) {
        await further.or(end).waitFor();
        if (await end.count() > 0) break;
        await further.click();
      }
      await end.click();
      await tab.sees('Three ways');
      await tab.idle();
      await assertUsable('conversation');
    });

    it('lists conversations and places', async () => {
      const { page } = it_has.tab;
      await page.getByTestId('drawer-open').click();
      await page.locator('.drawer .sidebar').waitFor();
      await assertUsable('list', '.sidebar');
      await page.keyboard.press('Escape');
      await page.locator('.drawer').waitFor({ state: 'detached' });
    });

    for (const { name: view, opens, then, shows } of VIEWS) {
      it(`shows ${view}`, async () => {
        const { page } = it_has.tab;
        await page.getByTestId('drawer-open').click();
        await page.getByTestId(opens).click();
        if (then !== undefined) await page.getByTestId(then).click();
        await page.getByTestId(shows).first().waitFor();
        await assertUsable(view, 'dialog[open]');
        await page.keyboard.press('Escape');
        await page.locator('dialog[open]').waitFor({ state: 'detached' });
      });
    }

    it('finds everything from the palette', async () => {
      const { page } = it_has.tab;
      await page.keyboard.press('ControlOrMeta+k');
      await page.getByTestId('palette-option').first().waitFor();
      await assertUsable('palette', 'dialog[open]');
      await page.keyboard.press('Escape');
      await page.getByTestId('palette').waitFor({ state: 'detached' });
    });
  });
}
