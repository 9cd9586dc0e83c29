// Navi goes down while a tool runs: nobody knows what became of it, and a person says so. And she
// is restarted in order, which a tab notices as a pause.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';


/** It takes effect, says so, and then waits for a file: there the service can be killed. */
const COMMAND = 'echo begun >> effects.txt; echo begun; while [ ! -e go ]; do sleep 0.1; done';
const call = (name, args) => ({ tool_call: { name, arguments: args } });
const makeIt = call('terminal', { action: 'run', command: COMMAND });

describe('kill -9 while a tool runs', () => {
  const it_has = world();
  /** A second tab, and the session's folder. */
  let beside;
  let folder;

  const both = () => [it_has.tab, beside];
  const question = (tab) => tab.page.getByTestId('unknown-call');
  const outcome = (tab, decision) => tab.page.locator(`[data-testid="unknown-outcome"][data-decision="${decision}"]`);
  const effects = async () => (await readFile(join(folder, 'effects.txt'), 'utf8')).trim().split('\n').length;

  /** A run that the service goes down in, between the effect of its call and the result. */
  async function crash(text) {
    const { model, navi, tab } = it_has;
    await model.script({ when: text, steps: [makeIt] });
    const had = await tab.toolCards.count();
    await tab.send(text);
    const card = tab.toolCards.nth(had);
    await card.getByTestId('output-text').getByText('begun').waitFor();
    await navi.kill();
    await navi.start();
    for (const each of both()) await question(each).waitFor();
  }

  it('begins with a conversation in which everything is allowed', async () => {
    const { model, navi, tab, window } = it_has;
    await model.script([{ text: 'Good morning.' }]);
    await tab.send('Good morning!');
    await tab.sees('Good morning.');
    await tab.idle();
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-auto').check();
    await tab.page.locator('[data-testid="mode"][data-mode="auto"]').waitFor();
    await tab.page.keyboard.press('Escape');
    folder = join(navi.dataDir, 'session_files', new URL(tab.page.url()).hash.split('/')[2]);
    beside = await window.tabBeside(tab);
    await beside.messages.first().waitFor();
  });

  it('asks in every tab what became of it, after a reload too', async () => {
    const { tab } = it_has;
    await crash('Make it the first time.');
    await tab.page.reload();
    for (const each of both()) {
      await question(each).waitFor();
      assert.equal(await question(each).count(), 1);
      assert.equal(await each.toolCards.last().getAttribute('data-state'), 'outcome_unknown');
      await each.continueButton.waitFor();
      assert.equal(await each.page.getByTestId('unknown-line').getAttribute('data-count'), '1');
    }
    assert.equal(await effects(), 1);
  });

  it('asks so that it can be read, wide and narrow, dark and light', async () => {
    const { tab } = it_has;
    await assertLooks(tab, async (name) => {
      await question(tab).scrollIntoViewIfNeeded();
      await tab.screenshot(`${name}-unknown`);
    });
  });

  it('is told by keyboard to leave it, which both tabs show, and goes on when asked to', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('unknown-show').focus();
    await tab.page.keyboard.press('Enter');
    const held = await tab.page.evaluate(() => ({ role: document.activeElement?.getAttribute('role'), label: document.getElementById(document.activeElement?.getAttribute('aria-labelledby') ?? '')?.textContent }));
    assert.deepEqual(held, { role: 'group', label: 'Navi went down while this ran. Did it take effect?' });
    for (const decision of ['done', 'retry', 'skip']) {
      await tab.page.keyboard.press('Tab');
      assert.equal(await tab.page.evaluate(() => document.activeElement?.getAttribute('data-testid')), `unknown-${decision}`);
    }
    await tab.page.keyboard.press('Enter');
    for (const each of both()) {
      await outcome(each, 'skip').waitFor();
      assert.equal(await question(each).count(), 0);
      assert.equal(await each.page.getByTestId('unknown-line').count(), 0);
      await each.continueButton.waitFor();
    }
    assert.equal(await tab.page.evaluate(() => document.activeElement?.getAttribute('data-testid')), 'continue');

    await model.script({ when: 'Make it the first time.', steps: [{ text: 'Then I leave it.' }] });
    await tab.page.keyboard.press('Enter');
    for (const each of both()) {
      await each.sees('Then I leave it.');
      await each.idle();
    }
    assert.equal(await effects(), 1);
  });

  it('is told in the other tab that it was done', async () => {
    const { model, tab } = it_has;
    await crash('Make it the second time.');
    await beside.page.getByTestId('unknown-done').click();
    for (const each of both()) await outcome(each, 'done').waitFor();
    assert.equal(await tab.page.getByTestId('unknown-outcome').count(), 2, 'what was said before stands where it was said');
    await model.script({ when: 'Make it the second time.', steps: [{ text: 'Good that it was done.' }] });
    await tab.continueButton.click();
    for (const each of both()) {
      await each.sees('Good that it was done.');
      await each.idle();
    }
    assert.equal(await effects(), 2);
  });

  it('does it again and goes on, without another word', async () => {
    const { model, tab } = it_has;
    await crash('Make it the third time.');
    await writeFile(join(folder, 'go'), '');
    // Navi makes it again by herself, before she asks the model.
    await model.script({ when: 'Make it the third time.', steps: [{ text: 'Made, at the second try.' }] });
    await tab.page.getByTestId('unknown-retry').click();
    for (const each of both()) {
      await outcome(each, 'retry').waitFor();
      await each.sees('Made, at the second try.');
      await each.idle();
      assert.equal(await each.continueButton.count(), 0);
    }
    assert.equal(await effects(), 4, 'once in each crash, and once because it was asked for');
  });
});

