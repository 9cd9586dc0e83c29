// Where Navi is not running the page opens all the same, says so, and waits for it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { assertAccessible, assertFits } from './harness/looks.js';
import { prefixed } from './harness/proxy.js';
import { world } from './harness/world.js';

describe('the page that a browser kept', () => {
  const it_has = world();
  let proxy, context, tab;
  before(async () => {
    const { browser, navi } = it_has;
    proxy = await prefixed(new URL(navi.link).origin);
    // For a link that nobody used yet.
    await navi.kill();
    await navi.start();
    context = await newContext(browser);
    tab = new Tab(await context.newPage());
    await tab.page.goto(navi.link.replace(new URL(navi.link).origin, proxy.address));
    await tab.ready();
  });
  after(async () => {
    await context?.close();
    proxy?.close();
  });

  /** Waits until the page in use is kept, and says which files of it are. */
  async function kept() {
    return tab.page.evaluate(async () => {
      const { scope } = await navigator.serviceWorker.ready;
      const folder = document.querySelector('script[type=module]').getAttribute('src').split('/').at(-2);
      for (;;) {
        const page = await (await caches.match(scope))?.text();
        if (page?.includes(folder)) {
          const cache = await caches.open((await caches.keys())[0]);
          const files = (await cache.keys()).map(({ url }) => url.slice(scope.length)).filter((path) => path !== '');
          if (files.every((path) => path.includes(folder))) return files;
        }
        await new Promise(requestAnimationFrame);
      }
    });
  }

  it('is all that it was made of', async () => {
    const names = (await kept()).map((path) => path.split('/').at(-1));
    for (const name of ['main.js', 'early.js', 'page.css', 'en.js', 'panels.js']) assert.ok(names.includes(name), `${name} of ${names}`);
  });

  it('costs no request where Navi answers', async () => {
    proxy.asked.length = 0;
    await tab.page.reload({ waitUntil: 'networkidle' });
    await tab.ready();
    assert.equal(await tab.page.evaluate(() => navigator.serviceWorker.controller !== null), true);
    const requests = proxy.asked.filter((path) => !path.includes('/ws/'));
    // The page itself, the profiles, and who one is.
    assert.ok(requests.length <= 3, requests.join(', '));
    assert.equal(requests[0], '/a/prefix/');
  });

  it('opens without Navi, says so, and goes on when it is back', async () => {
    const { model, navi } = it_has;
    await model.script([{ text: 'Said before.' }]);
    await tab.send('Are you there?');
    await tab.sees('Said before.');
    await tab.idle();
    await navi.kill();

    await tab.page.reload();
    const connection = tab.page.locator('[data-testid="connection"][data-state="lost"]').first();
    await connection.waitFor();
    assert.match(await connection.innerText(), /Navi is not running/);
    await tab.screenshot('offline-wide');
    await assertAccessible(tab.page, 'offline-wide');
    await tab.page.setViewportSize({ width: 360, height: 740 });
    await tab.screenshot('offline-narrow');
    await assertFits(tab.page, 'offline-narrow');
    await tab.page.setViewportSize({ width: 1280, height: 800 });

    await navi.start();
    await tab.sees('Said before.');
    await tab.page.getByTestId('connection').waitFor({ state: 'detached' });
    await model.script([{ text: 'Back again.' }]);
    await tab.send('And now?');
    await tab.sees('Back again.');
    await tab.idle();
  });

  it('is replaced by an update', async () => {
    const { navi } = it_has;
    proxy.folder = '0123456789abcdef';
    await tab.page.reload();
    await tab.sees('Back again.');
    assert.ok((await kept()).every((path) => path.startsWith(`web/${proxy.folder}/`)));
    await navi.kill();
    await tab.page.reload();
    await tab.page.locator('[data-testid="connection"][data-state="lost"]').first().waitFor();

    // Updated while it was away: what was kept is yesterday's, and opens all the same.
    proxy.folder = 'fedcba9876543210';
    await navi.start();
    await tab.sees('Back again.');
    const note = tab.page.locator('[data-testid="banner"][data-kind="outdated"]');
    await note.waitFor();
    await tab.page.getByTestId('open-memory').click();
    await tab.page.getByTestId('memory-close').click();
    await note.getByTestId('reload').click();
    await note.waitFor({ state: 'detached' });
    await tab.sees('Back again.');
    assert.ok((await kept()).every((path) => path.startsWith(`web/${proxy.folder}/`)));
  });
});
