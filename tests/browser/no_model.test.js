// No model server is no reason not to start: the page says so, and recovers by itself.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { logIn, startBrowser } from './harness/browser.js';
import { startModel } from './harness/model.js';
import { backendSettings, freePort, startNavi } from './harness/navi.js';

describe('without a model server', () => {
  let navi, browser, window, port, model;
  before(async () => {
    port = await freePort();
    navi = await startNavi(backendSettings('ollama', `http://127.0.0.1:${port}`));
    browser = await startBrowser();
    window = await logIn(browser, navi);
  });
  after(async () => {
    try {
      await window?.close();
    } finally {
      await browser?.close();
      await navi?.remove();
      await model?.stop();
    }
  });

  it('the page says what is missing', async () => {
    await window.first.banner.waitFor();
    assert.match(await window.first.banner.innerText(), /model/i);
  });

  it('and says it in the language of the page', async () => {
    const { banner, page } = window.first;
    await page.getByTestId('language').selectOption('uk');
    await banner.getByText(/Сервер моделі .* не відповідає: у з’єднанні відмовлено/).waitFor();
    await banner.getByText(/Запустіть Ollama/).waitFor();
    await page.getByTestId('language').selectOption('en');
  });

  it('and a message gets an error that says what to do', async () => {
    const tab = window.first;
    await tab.send('Anyone?');
    await tab.errorCard.last().waitFor();
    await tab.idle();
  });

  it('and recovers by itself when one appears', async () => {
    const tab = window.first;
    model = await startModel({ port });
    await tab.banner.waitFor({ state: 'hidden' });
    await model.script([{ text: 'Here I am.' }]);
    await tab.send('And now?');
    await tab.sees('Here I am.');
    await tab.idle();
  });
});