describe('a question about a call that is not drawn', () => {
  // An imported answer has no run behind it.
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'auto' }, options: { expected: /status of 404/ } });

  it('is led to, wherever one reads', async () => {
    const { model, navi, tab } = it_has;
    const question = tab.page.getByTestId('unknown-call');
    const first = await tab.page.evaluate(async () => {
      const headers = { 'content-type': 'application/json', 'x-navi-key': localStorage.getItem('navi.key') };
      const asked = async (path, more) => (await fetch(path, { headers, ...more })).json();
      const messages = Array.from({ length: 120 }, (_, n) => [
        { role: 'user', content: `Turn ${n + 1}.` }, { role: 'assistant', content: `Answer ${n + 1}.` },
      ]).flat();
      const { session } = await asked('sessions/import', { method: 'POST', body: JSON.stringify({ messages }) });
      return `#/s/${session.id}/m/${(await asked(`sessions/${session.id}`)).messages[0].id}`;
    });
    await tab.page.evaluate((hash) => { location.hash = hash; }, first.replace(/\/m\/.*/, ''));
    await tab.sees('Answer 120.');
    await model.script({ when: 'Make it.', steps: [makeIt] });
    await tab.send('Make it.');
    await tab.page.getByTestId('output-text').getByText('begun').waitFor();
    await navi.kill();
    await navi.start();
    await question.waitFor();
    await tab.page.evaluate((hash) => { location.hash = hash; }, first);
    await tab.page.getByText('Answer 1.', { exact: true }).waitFor();
    // A link takes the keyboard along.
    await tab.page.waitForFunction(() => document.activeElement?.matches('article'));
    await question.waitFor({ state: 'detached' });
    await tab.page.getByTestId('unknown-show').press('Enter');
    await question.waitFor();
    await tab.page.waitForFunction(() => document.activeElement?.matches('[data-testid="unknown-call"]'));
  });
});

describe('a restart in order', () => {
  const it_has = world();
  const LONG = Array.from({ length: 60 }, (_, at) => `Line ${at + 1} of a long story.\n\n`).join('');

  it('is a pause: quiet, with the draft and the place as they were', async () => {
    const { model, navi, tab } = it_has;
    await model.script([{ text: LONG }], [{ text: 'The story goes on, ' }, { hold: 'never' }]);
    await tab.send('Tell me a long story.');
    await tab.sees('Line 60');
    await tab.idle();
    await tab.send('And then?');
    await tab.sees('The story goes on,');
    await tab.composer.fill('I write on while');
    const line = tab.page.getByText('Line 20 of');
    await line.scrollIntoViewIfNeeded();
    await tab.page.getByTestId('jump-latest').waitFor();
    const before = await line.boundingBox();

    const stopped = navi.stop();
    await tab.page.locator('[data-testid="connection"][data-state="restarting"]').waitFor();
    assert.equal(await tab.errorCard.count(), 0);
    assert.equal(await tab.page.getByTestId('toast').count(), 0);
    assert.equal(await tab.page.getByTestId('interrupted-card').count(), 0, 'what may go on is not given up');
    await tab.screenshot('restarting');
    await stopped;
    await navi.start();
    await tab.page.getByTestId('connection').waitFor({ state: 'detached' });

    await tab.continueButton.waitFor();
    assert.equal(await tab.composer.inputValue(), 'I write on while');
    const after = await line.boundingBox();
    assert.ok(Math.abs(after.y - before.y) < 2, `the reader was moved from ${before.y} to ${after.y}`);
    assert.equal(await tab.errorCard.count(), 0);
  });

  it('leaves a run that can be continued, after a reload too', async () => {
    const { model, tab } = it_has;
    await tab.page.reload();
    await tab.continueButton.waitFor();
    // The browser's own copy is read beside the conversation.
    await tab.page.waitForFunction(() => document.querySelector('#composer')?.value === 'I write on while');
    await model.script([{ text: 'to its happy end.' }]);
    await tab.continueButton.click();
    await tab.sees('to its happy end.');
    await tab.idle();
    assert.equal(await tab.continueButton.count(), 0);
  });

  it('is called trouble when it lasts', async () => {
    const { navi, tab } = it_has;
    const stopped = navi.stop();
    await tab.page.locator('[data-testid="connection"][data-state="restarting"]').waitFor();
    await stopped;
    await tab.page.locator('[data-testid="connection"]:not([data-state="restarting"])').waitFor();
    await tab.page.getByText(/Connection lost/).first().waitFor();
    await navi.start();
    await tab.page.getByTestId('connection').waitFor({ state: 'detached' });
  });
});

describe('a run that goes on by itself after a crash', () => {
  const it_has = world({ settings: { NAVI_RESUME_RUNS: 'reads' } });

  it('says so, to who watched and to who comes later', async () => {
    const { model, navi, tab, window } = it_has;
    await model.script(
      [call('filesystem', { action: 'list', path: '.' })],
      [{ text: 'I have looked, ' }, { hold: 'never' }],
    );
    await tab.send('Look around.');
    await tab.sees('I have looked,');
    await navi.kill();
    await model.script([{ text: 'and found ' }, { hold: 'end' }, { text: 'nothing.' }]);
    await navi.start();

    await tab.sees('and found');
    const resumed = (each) => each.page.locator('[data-testid="notice"][data-code="run_resumed"]');
    await resumed(tab).waitFor();
    const late = await window.tabBeside(tab);
    await resumed(late).waitFor();
    await model.release('end');
    await tab.sees('nothing.');
    await tab.idle();
    assert.equal(await tab.continueButton.count(), 0);
  });
});
