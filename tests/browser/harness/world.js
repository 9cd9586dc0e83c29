// Everything that a test needs, and its end.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { logIn, startBrowser } from './browser.js';
import { startModel } from './model.js';
import { backendSettings, startNavi } from './navi.js';

/**
 * A model server, Navi and Chromium for the tests of one `describe`. Its parts are there
 * once the tests run. `config` says what the model server claims to be.
 */
export function world({ backend = 'ollama', settings = {}, models, config = {}, options = {} } = {}) {
  const world = {};
  before(async () => {
    world.model = await startModel();
    await world.model.configure(config);
    world.navi = await startNavi({ ...backendSettings(backend, world.model.address), ...settings }, { models });
    world.browser = await startBrowser();
    world.window = await logIn(world.browser, world.navi, options);
    world.tab = world.window.first;
  });
  after(async () => {
    try {
      await world.window?.close();
      assert.deepEqual(await world.model.violations(), [], 'the model was sent a broken history');
    } finally {
      await world.browser?.close();
      await world.navi?.remove();
      await world.model?.stop();
    }
  });
  return world;
}
