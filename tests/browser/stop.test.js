// Stop stops, and what was said stays.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('stop', () => {
  const it_has = world();

  it('ends an answer that would not end and keeps what was said', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'This much is said' }, { hold: 'never' }, { text: ' and this is not.' }]);
    await tab.send('Speak until I stop you.');
    await tab.sees('This much is said');

    await tab.stopButton.click();
    await tab.idle();

    const [, answer] = await tab.conversation();
    assert.equal(answer.text, 'This much is said');
    assert.equal(answer.state, 'stopped');
    // The model is told to stop computing.
    await model.runCallsWhere(([call]) => typeof call.closed_early_ms === 'number');
  });

  it('ends the wait for a model that says nothing', async () => {
    const { model, tab } = it_has;
    await model.script([{ hold: 'never' }]);
    await tab.send('Are you there?');
    await model.runCallsWhere((runs) => runs.length >= 2);
    await tab.stopButton.click();
    await tab.idle();
  });

  it('leaves waiting what waits, until one says so', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'A long tale begins' }, { hold: 'never' }], [{ text: 'That was the next one.' }]);
    await tab.send('Tell a tale.');
    await tab.sees('A long tale begins');
    await tab.send('Then the next one.');
    await tab.page.getByTestId('queued-message').waitFor();
    await tab.stopButton.click();
    await tab.page.getByTestId('queue-held').waitFor();
    await tab.page.reload();
    await tab.page.getByTestId('queue-held').waitFor();
    assert.equal(await tab.page.getByTestId('queued-message').count(), 1);

    await tab.page.getByTestId('queue-go-on').click();
    await tab.sees('That was the next one.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('queued-message').count(), 0);
  });

  it('leaves the session ready for the next message', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Still here.' }]);
    await tab.send('And now?');
    await tab.sees('Still here.');
    await tab.idle();
  });
});
