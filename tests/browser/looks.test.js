// How it looks: wide and narrow, dark and light; nothing cut off, nothing that a screen
// reader trips over. The pictures are kept, to be looked at.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertAccessible, assertFits, ONCE } from './harness/looks.js';
import { IS_LONG } from './harness/program.js';
import { world } from './harness/world.js';

const ANSWER = [
  '## Three ways\n\nA table, a list and some code:\n\n',
  '| way | time |\n| --- | --- |\n| on foot | 2 h |\n| by train | 20 min |\n\n',
  '- one\n- two with `inline code`\n\n',
  '- [x] a ticket\n- [ ] a seat\n  - by the window\n  - not by the door\n\n',
  'Gauge\n: How far apart the rails are[^1].\n\n',
  '```rust\nfn main() { println!("a rather long line of code that does not fit on a narrow screen at all"); }\n```\n\n',
  '[^1]: Mostly 1,435 mm, by https://example.org/a-rather-long-address/that-does-not-fit.\n    Not everywhere.\n',
].join('');

const looks = [
  { name: 'wide-light', viewport: { width: 1280, height: 800 }, colorScheme: 'light' },
  { name: 'wide-dark', viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
  { name: 'narrow-light', viewport: { width: 360, height: 740 }, colorScheme: 'light', hasTouch: true },
  { name: 'narrow-dark', viewport: { width: 360, height: 740 }, colorScheme: 'dark', hasTouch: true },
];

async function assertSound(tab, name) {
  await tab.screenshot(name);
  await assertAccessible(tab.page, name);
  await assertFits(tab.page, name);
}

for (const { name, ...options } of looks.filter(({ name }) => IS_LONG || ONCE.includes(name))) {
  describe(`the page, ${name}`, () => {
    const it_has = world({ options });

    it('looks right when it is empty', async () => {
      await assertSound(it_has.tab, `${name}-empty`);
    });

    it('looks right in a conversation', async () => {
      const { model, tab } = it_has;
      const call = { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['compare the ways'] } } };
      await model.script([{ thinking: 'There are several ways.' }, call], [{ text: ANSWER }]);
      await tab.send('How do I get there? Compare the ways.');
      await tab.sees('inline code');
      await tab.idle();
      await assertSound(tab, `${name}-conversation`);
    });
  });
}

describe('the page after an error', () => {
  const it_has = world();

  it('shows it as a card', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'Half of an answer, and then' }, { error: 'the model fell over' }]);
    await tab.send('Will you make it to the end?');
    await tab.errorCard.last().waitFor();
    await tab.idle();
    await assertSound(tab, 'wide-light-error');
  });
});

describe('the page in the colours of the system', () => {
  const it_has = world({ options: { forcedColors: 'active' } });

  it('tells what one said and where one is by lines', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: ANSWER }]);
    await tab.send('How do I get there?');
    await tab.sees('inline code');
    await tab.idle();
    for (const part of ['.bubble', '.session-item.current', '.segments label:has(:checked)']) {
      const line = await tab.page.locator(part).first().evaluate((element) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return outlineStyle === 'none' ? '' : outlineWidth;
      });
      assert.match(line, /^[12]px$/, part);
    }
    await assertSound(tab, 'forced-colours');
  });
});
