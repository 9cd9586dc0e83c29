// People who sign in: how the first chooses a password, how others come, what each sees, and what an admin does.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

import { newContext, Tab } from './harness/browser.js';
import { assertFits, assertLooks, OTHER_LANGUAGES } from './harness/looks.js';
import { world } from './harness/world.js';

const OLENA = { name: 'Olena', password: 'a window by the river' };
const BOHDAN = { name: 'Bohdan', password: 'seven quiet lanterns' };

const part = (tab, id) => tab.page.getByTestId(id);
const gone = (tab, id) => part(tab, id).first().waitFor({ state: 'detached' });
/** Waits until it says so, where it was done. */
const told = (tab, text) => part(tab, 'fault').filter({ hasText: text }).waitFor();

/** A panel of it, at one of its tabs. */
async function open(tab, panel, name) {
  if (await part(tab, panel).count() === 0) await part(tab, `open-${panel}`).click();
  await part(tab, `tab-${name}`).click();
}

async function close(tab, panel) {
  await tab.page.keyboard.press('Escape');
  await gone(tab, panel);
}

async function signIn(tab, { name, password }) {
  await part(tab, 'signin-name').fill(name);
  await part(tab, 'signin-password').fill(password);
  await part(tab, 'signin-submit').click();
}

async function signOut(tab) {
  await open(tab, 'account', 'profile');
  await part(tab, 'sign-out').click();
  await part(tab, 'sign-in').waitFor();
}

