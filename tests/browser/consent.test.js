// Navi acts: she edits a file, runs a command, asks before it, and what she did can be undone.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';


const call = (name, args) => ({ tool_call: { name, arguments: args } });
const file = (action, args) => call('filesystem', { action, ...args });
const run = (command) => call('terminal', { action: 'run', command });

const BEFORE = 'one\ntwo\nfour\n';
// It waits for a file that the test puts there: its output can be watched while it runs.
const CHECK = [
  "printf '\\033[32mlooking\\033[0m at notes.txt\\n'",
  'while [ ! -e go ]; do sleep 0.1; done',
  'grep -q three notes.txt && echo the check passed',
].join('\n');

describe('a task with its hands', () => {
  const it_has = world();
  /** A second tab, and the session's folder. */
  let beside;
  let folder;

  const change = (tab) => tab.page.getByTestId('change');
  const outcomes = (tab) => tab.page.getByTestId('approval-outcome');
  const notes = () => readFile(join(folder, 'notes.txt'), 'utf8');
  const card = (tab, tool) => tab.page.locator(`[data-testid="tool-card"][data-tool="${tool}"]`);

  it('changes files of the conversation unasked, and shows what it changed', async () => {
    const { model, navi, tab, window } = it_has;
    await model.script(
      [file('write', { path: 'notes.txt', content: BEFORE }), file('write', { path: 'check.sh', content: CHECK })],
      [{ text: 'Both files are there.' }],
    );
    await tab.send('Write notes.txt and check.sh.');
    await tab.sees('Both files are there.');
    await tab.idle();

    assert.equal(await tab.page.getByTestId('mode').getAttribute('data-mode'), 'edits');
    assert.equal(await tab.page.getByTestId('approval').count(), 0);
    await tab.unfold();
    await change(tab).nth(1).waitFor();
    assert.deepEqual(await tab.page.locator('.change-path').allInnerTexts(), ['notes.txt', 'check.sh']);
    folder = join(navi.dataDir, 'session_files', new URL(tab.page.url()).hash.split('/')[2]);
    assert.equal(await notes(), BEFORE);
    beside = await window.tabBeside(tab);
    await beside.messages.first().waitFor();
  });

  it('asks before everything in the mode that says so, which every tab shows', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('mode-panel').getByText('asks before she changes anything').waitFor();
    await tab.page.getByTestId('consent-ask').check();
    await tab.page.keyboard.press('Escape');
    for (const each of [tab, beside]) await each.page.locator('[data-testid="mode"][data-mode="ask"]').waitFor();
  });

  it('asks for the edit with its difference, in every tab, and disturbs nobody who writes', async () => {
    const { model, tab } = it_has;
    await model.script([file('edit', { path: 'notes.txt', old_text: 'two', new_text: 'two\nthree' })]);
    await tab.send('Put in the missing line, then run the check.');
    await tab.composer.fill('I write on');

    for (const each of [tab, beside]) {
      const asked = each.page.locator('[data-testid="approval"][data-tool="filesystem"]');
      await asked.waitFor();
      await asked.locator('[data-testid="diff"][data-added="1"][data-removed="0"]').waitFor();
      await asked.getByTestId('approval-time').waitFor();
    }
    assert.match(await tab.page.title(), /^\(1\) Navi asks/);
    assert.match(await tab.page.getByTestId('announcer').innerText(), /^Navi asks for your consent: [^`]+$/m);
    assert.equal(await tab.page.evaluate(() => document.activeElement?.id), 'composer');
    assert.equal(await notes(), BEFORE, 'nothing is done before the answer');
    await tab.composer.fill('');
  });

  it('remembers a rule, and the other tab shows who was first', async () => {
    const { model, tab } = it_has;
    await model.script([run('sh check.sh')]);
    await beside.page.getByTestId('approve-always').click();

    await card(tab, 'filesystem').nth(2).getByText('Always allowed').waitFor();
    assert.equal(await outcomes(tab).first().getAttribute('data-elsewhere'), 'true');
    assert.equal(await outcomes(beside).first().getAttribute('data-elsewhere'), 'false');
    await tab.page.locator('[data-testid="approval"][data-tool="terminal"]').waitFor();
    assert.equal(await notes(), 'one\ntwo\nthree\nfour\n');
  });

  it('asks for the command word for word, still does after a reload, and is answered by keyboard', async () => {
    const { tab } = it_has;
    await tab.page.reload();
    const asked = tab.page.locator('[data-testid="approval"][data-tool="terminal"]');
    await asked.waitFor();
    // Nobody has anything in hand: the page itself led to the empty field.
    await tab.page.waitForFunction(() => document.activeElement?.getAttribute('data-tool') === 'terminal');
    assert.equal(await asked.getByTestId('approval-code').first().innerText(), 'sh check.sh');
    assert.equal(await card(tab, 'terminal').getAttribute('data-state'), 'asked');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-consent`));

    // So does a window that is in use again: no key answers what nobody went to.
    await tab.page.locator('[data-testid="approve-once"][aria-disabled="false"]').waitFor();
    await asked.evaluate((question) => { question.blur(); question.focus(); });
    await tab.page.keyboard.press('n');
    assert.equal(await asked.getByTestId('approve-deny').getAttribute('aria-disabled'), 'false');

    // From where one writes it is one step back.
    await tab.composer.focus();
    await tab.page.keyboard.press('Shift+Tab');
    assert.ok(await asked.evaluate((card) => card.contains(document.activeElement)));
    await tab.page.locator('[data-testid="approve-once"][aria-disabled="false"]').waitFor();
    await tab.page.keyboard.press('y');
    await asked.waitFor({ state: 'detached' });
  });

  it('shows what the command prints while it runs, in its colours, after a reload too', async () => {
    const { model, tab } = it_has;
    const output = tab.page.getByTestId('output-text');
    await output.getByText('looking at notes.txt').waitFor();
    const green = output.locator('.ansi-fg-green', { hasText: /^looking$/ });
    await green.waitFor();
    await tab.page.reload();
    await green.waitFor();
    assert.equal(await output.getByText('the check passed').count(), 0);

    await model.script(
      [file('edit', { path: 'notes.txt', old_text: 'four', new_text: 'four\nfive' })],
      [{ text: 'The line is in, and the check passed.' }],
    );
    await writeFile(join(folder, 'go'), '');
    await tab.sees('The line is in, and the check passed.');
    await tab.idle();
  });

  it('asked twice: what the rule covers was not asked about again', async () => {
    const { tab } = it_has;
    assert.equal(await notes(), 'one\ntwo\nthree\nfour\nfive\n');
    await beside.sees('The line is in, and the check passed.');
    await beside.idle();
    await beside.unfold();
    assert.equal(await outcomes(beside).count(), 2, 'one for the edit, one for the command');
    await card(beside, 'filesystem').last().getByTestId('change').waitFor();
    assert.equal(await card(beside, 'filesystem').last().getByTestId('approval-outcome').count(), 0);

    await tab.page.getByTestId('open-permissions').click();
    await tab.page.locator('[data-testid="rule"][data-tool="filesystem"][data-decision="allow"]').waitFor();
    assert.equal(await tab.page.getByTestId('rule').count(), 1);
    await tab.page.getByTestId('tab-log').click();
    await tab.page.locator('[data-testid="log-entry"][data-tool="terminal"][data-by="user"]').waitFor();
    await tab.page.locator('[data-testid="log-entry"][data-tool="filesystem"][data-by="rule"]').waitFor();
    await tab.screenshot('permissions-log');
    await tab.page.getByTestId('permissions-close').click();
  });

  it('undoes an edit', async () => {
    const { tab } = it_has;
    await tab.unfold();
    const last = card(tab, 'filesystem').last();
    await last.locator('.tool-head').click();
    await last.locator('[data-testid="diff"][data-added="1"]').waitFor();
    await tab.screenshot('change-with-undo');
    await last.getByTestId('undo-change').click();
    await last.getByTestId('change-note').waitFor();
    assert.equal(await notes(), 'one\ntwo\nthree\nfour\n');

    await beside.page.reload();
    await beside.page.getByTestId('work').last().waitFor();
    await beside.unfold();
    await card(beside, 'filesystem').last().getByTestId('change-note').waitFor();
  });

  it('asks again when the rule is taken back, and does nothing that is denied', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('open-permissions').click();
    await tab.page.getByTestId('rule-delete').click();
    await tab.page.getByTestId('rules-empty').waitFor();
    await tab.page.getByTestId('permissions-close').click();

    await model.script([file('delete', { path: 'notes.txt' })], [{ text: 'Then I leave it.' }]);
    await tab.send('Delete the notes.');
    await tab.page.getByTestId('approve-deny').click();
    await tab.sees('Then I leave it.');
    await tab.idle();
    await outcomes(tab).last().getByText('Denied').waitFor();
    assert.equal(await card(tab, 'filesystem').last().getAttribute('data-state'), 'denied');
    assert.equal(await notes(), 'one\ntwo\nthree\nfour\n');
  });

  it('marks the mode that asks about nothing', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-auto').check();
    await tab.page.locator('[data-testid="mode"][data-mode="auto"]').waitFor();
    await tab.screenshot('mode-auto');
    await tab.page.keyboard.press('Escape');
    await beside.page.locator('[data-testid="mode"][data-mode="auto"]').waitFor();
  });

  it('asks for a subagent where one looks', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-ask').check();
    await tab.page.locator('[data-testid="mode"][data-mode="ask"]').waitFor();
    await tab.page.keyboard.press('Escape');
    await model.script(
      { when: 'Let somebody write', steps: [call('spawn_agent', { task: 'Write a line to log.txt.' })] },
      { when: 'Write a line to log.txt.', steps: [file('write', { path: 'log.txt', content: 'a line\n' })] },
      { when: 'Write a line to log.txt.', steps: [{ text: 'It is written.' }] },
      { when: 'Let somebody write', steps: [{ text: 'Somebody wrote it.' }] },
    );
    await tab.send('Let somebody write the log.');
    const asked = tab.page.getByTestId('question').getByTestId('approval');
    await asked.getByTestId('approval-subagent').waitFor();
    await asked.getByText('Write a line to log.txt.').waitFor();
    await asked.getByTestId('approve-once').click();
    await tab.sees('Somebody wrote it.');
    await tab.idle();
    assert.equal(await readFile(join(folder, 'log.txt'), 'utf8'), 'a line\n');
  });
});
