// Pictures of an answer that stand elsewhere: nobody there hears of it before a person asks to see them.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';

import { assertAccessible } from './harness/looks.js';
import { world } from './harness/world.js';

const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC', 'base64');

describe('pictures that stand elsewhere', () => {
  // What is no picture is answered with 400.
  const it_has = world({ settings: { NAVI_FETCH_ALLOWED_HOSTS: '127.0.0.1' }, options: { expected: /400/ } });
  const requests = [];
  /** Requests that are answered later, by their addresses. */
  const held = new Map();
  const site = createServer(async ({ url }, response) => {
    requests.push(url);
    await held.get(url)?.();
    if (url.endsWith('.png')) response.writeHead(200, { 'content-type': 'image/png' }).end(PIXEL);
    else response.writeHead(200, { 'content-type': 'text/html' }).end('<p>no picture');
  });
  let address;

  before(async () => {
    await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${site.address().port}`;
  });
  after(() => site.close());

  /** Answers what is asked for there once it is released. */
  function hold(url) {
    const answered = {};
    const released = new Promise((resolve) => { answered.release = resolve; });
    answered.asked = new Promise((resolve) => {
      held.set(url, () => {
        resolve();
        return released;
      });
    });
    return answered;
  }

  const offers = () => it_has.tab.page.locator('[data-testid="remote-image"][data-state="offered"]');
  const pictures = () => it_has.tab.page.locator('navi-remote-image').getByTestId('picture');

  let answers = 0;

  async function answer(text) {
    const { model, tab } = it_has;
    answers += 1;
    await model.script([{ text: `${text}\n\nThat is all of answer ${answers}.` }]);
    await tab.send('Show me.');
    await tab.answers.filter({ hasText: `That is all of answer ${answers}.` }).waitFor();
    await tab.idle();
  }

  /** The one offer of this address. */
  const offerOf = (path) => offers().filter({ hasText: `${address}${path}` });

  it('are not asked for before, and their whole address is there to be read', async () => {
    const { tab } = it_has;
    await answer(`![A chart](${address}/chart.png?said=the%20secret.png) and ![](${address}/two.png), and [![Badge](${address}/badge.png)](https://example.com/)`);
    await offers().nth(1).waitFor();
    assert.equal(await offers().count(), 2);
    assert.ok((await offers().first().innerText()).includes(`${address}/chart.png?said=the%20secret.png`));
    assert.match(await offers().first().getByRole('button').innerText(), /Show image from 127\.0\.0\.1:\d+/);
    assert.equal(await tab.page.getByRole('link', { name: /Badge/ }).getAttribute('href'), 'https://example.com/');
    await assertAccessible(tab.page, 'a picture elsewhere', 'navi-conversation');
    await tab.screenshot('remote-image-offered');
    assert.deepEqual(requests, []);
  });

  it('are shown when one asks, each by itself, and open large', async () => {
    const { tab } = it_has;
    await offers().first().getByTestId('remote-image-show').click();
    await pictures().first().waitFor();
    // Who pressed goes on from there; the other one of this host nobody asked for.
    await tab.page.waitForFunction(() => document.activeElement?.matches('navi-remote-image .picture'));
    assert.deepEqual(requests, ['/chart.png?said=the%20secret.png']);
    assert.equal(await offers().count(), 1);
    await tab.page.waitForFunction((image) => image.naturalWidth === 1, await pictures().first().locator('img').elementHandle());
    await pictures().first().click();
    await tab.page.getByTestId('picture-panel').waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.page.getByTestId('picture-panel').waitFor({ state: 'detached' });
  });

  it('show all of an address above their button, however long', async () => {
    const { tab } = it_has;
    const before_it = requests.length;
    await answer(`![More](${address}/more.png?said=${'much%20'.repeat(300)}more.png)`);
    const { hidden_px, above } = await offerOf('/more.png').evaluate((offer) => {
      const link = offer.querySelector('.remote-address');
      const { bottom } = link.getBoundingClientRect();
      return { hidden_px: link.scrollHeight - link.clientHeight, above: bottom <= offer.querySelector('button').getBoundingClientRect().top };
    });
    assert.ok(hidden_px <= 1 && above, JSON.stringify({ hidden_px, above }));
    assert.equal(requests.length, before_it);
    // What was asked for stays.
    assert.equal(await pictures().count(), 1);
  });

  it('leave the keyboard where somebody writes by the time they are there', async () => {
    const { tab } = it_has;
    const answered = hold('/slow.png');
    await answer(`![Slow](${address}/slow.png)`);
    await offerOf('/slow.png').getByTestId('remote-image-show').click();
    await answered.asked;
    await tab.composer.fill('Meanwhile');
    answered.release();
    await pictures().nth(1).waitFor();
    assert.equal(await tab.composer.evaluate((field) => field === document.activeElement), true);
    await tab.composer.fill('');
  });

  it('say so where there is none, and can be tried again', async () => {
    const { tab } = it_has;
    await answer(`![Page](${address}/page)`);
    await offerOf('/page').getByTestId('remote-image-show').click();
    await tab.page.locator('.remote-problem').waitFor();
    assert.ok(requests.includes('/page'));
    await offerOf('/page').getByTestId('remote-image-show').waitFor();
  });

  it('are remembered by this tab alone', async () => {
    const { tab } = it_has;
    const before_it = requests.length;
    await tab.page.reload();
    await offers().nth(4).waitFor();
    assert.equal(await pictures().count(), 0);
    assert.equal(requests.length, before_it);
  });
});
