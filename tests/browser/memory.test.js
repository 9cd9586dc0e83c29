// What Navi remembers is shown with the place that it came from, and its user has the last word.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

describe('memory', () => {
  const it_has = world();
  const fact = () => it_has.tab.page.locator('[data-testid="fact"][data-key="sister_name"]');

  async function open() {
    await it_has.tab.page.getByTestId('open-memory').click();
    await it_has.tab.page.getByTestId('memory').waitFor();
  }

  it('shows a fact with the conversation that it came from', async () => {
    const { model, tab } = it_has;
    const save = { tool_call: { name: 'memory_save', arguments: { category: 'people', key: 'sister_name', value: 'Olena' } } };
    await model.script([save], [{ text: 'I will remember her.' }]);
    await tab.send('My sister is called Olena.');
    await tab.sees('I will remember her.');
    await tab.idle();
    assert.equal(await tab.toolCards.last().getAttribute('data-state'), 'success');
    await tab.newSession.click();

    await open();
    await fact().getByTestId('fact-value').getByText('Olena').waitFor();
    assert.equal(await fact().getAttribute('data-category'), 'people');
    assert.equal(await fact().getAttribute('data-state'), 'known');
    await tab.screenshot('memory');
    await fact().getByTestId('fact-source').click();
    await tab.sees('I will remember her.');
    assert.equal(await tab.page.getByTestId('memory').count(), 0);
  });

  it('is exported', async () => {
    const { tab } = it_has;
    await open();
    const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByTestId('memory-export').click()]);
    assert.equal(download.suggestedFilename(), 'navi-memory.json');
    const exported = JSON.parse(await readFile(await download.path(), 'utf8'));
    assert.ok(JSON.stringify(exported).includes('Olena'));
    await tab.page.getByTestId('memory-close').click();
  });

  it('leaves a correction that is refused with its writer', async () => {
    const { tab } = it_has;
    await open();
    const refuse = (route) => (route.request().method() === 'PUT' ? route.fulfill({ status: 413, json: { code: 'memory_full', message: 'the memory holds 500 facts; forget some first' } }) : route.continue());
    await tab.page.route('**/memory/**', refuse);
    await fact().getByTestId('fact-edit').click();
    await fact().getByTestId('fact-input').fill('Oksana');
    await fact().getByTestId('fact-save').click();
    await fact().getByTestId('fact-fault').getByText('forget some first').waitFor();
    assert.equal(await fact().getByTestId('fact-input').inputValue(), 'Oksana');
    await tab.screenshot('memory-refused');
    await tab.page.unroute('**/memory/**', refuse);
    await fact().getByTestId('fact-save').click();
    await fact().getByTestId('fact-value').getByText('Oksana').waitFor();
    await tab.page.getByTestId('memory-close').click();
  });

  it('is corrected', async () => {
    const { tab } = it_has;
    await open();
    await fact().getByTestId('fact-edit').click();
    await fact().getByTestId('fact-input').fill('Oksana');
    await fact().getByTestId('fact-save').click();
    await fact().getByTestId('fact-value').getByText('Oksana').waitFor();
    await tab.page.reload();
    await open();
    await fact().getByTestId('fact-value').getByText('Oksana').waitFor();
    await tab.page.getByTestId('memory-search').fill('nothing like it');
    await fact().waitFor({ state: 'detached' });
    await tab.page.getByTestId('memory-search').fill('oksana');
    await fact().waitFor();
  });

  it('is forgotten, and had back', async () => {
    const { tab } = it_has;
    await fact().getByTestId('fact-forget').click();
    await tab.page.locator('[data-testid="fact"][data-state="forgotten"]').waitFor();
    await fact().getByTestId('fact-undo').click();
    await fact().getByTestId('fact-value').getByText('Oksana').waitFor();
    await tab.page.reload();
    await open();
    await fact().getByTestId('fact-value').getByText('Oksana').waitFor();
  });

  it('and what is forgotten is gone', async () => {
    const { tab } = it_has;
    await fact().getByTestId('fact-forget').click();
    await tab.page.locator('[data-testid="fact"][data-state="forgotten"]').waitFor();
    await tab.page.reload();
    await open();
    await tab.page.getByTestId('memory-empty').waitFor();
  });

  it('is written by hand, stays with its writer where it is refused, and the next conversation has it', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    const mine = page.locator('[data-testid="fact"][data-key="favourite_tea"]');
    await page.getByTestId('memory-close').click();
    await open();
    await page.getByTestId('memory-add').click();
    await page.locator('[data-testid="fact-new-category"]:focus').waitFor();
    await page.getByTestId('fact-new-category').selectOption('preferences');
    await page.getByTestId('fact-new-name').fill('Favourite tea');
    await page.getByTestId('fact-new-value').fill('Oolong, without sugar');
    // A selection that ends beside the panel leaves it open.
    const field = await page.getByTestId('fact-new-value').boundingBox();
    await page.mouse.move(field.x + 20, field.y + field.height / 2);
    await page.mouse.down();
    await page.mouse.move(5, 5);
    await page.mouse.up();
    assert.equal(await page.getByTestId('fact-new-value').inputValue(), 'Oolong, without sugar');
    await assertLooks(tab, (name) => tab.screenshot(`${name}-memory-new`), '[data-testid="memory"]');
    const refuse = (route) => (route.request().method() === 'PUT' ? route.fulfill({ status: 413, json: { code: 'memory_full', message: 'the memory holds 500 facts; forget some first' } }) : route.continue());
    await page.route('**/memory/**', refuse);
    await page.getByTestId('fact-new-value').press('Enter');
    await page.getByTestId('fault').filter({ hasText: 'The memory holds 500 facts' }).waitFor();
    assert.equal(await page.getByTestId('fact-new-value').inputValue(), 'Oolong, without sugar');
    await page.unroute('**/memory/**', refuse);
    await page.getByTestId('fact-new-save').click();
    await mine.getByTestId('fact-value').getByText('Oolong').waitFor();
    assert.equal(await mine.getAttribute('data-category'), 'preferences');
    assert.equal(await page.getByTestId('fact-new').count(), 0);
    await page.locator('[data-testid="memory-add"]:focus').waitFor();
    await page.getByTestId('memory-close').click();

    await tab.newSession.click();
    await model.script([{ text: 'Oolong it is.' }]);
    await tab.send('Make me a tea.');
    await tab.sees('Oolong it is.');
    await tab.idle();
    const calls = await model.runCallsWhere((runs) => JSON.stringify(runs.at(-1)?.body ?? '').includes('Make me a tea.'));
    assert.ok(JSON.stringify(calls.at(-1).body).includes('Oolong, without sugar'));
  });
});
