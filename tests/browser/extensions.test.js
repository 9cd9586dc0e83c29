// Tools from elsewhere are added by hand: a server of tools is tried, kept, used and taken out.

import assert from 'node:assert/strict';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { assertAccessible, assertFits } from './harness/looks.js';
import { world } from './harness/world.js';

const SERVER = fileURLToPath(new URL('../support/mcp_server.py', import.meta.url));
const SECRET = 'hunter2hunter2';

describe('tools from elsewhere', () => {
  // What another tab changed meanwhile is answered with 409.
  const it_has = world({ options: { expected: /409/ } });
  const part = (id, tab = it_has.tab) => tab.page.getByTestId(id);
  const file = () => join(it_has.navi.dataDir, 'mcp.json');
  const row = (state, tab = it_has.tab) => tab.page.locator(`[data-testid="mcp-server"][data-server="fake"][data-state="${state}"]`);

  const isFocused = (id) => it_has.tab.page.waitForFunction((name) => document.activeElement?.dataset.testid === name, id);

  async function openExtensions(tab) {
    await part('open-permissions', tab).click();
    await part('tab-extensions', tab).click();
  }

  it('are tried before anything is kept, with the whole command in sight', async () => {
    const { tab } = it_has;
    await openExtensions(tab);
    await part('mcp-empty').waitFor();
    await part('mcp-add').click();
    await isFocused('mcp-name');
    await part('mcp-name').fill('fake');
    await part('mcp-command').fill('/nowhere/at-all');
    await part('mcp-try').click();
    await tab.page.locator('[data-testid="mcp-trial"][data-outcome="failed"]').waitFor();
    assert.match(await part('mcp-trial').innerText(), /could not be started/);

    // What is tried while it is changed is another one: its answer is not waited for, nor told.
    const asked = new Promise((resolve) => { void tab.page.route('**/mcp/fake/try', resolve, { times: 1 }); });
    await part('mcp-try').click();
    await asked;
    await part('mcp-command').fill('python3');
    await tab.page.locator('[data-testid="mcp-try"]:enabled').waitFor();
    assert.equal(await part('mcp-trial').count() + await part('error-card').count(), 0);
    await part('mcp-args').fill(`${SERVER}\nwell`);
    await part('mcp-env').fill(`API_KEY=${SECRET}`);
    assert.ok((await part('mcp-runs').innerText()).includes(`python3 ${SERVER} well`));
    await part('mcp-try').click();
    await tab.page.locator('[data-testid="mcp-trial"][data-outcome="answered"]').waitFor();
    assert.equal(await part('tried-tool').count(), 2);
    await assertAccessible(tab.page, 'a server of tools', 'dialog');
    await assertFits(tab.page, 'a server of tools', 'dialog[open]');
    await tab.screenshot('mcp-form');
    await assert.rejects(access(file()));
    assert.equal(await part('mcp-server').count(), 0);
  });

  it('are kept when they are saved, and their secrets are not read back', async () => {
    await part('mcp-save').click();
    await row('ready').waitFor();
    const written = JSON.parse(await readFile(file(), 'utf8')).mcpServers.fake;
    assert.deepEqual(written, { command: 'python3', args: [SERVER, 'well'], env: { API_KEY: SECRET } });
    await isFocused('mcp-add');
    await part('mcp-edit').click();
    await part('mcp-form').waitFor();
    await isFocused('mcp-name');
    assert.equal(await part('mcp-env').inputValue(), 'API_KEY');
    assert.equal(await part('mcp-name').getAttribute('readonly'), '');
  });

  it('are not written over by a tab that saw them as they were', async () => {
    const { tab, window } = it_has;
    const other = await window.tabBeside(tab);
    await openExtensions(other);
    await part('mcp-edit', other).click();
    await part('mcp-args', other).fill(`${SERVER}\nfail`);
    await part('mcp-save', other).click();
    await part('mcp-form', other).waitFor({ state: 'detached' });

    await part('mcp-args').fill(`${SERVER}\nmine`);
    await part('mcp-save').click();
    await tab.page.locator('[data-testid="error-card"][data-code="change_conflict"]').waitFor();
    assert.equal(await part('mcp-args').inputValue(), `${SERVER}\nmine`, 'what one wrote stays');
    assert.deepEqual(JSON.parse(await readFile(file(), 'utf8')).mcpServers.fake.args, [SERVER, 'fail']);
    await part('mcp-cancel').click();
    await part('mcp-edit').click();
    await part('mcp-args').fill(`${SERVER}\nwell`);
    await part('mcp-save').click();
    await part('mcp-form').waitFor({ state: 'detached' });
    assert.equal(JSON.parse(await readFile(file(), 'utf8')).mcpServers.fake.env.API_KEY, SECRET);
    await row('ready').waitFor();
  });

  it('stay as they are written whatever else is asked for, but for secrets once all is closed', async () => {
    const { tab } = it_has;
    await isFocused('mcp-edit');
    await part('mcp-add').click();
    await part('mcp-name').fill('second');
    await part('mcp-env').fill(`API_KEY=${SECRET}`);
    await part('mcp-edit').click();
    await part('mcp-first').waitFor();
    await isFocused('mcp-name');
    assert.equal(await part('mcp-name').inputValue(), 'second');
    assert.equal(await part('mcp-env').inputValue(), `API_KEY=${SECRET}`);

    // What is wrong with a field that is folded away is told where it stands.
    const more = part('mcp-form').locator('details summary');
    await more.click();
    await part('mcp-timeout').fill('9999');
    await more.click();
    await part('mcp-timeout').waitFor({ state: 'hidden' });
    await part('mcp-save').click();
    await part('mcp-timeout').waitFor();
    await isFocused('mcp-timeout');

    await part('permissions-close').click();
    await openExtensions(tab);
    assert.equal(await part('mcp-name').inputValue(), 'second');
    assert.equal(await part('mcp-env').inputValue(), '');
    await part('mcp-cancel').click();
    await isFocused('mcp-add');
  });

  it('are used in a conversation once that is allowed', async () => {
    const { model, tab } = it_has;
    await part('permissions-close').click();
    await model.script([{ tool_call: { name: 'mcp__fake__echo', arguments: { text: 'from the server' } } }], [{ text: 'It answered.' }]);
    await tab.send('Ask the server.');
    await tab.page.locator('[data-testid="approval"][data-tool="mcp__fake__echo"]').getByTestId('approve-once').click();
    await tab.sees('It answered.');
    await tab.idle();
    const chats = await tab.page.locator('[data-testid="tool-card"][data-tool="mcp__fake__echo"]').count();
    assert.ok(chats > 0);
  });

  it('go when they are taken out, and come back when that was a mistake', async () => {
    const { tab } = it_has;
    await openExtensions(tab);
    await part('mcp-remove').click();
    await part('mcp-empty').waitFor();
    await isFocused('mcp-undo');
    assert.deepEqual(JSON.parse(await readFile(file(), 'utf8')), { mcpServers: {} });
    await part('mcp-undo').click();
    await row('ready').waitFor();
    await isFocused('mcp-edit');
    assert.equal(JSON.parse(await readFile(file(), 'utf8')).mcpServers.fake.env.API_KEY, SECRET);
  });

  it('of one’s own are made by files that are shown with where they go', async () => {
    const { navi, tab } = it_has;
    for (const [what, path] of [['tool', 'tools/disk_room/tool.toml'], ['skill', 'skills/release-notes/SKILL.md']]) {
      await part(`add-${what}`).locator('summary').click();
      await part(`add-${what}`).getByText(join(navi.dataDir, path)).waitFor();
    }
    await assertAccessible(tab.page, 'what to add', 'dialog');
    await tab.screenshot('extension-add');
  });
});

