// Sign-on: by a real provider, there and back as a person goes, and by the word of a proxy in front.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { newContext, startBrowser, Tab } from './harness/browser.js';
import { assertFits, assertLooks, OTHER_LANGUAGES } from './harness/looks.js';
import { startModel } from './harness/model.js';
import { backendSettings, freePort, startNavi } from './harness/navi.js';
import { providerSettings, signInThere, startProvider } from './harness/provider.js';
import { LIMIT_MS } from './harness/program.js';
import { prefixed } from './harness/proxy.js';

const TOKEN = 'a-token-of-the-tests';
const OLENA = { name: 'Olena', password: 'a window by the river' };

const part = (tab, id) => tab.page.getByTestId(id);
const gone = (tab, id) => part(tab, id).first().waitFor({ state: 'detached' });

/** Opens one's account at one of its tabs. */
async function openAccount(tab, name) {
  if (await part(tab, 'account').count() === 0) await part(tab, 'open-account').click();
  await part(tab, `tab-${name}`).click();
}

async function close(tab, panel) {
  await tab.page.keyboard.press('Escape');
  await gone(tab, panel);
}

async function newBrowser(browser) {
  const context = await newContext(browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
  await context.addInitScript(() => { if (location.protocol === 'http:') localStorage.setItem('navi.first_steps', 'done'); });
  return context;
}

async function post(page, path, body, headers = {}) {
  const response = await fetch(new URL(path, page), { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** The link of an invitation by the machine's user. */
const invitation = async (page) => (await post(page, 'api/invitations', { role: 'user' }, { authorization: `Bearer ${TOKEN}` })).link;

/** Somebody by name and password, who was invited. */
async function invite(page, { name, password }) {
  const link = await invitation(page);
  await post(page, 'api/invitation/accept', { invitation: link.split('#invitation=')[1], name, password });
}

describe('sign-on by a provider', () => {
  let model;
  let provider;
  let navi;
  let browser;
  let anna;
  let borys;

  before(async () => {
    model = await startModel();
    const [there, here] = [await freePort(), await freePort()];
    provider = await startProvider({ port: there, page: `http://127.0.0.1:${here}/` });
    provider.groups.set('anna', ['family']).set('borys', ['family', 'navi-admins']).set('olena', ['family']);
    navi = await startNavi({
      ...backendSettings('ollama', model.address),
      ...providerSettings(provider),
      NAVI_API_TOKEN: TOKEN,
      NAVI_SIGN_ON_JOIN: 'user',
      NAVI_SIGN_ON_ROLES: 'admin=navi-admins; user=family',
    }, { port: here });
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await navi?.remove();
    await provider?.stop();
    await model?.stop();
  });

  async function elsewhere() {
    const context = await newBrowser(browser);
    const tab = new Tab(await context.newPage());
    await tab.page.goto(provider.page);
    await part(tab, 'sign-in').waitFor();
    return tab;
  }

  async function comeIn(name) {
    const tab = await elsewhere();
    await part(tab, 'signin-provider').click();
    await signInThere(tab.page, name);
    await tab.ready();
    return tab;
  }

  it('two persons come in, each as who they are there, and nothing of it stays in the address', async () => {
    const tab = await elsewhere();
    assert.equal(await part(tab, 'signin-provider').innerText(), 'Sign in with House');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-sign-in-provider`));
    await part(tab, 'signin-provider').click();
    await signInThere(tab.page, 'anna');
    await tab.ready();
    anna = tab;
    assert.equal(new URL(anna.page.url()).href, provider.page);
    await anna.send('What nobody else reads');
    await anna.sees('You said: What nobody else reads');
    await anna.idle();
    await openAccount(anna, 'profile');
    assert.equal(await part(anna, 'account-name').innerText(), 'anna');
    assert.equal(await part(anna, 'account-role').getAttribute('data-role'), 'user');
    // Nobody is asked for a password who has another way in.
    assert.equal(await anna.page.locator('[data-testid="banner"][data-kind="password"]').count(), 0);
    await close(anna, 'account');

    borys = await comeIn('borys');
    await part(borys, 'open-people').waitFor();
    assert.equal(await part(anna, 'open-people').count(), 0);
    assert.equal(await borys.sessions.count(), 0);
  });

  it('the account shows by what one comes in, in each language', async () => {
    await openAccount(anna, 'sign_ons');
    const row = part(anna, 'sign-on');
    await row.waitFor();
    assert.match(await row.innerText(), new RegExp(`127\\.0\\.0\\.1:\\d+[^]*anna@example\\.org`));
    await assertLooks(anna, (name) => anna.screenshot(`${name}-account-sign-ons`));
    // It is her only way in.
    await part(anna, 'unlink').click();
    await part(anna, 'fault').filter({ hasText: 'Choose a password first' }).waitFor();
    await close(anna, 'account');
    for (const language of OTHER_LANGUAGES) {
      await part(anna, 'language').selectOption(language);
      await anna.page.locator(`html[lang="${language}"]`).waitFor();
      await openAccount(anna, 'sign_ons');
      await row.waitFor();
      assert.doesNotMatch(await anna.page.locator('body').innerText(), /\b[a-z_]+\.[a-z_]+\.[a-z_]+\b(?<!org)/, 'a key in place of its words');
      await anna.page.setViewportSize({ width: 360, height: 800 });
      await anna.screenshot(`narrow-${language}-account-sign-ons`);
      await assertFits(anna.page, `sign-ons, ${language}`);
      await anna.page.setViewportSize({ width: 1280, height: 800 });
      await close(anna, 'account');
    }
    await part(anna, 'language').selectOption('en');
  });

  it('signing out here signs out there', async () => {
    await openAccount(anna, 'profile');
    await part(anna, 'sign-out').click();
    await anna.page.getByRole('button', { name: 'Yes, sign me out' }).click();
    await part(anna, 'sign-in').waitFor();
    assert.equal(new URL(anna.page.url()).origin, new URL(provider.page).origin);
    await part(anna, 'signin-provider').click();
    // It asks who she is: it does not know her any more.
    await signInThere(anna.page, 'anna');
    await anna.ready();
    await anna.sessions.first().waitFor();
  });

  it('what was taken away there is taken away here, at the next sign-in', async () => {
    provider.groups.set('borys', ['family']);
    const again = await comeIn('borys');
    await openAccount(again, 'profile');
    assert.equal(await part(again, 'account-role').getAttribute('data-role'), 'user');
    // The browser that came in as an admin is none any more, either.
    await gone(borys, 'open-people');
    await again.page.context().close();
    provider.groups.set('borys', []);
    const refused = await elsewhere();
    await part(refused, 'signin-provider').click();
    await signInThere(refused.page, 'borys');
    await part(refused, 'fault').filter({ hasText: 'You are not let in here' }).waitFor();
    await assertLooks(refused, (name) => refused.screenshot(`${name}-sign-in-refused`));
    await refused.page.context().close();
    provider.groups.set('borys', ['family']);
  });

  it('who is signed out there is signed out here, with what is open', async () => {
    const beside = await borys.page.context().newPage();
    await beside.goto(`${provider.issuer}/session/end`);
    await beside.getByRole('button', { name: 'Yes, sign me out' }).click();
    await part(borys, 'sign-in').waitFor();
    await beside.close();
    // Another person's is not.
    await anna.send('Still here');
    await anna.sees('You said: Still here');
    await anna.idle();
  });

  it('who has a password links an account from elsewhere, and takes it away', async () => {
    await invite(provider.page, OLENA);
    const tab = await elsewhere();
    await part(tab, 'signin-name').fill(OLENA.name);
    await part(tab, 'signin-password').fill(OLENA.password);
    await part(tab, 'signin-submit').click();
    await tab.ready();
    await openAccount(tab, 'sign_ons');
    await part(tab, 'sign-ons-empty').waitFor();
    assert.equal(await part(tab, 'link').isDisabled(), true);
    await part(tab, 'link-password').fill(OLENA.password);
    await part(tab, 'link').click();
    await signInThere(tab.page, 'olena');
    // Looked for first: it goes by itself.
    await tab.page.getByText('The account is linked.').first().waitFor();
    await part(tab, 'sign-on').waitFor();
    assert.equal(new URL(tab.page.url()).href, provider.page);
    const other = await comeIn('olena');
    await openAccount(other, 'profile');
    assert.equal(await part(other, 'account-name').innerText(), OLENA.name);
    await part(tab, 'unlink').click();
    await part(tab, 'sign-ons-empty').waitFor();
    // What it let in is out.
    await part(other, 'sign-in').waitFor();
    await other.page.context().close();
    await tab.page.context().close();
  });

  it('a refusal from before one came in, and late, signs nobody out', async () => {
    const tab = await elsewhere();
    const late = [];
    // What the page asks while nobody is signed in: its socket is tried again and again.
    const isRefused = (request) => request.method() === 'GET' && request.headers()['x-navi-key'] === '';
    await tab.page.route(/\/(sessions|api\/status)$/, async (route) => {
      if (!isRefused(route.request())) return route.continue();
      const response = await route.fetch();
      assert.equal(response.status(), 401);
      late.push(() => route.fulfill({ response }));
    });
    const end = Date.now() + LIMIT_MS;
    while (late.length < 2) {
      assert.ok(Date.now() < end, 'the page does not ask');
      await tab.page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    }
    await part(tab, 'signin-name').fill(OLENA.name);
    await part(tab, 'signin-password').fill(OLENA.password);
    await part(tab, 'signin-submit').click();
    await tab.ready();
    for (const answer of late) await answer();
    await tab.send('I am here');
    await tab.sees('You said: I am here');
    await tab.idle();
    assert.equal(await part(tab, 'sign-in').count(), 0);
    await tab.page.context().close();
  });

  it('who is invited joins by the provider, and the invitation is used up', async () => {
    provider.groups.set('vira', ['family']);
    const link = await invitation(provider.page);
    const context = await newBrowser(browser);
    const tab = new Tab(await context.newPage());
    await tab.page.goto(link);
    const button = part(tab, 'invitation-provider');
    await button.waitFor();
    assert.equal(await button.innerText(), 'Join with House');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-invitation-provider`));
    await button.press('Enter');
    await signInThere(tab.page, 'vira');
    await tab.ready();
    assert.equal(new URL(tab.page.url()).href, provider.page);
    await openAccount(tab, 'profile');
    assert.equal(await part(tab, 'account-name').innerText(), 'vira');
    await close(tab, 'account');
    await tab.page.goto(link);
    await part(tab, 'invitation').getByText('no longer valid').waitFor();
    await context.close();
  });

  it('an answer that was begun in another browser signs nobody in', async () => {
    const tab = await elsewhere();
    await tab.page.goto(`${provider.page}api/sign-on/callback?code=stolen&state=${'a'.repeat(64)}`);
    await part(tab, 'fault').filter({ hasText: 'This sign-in did not work' }).waitFor();
    assert.equal(new URL(tab.page.url()).href, provider.page);
    await tab.page.context().close();
  });

  it('a provider that is down says so, and passwords work', async () => {
    await provider.stop();
    await navi.stop();
    await navi.start();
    const tab = await elsewhere();
    await part(tab, 'signin-provider').click();
    await part(tab, 'fault').filter({ hasText: 'The provider does not answer' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-sign-in-down`));
    await part(tab, 'signin-name').fill(OLENA.name);
    await part(tab, 'signin-password').fill(OLENA.password);
    await part(tab, 'signin-submit').click();
    await tab.ready();
    // Who came in by it before goes on.
    await anna.page.reload();
    await anna.ready();
    await tab.page.context().close();
    await provider.start();
    const back = await elsewhere();
    await part(back, 'signin-provider').click();
    await signInThere(back.page, 'anna');
    await back.ready();
    await back.page.context().close();
  });
});

describe('a proxy in front that says who somebody is', () => {
  let model;
  let navi;
  let proxy;
  let browser;
  let tab;

  before(async () => {
    model = await startModel();
    navi = await startNavi({
      ...backendSettings('ollama', model.address),
      NAVI_ACCOUNTS: 'on',
      NAVI_TRUSTED_PROXIES: '127.0.0.1',
      NAVI_PROXY_USER_HEADER: 'Remote-User',
      NAVI_SIGN_ON_JOIN: 'user',
    });
    proxy = await prefixed(new URL(navi.link).origin);
    browser = await startBrowser();
    const context = await newBrowser(browser);
    tab = new Tab(await context.newPage());
  });

  after(async () => {
    await browser?.close();
    proxy?.close();
    await navi?.remove();
    await model?.stop();
  });

  it('signs them in without a question', async () => {
    proxy.adds = { 'remote-user': 'anna' };
    await tab.page.goto(`${proxy.address}/`);
    await tab.ready();
    await tab.send('Anna’s alone');
    await tab.sees('You said: Anna’s alone');
    await tab.idle();
    await openAccount(tab, 'sign_ons');
    await part(tab, 'sign-on').filter({ hasText: 'The proxy in front of Navi' }).waitFor();
    await close(tab, 'account');
  });

  it('another person in the same browser finds nothing of the first', async () => {
    await tab.composer.fill('A draft');
    proxy.adds = { 'remote-user': 'borys' };
    await tab.page.reload();
    await tab.ready();
    await tab.page.getByText('Your conversations will be listed here').waitFor();
    assert.equal(await tab.composer.inputValue(), '');
    await openAccount(tab, 'profile');
    await part(tab, 'account-name').filter({ hasText: 'borys' }).waitFor();
  });

  it('who signs out is asked before they are signed in again', async () => {
    await part(tab, 'sign-out').click();
    await part(tab, 'signin-proxy').filter({ hasText: 'Continue as borys' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-sign-in-proxy`));
    await part(tab, 'signin-proxy').click();
    await tab.ready();
  });
});
