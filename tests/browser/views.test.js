// Every view, as it is seen: wide and narrow, dark and light, in three languages.

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertFits, assertLooks, OTHER_LANGUAGES } from './harness/looks.js';
import { world } from './harness/world.js';

/** Each with what opens it, by its test ids one after the other, and what is there then. */
const VIEWS = [
  { name: 'conversation', opens: [], shows: 'conversation' },
  { name: 'files', opens: ['open-files'], shows: 'file' },
  { name: 'keys', opens: [], press: '?', shows: 'keys' },
  { name: 'palette', opens: [], press: 'ControlOrMeta+k', shows: 'palette-option' },
  { name: 'memory', opens: ['open-memory'], shows: 'memory' },
  { name: 'rules', opens: ['open-permissions'], shows: 'rules-empty' },
  { name: 'decisions', opens: ['open-permissions', 'tab-log'], shows: 'log-entry' },
  { name: 'extensions', opens: ['open-permissions', 'tab-extensions'], shows: 'permissions' },
  { name: 'settings', opens: ['open-setup'], shows: 'setting' },
  { name: 'models', opens: ['open-setup', 'tab-models'], shows: 'profile-model' },
  { name: 'profiles', opens: ['open-setup', 'tab-profiles'], shows: 'profile' },
  { name: 'profile-file', opens: ['open-setup', 'tab-profiles', 'profile-edit'], shows: 'profile-text' },
  { name: 'diagnostics', opens: ['open-setup', 'tab-diagnostics'], shows: 'check' },
  { name: 'mode', opens: ['mode-button'], shows: 'mode-panel' },
];

describe('every view', () => {
  const it_has = world();

  /** Opens it as it can be opened in a wide window, and gives what closes it. */
  async function open({ opens, press, shows }) {
    const { page } = it_has.tab;
    if (press !== undefined) {
      await page.getByTestId('conversation').focus();
      await page.keyboard.press(press);
    }
    for (const id of opens) await page.getByTestId(id).first().click();
    await page.getByTestId(shows).first().waitFor();
    return () => page.keyboard.press('Escape');
  }

  async function assertWords() {
    const text = await it_has.tab.page.locator('body').innerText();
    // An address in a text looks like one.
    assert.doesNotMatch(text.replace(/https?:\S+/g, ''), /\b[a-z_]+\.[a-z_]+\.[a-z_]+\b/, 'a key in place of its words');
  }

  it('has something to show', async () => {
    const { model, tab } = it_has;
    const folder = await mkdtemp(join(tmpdir(), 'navi-views-'));
    await writeFile(join(folder, 'a-rather-long-name-of-a-file-that-somebody-gave-it.txt'), 'Words.');
    await tab.page.getByTestId('file-input').setInputFiles(join(folder, 'a-rather-long-name-of-a-file-that-somebody-gave-it.txt'));
    await tab.page.getByTestId('upload').waitFor();
    const save = { tool_call: { name: 'memory_save', arguments: { category: 'people', key: 'sister_name', value: 'Olena' } } };
    await model.script([save], [{ text: 'I shall remember **Olena**.' }]);
    await tab.send('My sister is called Olena; here is what she wrote.');
    await tab.sees('I shall remember');
    await tab.idle();
  });

  for (const view of VIEWS) {
    it(`${view.name} fits, and can be read by everyone`, async () => {
      const { tab } = it_has;
      const close = await open(view);
      await assertWords();
      await assertLooks(tab, (look) => tab.screenshot(`${look}-view-${view.name}`));
      await close();
    });
  }

  it('has its words in every other language', async () => {
    const { tab } = it_has;
    for (const language of OTHER_LANGUAGES) {
      await tab.page.evaluate((chosen) => localStorage.setItem('navi.language', chosen), language);
      await tab.page.reload();
      await tab.ready();
      for (const view of VIEWS) {
        const close = await open(view);
        await assertWords();
        for (const [size, width] of [['wide', 1280], ['narrow', 360]]) {
          await tab.page.setViewportSize({ width, height: 800 });
          await tab.screenshot(`${size}-${language}-view-${view.name}`);
          await assertFits(tab.page, `${view.name}, ${language}, ${size}`);
        }
        await tab.page.setViewportSize({ width: 1280, height: 800 });
        await close();
      }
    }
  });
});
