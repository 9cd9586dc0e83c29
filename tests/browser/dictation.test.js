// Dictation, by a stand-in for the browser's own: a Chromium without a window has no service for it.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

/** Whether it can listen, what becomes of `available`, and the one that listens now. */
function standIn() {
  globalThis.SpeechRecognition = class {
    static here = 'unavailable';
    static available = async ({ langs, processLocally }) => (langs.length === 1 && processLocally ? this.here : 'unavailable');
    start() { globalThis.hearing = this; }
    stop() { this.onend?.(); }
    abort() { this.onend?.(); }
    /** @param {[string, boolean][]} said each with whether it is final */
    say(...said) {
      this.onresult?.({ resultIndex: 0, results: said.map(([transcript, isFinal]) => Object.assign([{ transcript }], { isFinal })) });
    }
    fail(error) {
      this.onerror?.({ error });
      this.onend?.();
    }
  };
}

describe('dictation', () => {
  const it_has = world();
  const part = (id) => it_has.tab.page.getByTestId(id);
  const hears = (...said) => it_has.tab.page.evaluate((words) => globalThis.hearing.say(...words), said);
  const listening = (yes) => it_has.tab.page.locator(`[data-testid="dictate"][aria-pressed="${yes}"]`).waitFor();
  before(async () => {
    await it_has.window.context.addInitScript(standIn);
    await it_has.tab.page.reload();
    await it_has.tab.ready();
  });

  it('says first that the sound may leave the machine, and does nothing before that is agreed to', async () => {
    const { tab } = it_has;
    await part('dictate').click();
    await part('dictate-warning').getByText('would not stay on this machine').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-dictate-warning`));
    await part('dictate-cancel').click();
    await part('dictate-warning').waitFor({ state: 'detached' });
    assert.equal(await tab.page.evaluate(() => globalThis.hearing), undefined);
    await part('dictate').click();
    await part('dictate-agree').click();
    await listening(true);
    await part('welcome-where').getByText('but for the sound of what you dictate').waitFor();
    assert.deepEqual(await tab.page.evaluate(() => [globalThis.hearing.lang, globalThis.hearing.processLocally]), ['en-US', undefined]);
  });

  it('shows words as they are spoken, and writes them behind what stands there', async () => {
    const { tab } = it_has;
    await tab.composer.fill('Dear Olena,');
    await hears(['thank you', false]);
    await part('composer-hint').getByText('thank you').waitFor();
    await assertLooks(tab, (name) => tab.screenshot(`${name}-dictating`));
    await hears(['thank you for', true], ['the book', false]);
    await hears(['the book', true]);
    assert.equal(await tab.composer.inputValue(), 'Dear Olena, thank you for the book');
    await part('dictate').click();
    await listening(false);
  });

  it('ends with the message: what comes late is not written into the next one', async () => {
    const { model, tab } = it_has;
    await part('dictate').click();
    await listening(true);
    await model.script([{ text: 'I see.' }]);
    await tab.sendButton.click();
    await tab.sees('I see.');
    await tab.idle();
    await listening(false);
    await hears(['too late', true]);
    assert.equal(await tab.composer.inputValue(), '');
  });

  it('says in plain words what went wrong, in the page’s language', async () => {
    const { tab } = it_has;
    for (const [error, told] of [['not-allowed', /does not let Navi use the microphone/], ['audio-capture', /No microphone was found/], ['network', /cannot be reached/], ['strange', /broke off/]]) {
      await part('dictate').click();
      await listening(true);
      await tab.page.evaluate((name) => globalThis.hearing.fail(name), error);
      await part('composer-hint').getByText(told).waitFor();
      await listening(false);
    }
    await part('language').selectOption('uk');
    await tab.page.locator('html[lang="uk"]').waitFor({ state: 'attached' });
    await part('dictate').click();
    await listening(true);
    assert.equal(await tab.page.evaluate(() => globalThis.hearing.lang), 'uk-UA');
    await tab.page.evaluate(() => globalThis.hearing.fail('audio-capture'));
    await part('composer-hint').getByText('Мікрофона не знайдено').waitFor();
    await part('language').selectOption('en');
  });

  it('asks nobody where the browser writes it down on this machine', async () => {
    const { tab } = it_has;
    await tab.page.evaluate(() => localStorage.removeItem('navi.dictation'));
    await tab.page.reload();
    await tab.ready();
    await tab.page.evaluate(() => { globalThis.SpeechRecognition.here = 'available'; });
    await part('dictate').click();
    await listening(true);
    assert.equal(await tab.page.evaluate(() => globalThis.hearing.processLocally), true);
    await part('dictate').click();
    await listening(false);
  });
});

describe('a browser without it', () => {
  const it_has = world();

  it('has no button for it', async () => {
    const { window, tab } = it_has;
    await window.context.addInitScript(() => { globalThis.SpeechRecognition = globalThis.webkitSpeechRecognition = undefined; });
    await tab.page.reload();
    await tab.ready();
    assert.equal(await tab.page.getByTestId('dictate').count(), 0);
  });
});
