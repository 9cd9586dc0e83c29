// Pictures of a message are loaded from where they are, when they come into view, and open large.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertAccessible } from './harness/looks.js';
import { world } from './harness/world.js';

describe('pictures', () => {
  const it_has = world();
  const picture = () => it_has.tab.page.locator('.message.user img').first();

  it('stand in the message, and after a reload come from their address', async () => {
    const { model, tab } = it_has;
    const drawn = await tab.page.evaluate(() => {
      const canvas = document.createElement('canvas');
      canvas.width = 600;
      canvas.height = 400;
      canvas.getContext('2d').fillRect(20, 20, 300, 200);
      return canvas.toDataURL('image/png').replace(/^.*,/, '');
    });
    await tab.page.getByTestId('file-input').setInputFiles({ name: 'drawn.png', mimeType: 'image/png', buffer: Buffer.from(drawn, 'base64') });
    await tab.page.getByTestId('preview').waitFor();
    await model.script([{ text: 'A black box.' }]);
    await tab.send('What is it?');
    await tab.sees('A black box.');
    await tab.idle();
    await tab.page.reload();
    await picture().waitFor();
    assert.match(await picture().getAttribute('src'), /^sessions\/[^/]+\/messages\/[^/]+\/images\/0$/);
    await tab.page.waitForFunction((image) => image.naturalWidth === 600, await picture().elementHandle());
  });

  it('open large by keyboard, and close where one was', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('picture').focus();
    await tab.page.keyboard.press('Enter');
    const panel = tab.page.getByTestId('picture-panel');
    await panel.waitFor();
    await panel.locator('img').evaluate((image) => image.decode());
    assert.ok((await panel.locator('img').boundingBox()).width > 400);
    await tab.screenshot('picture-large');
    await assertAccessible(tab.page, 'a picture', 'dialog');
    await tab.page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    assert.equal(await tab.page.evaluate(() => document.activeElement?.getAttribute('data-testid')), 'picture');
  });

  it('stay open while somebody presses what is said over them', async () => {
    const { tab } = it_has;
    // Pressed as it comes: it goes by itself.
    const stays = await tab.page.evaluate(() => new Promise((resolve) => {
      new MutationObserver((_changes, observer) => {
        const panel = document.querySelector('[data-testid="picture-panel"]');
        const toast = panel?.querySelector('[data-testid="toast"]');
        if (toast == null) return;
        observer.disconnect();
        toast.click();
        resolve(panel.open);
      }).observe(document, { childList: true, subtree: true });
      navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'));
      document.querySelector('.message-foot .copy').click();
      document.querySelector('[data-testid="picture"]').click();
    }));
    assert.ok(stays);
    await tab.page.keyboard.press('Escape');
    await tab.page.getByTestId('picture-panel').waitFor({ state: 'detached' });
  });
});
