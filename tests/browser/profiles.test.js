// Profiles are files, and may be wrong: the page says so, and the last good version goes on.

import assert from 'node:assert/strict';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { LIMIT_MS } from './harness/program.js';
import { world } from './harness/world.js';

const profile = (name, more = '') =>
  `id = "poet"\nname = "${name}"\ndescription = "Verses"\nsystem_prompt = "Answer in verse."\nenabled_tools = []\ntemperature = 0.9\n${more}`;

describe('profile files', () => {
  const it_has = world();

  const write = async (text) => {
    const folder = join(it_has.navi.dataDir, 'profiles');
    await mkdir(folder, { recursive: true });
    // In one step: half of it is read as what it is.
    await writeFile(join(folder, 'poet.new'), text);
    await rename(join(folder, 'poet.new'), join(folder, 'poet.toml'));
  };
  const warning = () => it_has.tab.page.locator('[data-testid="banner"][data-kind="warning"]');

  const listed = () => it_has.tab.page.evaluate(async () => (await fetch('/agents/profiles', { headers: { 'x-navi-key': localStorage.getItem('navi.key') } })).json());

  /** Waits until there is a profile of this name. */
  async function listedAs(name) {
    const end = Date.now() + LIMIT_MS;
    for (;;) {
      const names = (await listed()).map((profile) => profile.name);
      if (names.includes(name)) return;
      if (Date.now() > end) assert.fail(`${name} is not among ${names}`);
    }
  }

  it('are taken in while the page is open', async () => {
    await write(profile('House Poet'));
    await listedAs('House Poet');
    assert.equal(await warning().count(), 0);
  });

  it('are told of in the banner when they are wrong, and the last good one stays', async () => {
    await write(profile('Bad Poet', 'temperatur = 0.4'));
    await warning().waitFor();
    const text = await warning().innerText();
    assert.match(text, /poet\.toml/);
    assert.match(text, /temperatur/);
    await listedAs('House Poet');
    assert.match(text, /last good version stays in force/);
    await it_has.tab.screenshot('profile-warning');
  });

  it('and the banner goes when they are right again', async () => {
    await write(profile('New Poet'));
    await warning().waitFor({ state: 'detached' });
    await listedAs('New Poet');
  });
});

describe('the default profile of the settings', () => {
  const it_has = world({ settings: { NAVI_DEFAULT_PROFILE: 'smart_home' } });

  it('answers where nobody chose another', async () => {
    const { tab } = it_has;
    await tab.page.locator('[data-testid="profile-choice"][value="smart_home"]:checked').waitFor({ state: 'attached' });
    await tab.send('Hello there.');
    await tab.sees('You said: Hello there.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('profile-name').innerText(), 'Smart Home Assistant');
  });
});
