// A whole conversation by somebody who has a keyboard and nothing else.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const REQUEST = 'Write a note about the harbour.';
const PLAN = ['MILESTONE: Write', '1. Write the note | TOOL: filesystem', '2. Tell how it went | SELF'].join('\n');
const call = (name, args) => ({ tool_call: { name, arguments: args } });
/** More often nobody presses Tab to come somewhere. */
const TABS = 60;

describe('a conversation by keys alone', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' } });
  const page = () => it_has.tab.page;
  const press = (key) => page().keyboard.press(key);
  const type = (text) => page().keyboard.type(text);
  const at = () => page().evaluate(() => document.activeElement?.closest('[data-testid]')?.getAttribute('data-testid'));
  const arrived = (selector) => page().waitForFunction((wanted) => document.activeElement?.matches(wanted), selector);

  /** Goes on by Tab, or back, until what has the focus fits. */
  async function tabTo(selector, key = 'Tab') {
    for (let step = 0; step < TABS; step += 1) {
      if (await page().evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
      await press(key);
    }
    assert.fail(`${selector} is not reached by ${key}: the keyboard is at ${await at()}`);
  }

  it('begins on an empty page, which waits for words', async () => {
    // Whatever is pressed by a pointer from here on fails the last test.
    await page().evaluate(() => {
      window.pointed = [];
      for (const name of ['pointerdown', 'mousedown', 'touchstart']) addEventListener(name, (event) => window.pointed.push(`${name} on ${event.target}`), true);
    });
    await arrived('#composer');
    assert.equal(await it_has.tab.messages.count(), 0);
  });

  it('is sent, and its plan is seen', async () => {
    const { model, tab } = it_has;
    await model.script(
      { streamed: false, system: 'DIRECT', when: REQUEST, steps: [{ text: 'It is to be written.\nREFLECT: no' }] },
      { streamed: false, system: 'TOOL: tool_name', steps: [{ text: PLAN }] },
      { with_tools: true, when: REQUEST, steps: [call('filesystem', { action: 'write', path: 'note.md', content: 'The wall holds.' })] },
    );
    await type(REQUEST);
    await press('Enter');
    await tab.planSteps.nth(1).waitFor();
    assert.equal(await tab.composer.inputValue(), '');
  });

  it('is asked for consent, which one key gives', async () => {
    const { model, tab } = it_has;
    await page().locator('[data-testid="approve-once"][aria-disabled="false"]').waitFor();
    await model.script({ with_tools: true, when: REQUEST, steps: [{ text: 'The note is written.' }] });
    await tabTo('[data-testid="approval"] *', 'Shift+Tab');
    await press('y');
    await tab.sees('The note is written.');
    await tab.idle();
    assert.equal(await page().getByTestId('approval-outcome').last().getAttribute('data-decision'), 'once');
    // What had the keyboard is gone: one writes on.
    await arrived('#composer');
  });

  it('has a call that opens, and shows what came of it', async () => {
    const { tab } = it_has;
    await tabTo('[data-tool="filesystem"] .tool-head', 'Shift+Tab');
    await press('Enter');
    await tab.toolCards.first().locator('.tool-body').getByText('The wall holds.').first().waitFor();
    await press('Enter');
    await tab.toolCards.first().locator('.tool-body').waitFor({ state: 'hidden' });
    await tabTo('#composer');
  });

  it('is stopped, and goes on with the next message', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'It is a long story, ' }, { hold: 'never' }]);
    await type('Tell me all of it.');
    await press('Enter');
    await tab.sees('It is a long story,');
    await press('Escape');
    await tab.idle();
    assert.equal(await tab.answers.last().getAttribute('data-state'), 'stopped');
    await model.script([{ text: 'The wall holds.' }]);
    await type('In short?');
    await press('Enter');
    await tab.sees('The wall holds.');
    await tab.idle();
  });

  it('has its last message said in other words', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Стіна стоїть.' }]);
    await press('ArrowUp');
    await arrived('[data-testid="edit-input"]');
    await press('ControlOrMeta+a');
    await type('In short, and in Ukrainian?');
    await press('Enter');
    await tab.sees('Стіна стоїть.');
    await tab.idle();
    const said = (await tab.conversation()).filter(({ role }) => role === 'user').map(({ text }) => text);
    assert.deepEqual(said, [REQUEST, 'Tell me all of it.', 'In short, and in Ukrainian?']);
  });

  it('has places that open and close, and gives the keyboard back', async () => {
    await tabTo('#composer');
    await press('ControlOrMeta+k');
    await arrived('[data-testid="palette-input"]');
    await type('what navi remembers');
    await page().locator('[data-testid="palette-option"][aria-selected="true"]').filter({ hasText: 'What Navi remembers' }).waitFor();
    await press('Enter');
    await page().locator('[data-testid="memory"]:modal').waitFor();
    await page().waitForFunction(() => document.querySelector('[data-testid="memory"]')?.contains(document.activeElement));
    await press('Escape');
    await page().getByTestId('memory').waitFor({ state: 'detached' });
    await arrived('#composer');
  });

  it('is left for a new one, and found again in the list', async () => {
    const { model, tab } = it_has;
    await press('ControlOrMeta+Shift+o');
    await tab.messages.first().waitFor({ state: 'detached' });
    await arrived('#composer');
    await model.script({ with_tools: true, when: 'Another matter.', steps: [{ text: 'Good evening.' }] });
    await type('Another matter.');
    await press('Enter');
    await tab.sees('Good evening.');
    await tab.idle();
    await tabTo('.session-link', 'Shift+Tab');
    await press('ArrowDown');
    await arrived('[data-testid="session-item"]:not(:has([aria-current])) .session-link');
    await press('Enter');
    await tab.sees('Стіна стоїть.');
    await tabTo('#composer');
  });

  it('took no pointer', async () => {
    assert.deepEqual(await page().evaluate(() => window.pointed), []);
  });
});
