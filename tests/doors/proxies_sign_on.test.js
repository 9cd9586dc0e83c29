// Sign-on behind the proxies that people have: by a real provider, with TLS, under a public name and a prefix that the proxy
// takes off or leaves on; and by the word of the proxy itself. The provider is another site than Navi, as it is for people.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { newContext, startBrowser, Tab } from '../browser/harness/browser.js';
import { startModel } from '../browser/harness/model.js';
import { backendSettings, freePort, startNavi } from '../browser/harness/navi.js';
import { IS_LONG } from '../browser/harness/program.js';
import { providerSettings, signInThere, startProvider } from '../browser/harness/provider.js';
import { certificate, NAME, outsider, switches } from './outside.js';
import { isThere, PROXIES, startProxy, USER_HEADER } from './proxy_servers.js';

const MB = 1024 * 1024;
const PEOPLE = { anna: 'a window by the river', borys: 'seven quiet lanterns' };
/** Another address of this machine. */
const ELSEWHERE = '127.0.0.2';

const part = (tab, id) => tab.page.getByTestId(id);

/** Navi behind a proxy, and a browser outside. `sign_on` gives the settings for it, as soon as it is known where Navi is. */
function outside(proxy, { sign_on, ...how }) {
  const world = {};
  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'navi-sign-on-'));
    const cert = certificate(folder);
    const [port, upstream] = [await freePort(), await freePort()];
    Object.assign(world, { folder, upstream, address: `https://${NAME}:${port}/navi/`, ask: outsider(cert.pem), model: await startModel() });
    world.navi = await startNavi({
      ...backendSettings('ollama', world.model.address), NAVI_ACCOUNTS: 'on', NAVI_PUBLIC_URL: world.address, NAVI_TRUSTED_PROXIES: '127.0.0.1',
      NAVI_SIGN_ON_JOIN: 'user', ...await sign_on(world),
    }, { port: upstream });
    world.proxy = await startProxy(proxy, { port, upstream, cert, folder: join(folder, 'proxy'), ...how });
    world.browser = await startBrowser(switches(cert));
  });
  after(async () => {
    await world.browser?.close();
    await world.proxy?.kill();
    await world.navi?.remove();
    await world.provider?.stop();
    await world.model?.stop();
    await rm(world.folder, { recursive: true, force: true });
  });
  world.elsewhere = async (options = {}) => {
    const context = await newContext(world.browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block', ...options });
    await context.addInitScript((page) => {
      if (!location.href.startsWith(page)) return;
      localStorage.setItem('navi.first_steps', 'done');
      new MutationObserver(() => {
        if (localStorage.getItem('navi.key') === null && document.querySelector('navi-composer') !== null) document.documentElement.dataset.early = '';
      }).observe(document, { childList: true, subtree: true });
    }, world.address);
    const tab = new Tab(await context.newPage());
    await tab.page.goto(world.address);
    return tab;
  };
  return world;
}

/** What is said is shown as it comes, over the page's socket. */
async function streams({ model }, tab, words) {
  await model.script([{ text: `${words}: the first half, ` }, { hold: words }, { text: 'and the second.' }]);
  await tab.send('Tell me in two halves.');
  await tab.sees(`${words}: the first half,`);
  await model.release(words);
  await tab.sees('and the second.');
  await tab.idle();
}

