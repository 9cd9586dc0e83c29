// The server dies in mid-answer and comes back; nobody reloads anything.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

/** Words that a model says one by one, with so much time between them. */
function wordByWord(count, delay_ms) {
  return Array.from({ length: count }, (_, at) => [{ text: `word${at + 1}. ` }, { delay_ms }]).flat();
}

describe('kill -9 in mid-answer', () => {
  const it_has = world();

  it('leaves what was done and said, and a page that finds back by itself', async () => {
    const { model, navi, tab } = it_has;
    const call = { tool_call: { name: 'filesystem', arguments: { action: 'list' } } };
    await model.script([{ text: 'I note that first.' }, call], [...wordByWord(10, 100), { delay_ms: 2000 }, { text: 'word11. ' }, { hold: 'never' }]);
    await tab.send('Tell me something long.');
    await tab.sees('word11.');
    const before = await tab.conversation();
    // Answered when all that is on its way to the disk is there.
    await tab.page.evaluate(async () => (await fetch(`sessions/${location.hash.slice(4)}`, { headers: { 'x-navi-key': localStorage.getItem('navi.key') } })).json());

    await navi.kill();
    await tab.page.getByText(/reconnecting/i).first().waitFor();
    await navi.start();

    const after = await tab.conversationWhere((now) => now.at(-1)?.state === 'interrupted');
    assert.deepEqual(after.slice(0, -1), before.slice(0, -1), 'all but the open answer is as it was');
    assert.equal(after[1].tools.length, 1);
    assert.equal(after.at(-1).id, before.at(-1).id);
    // A quarter of a second may be lost; what was said two seconds before is there.
    assert.match(after.at(-1).text, /^word1\. .*word10\./);
    await tab.continueButton.waitFor();
    await tab.idle();
  });

  it('and the next message is answered', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Back again.' }]);
    await tab.send('Are you back?');
    await tab.sees('Back again.');
    await tab.idle();
  });
});
