// Passkeys, with Chromium's own virtual authenticator: made in one browser, signed in by there and nowhere else.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { authenticator } from './harness/authenticator.js';
import { newContext, Tab } from './harness/browser.js';
import { assertFits, assertLooks, OTHER_LANGUAGES } from './harness/looks.js';
import { world } from './harness/world.js';

const OLENA = { name: 'Olena', password: 'a window by the river' };

const part = (tab, id) => tab.page.getByTestId(id);
const gone = (tab, id) => part(tab, id).first().waitFor({ state: 'detached' });
/** Waits until it says so, where it was done. */
const told = (tab, text) => part(tab, 'fault').filter({ hasText: text }).waitFor();

/** One's own account, at one of its tabs. */
async function open(tab, name) {
  if (await part(tab, 'account').count() === 0) await part(tab, 'open-account').click();
  await part(tab, `tab-${name}`).click();
}

async function signOut(tab) {
  await open(tab, 'profile');
  await part(tab, 'sign-out').click();
  await part(tab, 'sign-in').waitFor();
}

async function signIn(tab) {
  await part(tab, 'signin-name').fill(OLENA.name);
  await part(tab, 'signin-password').fill(OLENA.password);
  await part(tab, 'signin-submit').click();
  await tab.ready();
}

describe('passkeys', () => {
  const it_has = world({ settings: { NAVI_ACCOUNTS: 'on' }, options: { expected: /status of 40[139]/ } });
  /** Hers, at the name of the machine: at its address of numbers there are none. */
  let tab;
  let hers;

  const local = () => new URL('/', it_has.navi.link).href.replace('127.0.0.1', 'localhost');
  const row = (name) => tab.page.locator(`[data-testid="passkey"][data-name="${name}"]`);
  /** The next change of one is refused, in words of the service alone. */
  const refuseNext = () => tab.page.route('**/api/account/passkeys/*',
    (route) => route.fulfill({ status: 409, json: { code: 'rate_limited', message: 'not now' } }), { times: 1 });

  async function elsewhere() {
    const context = await newContext(it_has.browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
    const other = new Tab(await context.newPage());
    await other.page.goto(local());
    await part(other, 'sign-in').waitFor();
    return other;
  }

  it('are not at an address of numbers, which says where they are', async () => {
    const first = it_has.tab;
    await part(first, 'choose-password').click();
    await part(first, 'account-new-name').fill(OLENA.name);
    await part(first, 'account-password').fill(OLENA.password);
    await part(first, 'account-save').click();
    await first.page.locator('[data-testid="banner"][data-kind="password"]').waitFor({ state: 'detached' });
    await open(first, 'passkeys');
    const place = first.page.locator('[data-testid="passkeys-place"][data-place="elsewhere"]');
    await place.waitFor();
    assert.equal(await place.getByRole('link').getAttribute('href'), local());
    assert.equal(await part(first, 'passkey-make').count(), 0);
    await assertLooks(first, (name) => first.screenshot(`${name}-passkeys-elsewhere`));
    await signOut(first);
    await place.waitFor();
    assert.equal(await part(first, 'signin-passkey').count(), 0);
    await place.getByRole('link').click();
    await first.page.waitForURL(local());
    await part(first, 'signin-passkey').waitFor();
    tab = first;
    await signIn(tab);
    hers = await authenticator(tab);
  });

  it('are made by who knows the password, in words where they are not', async () => {
    await open(tab, 'passkeys');
    await part(tab, 'passkeys-empty').waitFor();
    assert.notEqual(await part(tab, 'passkey-name').inputValue(), '', 'a name is suggested');
    await part(tab, 'passkey-name').fill('Laptop');
    await part(tab, 'passkey-password').fill('not her password');
    await part(tab, 'passkey-make').click();
    await told(tab, 'current password is wrong');
    // Whoever is not recognised by the authenticator, or turns it away.
    await hers.verifies(false);
    await part(tab, 'passkey-password').fill(OLENA.password);
    await part(tab, 'passkey-make').click();
    await told(tab, 'cancelled');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-passkeys-cancelled`));
    await hers.verifies(true);
    await tab.page.keyboard.press('Enter');
    await row('Laptop').waitFor();
    assert.match(await row('Laptop').innerText(), /since [^]*never used/);
    const [credential] = await hers.credentials();
    assert.equal(credential.isResidentCredential, true);
    assert.equal(credential.rpId, 'localhost');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-passkeys`));
  });

  it('one device has one of each person', async () => {
    await part(tab, 'passkey-name').fill('Laptop again');
    await part(tab, 'passkey-password').fill(OLENA.password);
    await part(tab, 'passkey-make').click();
    await told(tab, 'already');
    assert.equal(await part(tab, 'passkey').count(), 1);
  });

  it('sign in without a name, by the keyboard alone', async () => {
    await signOut(tab);
    await assertLooks(tab, (name) => tab.screenshot(`${name}-passkeys-sign-in`));
    await hers.verifies(false);
    await part(tab, 'signin-passkey').focus();
    await tab.page.keyboard.press('Enter');
    await told(tab, 'cancelled');
    await tab.screenshot('passkeys-sign-in-cancelled');
    await hers.verifies(true);
    assert.equal(await part(tab, 'signin-passkey').evaluate((button) => button === document.activeElement), true);
    await tab.page.keyboard.press('Enter');
    await tab.ready();
    await open(tab, 'passkeys');
    await row('Laptop').filter({ hasText: 'last used' }).waitFor();
    assert.equal(await part(tab, 'account-name').innerText(), OLENA.name);
  });

  it('are named anew', async () => {
    await row('Laptop').getByTestId('passkey-rename').click();
    await tab.page.keyboard.press('ControlOrMeta+a');
    await tab.page.keyboard.type('Old laptop');
    await tab.screenshot('passkeys-rename');
    await tab.page.keyboard.press('Escape');
    await gone(tab, 'account');
    await open(tab, 'passkeys');
    assert.equal(await part(tab, 'passkey-new-name').inputValue(), 'Old laptop', 'a look elsewhere took it');
    await refuseNext();
    await part(tab, 'passkey-new-name').press('Enter');
    await told(tab, 'Not now');
    await part(tab, 'passkey-new-name').press('Enter');
    await row('Old laptop').waitFor();
    await gone(tab, 'passkey-new-name');
    assert.equal(await part(tab, 'passkey').count(), 1);
  });

  it('a browser without it is not let in', async () => {
    const other = await elsewhere();
    await authenticator(other);
    await part(other, 'signin-passkey').click();
    // It finds none there.
    await told(other, 'cancelled');
    await part(other, 'sign-in').waitFor();
    await other.page.context().close();
  });

  it('a browser that knows none says so', async () => {
    const context = await newContext(it_has.browser, { serviceWorkers: 'block' });
    await context.addInitScript(() => { delete window.PublicKeyCredential; });
    const other = new Tab(await context.newPage());
    await other.page.goto(local());
    await other.page.locator('[data-testid="passkeys-place"][data-place="unsupported"]').waitFor();
    assert.equal(await part(other, 'signin-passkey').count(), 0);
    await context.close();
  });

  it('have words in three languages, wide and narrow', async () => {
    for (const language of OTHER_LANGUAGES) {
      await tab.page.keyboard.press('Escape');
      await gone(tab, 'account');
      await part(tab, 'language').selectOption(language);
      await tab.page.locator(`html[lang="${language}"]`).waitFor();
      await open(tab, 'passkeys');
      await part(tab, 'passkey').waitFor();
      for (const [size, width] of [['wide', 1280], ['narrow', 360]]) {
        await tab.page.setViewportSize({ width, height: 800 });
        await tab.screenshot(`${size}-${language}-passkeys`);
        await assertFits(tab.page, `passkeys, ${language}, ${size}`);
      }
      await tab.page.setViewportSize({ width: 1280, height: 800 });
      await refuseNext();
      await row('Old laptop').getByTestId('passkey-rename').click();
      await part(tab, 'passkey-new-name').press('Enter');
      await told(tab, /(Спробуйте пізніше|Попробуйте позже)\. Not now\./);
    }
    await tab.page.keyboard.press('Escape');
    await gone(tab, 'account');
    await part(tab, 'language').selectOption('en');
    await tab.page.locator('html[lang="en"]').waitFor();
  });

  it('are in the list of people and in the record', async () => {
    await part(tab, 'open-people').click();
    await part(tab, 'tab-people').click();
    await tab.page.locator('[data-testid="person"]').filter({ hasText: '1 passkey' }).waitFor();
    await part(tab, 'tab-record').click();
    await tab.page.getByText('Made a passkey').first().waitFor();
    await tab.page.getByText('passkey: Laptop').first().waitFor();
    await tab.page.keyboard.press('Escape');
    await gone(tab, 'people');
  });

  it('what is removed opens nothing', async () => {
    await open(tab, 'passkeys');
    await row('Old laptop').getByTestId('passkey-remove').click();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-passkeys-remove`));
    await row('Old laptop').getByTestId('passkey-remove-yes').click();
    await part(tab, 'passkeys-empty').waitFor();
    await signOut(tab);
    assert.equal((await hers.credentials()).length, 1, 'the device has it still');
    await part(tab, 'signin-passkey').click();
    await told(tab, 'opens nothing here');
    await tab.screenshot('passkeys-sign-in-refused');
    await signIn(tab);
  });
});