for (const [kind, proxy] of Object.entries(PROXIES)) {
  const skip = isThere(proxy) ? false : `${proxy.program} is not installed: run ./check --only doors`;

  // Each way once, and each proxy.
  for (const keeps_prefix of IS_LONG ? [false, true] : [kind === 'caddy']) {
    describe(`by a provider behind ${kind}, which ${keeps_prefix ? 'leaves the prefix on' : 'takes the prefix off'}`, { skip }, () => {
      const it_has = outside(proxy, {
        keeps_prefix,
        async sign_on(world) {
          world.provider = await startProvider({ port: await freePort(), page: world.address, reach: world.ask });
          return providerSettings(world.provider);
        },
      });
      let anna;

      it('a person goes there and comes back signed in, by a cookie of this name alone, and nothing stays in the address', async () => {
        anna = await it_has.elsewhere();
        await part(anna, 'signin-provider').click();
        await anna.page.waitForURL(`${it_has.provider.issuer}/**`);
        await signInThere(anna.page, 'anna');
        await anna.ready();
        assert.equal(anna.page.url(), it_has.address);
        const cookies = await anna.page.context().cookies(it_has.address);
        const login = cookies.filter(({ name }) => name === `__Host-navi_${it_has.upstream}`);
        assert.deepEqual(login.map(({ domain, path, secure, httpOnly, sameSite }) => ({ domain, path, secure, httpOnly, sameSite })), [
          { domain: NAME, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' },
        ], JSON.stringify(cookies));
        for (const { name, secure } of cookies) assert.ok(secure && name.startsWith('__Host-'), name);
        await streams(it_has, anna, 'come');
      });

      it('sends a file, and finds back after the proxy was gone', async () => {
        const bytes = Buffer.alloc(5 * MB, 'what anna sends\n');
        await part(anna, 'file-input').setInputFiles({ name: 'large.bin', mimeType: 'application/octet-stream', buffer: bytes });
        await anna.page.locator('[data-testid="upload"][data-state="done"]').waitFor();
        const { model, proxy: running } = it_has;
        await model.script([{ text: 'Before, ' }, { hold: 'gone' }, { text: 'and after.' }]);
        await anna.send('What if the proxy goes?');
        await anna.sees('Before,');
        await running.kill();
        await anna.page.getByText(/reconnecting/i).first().waitFor();
        await model.release('gone');
        await running.start();
        await anna.sees('and after.');
        await anna.idle();
        await anna.page.reload();
        await anna.sees('and after.');
      });

      it('an answer of the provider that was begun elsewhere signs nobody in', async () => {
        const other = await it_has.elsewhere();
        await part(other, 'sign-in').waitFor();
        await other.page.goto(`${it_has.address}api/sign-on/callback?code=stolen&state=${'a'.repeat(64)}`);
        await part(other, 'fault').filter({ hasText: 'This sign-in did not work' }).waitFor();
        assert.equal(other.page.url(), it_has.address);
        await other.page.context().close();
      });

      it('who signs out here is signed out there, and comes back to this address', async () => {
        await part(anna, 'open-account').click();
        await part(anna, 'tab-profile').click();
        await part(anna, 'sign-out').click();
        await anna.page.waitForURL(`${it_has.provider.issuer}/**`);
        await anna.page.getByRole('button', { name: 'Yes, sign me out' }).click();
        await part(anna, 'sign-in').waitFor();
        assert.equal(new URL(anna.page.url()).origin + new URL(anna.page.url()).pathname, it_has.address);
        await part(anna, 'signin-provider').click();
        await signInThere(anna.page, 'anna');
        await anna.ready();
        await anna.sessions.first().waitFor();
      });

      it('who is signed out there is signed out here: the provider says so through the proxy', async () => {
        const beside = await anna.page.context().newPage();
        await beside.goto(`${it_has.provider.issuer}/session/end`);
        await beside.getByRole('button', { name: 'Yes, sign me out' }).click();
        await part(anna, 'sign-in').waitFor();
      });
    });
  }

  describe(`by the word of ${kind}`, { skip }, () => {
    const it_has = outside(proxy, { people: PEOPLE, sign_on: () => ({ NAVI_PROXY_USER_HEADER: USER_HEADER }) });
    const basic = (name) => ({ authorization: `Basic ${Buffer.from(`${name}:${PEOPLE[name]}`).toString('base64')}` });
    const named = async (headers) => (await (await it_has.ask(`${it_has.address}api/sign-in`, { headers })).json()).proxy;

    it('people are let in as who they are there, each to what is theirs', async () => {
      for (const [username, password] of Object.entries(PEOPLE)) {
        const tab = await it_has.elsewhere({ httpCredentials: { username, password } });
        await tab.ready();
        assert.equal(await tab.sessions.count(), 0);
        assert.equal(await tab.page.locator('[data-early]').count(), 0, 'the page of nobody was shown');
        await streams(it_has, tab, username);
        await part(tab, 'open-account').click();
        await part(tab, 'account-name').filter({ hasText: username }).waitFor();
        await tab.page.context().close();
      }
    });

    it('whoever claims to be somebody else is who the proxy knows, and nobody without it', async () => {
      for (const header of [USER_HEADER, USER_HEADER.toLowerCase(), USER_HEADER.replace('-', '_')]) {
        assert.equal(await named({ ...basic('anna'), [header]: 'borys' }), 'anna', header);
        const refused = await it_has.ask(`${it_has.address}api/sign-in`, { headers: { [header]: 'borys' } });
        assert.equal(refused.status, 401);
        assert.doesNotMatch(await refused.text(), /borys/);
      }
    });

    it('and the header means nothing from who is no proxy', async () => {
      const direct = (localAddress) => new Promise((resolve, reject) => {
        const headers = { [USER_HEADER]: 'borys' };
        request({ host: '127.0.0.1', port: it_has.upstream, path: '/api/sign-in', headers, localAddress, agent: false }, async (answer) => resolve(JSON.parse(Buffer.concat(await answer.toArray())))).on('error', reject).end();
      });
      assert.equal((await direct(ELSEWHERE)).proxy, undefined);
      assert.equal((await direct('127.0.0.1')).proxy, 'borys', 'as the settings say');
    });
  });
}
