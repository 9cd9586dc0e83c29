// Nothing breaks the page, and it says how things are: a service that hangs, frames that are none,
// a message that cannot be drawn, words that cannot be loaded, too many requests, an input method.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { logIn, newContext, startBrowser, Tab } from './harness/browser.js';
import { backendSettings, startNavi } from './harness/navi.js';
import { assertFits } from './harness/looks.js';
import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const connection = (tab, state) => tab.page.locator(`[data-testid="connection"]${state === undefined ? '' : `[data-state="${state}"]`}`);

/** The same login in a browser whose complaints are the test's own doing. */
async function complaining({ browser, window }, prepare) {
  const context = await newContext(browser, { storageState: await window.context.storageState(), viewport: { width: 1280, height: 800 }, serviceWorkers: 'block' });
  const tab = new Tab(await context.newPage());
  await prepare(tab.page);
  return tab;
}

describe('a service that hangs', () => {
  const it_has = world();

  it('is noticed within seconds, wide and narrow, and goes on where it was', async () => {
    const { model, navi, tab } = it_has;
    await model.script([{ text: 'Here I am.' }]);
    await tab.send('Hello');
    await tab.sees('Here I am.');
    await tab.idle();
    const connections = [];
    tab.page.on('websocket', (socket) => connections.push(socket.url()));

    navi.freeze();
    await tab.send('Are you there?');
    await connection(tab, 'silent').waitFor();
    const seconds = Number(/(\d+) s/.exec(await tab.page.getByTestId('silent-for').innerText())[1]);
    assert.ok(seconds >= 5, `told after ${seconds} s`);
    for (const [name, width] of [['wide', 1280], ['narrow', 360]]) {
      await tab.page.setViewportSize({ width, height: 800 });
      assert.ok((await tab.page.getByTestId('silent-for').boundingBox()).width > 20, `${name} does not say for how long`);
      await tab.screenshot(`${name}-not-answering`);
      await assertFits(tab.page, name);
    }
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    await tab.page.getByTestId('pending-message').waitFor();

    await model.script([{ text: 'I am back.' }]);
    navi.thaw();
    await tab.sees('I am back.');
    await connection(tab).waitFor({ state: 'detached' });
    await tab.idle();
    assert.ok(connections.length > 0, 'a connection that says nothing is opened anew');
    assert.equal(await tab.page.locator('.bubble').getByText('Are you there?').count(), 1);
  });
});

describe('while the service is silent', () => {
  const it_has = world();

  it('nothing says that it works: the answer does not blink, and what is sent waits', async () => {
    const { model, navi, tab } = it_has;
    const beat = () => tab.page.locator('.prose.streaming > :last-child').evaluate((last) => getComputedStyle(last, '::after').animationName);
    await model.script([{ text: 'Half of it' }, { hold: 'rest' }, { text: ' and all of it.' }]);
    await tab.send('Say it slowly');
    await tab.sees('Half of it');
    assert.equal(await beat(), 'breathe');

    navi.freeze();
    await tab.send('And then?');
    await connection(tab, 'silent').waitFor();
    assert.equal(await beat(), 'none');
    await tab.page.getByTestId('pending-message').getByText('Goes out as soon as Navi answers again').waitFor();
    await tab.page.locator('.service').getByText('Navi is not answering').waitFor();
    await tab.screenshot('silent-in-the-middle');

    navi.thaw();
    await model.script([{ text: 'Then nothing.' }]);
    await model.release('rest');
    await tab.sees('Then nothing.');
    await tab.idle();
  });
});

