// How Navi is set up: her settings.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('how Navi is set up', () => {
  const it_has = world({ settings: { OPENAI_API_KEY: 'sk-hunter2' } });
  const part = (id) => it_has.tab.page.getByTestId(id);

  it('is loaded when it is opened, and shows each setting with where it came from', async () => {
    const { tab } = it_has;
    const loaded = () => tab.page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/setup.js')).length);
    assert.equal(await loaded(), 0);
    await part('open-setup').click();
    const setting = (key) => tab.page.locator(`[data-testid="setting"][data-key="${key}"]`);
    await setting('server.bind').waitFor();
    assert.equal(await loaded(), 1);
    assert.equal(await setting('server.bind').getAttribute('data-origin'), 'environment');
    assert.equal(await setting('log.level').getAttribute('data-origin'), 'default');
    assert.match(await setting('openai.api_key').innerText(), /hidden/);
    assert.doesNotMatch(await part('setup').innerText(), /hunter2/);

    const all = await part('setting').count();
    await part('settings-only-set').check();
    assert.ok(await part('setting').count() < all / 2);
    await part('settings-filter').fill('openai key');
    await tab.page.waitForFunction(() => document.querySelectorAll('[data-testid="setting"]').length === 1);
    await part('settings-filter').fill('no such thing');
    await part('settings-empty').waitFor();
  });
});
