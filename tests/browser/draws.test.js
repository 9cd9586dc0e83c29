// While an answer grows, each frame draws anew what changed, and nothing else.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const PIECES = 12;
/** So often is one drawn for a piece at the most: a long one is told in two. */
const A_PIECE = 2;

describe('each frame redraws only what changed', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'auto' } });

  /** Counts from here on which elements are drawn, by their names: how many of them, and how often each at the most. */
  const count = (page) => page.evaluate(() => {
    const is_counted = window.drawn !== undefined;
    window.drawn = {};
    if (is_counted) return;
    const { prototype } = customElements.get('navi-message');
    const element = Object.getPrototypeOf(prototype);
    const { performUpdate } = element;
    element.performUpdate = function counted() {
      const often = (window.drawn[this.localName] ??= new Map());
      often.set(this, (often.get(this) ?? 0) + 1);
      return performUpdate.call(this);
    };
  });
  /** Without what counts seconds, and what says how the service is: that is told now and then. */
  const BESIDE = new Set(['navi-status-line', 'navi-banner', 'navi-mode', 'navi-settings']);
  const drawn = async (page) => {
    const all = await page.evaluate(() => Object.entries(window.drawn).map(([name, often]) => [name, often.size, Math.max(...often.values())]));
    const told = all.filter(([name]) => !BESIDE.has(name));
    for (const [name, , often] of told) assert.ok(often <= A_PIECE * PIECES, `${name} is drawn ${often} times`);
    return Object.fromEntries(told.map(([name, elements]) => [name, elements]));
  };

  const running = () => it_has.tab.page.locator('[data-testid="session-item"][data-state="running"]');

  /** A piece each time that the test opens a gate: each comes in a frame of its own. */
  const grows = (lines) => lines.flatMap((text, i) => [{ text }, { hold: `piece-${i}-${lines.length}` }]);
  async function growTo(lines, told) {
    const { model, tab } = it_has;
    for (const [i] of lines.entries()) {
      await tab.sees(told(i));
      if (i === 0) {
        // By another socket than the text: the list is drawn once more with it.
        await running().waitFor();
        await count(tab.page);
      }
      if (i < lines.length - 1) await model.release(`piece-${i}-${lines.length}`);
    }
  }

  it('has a conversation with messages, calls and neighbours', async () => {
    const { model, tab } = it_has;
    for (const name of ['First', 'Second']) {
      await model.script([call('filesystem', { action: 'list', path: '.' })], [{ text: `${name} is done.` }]);
      await tab.newSession.click();
      for (const [i, text] of [`${name}.`, `${name} again.`].entries()) {
        if (i > 0) await model.script([call('filesystem', { action: 'list', path: '.' })], [{ text: `${name} is done again.` }]);
        await tab.send(text);
        await tab.sees(i === 0 ? `${name} is done.` : `${name} is done again.`);
        await tab.idle();
      }
    }
    // What the list hears late would be drawn with what comes next.
    for (const name of ['First', 'Second']) await tab.sessions.filter({ hasText: `You said: User: ${name}` }).waitFor();
    await running().waitFor({ state: 'detached' });
    assert.equal(await tab.toolCards.count(), 2);
    assert.equal(await tab.sessions.count(), 2);
  });

  it('draws one message while text comes, no card and no row', async () => {
    const { model, tab } = it_has;
    const lines = Array.from({ length: PIECES }, (_, i) => `Line ${i}.\n\n`);
    await model.script(grows(lines));
    await tab.send('Tell me all of it.');
    await growTo(lines, (i) => `Line ${i}.`);
    assert.deepEqual(await drawn(tab.page), { 'navi-conversation': 1, 'navi-message': 1 });
    await model.release(`piece-${PIECES - 1}-${PIECES}`);
    await tab.idle();
    await running().waitFor({ state: 'detached' });
  });

  it('draws one block of code while a fence grows, and adds to its text: what is selected stays so', async () => {
    const { model, tab } = it_has;
    // More than stand in one element of it.
    const filling = Array.from({ length: 50 }, (_, i) => `// ${i}\n`).join('');
    const lines = ['```js\nconst first = 0;\n', ...Array.from({ length: PIECES }, (_, i) => `${filling}const line_${i} = ${i};\n`)];
    await model.script(grows(lines));
    await tab.send('Write it down.');
    const code = tab.answers.last().locator('navi-code code');
    await tab.page.waitForFunction(() => document.querySelector('navi-code code')?.textContent.includes('first'));
    await code.evaluate((element) => {
      const text = element.firstElementChild.firstChild;
      getSelection().setBaseAndExtent(text, 'const '.length, text, 'const first'.length);
    });
    await growTo(lines, (i) => (i === 0 ? 'const first = 0;' : `const line_${i - 1} = ${i - 1};`));
    assert.deepEqual(await drawn(tab.page), { 'navi-conversation': 1, 'navi-message': 1, 'navi-code': 1 });
    assert.equal(await tab.page.evaluate(() => getSelection().toString()), 'first');
    const look = () => code.evaluate((element) => {
      getSelection().selectAllChildren(element);
      return { copied: getSelection().toString(), height: element.closest('pre').offsetHeight };
    });
    const grown = await look();
    assert.equal(grown.copied, lines.join('').slice('```js\n'.length, -1));
    await model.release(`piece-${PIECES}-${PIECES + 1}`);
    await tab.idle();
    await code.locator('.code-keyword').first().waitFor();
    assert.deepEqual(await look(), grown);
  });
});