describe('trouble on the way to the page', () => {
  const it_has = world();
  const notice = (tab) => tab.page.locator('[data-testid="notice"][data-code="unreadable_frame"]');

  it('frames that cannot be read are left out and said so, and take nothing along', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'First answer.' }]);
    await tab.send('First question');
    await tab.sees('First answer.');
    await tab.idle();
    const page = await complaining(it_has, async (fresh) => {
      let opened = 0;
      await fresh.routeWebSocket(/\/ws\/sessions\//, (socket) => {
        opened += 1;
        const server = socket.connectToServer();
        server.onMessage((text) => {
          socket.send(text);
          if (!text.includes('"stream_delta"')) return;
          for (const odd of ['{"type":"stream_delta"}', 'null', '{"type": "stre', '[1]']) socket.send(odd);
        });
        fresh.opened = opened;
      });
      await fresh.goto(tab.page.url());
    });
    await page.sees('First answer.');
    await model.script([{ text: 'One, ' }, { hold: 'odd' }, { text: 'two, three.' }]);
    await page.send('Count');
    await page.sees('One,');
    await notice(page).waitFor();
    await model.release('odd');
    await page.sees('One, two, three.');
    await page.idle();
    assert.equal(await notice(page).count(), 1);
    await page.screenshot('unreadable-frame');
    await model.script([{ text: 'And four.' }]);
    await page.send('Go on');
    await page.sees('And four.');
    await page.idle();
    assert.equal(page.page.opened, 1, 'it was opened again and again');
    await page.page.context().close();
  });

  it('a message with a broken date or a broken text takes no other along', async () => {
    const { tab } = it_has;
    const spoil = async (change) => complaining(it_has, async (fresh) => {
      await fresh.route(/\/sessions\/[^/]+$/, async (route) => {
        const response = await route.fetch();
        const session = await response.json();
        change(session.messages);
        await route.fulfill({ response, json: session });
      });
      await fresh.goto(tab.page.url());
    });
    const undated = await spoil((messages) => messages.forEach((message) => { message.created_at = 'yesterday'; }));
    await undated.sees('And four.');
    assert.equal(await undated.messages.count(), 6);
    assert.equal(await undated.page.getByTestId('not-drawn').count(), 0);
    await undated.page.context().close();

    const broken = await spoil((messages) => { messages.find(({ content }) => content === 'First answer.').content = { text: 'no text' }; });
    await broken.sees('And four.');
    await broken.page.getByTestId('not-drawn').first().waitFor();
    await broken.page.locator('.bubble').getByText('First question').waitFor();
    assert.equal(await broken.messages.count(), 6);
    await broken.screenshot('not-drawn');
    await broken.page.context().close();
  });

  it('words that cannot be loaded are tried again, and other ones are better than none', async () => {
    const { tab } = it_has;
    let refused = 0;
    const none = await complaining(it_has, async (fresh) => {
      await fresh.route(/\/web\/\w+\/(en|uk|ru)\.js/, (route) => {
        refused += 1;
        return refused <= 4 ? route.abort() : route.continue();
      });
      await fresh.goto(tab.page.url());
    });
    await none.ready();
    assert.ok(refused > 4, 'nothing was refused');
    await none.sees('And four.');
    await none.page.context().close();

    let let_go = false;
    const other = await complaining(it_has, async (fresh) => {
      await fresh.route(/\/web\/\w+\/en\.js/, (route) => (let_go ? route.continue() : route.abort()));
      await fresh.goto(tab.page.url());
    });
    await other.ready();
    assert.notEqual(await other.page.evaluate(() => document.documentElement.lang), 'en');
    let_go = true;
    await other.page.getByText('New conversation').first().waitFor();
    assert.equal(await other.page.evaluate(() => document.documentElement.lang), 'en');
    await other.page.context().close();
  });

  it('too many requests are asked again by themselves', async () => {
    const { tab } = it_has;
    let refused = 0;
    const slow = await complaining(it_has, async (fresh) => {
      await fresh.route(/\/sessions\/[^/]+$/, (route) => {
        refused += 1;
        return refused <= 2 ? route.fulfill({ status: 429, json: { code: 'rate_limited', message: 'slower' } }) : route.continue();
      });
      await fresh.goto(tab.page.url());
    });
    await slow.sees('And four.');
    assert.equal(refused, 3);
    assert.equal(await slow.errorCard.count(), 0);
    await slow.page.context().close();
  });

  it('a conversation that could not be opened can be opened from its card', async () => {
    const { tab } = it_has;
    let refuse = true;
    const shut = await complaining(it_has, async (fresh) => {
      await fresh.route(/\/sessions\/[^/]+$/, (route) => (refuse ? route.fulfill({ status: 400, json: { code: 'invalid_field', message: 'not now' } }) : route.continue()));
      await fresh.goto(tab.page.url());
    });
    await shut.errorCard.waitFor();
    refuse = false;
    await shut.page.getByTestId('open-again').click();
    await shut.sees('And four.');
    await shut.page.context().close();
  });

  it('an Escape that ends the composition of an input method stops nothing', async () => {
    const { model, tab, window } = it_has;
    await model.script([{ text: 'I speak for long, ' }, { hold: 'composed' }, { text: 'and end.' }]);
    await tab.send('Speak');
    await tab.sees('I speak for long,');
    await tab.composer.focus();
    const control = await window.context.newCDPSession(tab.page);
    await control.send('Input.imeSetComposition', { text: 'にほ', selectionStart: 2, selectionEnd: 2 });
    await tab.page.evaluate(() => {
      globalThis.pressed = 0;
      addEventListener('keydown', () => { globalThis.pressed += 1; });
    });
    await control.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'Escape', code: 'Escape', windowsVirtualKeyCode: 229 });
    await control.send('Input.dispatchKeyEvent', { type: 'keyUp', key: 'Escape', code: 'Escape', windowsVirtualKeyCode: 27 });
    await tab.page.waitForFunction(() => globalThis.pressed > 0);
    await control.send('Input.imeSetComposition', { text: '', selectionStart: 0, selectionEnd: 0 });
    await model.release('composed');
    await tab.sees('and end.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('stopped').count(), 0);
    await tab.composer.fill('');
  });

  it('mathematics is drawn, and what cannot be drawn is shown as it was written', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'It is \\(E=mc^2\\), or \\[a_1 * b_1 * c\\] and not \\(\\href{javascript:alert(1)}{x}\\) or \\(\\frac{a\\) to be whole.' }]);
    await tab.send('What is it?');
    await tab.sees('to be whole.');
    await tab.idle();
    const answer = tab.answers.last().locator('.prose');
    await answer.locator('math').nth(1).waitFor();
    assert.equal(await answer.locator('math').count(), 2);
    assert.equal(await answer.locator('math').first().locator('msup').textContent(), 'c2');
    assert.deepEqual(await answer.locator('navi-math').allInnerTexts().then((texts) => texts.slice(2)), ['\\(\\href{javascript:alert(1)}{x}\\)', '\\(\\frac{a\\)']);
    assert.equal(await answer.locator('a').count(), 0);
  });
});

