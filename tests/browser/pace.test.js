// How far a model has read, and how quickly it wrote.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('a model that tells how far it is', () => {
  const it_has = world({ backend: 'openai', config: { ollama: false, owned_by: 'llamacpp', slots: 1 } });

  it('is shown as far as it has read', async () => {
    const { model, tab } = it_has;
    await model.script([
      { prefill: { read: 410, total: 1000 } }, { hold: 'reads' }, { prefill: { read: 800, total: 1000 } }, { hold: 'still' },
      { text: 'It is ' }, { hold: 'writes' }, { text: 'long.' },
      { finish: { reason: 'stop', prompt_tokens: 1000, completion_tokens: 40 } },
    ]);
    await tab.send('A long text.');
    await tab.statusLine.getByText('41%').waitFor();
    const progress = tab.statusLine.getByRole('progressbar', { name: 'the model has read 410 of 1000 tokens of the conversation' });
    assert.deepEqual(await progress.evaluate(({ value, max }) => [value, max]), [410, 1000]);
    assert.doesNotMatch(await tab.statusLine.innerText(), /410/);
    await tab.screenshot('waiting-prefill');
    await model.release('reads');
    await tab.statusLine.getByText('80%').waitFor();
    await model.release('still');
    await tab.sees('It is');
    await model.release('writes');
    await tab.sees('It is long.');
    await tab.idle();
  });

  it('is shown as quick as it wrote, at the answer and at its call', async () => {
    const { tab } = it_has;
    const pace = tab.answers.last().getByTestId('answer-pace');
    assert.equal(await pace.count(), 0, 'asked for where somebody looks');
    await tab.answers.last().locator('time').hover();
    await pace.getByText(/^ · \d.* tokens\/s · first word after \d/).waitFor();
    await tab.page.getByTestId('run-details').click();
    await tab.page.getByTestId('call-pace').getByText(/^\d.* tokens\/s$/).waitFor();
    await tab.page.keyboard.press('Escape');
  });
});