describe('a program for Navi, where people sign in', () => {
  const it_has = world({ settings: { NAVI_ACCOUNTS: 'on' }, options: { expected: /400/ } });
  const PASSWORD = 'a window by the river';
  const part = (id) => it_has.tab.page.getByTestId(id);

  it('is tried and kept by who shows the password, for both at once', async () => {
    const { navi, tab } = it_has;
    await part('choose-password').click();
    await part('account-new-name').fill('Olena');
    await part('account-password').fill(PASSWORD);
    await part('account-save').click();
    await part('account-current').waitFor();
    await tab.page.keyboard.press('Escape');
    await part('open-permissions').click();
    await part('tab-extensions').click();
    await part('mcp-add').click();
    await part('mcp-name').fill('fake');
    await part('mcp-command').fill('/nowhere/at-all');
    await part('mcp-try').click();
    await part('fault').filter({ hasText: 'password is wrong' }).waitFor();
    await part('mcp-password').fill(PASSWORD);
    await part('mcp-try').click();
    await tab.page.locator('[data-testid="mcp-trial"][data-outcome="failed"]').waitFor();
    await assertAccessible(tab.page, 'a program and its password', 'dialog');
    await part('mcp-save').click();
    await part('mcp-form').waitFor({ state: 'detached' });
    const text = await readFile(join(navi.dataDir, 'mcp.json'), 'utf8');
    assert.deepEqual(JSON.parse(text).mcpServers.fake, { command: '/nowhere/at-all' });
  });
});