describe('how a command went', () => {
  const it_has = world();
  const card = (tab, n) => tab.page.locator('[data-testid="tool-card"][data-tool="terminal"]').nth(n);
  const run = (command) => call('terminal', { action: 'run', command });

  it('has no tick where it ended with 127', async () => {
    const { model, tab } = it_has;
    await model.script([run('there-is-no-such-command')], [{ text: 'It is not installed.' }]);
    await tab.send('Try it');
    await tab.sees('It is not installed.');
    await tab.idle();
    await tab.page.reload();
    await card(tab, 0).waitFor();
    assert.equal(await card(tab, 0).getAttribute('data-state'), 'exited');
    assert.equal(await card(tab, 0).getByTestId('tool-ended').innerText(), 'exit code 127');
    assert.match(await card(tab, 0).getAttribute('aria-label'), /exit code 127/);
  });

  it('is no failure where a person said no, after a reload too', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-ask').check();
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('[data-testid="mode"][data-mode="ask"]').waitFor();
    await model.script([run('rm -r everything')], [{ text: 'Then not.' }]);
    await tab.send('Tidy up');
    await tab.page.locator('[data-testid="approval"]').waitFor();
    await tab.page.getByTestId('approve-deny').click();
    await tab.sees('Then not.');
    await tab.idle();
    for (const again of [false, true]) {
      if (again) await tab.page.reload();
      await card(tab, 1).waitFor();
      assert.equal(await card(tab, 1).getAttribute('data-state'), 'denied');
      assert.equal(await card(tab, 1).getByRole('button').first().getAttribute('aria-expanded'), 'false');
      for (const [name, width] of [['wide', 1280], ['narrow', 360]]) {
        await tab.page.setViewportSize({ width, height: 800 });
        await tab.screenshot(`${name}-how-it-went${again ? '-later' : ''}`);
      }
      await tab.page.setViewportSize({ width: 1280, height: 800 });
    }
  });
});

describe('what the page says of where words go', () => {
  const local = world();
  let navi, browser, window;
  before(async () => {
    navi = await startNavi(backendSettings('openai', 'https://models.invalid'));
    browser = await startBrowser();
    window = await logIn(browser, navi);
  });
  after(async () => {
    await window?.close();
    await browser?.close();
    await navi?.remove();
  });

  it('is that they stay where all is here, and is not where a model is elsewhere', async () => {
    await local.tab.page.getByTestId('welcome-where').getByText('Everything stays on your machine.').waitFor();
    await window.first.banner.first().waitFor();
    assert.doesNotMatch(await window.first.page.getByTestId('welcome').innerText(), /stays on your machine/);
  });
});
