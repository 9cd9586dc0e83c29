// On a phone: the keyboard on the screen does not cover where one writes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const PHONE = { width: 390, height: 844 };

describe('a keyboard on the screen that lies over the page', () => {
  const it_has = world({ options: { viewport: PHONE, hasTouch: true, isMobile: true } });

  /** As Safari has it: the window stays as it is, and less of it is seen. */
  const seen = (height, top) => it_has.tab.page.evaluate(([now, offset]) => {
    Object.defineProperty(visualViewport, 'height', { value: now, configurable: true });
    Object.defineProperty(visualViewport, 'offsetTop', { value: offset, configurable: true });
    visualViewport.dispatchEvent(new Event('resize'));
  }, [height, top]);
  const bottom = () => it_has.tab.composer.evaluate((field) => field.closest('form').getBoundingClientRect().bottom);
  const top = () => it_has.tab.page.locator('.page-head').evaluate((head) => head.getBoundingClientRect().top);

  it('leaves the field and the head in sight, and gives the room back', async () => {
    const { tab } = it_has;
    const before = await bottom();
    assert.ok(before > 700 && before <= PHONE.height);
    await seen(500, 0);
    assert.ok(await bottom() <= 500, `${await bottom()}`);
    await tab.screenshot('phone-keyboard');
    // The browser moved the page up by itself.
    await seen(500, 120);
    assert.equal(await top(), 120);
    assert.ok(await bottom() <= 620);
    await seen(PHONE.height, 0);
    assert.equal(await bottom(), before);
  });

  it('leaves a page as it is that is enlarged by two fingers', async () => {
    const { tab, window } = it_has;
    await tab.page.reload();
    await tab.ready();
    const before = await bottom();
    const devtools = await window.context.newCDPSession(tab.page);
    const resized = tab.page.evaluate(() => new Promise((done) => { visualViewport.addEventListener('resize', () => done(visualViewport.scale), { once: true }); }));
    // The listener is there before anything is enlarged.
    await tab.page.evaluate(() => {});
    await devtools.send('Emulation.setPageScaleFactor', { pageScaleFactor: 2 });
    assert.equal(await resized, 2);
    assert.equal(await tab.page.evaluate(() => document.documentElement.style.getPropertyValue('--seen-height')), '');
    assert.equal(await bottom(), before);
  });
});
