// A run that goes on can be spoken to, a part of it stopped, and it says what it waits for.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });

describe('a run under way', () => {
  const it_has = world();

  it('loses one subagent when that is stopped, and goes on', async () => {
    const { model, tab } = it_has;
    await model.script(
      { when: 'Ask both', steps: [call('spawn_agent', { task: 'Count slowly.' }), call('spawn_agent', { task: 'Count quickly.' })] },
      { when: 'Count slowly.', always: true, steps: [{ text: 'One, ' }, { hold: 'never' }] },
      { when: 'Count quickly.', steps: [{ text: 'Onetwothree.' }] },
      { when: 'Ask both', steps: [{ text: 'One of them has counted.' }] },
    );
    await tab.send('Ask both of them.');
    const slow = tab.subagents.filter({ hasText: 'Count slowly.' });
    const quick = tab.subagents.filter({ hasText: 'Count quickly.' });
    await slow.getByText('Writing').waitFor();

    await slow.getByTestId('subagent-stop').click();

    await tab.sees('One of them has counted.');
    await tab.idle();
    assert.equal(await slow.getAttribute('data-completed'), 'false');
    assert.equal(await quick.getAttribute('data-completed'), 'true');
    const calls = await model.runCallsWhere((runs) => JSON.stringify(runs.at(-1).body).includes('completed_normally: true'));
    const results = calls.at(-1).body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    assert.equal(results.length, 2);
    assert.match(results[0], /completed_normally: false/);
    assert.match(results[1], /completed_normally: true\s+Onetwothree\./);

    const seen = async () => tab.subagents.evaluateAll((all) => all.map((it) => [it.innerText, it.dataset.state, it.dataset.completed]));
    const before = await seen();
    await tab.page.reload();
    // The profiles' names come after the conversation.
    await tab.subagents.nth(1).getByText('Personal Secretary').waitFor();
    assert.deepEqual(await seen(), before, 'folded as they are after a reload');
  });

  it('takes in what is said to it before its next step', async () => {
    const { model, tab } = it_has;
    await model.script(
      { when: 'Write the list', steps: [{ text: 'I begin.' }, { hold: 'steered' }, call('todo', { action: 'list' })] },
      { when: 'in French', steps: [{ text: 'Bien sûr.' }] },
    );
    await tab.send('Write the list');
    await tab.sees('I begin.');

    await tab.page.getByTestId('mode-steer').check();
    await tab.send('Write it in French');
    await tab.page.locator('[data-testid="queued-message"][data-mode="steer"]').waitFor();
    await model.release('steered');

    await tab.sees('Bien sûr.');
    await tab.idle();
    await tab.page.getByTestId('steered-tag').waitFor();
    assert.equal(await tab.page.getByTestId('queued-message').count(), 0);
    await tab.unfold();
    const before = await tab.look();
    await tab.page.reload();
    await tab.messages.first().waitFor();
    await tab.unfold();
    await tab.looksLike(before);
  });

  it('says that it waits for the model, which answers in another session', async () => {
    const { model, tab, window } = it_has;
    await model.script({ when: 'Speak for long', steps: [{ text: 'Well, ' }, { hold: 'said' }, { text: 'that is all.' }] });
    await tab.send('Speak for long');
    await tab.sees('Well,');

    const other = await window.tabBeside(tab);
    await other.newSession.click();
    await model.script({ when: 'Me too', steps: [{ text: 'Now to you.' }] });
    await other.send('Me too');
    await other.page.locator('[data-testid="status-line"][data-reason="lane"]').waitFor();
    assert.match(await other.statusLine.innerText(), /busy with an answer in another conversation/);
    await other.screenshot('waiting-lane');
    await model.release('said');

    await tab.sees('that is all.');
    await other.sees('Now to you.');
    await other.idle();
    assert.equal(await other.statusLine.count(), 0);
  });
});
