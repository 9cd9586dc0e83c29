// How Navi is set up: her settings, the models that answer, and what is wrong.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const MODELS = ['fake:latest'];

describe('how Navi is set up', () => {
  const it_has = world({ settings: { OPENAI_API_KEY: 'sk-hunter2' }, options: { expected: /status of 409/ } });
  const part = (id) => it_has.tab.page.getByTestId(id);

  it('is loaded when it is opened, and shows each setting with where it came from', async () => {
    const { tab } = it_has;
    const loaded = () => tab.page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/panels.js')).length);
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

  it('changes a setting, which waits for the next start, and takes it back', async () => {
    const { navi, tab } = it_has;
    const file = () => readFile(join(navi.dataDir, 'navi.toml'), 'utf8');
    await part('settings-only-set').uncheck();
    await part('settings-filter').fill('');
    const depth = tab.page.locator('[data-testid="setting"][data-key="runs.subagent_depth"]');
    await depth.getByTestId('setting-edit').click();
    await tab.page.keyboard.press('Control+a');
    await tab.page.keyboard.type('99');
    await tab.page.keyboard.press('Enter');
    await depth.getByTestId('error-card').filter({ hasText: 'a number from 0 to 8' }).waitFor();
    await depth.getByTestId('setting-value').fill('1');
    await depth.getByTestId('setting-save').click();
    await depth.getByTestId('setting-pending').filter({ hasText: '1' }).waitFor();
    await part('settings-waiting').filter({ hasText: '1 change' }).waitFor();
    assert.match(await file(), /\[runs\]\nsubagent_depth = 1\n/);
    await tab.screenshot('setup-setting-waits');

    // What opens the house is shown, and not changed here; nor what the environment says.
    for (const key of ['tools.terminal_allowed_commands', 'server.bind', 'openai.api_key']) {
      const held = tab.page.locator(`[data-testid="setting"][data-key="${key}"]`);
      await held.getByTestId('setting-held').waitFor();
      assert.equal(await held.getByTestId('setting-edit').count(), 0);
    }
    await depth.getByTestId('setting-reset').click();
    await depth.getByTestId('setting-pending').waitFor({ state: 'detached' });
    await part('settings-undo').click();
    await depth.getByTestId('setting-pending').waitFor();
    assert.match(await file(), /subagent_depth = 1/);
  });

  it('says over the panel what came of it, where it can be pressed', async () => {
    const { tab } = it_has;
    const level = tab.page.locator('[data-testid="setting"][data-key="log.level"]');
    await level.getByTestId('setting-edit').click();
    await level.getByTestId('setting-value').fill('warn');
    // Looked at as it comes: it goes by itself.
    const isReached = tab.page.evaluate(() => new Promise((resolve) => {
      new MutationObserver((_changes, observer) => {
        const button = document.querySelector('[data-testid="toast"] button');
        if (button === null) return;
        observer.disconnect();
        const { x, y, width, height } = button.getBoundingClientRect();
        resolve(button.contains(document.elementFromPoint(x + width / 2, y + height / 2)));
      }).observe(document, { childList: true, subtree: true });
    }));
    await level.getByTestId('setting-save').click();
    assert.ok(await isReached);
    await level.getByTestId('setting-reset').click();
    await level.getByTestId('setting-pending').waitFor({ state: 'detached' });
  });

  it('tells it aloud once, though it stands elsewhere when the panel closes', async () => {
    const { tab } = it_has;
    const level = tab.page.locator('[data-testid="setting"][data-key="log.level"]');
    await level.getByTestId('setting-edit').click();
    await level.getByTestId('setting-value').fill('warn');
    const roles = tab.page.evaluate(() => new Promise((resolve) => {
      for (const close of document.querySelectorAll('[data-testid="toast"] .icon-button')) close.click();
      const seen = new Map();
      new MutationObserver((_changes, observer) => {
        const toast = document.querySelector('[data-testid="toast"]');
        if (toast === null || seen.has(toast)) return;
        seen.set(toast, toast.getAttribute('role'));
        if (seen.size === 1) {
          document.querySelector('[data-testid="setup-close"]').click();
        } else {
          observer.disconnect();
          resolve([...seen.values()]);
        }
      }).observe(document, { childList: true, subtree: true });
    }));
    await level.getByTestId('setting-save').click();
    assert.deepEqual(await roles, ['status', null]);
    await part('open-setup').click();
    await level.getByTestId('setting-reset').click();
    await level.getByTestId('setting-pending').waitFor({ state: 'detached' });
  });

  it('keeps what is written of one setting whatever becomes of another, and has the keyboard go on in its row', async () => {
    const { navi, tab } = it_has;
    const row = (key) => tab.page.locator(`[data-testid="setting"][data-key="${key}"]`);
    const isFocused = (key, id) => tab.page.waitForFunction(([key, id]) => document.activeElement?.dataset.testid === id
      && document.activeElement.closest('[data-key]')?.dataset.key === key, [key, id]);
    const [depth, level] = [row('runs.subagent_depth'), row('log.level')];
    await depth.getByTestId('setting-edit').click();
    await isFocused('runs.subagent_depth', 'setting-value');
    await depth.getByTestId('setting-value').fill('3');
    await level.getByTestId('setting-edit').click();
    await isFocused('log.level', 'setting-value');
    await level.getByTestId('setting-value').fill('no[such');
    await level.getByTestId('setting-save').click();
    await level.getByTestId('error-card').waitFor();
    assert.equal(await part('error-card').count(), 1);
    await level.getByTestId('setting-value').fill('warn');
    await level.getByTestId('setting-save').click();
    await level.getByTestId('setting-pending').filter({ hasText: 'warn' }).waitFor();
    await isFocused('log.level', 'setting-edit');
    await level.getByTestId('setting-reset').click();
    await level.getByTestId('setting-pending').waitFor({ state: 'detached' });
    await isFocused('log.level', 'setting-edit');
    assert.equal(await depth.getByTestId('setting-value').inputValue(), '3');
    await depth.getByTestId('setting-cancel').click();
    await isFocused('runs.subagent_depth', 'setting-edit');

    const key = row('web.brave_api_key');
    await key.getByTestId('setting-edit').click();
    assert.equal(await key.getByTestId('setting-value').getAttribute('autocomplete'), 'new-password');
    await key.getByTestId('setting-value').fill('sk-hunter3');
    await key.getByTestId('setting-save').click();
    await key.getByTestId('setting-edit').click();
    assert.equal(await key.getByTestId('setting-value').inputValue(), '');
    await tab.page.keyboard.press('Enter');
    await isFocused('web.brave_api_key', 'setting-edit');
    assert.match(await readFile(join(navi.dataDir, 'navi.toml'), 'utf8'), /sk-hunter3/);
    await key.getByTestId('setting-reset').click();
    await key.getByTestId('setting-reset').waitFor({ state: 'detached' });
  });

  it('keeps what is written while somebody looks elsewhere, and no secret', async () => {
    const { tab } = it_has;
    const row = (key) => tab.page.locator(`[data-testid="setting"][data-key="${key}"]`);
    for (const [key, text] of [['runs.subagent_depth', '3'], ['log.level', null], ['web.brave_api_key', 'sk-hunter4']]) {
      await row(key).getByTestId('setting-edit').click();
      if (text !== null) await row(key).getByTestId('setting-value').fill(text);
    }
    await tab.page.keyboard.press('Escape');
    await part('setup').waitFor({ state: 'detached' });
    await part('open-setup').click();
    for (const key of ['log.level', 'web.brave_api_key']) await row(key).getByTestId('setting-edit').waitFor();
    assert.equal(await row('runs.subagent_depth').getByTestId('setting-value').inputValue(), '3');
    await row('runs.subagent_depth').getByTestId('setting-cancel').click();
  });

  it('is not drawn any more once it is closed', async () => {
    const { tab } = it_has;
    const level = tab.page.locator('[data-testid="setting"][data-key="log.level"]');
    await level.getByTestId('setting-edit').click();
    await tab.page.keyboard.press('Escape');
    await part('setup').waitFor({ state: 'detached' });
    await part('open-setup').click();
    await level.getByTestId('setting-edit').click();
    await tab.page.evaluate(() => {
      const element = Object.getPrototypeOf(customElements.get('navi-setup-settings').prototype);
      const { performUpdate } = element;
      window.drawn = new Set();
      element.performUpdate = function noted() {
        if (this.localName === 'navi-setup-settings') window.drawn.add(this);
        return performUpdate.call(this);
      };
    });
    await level.getByTestId('setting-value').fill('warn');
    assert.equal(await tab.page.evaluate(() => window.drawn.size), 1);
    await level.getByTestId('setting-cancel').click();
  });

  it('is not drawn by an answer that comes once it is closed', async () => {
    const { tab } = it_has;
    const shown = tab.page.locator('[data-testid="setting"][data-key="log.level"]');
    const close = async () => {
      await tab.page.keyboard.press('Escape');
      await part('setup').waitFor({ state: 'detached' });
    };
    await close();
    await tab.page.evaluate(() => {
      const element = Object.getPrototypeOf(customElements.get('navi-setup-settings').prototype);
      const { performUpdate } = element;
      window.gone = 0;
      element.performUpdate = function noted() {
        if (this.localName === 'navi-setup-settings' && !this.isConnected) window.gone += 1;
        return performUpdate.call(this);
      };
    });
    const asked = new Promise((resolve) => { void tab.page.route('**/api/settings', resolve, { times: 1 }); });
    await part('open-setup').click();
    const route = await asked;
    await part('tab-settings').waitFor();
    await close();
    const answered = tab.page.waitForResponse('**/api/settings');
    await route.continue();
    await (await answered).finished();
    // What it came for is through with it before the next is asked for.
    await part('open-setup').click();
    await shown.waitFor();
    assert.equal(await tab.page.evaluate(() => window.gone), 0);
  });

  it('tells one of two who change settings at once, and loses nothing', async () => {
    const { navi, tab, window } = it_has;
    const other = await window.tabBeside(tab);
    await other.page.getByTestId('open-setup').click();
    const level = ({ page }) => page.locator('[data-testid="setting"][data-key="log.level"]');
    for (const [at, text] of [[tab, 'warn'], [other, 'error']]) {
      await level(at).getByTestId('setting-edit').click();
      await level(at).getByTestId('setting-value').fill(text);
    }
    await level(tab).getByTestId('setting-save').click();
    await level(tab).getByTestId('setting-pending').filter({ hasText: 'warn' }).waitFor();
    await level(other).getByTestId('setting-save').click();
    await level(other).getByTestId('error-card').filter({ hasText: 'not as it was' }).filter({ hasText: 'changed meanwhile' }).waitFor();
    assert.match(await readFile(join(navi.dataDir, 'navi.toml'), 'utf8'), /level = "warn"/);
    // It reads them anew, and goes on with what was written.
    await level(other).getByTestId('error-card').getByRole('button').click();
    await level(other).getByTestId('setting-pending').filter({ hasText: 'warn' }).waitFor();
    assert.equal(await level(other).getByTestId('setting-value').inputValue(), 'error');
    await level(other).getByTestId('setting-save').click();
    await level(other).getByTestId('setting-pending').filter({ hasText: 'error' }).waitFor();
    await other.page.close();
  });

  it('shows what answers and what does not, and goes through its tabs by the arrows', async () => {
    const { tab } = it_has;
    await part('tab-settings').focus();
    await tab.page.keyboard.press('ArrowRight');
    const ollama = tab.page.locator('[data-testid="backend"][data-kind="ollama"]');
    await ollama.waitFor();
    assert.equal(await ollama.getAttribute('data-state'), 'ready');
    assert.match(await ollama.getByTestId('model').innerText(), /fake:latest[^]*tools[^]*Answers for: .*Secretary/);
    await tab.page.getByTestId('profile-model').filter({ hasText: 'is not there' }).first().waitFor();
  });

  it('has Ollama pull a model, in every tab', async () => {
    const { model, tab, window } = it_has;
    const raw = (said) => ({ raw: `${JSON.stringify(said)}\n` });
    await model.script({ pull: 'new:1b', steps: [
      raw({ status: 'pulling 1', digest: '1', total: 2_000_000, completed: 1_000_000 }), { hold: 'pull' }, raw({ status: 'success' }), 'end',
    ] });
    await part('pull-name').fill('new:1b');
    await part('pull').click();
    await part('pulling').filter({ hasText: '1 MB of 2 MB' }).waitFor();
    const other = await window.tabBeside(tab);
    await other.page.getByTestId('open-setup').click();
    await other.page.getByTestId('tab-models').click();
    await other.page.getByTestId('pulling').filter({ hasText: '1 MB of 2 MB' }).waitFor();
    await tab.screenshot('setup-pulling');
    await model.configure({ models: [...MODELS, 'new:1b'] });
    await model.release('pull');
    await tab.page.locator('[data-testid="model"][data-model="new:1b"]').waitFor();
    await part('pulling').waitFor({ state: 'detached' });
    await other.page.close();
  });

  it('says why a model was not pulled, and stops a pull', async () => {
    const { model, tab } = it_has;
    await part('pull-name').fill('nowhere');
    await tab.page.keyboard.press('Enter');
    await part('pull-failed').filter({ hasText: 'no model nowhere' }).waitFor();
    await tab.screenshot('setup-pull-failed');
    await part('pull-hide').click();
    await part('pull-failed').waitFor({ state: 'detached' });
    await model.script({ pull: 'endless', steps: ['begin', 'silence'] });
    await part('pull-name').fill('endless');
    await part('pull').click();
    await part('pull-stop').click();
    await part('pull-name').waitFor();
  });

  it('copies a profile, and edits the copy', async () => {
    const { navi, tab } = it_has;
    await part('tab-profiles').click();
    const profile = (id) => tab.page.locator(`[data-testid="profile"][data-profile="${id}"]`);
    await profile('secretary').locator('summary').click();
    await profile('secretary').getByText('built in').waitFor();
    await tab.screenshot('setup-profile');
    await profile('secretary').getByTestId('profile-copy').click();
    assert.match(await part('profile-text').inputValue(), /^id = "secretary_copy"$/m);
    await part('profile-save').click();
    await profile('secretary_copy').waitFor();

    await profile('secretary_copy').getByTestId('profile-edit').click();
    const text = await part('profile-text').inputValue();
    await part('profile-text').fill(text.replace('Personal Secretary', 'My own help'));
    await part('profile-save').click();
    await profile('secretary_copy').getByText('My own help').waitFor();
    assert.match(await readFile(join(navi.dataDir, 'profiles', 'secretary_copy.toml'), 'utf8'), /My own help/);
    // It can be chosen for a new conversation at once.
    await tab.page.keyboard.press('Escape');
    await part('setup').waitFor({ state: 'detached' });
    await tab.page.locator('[data-testid="profile-choice"][value="secretary_copy"]').waitFor({ state: 'attached' });
    await part('open-setup').click();
  });

  it('looks for what is wrong, and copies a report of it', async () => {
    const { tab, window } = it_has;
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await part('tab-diagnostics').click();
    await tab.page.locator('[data-testid="check"][data-check="database"][data-level="fine"]').waitFor();
    // As on plain http beyond this machine.
    await tab.page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }));
    await part('diagnostics-copy').click();
    await tab.page.getByText('Copied', { exact: true }).first().waitFor();
    assert.equal(await tab.page.evaluate(() => document.activeElement.dataset.testid), 'diagnostics-copy');
    const report = await tab.page.evaluate(() => {
      delete navigator.clipboard;
      return navigator.clipboard.readText();
    });
    assert.match(report, /^Navi \d/);
    assert.match(report, /✓ database: /);
    assert.match(report, /OPENAI_API_KEY=\[hidden\] \(environment\)/);
    assert.doesNotMatch(report, /hunter2/);
    await tab.page.keyboard.press('Escape');
    await part('setup').waitFor({ state: 'detached' });
  });

  it('says what each setting is for in the language of the page, and finds it by that', async () => {
    const { page } = it_has.tab;
    await page.getByTestId('language').selectOption('uk');
    await part('open-setup').click();
    await part('tab-settings').click();
    await page.locator('[data-testid="setting"][data-key="server.bind"]').filter({ hasText: 'Де доступні сторінка та API' }).waitFor();
    await part('settings-filter').fill('вікно контексту');
    await page.waitForFunction(() => document.querySelectorAll('[data-testid="setting"]').length === 1);
    assert.equal(await part('setting').getAttribute('data-key'), 'ollama.num_ctx');
  });

  it('tells what the doctor finds in the language of the page', async () => {
    const { tab } = it_has;
    await part('tab-diagnostics').click();
    const check = (name) => tab.page.locator(`[data-testid="check"][data-check="${name}"]`);
    await check('data').filter({ hasText: 'тека даних' }).waitFor();
    await check('port').filter({ hasText: 'Navi працює за адресою' }).waitFor();
    await tab.screenshot('setup-diagnostics-uk');
  });
});