describe('people who sign in', () => {
  const it_has = world({ settings: { NAVI_ACCOUNTS: 'on' }, options: { expected: /status of 40[139]/ } });
  let codes;
  /** Bohdan's tab, in a browser of his own. */
  let his;
  let reset_link;

  const address = () => new URL('/', it_has.navi.link).href;

  async function elsewhere(url) {
    const context = await newContext(it_has.browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
    const tab = new Tab(await context.newPage());
    await tab.page.goto(url);
    return tab;
  }

  const person = (name) => it_has.tab.page.locator(`[data-testid="person"][data-name="${name}"]`);

  it('the first comes by the link, and chooses a name and a password', async () => {
    const { tab } = it_has;
    await tab.send('What nobody else reads');
    await tab.sees('You said: What nobody else reads');
    await tab.idle();
    const notice = tab.page.locator('[data-testid="banner"][data-kind="password"]');
    await notice.waitFor();
    await part(tab, 'choose-password').click();
    await part(tab, 'account-new-name').fill(OLENA.name);
    await part(tab, 'account-password').fill('short');
    await part(tab, 'account-save').click();
    await told(tab, '10 to 200');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-account-first`));
    await part(tab, 'account-password').fill(OLENA.password);
    await tab.page.keyboard.press('Enter');
    await notice.waitFor({ state: 'detached' });
    assert.equal(await part(tab, 'account-name').innerText(), OLENA.name);
    assert.equal(await part(tab, 'account-role').getAttribute('data-role'), 'admin');
  });

  it('makes recovery codes, which are told once', async () => {
    const { tab } = it_has;
    // A page that was left open makes none.
    assert.equal(await part(tab, 'codes-make').isDisabled(), true);
    await part(tab, 'account-current').fill('not my password');
    await part(tab, 'codes-make').click();
    await part(tab, 'fault').filter({ hasText: 'current password is wrong' }).waitFor();
    await part(tab, 'account-current').fill(OLENA.password);
    await part(tab, 'codes-make').click();
    const text = await part(tab, 'codes').locator('pre').innerText();
    codes = text.trim().split('\n');
    assert.equal(codes.length, 8);
    await part(tab, 'codes-left').filter({ hasText: '8 codes' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-account-codes`));
    await part(tab, 'tab-devices').click();
    await part(tab, 'tab-profile').click();
    await part(tab, 'codes-left').filter({ hasText: '8 codes' }).waitFor();
    assert.equal(await part(tab, 'codes').count(), 0);
  });

  it('is told of a wrong current password', async () => {
    const { tab } = it_has;
    await part(tab, 'account-password').fill('another one, and long');
    await part(tab, 'account-current').fill('not this one');
    await part(tab, 'account-save').click();
    await told(tab, 'current password is wrong');
  });

  it('makes a token and removes it', async () => {
    const { tab } = it_has;
    await part(tab, 'tab-tokens').click();
    await part(tab, 'tokens-empty').waitFor();
    await part(tab, 'token-name').fill('backup');
    await part(tab, 'token-days').fill('30');
    assert.deepEqual(await part(tab, 'token-scope').evaluateAll((boxes) => boxes.filter(({ checked }) => !checked).map(({ value }) => value)), ['consent']);
    await tab.page.locator('[data-testid="token-scope"][value="admin"]').uncheck();
    await part(tab, 'token-make').click();
    const token = (await part(tab, 'token-made').locator('pre').innerText()).trim();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-account-tokens`));
    const row = tab.page.locator('[data-testid="token"][data-name="backup"]');
    assert.match(await row.innerText(), /read\s*run\s*files\s*memory[^]*valid until/);
    const sessions = (bearer) => fetch(`${address()}sessions`, { headers: { authorization: `Bearer ${bearer}` } });
    assert.equal((await sessions(token)).status, 200);
    await row.getByTestId('token-remove').click();
    await row.getByTestId('token-remove-yes').click();
    await part(tab, 'tokens-empty').waitFor();
    assert.equal((await sessions(token)).status, 401);
  });

  it('gives the password again for a token with all scopes', async () => {
    const { tab } = it_has;
    await part(tab, 'token-name').fill('all');
    assert.equal(await part(tab, 'token-password').count(), 0);
    await tab.page.locator('[data-testid="token-scope"][value="consent"]').check();
    await part(tab, 'token-password').fill('not my password');
    await part(tab, 'token-make').click();
    await told(tab, 'current password is wrong');
    await part(tab, 'token-password').fill(OLENA.password);
    const phrase = { code: 'tokens_full', params: { n: '200' } };
    await tab.page.route('**/api/tokens',
      (route) => route.fulfill({ status: 403, json: { code: 'forbidden', message: 'no more', phrase } }), { times: 1 });
    await part(tab, 'token-make').click();
    await told(tab, '200 tokens are all that one may have');
    await part(tab, 'token-make').click();
    const row = tab.page.locator('[data-testid="token"][data-name="all"]');
    await row.getByTestId('token-remove').click();
    await row.getByTestId('token-remove-yes').click();
    await part(tab, 'tokens-empty').waitFor();
  });

  it('sees where they are signed in', async () => {
    const { tab } = it_has;
    await part(tab, 'tab-devices').click();
    await tab.page.locator('[data-testid="device"][data-current="true"]').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-account-devices`));
    await close(tab, 'account');
  });

  it('invites somebody by a link, which is out of the address as soon as it is opened', async () => {
    const { tab } = it_has;
    await open(tab, 'people', 'invitations');
    await part(tab, 'invitations-empty').waitFor();
    await part(tab, 'invite-make').click();
    const link = (await part(tab, 'invite-link').locator('pre').innerText()).trim();
    assert.ok(link.startsWith(`${address()}#invitation=`), link);
    await tab.page.locator('[data-testid="invitation-row"][data-role="user"]').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-invitations`));

    his = await elsewhere(address());
    await part(his, 'sign-in').waitFor();
    await his.page.route('**/api/invitation', (route) => route.abort(), { times: 1 });
    await his.page.goto(link);
    await told(his, 'Check that it is running');
    await part(his, 'invitation-again').click();
    await part(his, 'invitation-name').waitFor();
    assert.equal(his.page.url(), address());
    await assertLooks(his, (name) => his.screenshot(`${name}-invitation`));
    await part(his, 'invitation-name').fill('olena');
    await part(his, 'invitation-password').fill(BOHDAN.password);
    await part(his, 'invitation-accept').click();
    await told(his, 'This name is taken');
    await part(his, 'invitation-name').fill(BOHDAN.name);
    await part(his, 'invitation-accept').click();
    await his.ready();
    await close(tab, 'people');
  });

  it('who is invited has conversations of their own, and nothing to set up', async () => {
    await part(his, 'first-skip').click();
    assert.equal(await his.sessions.count(), 0);
    await his.send('Hello from Bohdan');
    await his.sees('You said: Hello from Bohdan');
    await his.idle();
    await his.sessions.first().waitFor();
    assert.equal(await his.sessions.count(), 1);
    assert.equal(await part(his, 'open-people').count(), 0);
    await part(his, 'open-setup').click();
    await part(his, 'tab-models').waitFor();
    assert.equal(await part(his, 'tab-settings').count() + await part(his, 'tab-diagnostics').count() + await part(his, 'pull').count(), 0);
    await close(his, 'setup');
    assert.equal(await it_has.tab.sessions.count(), 1);
    // The other's conversation is not there for him.
    const hers = new URL(it_has.tab.page.url()).hash;
    await his.page.goto(`${address()}${hers}`);
    await his.errorCard.waitFor();
    assert.doesNotMatch(await his.page.locator('body').innerText(), /What nobody else reads/);
    await his.newSession.click();
  });

  it('signing out takes along what was not sent, and a wrong password is told', async () => {
    await his.composer.fill('A draft');
    await open(his, 'account', 'profile');
    await part(his, 'sign-out').click();
    await part(his, 'sign-out-yes').click();
    await part(his, 'sign-in').waitFor();
    await assertLooks(his, (name) => his.screenshot(`${name}-sign-in`));
    await signIn(his, { ...BOHDAN, password: 'not his password' });
    await told(his, 'name or the password is wrong');
    await his.screenshot('sign-in-wrong');
    assert.equal(await part(his, 'signin-name').inputValue(), BOHDAN.name);
    assert.equal(await part(his, 'signin-password').inputValue(), '');
    await his.page.keyboard.type(BOHDAN.password);
    await his.page.keyboard.press('Enter');
    await his.ready();
    await his.sessions.first().waitFor();
    assert.equal(await his.composer.inputValue(), '');
  });

  it('a recovery code signs in, once, and another password is chosen', async () => {
    const { tab } = it_has;
    await signOut(tab);
    for (const [name, works] of [['first', true], ['again', false]]) {
      await part(tab, 'signin-other').click();
      await tab.page.locator('[data-testid="sign-in"][data-by="code"]').waitFor();
      await part(tab, 'signin-name').fill(OLENA.name);
      await part(tab, 'signin-code').fill(codes[0]);
      await tab.screenshot(`sign-in-code-${name}`);
      await part(tab, 'signin-submit').click();
      if (works) {
        await tab.ready();
        await tab.sessions.first().waitFor();
        const notice = tab.page.locator('[data-testid="banner"][data-kind="password"]');
        await notice.waitFor();
        await part(tab, 'choose-password').click();
        await part(tab, 'account-new-name').fill(OLENA.name);
        await part(tab, 'account-password').fill(OLENA.password);
        await tab.page.keyboard.press('Enter');
        await notice.waitFor({ state: 'detached' });
        await signOut(tab);
      } else await told(tab, 'recovery code is wrong');
    }
    await part(tab, 'signin-other').click();
    await signIn(tab, OLENA);
    await tab.ready();
  });

  it('whom an admin makes a guest looks and changes nothing, at once', async () => {
    const { tab } = it_has;
    await his.sessions.first().click();
    await his.sees('You said: Hello from Bohdan');
    const note = { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['buy bread'] } } };
    await it_has.model.script([note], [{ text: 'Noted.' }]);
    await his.send('Note it down');
    await his.sees('Noted.');
    await his.idle();
    await his.todo.getByRole('button').first().click();
    await part(his, 'step-add').waitFor();
    await part(his, 'step-more').waitFor();
    await open(tab, 'people', 'people');
    await person(BOHDAN.name).getByTestId('person-role').selectOption('guest');
    await part(his, 'guest').waitFor();
    await part(his, 'todo-item').waitFor();
    for (const id of ['step-add', 'step-more']) await gone(his, id);
    await part(his, 'open-files').click();
    await part(his, 'files').waitFor();
    assert.equal(await part(his, 'files-add').count(), 0);
    await close(his, 'files');
    for (const id of ['new-session', 'open-share']) await gone(his, id);
    await part(his, 'mode-button').click();
    await part(his, 'mode-others').filter({ hasText: 'You are a guest here' }).waitFor();
    await close(his, 'mode-others');
    await part(his, 'open-memory').click();
    await part(his, 'memory-export').waitFor();
    assert.equal(await part(his, 'memory-add').count() + await part(his, 'memory-forget-all').count(), 0);
    await close(his, 'memory');
    await part(his, 'open-palette').click();
    await part(his, 'palette-option').filter({ hasText: 'Export all' }).first().waitFor();
    const offered = await part(his, 'palette-option').evaluateAll((all) => all.map(({ dataset }) => dataset.choice));
    for (const id of ['new', 'share', 'pin', 'tags', 'archive', 'import']) assert.ok(!offered.includes(id), `a guest is offered “${id}”`);
    await close(his, 'palette');
    await his.page.keyboard.press('ControlOrMeta+Shift+o');
    assert.match(await his.page.evaluate(() => location.hash), /^#\/s\//, 'a key begins another conversation');
    assert.ok(await his.composer.isDisabled());
    await his.sees('Noted.');
    await assertLooks(his, (name) => his.screenshot(`${name}-guest`));
    await person(BOHDAN.name).getByTestId('person-role').selectOption('user');
    await gone(his, 'guest');
    assert.ok(await his.composer.isEnabled());
  });

  it('the last admin stays one', async () => {
    const { tab } = it_has;
    await person(OLENA.name).getByTestId('person-role').selectOption('user');
    await told(tab, 'There is no other admin');
    await tab.page.locator(`[data-testid="person"][data-name="${OLENA.name}"][data-role="admin"]`).waitFor();
    assert.equal(await person(OLENA.name).getByTestId('person-role').inputValue(), 'admin');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-refused`));
  });

  it('an admin says who may use what is powerful', async () => {
    const { tab } = it_has;
    await part(tab, 'tab-powers').click();
    const holder = (name) => tab.page.locator(`[data-testid="powers"][data-name="${name}"]`);
    const power = (name, value) => holder(name).locator(`[data-testid="power"][value="${value}"]`);
    const told = (name, text) => holder(name).getByTestId('powers-told').filter({ hasText: text }).waitFor();
    await tab.page.locator(`[data-testid="powers-fixed"][data-name="${OLENA.name}"]`).waitFor();
    await told(BOHDAN.name, 'none of it');
    await holder(BOHDAN.name).locator('summary').click();
    await power(BOHDAN.name, 'terminal').check();
    await told(BOHDAN.name, 'Commands');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-powers`));
    // What all have, he has too, and it is not taken from him alone.
    await holder('All users').locator('summary').click();
    await power('All users', 'web_search').check();
    await power(BOHDAN.name, 'web_search').and(tab.page.locator(':checked:disabled')).waitFor();
    await power(BOHDAN.name, 'terminal').uncheck();
    await told(BOHDAN.name, 'none of it');
    await part(tab, 'tab-people').click();
  });

  it('an admin sets limits for one person alone, who sees them', async () => {
    const { tab } = it_has;
    const his_limits = person(BOHDAN.name).getByTestId('limits');
    const limit = (name) => his_limits.getByTestId(`limit-${name}`);
    await his_limits.getByTestId('limits-told').filter({ hasText: 'Conversations: 1 of 10,000' }).waitFor();
    assert.equal(await his_limits.getByTestId('limits-own').count(), 0);
    await his_limits.locator('summary').press('Enter');
    assert.equal(await limit('runs').getAttribute('placeholder'), '16');
    await limit('sessions').fill('0');
    await limit('sessions').press('Enter');
    await his_limits.getByTestId('fault').filter({ hasText: 'Conversations: from 1 to 10,000,000' }).waitFor();
    await limit('sessions').fill('1');
    await limit('tokens_a_day').fill('2000000');
    await limit('sessions').press('Enter');
    await his_limits.getByTestId('limits-own').waitFor();
    await his_limits.getByTestId('limits-told').filter({ hasText: 'Conversations: 1 of 1 ' }).waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-limits`));
    // It holds at once.
    await his.newSession.click();
    await his.composer.fill('One too many');
    await his.page.keyboard.press('Enter');
    await his.errorCard.waitFor();
    assert.equal(await his.sessions.count(), 1);
    await open(his, 'account', 'profile');
    const mine = (name) => his.page.locator(`[data-testid="account-limit"][data-name="${name}"]`);
    await mine('sessions').filter({ hasText: '1 of 1' }).waitFor();
    await mine('tokens_a_day').filter({ hasText: 'of 2M' }).waitFor();
    await assertLooks(his, (name) => his.screenshot(`${name}-account-limits`));
    await close(his, 'account');
    await limit('sessions').fill('');
    await limit('tokens_a_day').fill('');
    await limit('tokens_a_day').press('Enter');
    await his_limits.getByTestId('limits-own').waitFor({ state: 'detached' });
    await his_limits.getByTestId('limits-told').filter({ hasText: 'Conversations: 1 of 10,000' }).waitFor();
    await his_limits.locator('summary').click();
    await his.composer.fill('');
    await his.sessions.first().click();
    await his.sees('Noted.');
  });

  it('an admin gives a link for another password', async () => {
    const { tab } = it_has;
    await person(BOHDAN.name).getByTestId('person-reset').click();
    await part(tab, 'person-password').fill(OLENA.password);
    await part(tab, 'person-proof-yes').click();
    reset_link = (await part(tab, 'person-link').locator('pre').innerText()).trim();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-link`));
    await signOut(his);
    await his.page.goto(reset_link);
    await part(his, 'invitation').waitFor();
    assert.equal(await part(his, 'invitation-name').inputValue(), BOHDAN.name);
    assert.notEqual(await part(his, 'invitation-name').getAttribute('readonly'), null);
    await assertLooks(his, (name) => his.screenshot(`${name}-invitation-reset`));
    await part(his, 'invitation-password').fill('eight loud lanterns');
    await part(his, 'invitation-accept').click();
    await his.ready();
    await his.sessions.first().waitFor();
  });

  it('a link that was used says so', async () => {
    await his.page.goto(reset_link);
    await part(his, 'invitation').getByText('no longer valid').waitFor();
    await assertLooks(his, (name) => his.screenshot(`${name}-invitation-used`));
    await part(his, 'invitation-leave').click();
    await his.ready();
  });

  it('gives the password again for a link for another password, and to make an admin', async () => {
    const { tab } = it_has;
    await person(OLENA.name).getByTestId('person-reset').click();
    await part(tab, 'person-password').fill('not my password');
    await part(tab, 'person-proof-yes').click();
    await told(tab, 'current password is wrong');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-proof`));
    await part(tab, 'person-password').fill(OLENA.password);
    await part(tab, 'person-proof-yes').click();
    await person(OLENA.name).getByTestId('person-link').waitFor();
    await gone(tab, 'person-proof');
    await person(BOHDAN.name).getByTestId('person-role').selectOption('admin');
    await part(tab, 'person-password').waitFor();
    assert.equal(await person(BOHDAN.name).getByTestId('person-role').inputValue(), 'user', 'nothing is changed yet');
    await part(tab, 'person-proof-no').click();
    await gone(tab, 'person-proof');
    await part(tab, 'tab-invitations').click();
    await tab.page.locator('[data-testid="invite-role"][value="admin"]').check();
    await part(tab, 'invite-password').fill(OLENA.password);
    await part(tab, 'invite-make').click();
    await tab.page.locator('[data-testid="invitation-row"][data-role="admin"]').first().waitFor();
    await part(tab, 'invite-link').waitFor();
  });

  it('the record says who came in and who changed what, and can be downloaded', async () => {
    const { tab } = it_has;
    await part(tab, 'tab-record').click();
    const lines = part(tab, 'record-line');
    await lines.first().waitFor();
    const found = await lines.evaluateAll((all) => all.map(({ dataset }) => dataset.what));
    for (const what of ['signed_in', 'sign_in_failed', 'signed_out', 'password_changed', 'recovery_codes_made', 'token_made', 'token_removed', 'invited', 'joined', 'role_changed', 'powers_granted', 'limits_changed']) {
      assert.ok(found.includes(what), `${what} is not among ${found}`);
    }
    const said = (await lines.allInnerTexts()).join('\n');
    for (const words of [BOHDAN.name, 'All users', 'Web search', 'Conversations: 1']) assert.ok(said.includes(words), `“${words}” is not in ${said}`);
    assert.doesNotMatch(said, /tokens_a_day|web_search|as all/, 'the service’s own names');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-record`));
    const [download] = await Promise.all([tab.page.waitForEvent('download'), part(tab, 'record-export').click()]);
    const text = await readFile(await download.path(), 'utf8');
    assert.equal(text.trim().split('\n').length, found.length);
    assert.equal(JSON.parse(text.split('\n')[0]).what, found[0]);
  });

  it('everything of one’s own comes in one archive', async () => {
    const { tab } = it_has;
    await close(tab, 'people');
    await open(tab, 'account', 'profile');
    const [download] = await Promise.all([tab.page.waitForEvent('download'), part(tab, 'archive-all').click()]);
    const bytes = await readFile(await download.path());
    assert.equal(bytes.subarray(0, 2).toString(), 'PK');
    for (const name of ['account.json', 'memory.json', '/conversation.json']) assert.ok(bytes.includes(name), name);
    await close(tab, 'account');
    await open(tab, 'people', 'record');
  });

  it('each view has its words in every other language', async () => {
    const { tab } = it_has;
    await close(tab, 'people');
    for (const language of OTHER_LANGUAGES) {
      await part(tab, 'language').selectOption(language);
      await tab.page.locator(`html[lang="${language}"]`).waitFor();
      for (const [panel, names] of [['account', ['profile', 'devices', 'tokens']], ['people', ['people', 'powers', 'invitations', 'record']]]) {
        for (const name of names) {
          await open(tab, panel, name);
          assert.doesNotMatch(await tab.page.locator('body').innerText(), /\b[a-z_]+\.[a-z_]+\.[a-z_]+\b/, 'a key in place of its words');
          for (const [size, width] of [['wide', 1280], ['narrow', 360]]) {
            await tab.page.setViewportSize({ width, height: 800 });
            await tab.screenshot(`${size}-${language}-${panel}-${name}`);
            await assertFits(tab.page, `${panel} ${name}, ${language}, ${size}`);
          }
          await tab.page.setViewportSize({ width: 1280, height: 800 });
        }
        await close(tab, panel);
      }
    }
    await part(tab, 'language').selectOption('en');
  });

  it('another person in the same browser finds nothing of the first', async () => {
    await his.composer.fill('Bohdan’s draft');
    await open(it_has.tab, 'people', 'invitations');
    await part(it_has.tab, 'invite-make').click();
    const link = (await part(it_has.tab, 'invite-link').locator('pre').innerText()).trim();
    await close(it_has.tab, 'people');
    await his.page.evaluate(() => { globalThis.is_his = true; });
    const beside = new Tab(await his.page.context().newPage());
    await beside.page.goto(link);
    await part(beside, 'invitation-name').fill('Iryna');
    await part(beside, 'invitation-password').fill('nine short ladders');
    await part(beside, 'invitation-accept').click();
    await beside.ready();
    await beside.page.getByText('Your conversations will be listed here').waitFor();
    assert.equal(await beside.composer.inputValue(), '');
    assert.equal(await beside.sessions.count(), 0);
    // The tab that was open follows.
    await his.page.waitForFunction(() => globalThis.is_his === undefined);
    await part(his, 'open-account').click();
    await part(his, 'account-name').filter({ hasText: 'Iryna' }).waitFor();
    await close(his, 'account');
    assert.equal(await his.composer.inputValue(), '');
    await beside.page.close();
  });

  it('who is removed is signed out', async () => {
    const { tab } = it_has;
    await open(tab, 'people', 'people');
    await person('Iryna').getByTestId('person-remove').click();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-people-remove`));
    await person('Iryna').getByTestId('person-remove-yes').click();
    await person('Iryna').waitFor({ state: 'detached' });
    await part(his, 'sign-in').waitFor();
    await his.page.context().close();
    await close(tab, 'people');
  });
});

describe('where there are no accounts', () => {
  const it_has = world();

  it('nobody is asked for one', async () => {
    const { browser, navi, tab } = it_has;
    await part(tab, 'open-setup').waitFor();
    await part(tab, 'banner').first().waitFor({ state: 'detached' });
    assert.equal(await part(tab, 'open-account').count() + await part(tab, 'open-people').count(), 0);
    await part(tab, 'open-setup').click();
    await part(tab, 'tab-settings').waitFor();
    const context = await newContext(browser, { serviceWorkers: 'block' });
    const other = new Tab(await context.newPage());
    await other.page.goto(new URL('/', navi.link).href);
    await other.page.locator('[data-testid="sign-in"][data-by="link"]').getByText('navi link').waitFor();
    await context.close();
  });
});
