// One run with all that a run can have, as a person watches it who reloads the page in the
// middle: it looks the same.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const REQUEST = 'Move the site to the new server: count its files, read the old log, write a note on it.';
const PLAN = [
  'MILESTONE: Look around',
  '1. Count the files of the site | AGENT: secretary',
  '2. Read the log of the old server | AGENT: server_admin',
  'MILESTONE: Do it',
  '3. Write the note | TOOL: filesystem',
  '4. Tell how it went | SELF',
].join('\n');
const FILES = 'List the files of the site and say how many there are.';
const LOG = 'Find the log of the old server and say what stands in it.';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const mark = (ids, status, more = {}) => call('todo', { action: 'mark', ids, status, ...more });
const spawn = (task, profile_id) => call('spawn_agent', { task, profile_id });

// The window is large enough for the run; only what the model says that it read fills it.
const settings = { OLLAMA_NUM_CTX: '32768', CONTEXT_KEEP_RECENT: '1', CONTEXT_COMPRESSION_THRESHOLD: '0.8' };
const FULL = { finish: { reason: 'stop', prompt_tokens: 30_000, completion_tokens: 20 } };

// The model that the profiles ask for: that another one answers instead is told but once, live.
const config = { models: ['gemma4:26b-a4b-it-q4_K_M'] };

