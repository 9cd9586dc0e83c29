// Any number of tabs, each of them coming and going as it likes, show the same conversation.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

describe('several tabs', () => {
  const it_has = world();

  it('show the same at the end, whenever they came', async () => {
    const { model, tab: first, window } = it_has;
    const call = { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look outside'] } } };
    await model.script(
      [{ thinking: 'I should note it.' }, call],
      [{ text: 'First half, ' }, { hold: 'middle' }, { text: 'second half, ' }, { hold: 'end' }, { text: 'the end. 🌊' }],
    );
    await first.send('Tell it in three pieces.');
    await first.sees('First half');
    const second = await window.tabBeside(first);
    await second.sees('First half');

    const reloaded = await window.tabBeside(first);
    await reloaded.page.reload();
    await model.release('middle');
    await reloaded.sees('second half');
    const late = await window.tabBeside(first);
    await late.sees('First half, second half');
    await model.release('end');

    const seen = [];
    for (const tab of [first, second, reloaded, late]) {
      await tab.sees('the end. 🌊');
      await tab.idle();
      seen.push(await tab.conversation());
    }
    for (const other of seen.slice(1)) assert.deepEqual(other, seen[0]);
    assert.match(seen[0].at(-1).text, /First half, second half, the end\. 🌊/);
    assert.equal(seen[0].filter(({ role }) => role === 'user').length, 1);
  });

  it('all see what one of them sends', async () => {
    const { model, tab: first, window } = it_has;
    const second = await window.tabBeside(first);
    await model.script([{ text: 'Heard by both.' }]);

    await second.send('Does everyone hear this?');

    for (const tab of [first, second]) {
      await tab.sees('Heard by both.');
      await tab.idle();
    }
    assert.deepEqual(await first.conversation(), await second.conversation());
  });
});
