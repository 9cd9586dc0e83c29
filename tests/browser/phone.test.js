// On a phone: the keyboard on the screen does not cover where one writes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const PHONE = { width: 390, height: 844 };

describe('the list by touch', () => {
  const it_has = world({ options: { viewport: PHONE, hasTouch: true, isMobile: true } });
  const item = (text) => it_has.tab.sessions.filter({ hasText: text });

  async function act(text, action) {
    const { page } = it_has.tab;
    await item(text).getByTestId('session-more').tap();
    await page.locator(`[data-testid="session-action"][data-action="${action}"]`).tap();
  }

  it('renames and deletes a conversation that is not open', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    for (const text of ['The first one', 'The second one']) {
      await model.script([{ text: `Answer to ${text}` }]);
      await tab.send(text);
      await tab.sees(`Answer to ${text}`);
      await tab.idle();
      await page.getByTestId('drawer-open').tap();
      if (text === 'The first one') await tab.newSession.tap();
    }

    await act('The first one', 'rename');
    await page.locator('[data-testid="rename-input"]:focus').fill('Called anew');
    await page.keyboard.press('Enter');
    await item('Called anew').getByTestId('session-more').tap();
    await tab.screenshot('phone-session-menu');
    await page.touchscreen.tap(PHONE.width - 5, PHONE.height / 2);
    await page.getByTestId('session-action').first().waitFor({ state: 'detached' });
    await page.getByTestId('drawer-open').tap();
    await act('Called anew', 'delete');
    await item('Called anew').waitFor({ state: 'detached' });
    await tab.undo.tap();
    await item('Called anew').waitFor();
    await tab.sees('Answer to The second one');
  });
});

describe('a keyboard on the screen that lies over the page', () => {
  const it_has = world({ options: { viewport: PHONE, hasTouch: true, isMobile: true } });

  /** As Safari has it: the window stays as it is, and less of it is seen. */
  const seen = (height, top) => it_has.tab.page.evaluate(([now, offset]) => {
    Object.defineProperty(visualViewport, 'height', { value: now, configurable: true });
    Object.defineProperty(visualViewport, 'offsetTop', { value: offset, configurable: true });
    visualViewport.dispatchEvent(new Event('resize'));
    // What moves at once is there with the next frame.
    return new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(() => drawn())); });
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

describe('where one writes on a phone', () => {
  const it_has = world({ options: { viewport: PHONE, hasTouch: true, isMobile: true } });

  /** What of the row under the field is not whole inside of it, and how high the row is. */
  const row = () => it_has.tab.composer.evaluate((field) => {
    const form = field.closest('form');
    const edge = form.getBoundingClientRect();
    const cut = [...form.querySelectorAll('.composer-row > :not(.off-screen), .modes span')].filter((part) => {
      const { left, right, width } = part.getBoundingClientRect();
      return width > 0 && (left < edge.left || right > edge.right || part.scrollWidth > part.clientWidth + 1);
    });
    return { cut: cut.map(({ outerHTML }) => outerHTML.slice(0, 80)), height: form.querySelector('.composer-row').getBoundingClientRect().height };
  });

  it('all buttons stand in one row and within the edge while a run goes, in every language', async () => {
    const { model, tab, window } = it_has;
    // As in a browser that writes down what one says: that is one button more.
    await window.context.addInitScript(() => { globalThis.webkitSpeechRecognition ??= class {}; });
    await model.script([{ text: 'Going on' }, { hold: 'never' }]);
    await tab.send('Take your time.');
    await tab.sees('Going on');
    for (const language of ['en', 'uk', 'ru']) {
      await tab.page.evaluate((chosen) => localStorage.setItem('navi.language', chosen), language);
      await tab.page.reload();
      await tab.stopButton.waitFor();
      await tab.page.getByTestId('dictate').waitFor();
      await tab.composer.fill('Words');
      await tab.sendButton.waitFor();
      for (const width of [320, 360, 390]) {
        await tab.page.setViewportSize({ width, height: 740 });
        const { cut, height } = await row();
        assert.deepEqual(cut, [], `${language}, ${width} px`);
        assert.ok(height < 48, `${language}, ${width} px: ${height} px high`);
      }
      await tab.screenshot(`phone-composer-${language}`);
    }
  });
});

describe('Enter on a phone', () => {
  const it_has = world({ options: { viewport: PHONE, hasTouch: true, isMobile: true } });

  /** Writes two lines, and sees that nothing left the field. */
  async function twoLines(field) {
    const { page } = it_has.tab;
    await field.focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('One line');
    await page.keyboard.press('Enter');
    await page.keyboard.type('and another');
    assert.equal(await field.inputValue(), 'One line\nand another');
  }

  it('begins a line where one writes, where one waits, where one says it anew, and where one corrects Navi', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    const save = { tool_call: { name: 'memory_save', arguments: { category: 'people', key: 'sister_name', value: 'Olena' } } };
    await model.script([save], [{ text: 'Going on' }, { hold: 'waits' }, { text: ', and done.' }], [{ text: 'To both.' }], [{ text: 'Anew.' }]);
    assert.equal((await page.getByTestId('composer-hint').textContent()).trim(), '', 'no keys are named that it has not');
    await twoLines(tab.composer);
    await tab.sendButton.tap();
    await tab.sees('Going on');

    await tab.composer.fill('This waits.');
    await tab.sendButton.tap();
    await page.getByTestId('queued-edit').tap();
    await twoLines(page.getByTestId('queued-input'));
    await page.getByTestId('queued-save').tap();
    await page.locator('.queued-text', { hasText: 'and another' }).waitFor();
    await model.release('waits');
    await tab.sees('To both.');
    await tab.idle();

    await page.getByTestId('edit-message').last().tap();
    await twoLines(page.getByTestId('edit-input'));
    await page.getByTestId('edit-input').press('Enter');
    await page.keyboard.type('of it');
    await page.getByTestId('edit-send').tap();
    await tab.sees('Anew.');
    await tab.idle();
    assert.deepEqual((await tab.conversation()).filter(({ role }) => role === 'user').map(({ text }) => text), ['One line and another', 'One line and another of it']);

    await page.getByTestId('drawer-open').tap();
    await page.getByTestId('open-memory').tap();
    await page.getByTestId('fact-edit').tap();
    await twoLines(page.getByTestId('fact-input'));
    // With Ctrl, on a keyboard that lies beside the phone, it sends.
    await page.keyboard.press('Control+Enter');
    await page.getByTestId('fact-value').getByText('and another').waitFor();
  });
});