describe('a whole run', () => {
  const it_has = world({ settings, config });

  /** What is seen now is seen after a reload, too. */
  async function staysTheSame() {
    const { tab } = it_has;
    await tab.unfold();
    const before = await tab.look();
    await tab.page.reload();
    await tab.messages.first().waitFor();
    await tab.unfold();
    await tab.looksLike(before);
  }

  const stepsAre = async (...statuses) => {
    const { tab } = it_has;
    for (const [at, status] of statuses.entries()) {
      await tab.page.locator(`[data-testid="plan-step"][data-number="${at + 1}"][data-status="${status}"]`).waitFor();
    }
    assert.deepEqual(await tab.steps(), statuses);
  };

  it('comes after a first exchange', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Good morning. The old server is called Marigold.' }]);
    await tab.send('Good morning!');
    await tab.sees('Marigold');
    await tab.idle();
    assert.equal(await tab.plan.count(), 0, 'small talk has no plan');
  });

  it('shows the plan before it is carried out', async () => {
    const { model, tab } = it_has;
    await model.script(
      { streamed: false, system: 'DIRECT', when: 'Move the site', steps: [{ text: 'Two places to look at.\nREFLECT: no' }] },
      { streamed: false, system: 'TOOL: tool_name', steps: [{ text: PLAN }] },
      { with_tools: true, when: REQUEST, steps: [{ hold: 'begin' }, mark([1, 2], 'in_progress')] },
    );
    await tab.send(REQUEST);

    await stepsAre('pending', 'pending', 'pending', 'pending');
    const executors = await tab.page.getByTestId('plan-executor').evaluateAll((chips) => chips.map(({ dataset }) => dataset.executor));
    assert.deepEqual(executors, ['agent', 'agent', 'tool', 'self']);
    assert.deepEqual(await tab.page.getByTestId('plan-milestone').allInnerTexts(), ['Look around', 'Do it']);
    await tab.stopButton.waitFor();
  });

  it('has two subagents at once, and looks the same after a reload while they work', async () => {
    const { model, tab } = it_has;
    await model.script(
      { with_tools: true, when: REQUEST, steps: [{ thinking: 'Both can be looked at now.' }, spawn(FILES, 'secretary'), spawn(LOG, 'server_admin')] },
      { when: FILES, steps: [{ thinking: 'I list them.' }, call('filesystem', { action: 'list', path: '.' })] },
      { when: LOG, steps: [{ text: 'I look for the log.' }, call('filesystem', { action: 'read', path: 'old/server.log' })] },
      { when: FILES, steps: [{ text: 'There are ' }, { hold: 'counted' }, { text: 'three files.' }] },
      { when: LOG, steps: [{ text: 'There is ' }, { hold: 'counted' }, { text: 'no log of the old server.' }] },
    );
    await model.release('begin');

    await stepsAre('in_progress', 'in_progress', 'pending', 'pending');
    const [files, log] = [tab.subagents.filter({ hasText: FILES }), tab.subagents.filter({ hasText: LOG })];
    // There is one model: once it speaks to one of them for the second time, whichever that is, the other one waits for it,
    // whether it was spoken to before or not.
    const isOf = ({ body }, task) => body.messages.some(({ content }) => content.includes(task));
    const runs = await model.runCallsWhere((all) => all.some((run) =>
      [FILES, LOG].some((task) => isOf(run, task)) && run.body.messages.at(-1).role === 'tool'));
    await tab.unfold();
    await tab.page.getByText(/There (are|is)/).waitFor();
    const activity = (text) => tab.page.getByTestId('subagent-activity').filter({ hasText: text });
    await activity('The model answers somebody else first').waitFor();
    await activity('Writing').waitFor();
    assert.deepEqual([await files.getAttribute('data-profile'), await log.getAttribute('data-profile')], ['secretary', 'server_admin']);

    await staysTheSame();

    assert.equal(await tab.subagents.and(tab.page.locator('[data-state="running"]')).count(), 2);
    if (runs.some((run) => isOf(run, LOG))) await log.getByText('I look for the log.').waitFor();
  });

  it('has a step that fails, and plans anew', async () => {
    const { model, tab } = it_has;
    await model.script(
      { with_tools: true, when: REQUEST, steps: [mark([1], 'done', { validation: 'three files' }), mark([2], 'failed', { note: 'there is no log' })] },
      { with_tools: true, when: REQUEST, last: '[replan]', steps: [{ text: 'Then another way.' }, call('todo', { action: 'add', texts: ['Ask the owner for the log'] })] },
      { with_tools: true, when: REQUEST, steps: [{ hold: 'planned' }, call('switch_profile', { profile_id: 'server_admin' })] },
    );
    await model.release('counted');

    await stepsAre('done', 'failed', 'pending', 'pending', 'pending');
    await tab.planSteps.filter({ hasText: 'there is no log' }).waitFor();
    await tab.planSteps.filter({ hasText: 'Ask the owner for the log' }).waitFor();
    assert.equal(await tab.todo.count(), 0, 'one list');
    for (const subagent of await tab.subagents.all()) {
      assert.equal(await subagent.getAttribute('data-state'), 'success');
      assert.equal(await subagent.getAttribute('data-completed'), 'true');
    }
    const calls = await model.runCallsWhere((runs) => runs.some(({ body }) => JSON.stringify(body).includes('[replan]')));
    const notes = calls.map(({ body }) => body.messages.map(({ content }) => content).find((content) => content?.includes('[replan]')));
    const told = notes.filter(Boolean);
    assert.equal(told.length, 1, 'in the next request, and only there');
    assert.match(told[0], /step 2: Read the log of the old server \(there is no log\)/);
  });

  it('goes on under another profile, and looks the same after a reload', async () => {
    const { model, tab } = it_has;
    await model.script(
      { with_tools: true, system: 'You help to run servers', steps: [call('filesystem', { action: 'write', path: 'note.md', content: 'Three files, no log.' })] },
      {
        with_tools: true, system: 'You help to run servers', when: REQUEST,
        steps: [{ text: 'The note is written, ' }, { hold: 'noted' }, { text: 'now the rest.' }, mark([3, 4], 'done', { validation: 'note.md is there' }), mark([5], 'skipped', { note: 'nobody to ask' })],
      },
    );
    await model.release('planned');

    await tab.page.locator('[data-testid="profile-divider"][data-profile="server_admin"]').waitFor();
    await tab.sees('The note is written,');
    assert.equal(await tab.page.getByTestId('profile-name').innerText(), 'Server Administrator');
    // What was changed is asked for beside the events.
    await tab.page.getByRole('button', { name: 'Undo: note.md' }).waitFor();

    await staysTheSame();
  });

  it('ends in an answer, and the old part is summed up', async () => {
    const { model, tab } = it_has;
    await model.script(
      { with_tools: true, system: 'You help to run servers', when: REQUEST, steps: [{ text: 'The site is moved: **three files**. There was no log.' }, FULL] },
      { streamed: false, system: 'You shorten the old part', steps: [{ text: '- The old server is called Marigold.' }] },
    );
    await model.release('noted');

    await tab.sees('three files');
    await tab.idle();
    await stepsAre('done', 'failed', 'done', 'done', 'skipped');
    await tab.page.getByTestId('compression-divider').waitFor();
    await staysTheSame();
    assert.match(await tab.page.getByTestId('compression-summary').innerText(), /Marigold/);
  });

  it('leads from what fills the context to where that was cut', async () => {
    const { page } = it_has.tab;
    await page.getByTestId('context-meter').click();
    await page.getByTestId('context-cut').click();
    await page.waitForFunction((request) => document.activeElement?.matches('article') && document.activeElement.innerText.includes(request), REQUEST);
  });

  it('looks the same to a tab that comes late', async () => {
    const { tab, window } = it_has;
    const before = await tab.look();
    const late = await window.tabBeside(tab);
    await late.messages.first().waitFor();
    await late.unfold();
    await late.looksLike(before);
    await late.page.close();
  });

  it('is what the next question is answered from', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Marigold, as I said.' }]);
    await tab.send('What was the name of the old one?');
    await tab.sees('Marigold, as I said.');
    await tab.idle();
    const calls = await model.runCallsWhere((runs) => runs.some(({ body }) => JSON.stringify(body).includes('the old one?')));
    const last = JSON.stringify(calls.at(-1).body.messages);
    assert.ok(!last.includes('Good morning!'), 'the old words are not sent again');
    assert.match(last, /Notes on the earlier part.*The old server is called Marigold/);
    assert.ok(last.includes(REQUEST), 'the last turn is');
  });

  it('can be looked at, wide and narrow, dark and light', async () => {
    const { tab } = it_has;
    await tab.unfold();
    const parts = { plan: tab.plan.first(), subagents: tab.subagents.first(), switch: tab.page.getByTestId('profile-divider').first(), compression: tab.page.getByTestId('compression-divider') };
    await assertLooks(tab, async (name) => {
      for (const [part, place] of Object.entries(parts)) {
        await place.evaluate((element) => element.scrollIntoView({ block: 'start' }));
        await tab.screenshot(`${name}-run-${part}`);
      }
    });
  });
});
