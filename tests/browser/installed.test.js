// The page can be put beside the programs of a machine or of a phone.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('the page as a program', () => {
  const it_has = world();

  it('has a manifest that a browser takes, and nothing against it', async () => {
    const { tab, window } = it_has;
    const devtools = await window.context.newCDPSession(tab.page);
    await devtools.send('Page.enable');
    const { url, data, errors } = await devtools.send('Page.getAppManifest');
    assert.deepEqual(errors, []);
    const { icons, start_url, scope, display } = JSON.parse(data);
    assert.equal(display, 'standalone');
    const home = `${new URL(tab.page.url()).origin}/`;
    for (const address of [start_url, scope]) assert.equal(new URL(address, url).href, home);
    // A browser without a window knows no programs: it has nothing to say.
    const { installabilityErrors } = await devtools.send('Page.getInstallabilityErrors').catch(() => ({ installabilityErrors: [] }));
    // A window of a test remembers nothing, and installs nothing.
    assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito'), []);
    for (const size of ['192x192', '512x512']) {
      assert.ok(icons.some(({ sizes, type, purpose = 'any' }) => sizes === size && type === 'image/png' && purpose === 'any'), size);
    }
    assert.ok(icons.some(({ purpose }) => purpose === 'maskable'));
  });

  it('has each of its icons, as large as it says', async () => {
    const { tab } = it_has;
    const wrong = await tab.page.evaluate(async () => {
      const address = document.querySelector('link[rel=manifest]').href;
      const { icons } = await (await fetch(address)).json();
      const touch = { src: document.querySelector('link[rel=apple-touch-icon]').href, sizes: '180x180', type: 'image/png' };
      const looked = await Promise.all([...icons, touch].map(async ({ src, sizes, type }) => {
        const answer = await fetch(new URL(src, address));
        const picture = new Image();
        picture.src = new URL(src, address).href;
        await picture.decode();
        const size = sizes === 'any' ? sizes : `${picture.naturalWidth}x${picture.naturalHeight}`;
        return answer.ok && answer.headers.get('content-type').startsWith(type) && size === sizes ? [] : [[src, answer.status, answer.headers.get('content-type'), size]];
      }));
      return looked.flat();
    });
    assert.deepEqual(wrong, []);
  });

  it('leaves room around what a system cuts out of its icon, and nothing see-through', async () => {
    const { tab } = it_has;
    const { clear, outside } = await tab.page.evaluate(async () => {
      const address = document.querySelector('link[rel=manifest]').href;
      const { icons } = await (await fetch(address)).json();
      const picture = new Image();
      picture.src = new URL(icons.find(({ purpose }) => purpose === 'maskable').src, address).href;
      await picture.decode();
      const side = picture.naturalWidth;
      const canvas = new OffscreenCanvas(side, side).getContext('2d');
      canvas.drawImage(picture, 0, 0);
      const { data } = canvas.getImageData(0, 0, side, side);
      const found = { clear: 0, outside: 0 };
      for (let at = 0; at < side * side; at += 1) {
        if (data[at * 4 + 3] < 255) found.clear += 1;
        const away = Math.hypot(at % side - side / 2, Math.floor(at / side) - side / 2);
        // The middle 80 % are never cut.
        if (away > side * 0.4 && [0, 1, 2].some((part) => data[at * 4 + part] !== data[part])) found.outside += 1;
      }
      return found;
    });
    assert.deepEqual({ clear, outside }, { clear: 0, outside: 0 });
  });
});
