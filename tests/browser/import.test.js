// Conversations come from files, and go back into them.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

describe('conversations as files', () => {
  const it_has = world();
  const input = () => it_has.tab.page.getByTestId('import-input');
  const item = (text) => it_has.tab.sessions.filter({ hasText: text });

  async function command(words) {
    const { page } = it_has.tab;
    await page.keyboard.press('ControlOrMeta+k');
    await page.getByTestId('palette-input').fill(words);
    await page.locator('[data-testid="palette-option"][aria-selected="true"]').filter({ hasText: words }).waitFor();
    await page.keyboard.press('Enter');
  }

  const file = (name, value) => ({ name, mimeType: 'application/json', buffer: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)) });

  it('exports one, imports it, and shows the same', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Rivers run to the **sea**.' }]);
    await tab.send('Where do rivers run?');
    await tab.sees('Rivers run to the');
    await tab.idle();
    const said = await tab.conversation();
    const saved = tab.page.waitForEvent('download');
    await command('Export the conversation as JSON');
    const exported = await readFile(await (await saved).path(), 'utf8');

    await command('Import conversations');
    await input().setInputFiles(file('rivers.json', exported));
    await tab.page.getByTestId('import').waitFor({ state: 'detached' });
    await item('Where do rivers run?').nth(1).waitFor();
    await tab.sees('Rivers run to the');
    const words = (messages) => messages.map(({ role, text }) => ({ role, text }));
    // The one that it was exported from stands there until then.
    const imported = await tab.conversationWhere((messages) => messages.length === said.length && messages[0].id !== said[0].id);
    assert.deepEqual(words(imported), words(said));
    // It goes on, and knows that its words are from outside.
    await model.script([{ text: 'Yes.' }]);
    await tab.send('All of them?');
    await tab.sees('Yes.');
    await tab.idle();
  });

  it('takes in files of others, and says which it cannot read', async () => {
    const { tab } = it_has;
    const chat_gpt = [{
      title: 'A trip to Lviv', create_time: 1_750_000_000, update_time: 1_750_000_100, current_node: 'b',
      mapping: {
        a: { id: 'a', parent: null, children: ['b'], message: { author: { role: 'user' }, content: { content_type: 'text', parts: ['Two days in Lviv?'] } } },
        b: { id: 'b', parent: 'a', children: [], message: { author: { role: 'assistant' }, content: { content_type: 'text', parts: ['Begin at the Rynok square.'] } } },
      },
    }];
    const open_ai = { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'What is a fjord?' }, { role: 'assistant', content: 'A drowned valley.' }] };
    const broken = { messages: [{ role: 'user', content: 'x' }, { role: 'tool', content: 'y', tool_call_id: 'nowhere' }] };
    await command('Import conversations');
    await input().setInputFiles([file('conversations.json', chat_gpt), file('chat.json', open_ai), file('broken.json', broken), file('notes.json', 'no JSON at all')]);
    const problems = tab.page.getByTestId('import-problems');
    await problems.getByText('broken.json').waitFor();
    await problems.getByText('notes.json').waitFor();
    assert.equal(await problems.locator('li').count(), 2);
    await problems.getByText('message 2').waitFor();
    await assertLooks(tab, (size) => tab.screenshot(`import-${size}`), 'dialog[open]');
    await tab.page.getByTestId('import-close').click();
    // The first of them is open.
    await tab.sees('Begin at the Rynok square.');
    await item('A trip to Lviv').waitFor();
    await item('What is a fjord?').click();
    await tab.sees('A drowned valley.');
  });

  it('shows what fills the context', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    await tab.newSession.click();
    await model.script([{ text: 'Two.' }]);
    await tab.send('One and one?');
    await tab.sees('Two.');
    await tab.idle();
    await page.getByTestId('context-meter').click();
    const part = (name) => page.locator(`[data-testid="context-part"][data-name="${name}"]`);
    for (const name of ['system', 'tools', 'turns', 'answer', 'free']) await part(name).waitFor();
    assert.match(await part('turns').innerText(), /\d/);
    await assertLooks(tab, (size) => tab.screenshot(`context-${size}`), 'dialog[open]');
    await page.getByTestId('context-now').click();
    const next = page.getByTestId('context-next');
    await next.locator('[data-testid="sent-message"][data-role="system"]').waitFor();
    await next.locator('[data-testid="sent-message"][data-role="assistant"]').getByText('Two.').first().waitFor();
    await assertLooks(tab, (size) => tab.screenshot(`context-now-${size}`), 'dialog[open]');
    await page.getByTestId('context-now').click();
    await next.waitFor({ state: 'detached' });
    await page.getByTestId('context-sent').click();
    await page.getByTestId('run-panel').waitFor();
    await page.getByTestId('context').waitFor({ state: 'detached' });
    await page.getByTestId('run-row').first().waitFor();
    await page.getByTestId('run-close').click();
  });
});
