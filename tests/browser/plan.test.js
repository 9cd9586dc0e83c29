// The steps of a plan are changed from any tab, by mouse, touch and keyboard, and the model is told.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const PLAN = '1. Read the notes | SELF\n2. Write the letter | SELF\n3. Send it | SELF';

/** Answers in which a plan is made; the model waits at the gate before its first step. */
const planned = (gate, plan = PLAN) => [
  { system: 'You sort a user', streamed: false, steps: [{ text: 'Some work.\nREFLECT: no' }] },
  { system: 'You write the plan', streamed: false, steps: [{ text: plan }] },
  { with_tools: true, steps: [{ text: 'I begin. ' }, { hold: gate }, { tool_call: { name: 'todo', arguments: { action: 'list' } } }] },
];

describe('the steps of a plan', () => {
  const it_has = world();

  const step = (tab, number) => tab.page.locator(`[data-testid="plan-step"][data-number="${number}"]`);

  /** Waits until the steps stand so: their numbers in order, each with its status. */
  async function stand(tab, ...expected) {
    await tab.page.waitForFunction((wanted) => wanted === [...document.querySelectorAll('[data-testid="plan-step"]')]
      .map(({ dataset }) => `${dataset.number} ${dataset.status}${dataset.held === 'true' ? ' held' : ''}`).join(', '), expected.join(', '));
  }

  /** Waits until the keyboard is at this. */
  const focusAt = (tab, testId) => tab.page.waitForFunction((wanted) => document.activeElement?.getAttribute('data-testid') === wanted, testId);

  async function unfold(tab, number) {
    const more = step(tab, number).getByTestId('step-more');
    if ((await more.getAttribute('aria-expanded')) === 'false') await more.click();
  }

  /** Presses a button of a step, which is unfolded for it. */
  async function press(tab, number, action) {
    await unfold(tab, number);
    await step(tab, number).getByTestId(`step-${action}`).click();
  }

  it('are skipped, held, moved, reworded and added in one tab, seen in the other, and told to the model', async () => {
    const { model, tab, window } = it_has;
    await model.script(...planned('changed'), { with_tools: true, steps: [{ text: 'The letter is written.' }] });
    await tab.send('Write the letter.');
    await tab.sees('I begin.');
    const other = await window.tabBeside(tab);
    await stand(other, '1 pending', '2 pending', '3 pending');

    await press(tab, 1, 'skip');
    await press(other, 3, 'hold');
    for (const one of [tab, other]) await stand(one, '1 skipped', '2 pending', '3 pending held');
    assert.match(await step(other, 1).innerText(), /skipped by you/);
    assert.match(await step(tab, 3).innerText(), /held by you/);

    await tab.page.getByTestId('step-add').click();
    await tab.page.getByTestId('step-add-input').fill('Ask Olha');
    await tab.page.keyboard.press('Enter');
    await stand(other, '1 skipped', '2 pending', '3 pending held', '4 pending');
    await press(other, 4, 'up');
    await press(other, 2, 'rewrite');
    await other.page.getByTestId('step-input').fill('Write the letter in English');
    await other.page.getByTestId('step-save').click();
    await other.page.getByTestId('step-input').waitFor({ state: 'detached' });
    await stand(tab, '1 skipped', '2 pending', '4 pending', '3 pending held');
    await step(tab, 2).getByText('reworded by you').waitFor();
    assert.match(await step(tab, 2).innerText(), /Write the letter in English\s+reworded by you/);
    await assertLooks(tab, (name) => tab.screenshot(`plan-edited-${name}`), 'navi-plan');

    await model.release('changed');
    await tab.sees('The letter is written.');
    await tab.idle();
    const told = (await model.runCallsWhere((runs) => runs.length >= 2)).at(-1).body.messages.at(-1).content;
    for (const words of ['Skipped, leave out: 1', 'Held, do not begin before the user releases it: 3', 'Added: 4 "Ask Olha"', 'Reworded: 2 "Write the letter in English"', 'order: 2, 4, 3 (held)']) {
      assert.ok(told.includes(words), `${words}\n${told}`);
    }
    // A page that is loaded again shows the same, and takes it back.
    await other.page.reload();
    await stand(other, '1 skipped', '2 pending', '4 pending', '3 pending held');
    await press(other, 3, 'release');
    await press(other, 1, 'restore');
    await stand(tab, '1 pending', '2 pending', '4 pending', '3 pending');
  });

  it('are changed with the keyboard alone, which keeps its place', async () => {
    const { model, tab } = it_has;
    await tab.newSession.click();
    await model.script(...planned('typed'), { with_tools: true, steps: [{ text: 'All done.' }] });
    await tab.send('Write another letter.');
    await tab.sees('I begin.');
    const { page } = tab;
    await step(tab, 3).getByTestId('step-more').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await focusAt(tab, 'step-skip');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await focusAt(tab, 'step-up');
    await page.keyboard.press('Enter');
    await stand(tab, '1 pending', '3 pending', '2 pending');
    await focusAt(tab, 'step-up');
    await page.keyboard.press('Enter');
    await stand(tab, '3 pending', '1 pending', '2 pending');
    // It can go no further up.
    await focusAt(tab, 'step-more');
    await step(tab, 3).getByTestId('step-skip').focus();
    await page.keyboard.press('Space');
    await stand(tab, '3 skipped', '1 pending', '2 pending');
    // What takes it back is where the keyboard is.
    await focusAt(tab, 'step-restore');
    await page.keyboard.press('Escape');
    await focusAt(tab, 'step-more');
    assert.equal(await step(tab, 3).getByTestId('step-restore').count(), 0);

    await step(tab, 1).getByTestId('step-more').focus();
    await page.keyboard.press('Enter');
    await step(tab, 1).getByTestId('step-rewrite').focus();
    await page.keyboard.press('Enter');
    await focusAt(tab, 'step-input');
    await page.keyboard.type('Read them all');
    await page.keyboard.press('Enter');
    await step(tab, 1).getByText('Read them all').waitFor();
    await focusAt(tab, 'step-more');
    await model.release('typed');
    await tab.sees('All done.');
    await tab.idle();
    // Nothing was left in progress, and what is held waits for nobody.
    await stand(tab, '3 skipped', '1 pending', '2 pending');
  });

  it('are changed where they stand above the composer, once the conversation has gone on', async () => {
    const { tab } = it_has;
    await tab.send('Thanks!');
    await tab.todo.waitFor();
    await tab.todo.locator('.todo-head').click();
    const item = tab.todo.getByTestId('todo-item').nth(1);
    await item.getByTestId('step-more').click();
    await item.getByTestId('step-hold').click();
    await item.getByText('held by you').waitFor();
    await stand(tab, '3 skipped', '1 pending held', '2 pending');
    // What comes next is what is not held.
    await tab.todo.locator('.todo-current').getByText('Write the letter').waitFor();
    await tab.idle();
    await assertLooks(tab, (name) => tab.screenshot(`todo-edited-${name}`), 'navi-todo');
    await item.getByTestId('step-release').click();
    await stand(tab, '3 skipped', '1 pending', '2 pending');
    await tab.todo.locator('.todo-head').click();
  });

  it('say why an edit is refused, and keep the words', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('step-add').click();
    const field = tab.page.getByTestId('step-add-input');
    await field.fill('a \u202e b');
    await tab.page.keyboard.press('Enter');
    await tab.page.getByTestId('toast').waitFor();
    assert.equal(await field.inputValue(), 'a \u202e b');
    await tab.page.keyboard.press('Escape');
    await tab.page.getByTestId('step-add').waitFor();
  });

  it('cannot be changed while there is no connection', async () => {
    const { tab, navi } = it_has;
    await unfold(tab, 1);
    await step(tab, 1).locator('[data-testid="step-skip"]:enabled').waitFor();
    await navi.kill();
    await step(tab, 1).locator('[data-testid="step-skip"]:disabled').waitFor();
    await tab.page.locator('[data-testid="step-add"]:disabled').waitFor();
    await navi.start();
    await step(tab, 1).getByTestId('step-skip').click();
    await stand(tab, '3 skipped', '1 skipped', '2 pending');
  });

  it('stand under each heading once, wherever they are moved', async () => {
    const { model, tab } = it_has;
    await tab.newSession.click();
    await model.script(...planned('headed', '## Gather\n1. Read the notes | SELF\n2. Ask Olha | SELF\n## Write\n3. Write the letter | SELF\n4. Send it | SELF'), { with_tools: true, steps: [{ text: 'Sent.' }] });
    await tab.send('Write a third letter.');
    await tab.sees('I begin.');
    await stand(tab, '1 pending', '2 pending', '3 pending', '4 pending');
    const headings = () => tab.page.getByTestId('plan-milestone').allInnerTexts();
    assert.deepEqual(await headings(), ['Gather', 'Write']);
    await press(tab, 3, 'rewrite');
    await tab.page.getByTestId('step-input').fill('Write it in English');
    await tab.page.keyboard.press('Enter');
    await step(tab, 3).getByText('reworded by you').waitFor();
    await tab.page.getByTestId('step-input').waitFor({ state: 'detached' });
    await press(tab, 3, 'up');
    await stand(tab, '1 pending', '3 pending', '2 pending', '4 pending');
    assert.deepEqual(await headings(), ['Gather', 'Write']);
    await press(tab, 3, 'up');
    await stand(tab, '3 pending', '1 pending', '2 pending', '4 pending');
    assert.deepEqual(await headings(), ['Gather', 'Write']);
    for (const order of ['3142', '3412', '4312']) {
      await press(tab, 4, 'up');
      await stand(tab, ...[...order].map((number) => `${number} pending`));
    }
    assert.equal(new Set(await headings()).size, (await headings()).length);
  });

  it('take no press that was meant for what stood there before', async () => {
    const { model, tab, window } = it_has;
    const other = await window.tabBeside(tab);
    await stand(other, '4 pending', '3 pending', '1 pending', '2 pending');
    const { mouse } = tab.page;
    await unfold(tab, 1);
    await step(tab, 1).getByTestId('step-skip').hover();
    await mouse.down();
    await press(other, 1, 'skip');
    await stand(tab, '4 pending', '3 pending', '1 skipped', '2 pending');
    await mouse.up();
    // What is done after it shows that nothing came of that.
    await press(other, 2, 'skip');
    for (const one of [tab, other]) await stand(one, '4 pending', '3 pending', '1 skipped', '2 skipped');
    assert.equal(await step(tab, 1).getByTestId('step-more').getAttribute('aria-expanded'), 'false');
    // In the tab where it was asked for the menu stays: it can be taken back there.
    await step(other, 1).getByTestId('step-restore').click();
    await stand(tab, '4 pending', '3 pending', '1 pending', '2 skipped');

    await press(tab, 1, 'rewrite');
    await tab.page.getByTestId('step-input').fill('Words of one');
    await press(other, 1, 'rewrite');
    await other.page.getByTestId('step-input').fill('Words of the other');
    await other.page.keyboard.press('Enter');
    await step(tab, 1).getByText('Words of the other').waitFor();
    await tab.page.getByTestId('step-save').click();
    await tab.page.getByTestId('toast').getByText('This step was changed meanwhile').waitFor();
    assert.equal(await tab.page.getByTestId('step-input').inputValue(), 'Words of one');
    await tab.page.getByTestId('step-save').click();
    for (const one of [tab, other]) await step(one, 1).getByText('Words of one').waitFor();
    await model.release('headed');
    await tab.sees('Sent.');
    await tab.idle();
  });

  it('can be added where there is none', async () => {
    const { tab } = it_has;
    const snapshot = /\/sessions\/[^/?]+\?messages=/;
    await tab.page.route(snapshot, async (route) => {
      const response = await route.fetch();
      const session = await response.json();
      await route.fulfill({ response, json: { ...session, plan: { ...session.plan, steps: [] }, todo: [] } });
    });
    await tab.page.reload();
    await tab.page.getByTestId('step-add').click();
    assert.equal(await tab.planSteps.count(), 0);
    await tab.page.getByTestId('step-add-input').fill('Thank Olha');
    await tab.page.keyboard.press('Enter');
    await tab.planSteps.last().getByText('Thank Olha').waitFor();
    await tab.page.unroute(snapshot);
  });
});
