// What an answer is made of, while it comes and after: footnotes that lead there and back, lists
// of definitions, and a list and a table of more than a screen shows.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertAccessible } from './harness/looks.js';
import { world } from './harness/world.js';

describe('an answer', () => {
  const it_has = world({ options: { viewport: { width: 1100, height: 700 } } });

  it('leads to its footnotes and back, once they are there', async () => {
    const { model, tab } = it_has;
    const paragraphs = Array.from({ length: 30 }, (_, i) => `Paragraph ${i} of a long text.\n\n`).join('');
    await model.script([
      { text: `The river[^length] is long[^1].\n\n${paragraphs}` }, { hold: 'notes' },
      { text: '[^1]: Longer than *most*.\n[^length]: 981 km.\n\nThat was [^all].' },
    ]);
    await tab.send('How long is it?');
    await tab.sees('Paragraph 29');
    const answer = tab.answers.last();
    const marks = answer.getByTestId('footnote');
    assert.deepEqual(await marks.allInnerTexts(), ['1'], 'a number is taken for a footnote, a word is not yet');
    await model.release('notes');
    await tab.sees('That was [^all].');
    await tab.idle();
    assert.deepEqual(await marks.allInnerTexts(), ['1', '2']);
    const notes = answer.locator('ol.footnotes > li');
    assert.deepEqual(await notes.locator('p').allInnerTexts(), ['981 km.', 'Longer than most.']);

    await marks.last().press('Enter');
    const back = notes.last().getByTestId('footnote-back');
    await tab.page.waitForFunction((element) => document.activeElement === element, await back.elementHandle());
    await notes.last().locator('em').waitFor();
    await inView(back);
    await back.press('Enter');
    await tab.page.waitForFunction((element) => document.activeElement === element, await marks.last().elementHandle());
    await inView(marks.last());
  });

  it('is set as the page is, its headings larger, and says without a pointer what can be done with it', async () => {
    const { model, tab } = it_has;
    const { page } = tab;
    await model.script([{ text: '# One\n\nWords of it.\n\n## Two\n\n### Three\n\nThat is its form.' }]);
    await tab.send('Show your form.');
    await tab.sees('That is its form.');
    await tab.idle();
    const answer = tab.answers.last();
    const size = (place) => place.evaluate((element) => [getComputedStyle(element).fontSize, getComputedStyle(element).lineHeight].map(Number.parseFloat));
    assert.deepEqual(await size(page.locator('body')), [16, 24]);
    assert.deepEqual(await size(answer.getByText('Words of it.')), [16, 24]);
    assert.deepEqual(await size(tab.messages.locator('.bubble').last()), [16, 24]);
    const headings = await Promise.all(['One', 'Two', 'Three'].map(async (name) => (await size(answer.getByRole('heading', { name })))[0]));
    assert.deepEqual(headings, [22, 19, 17]);

    await page.mouse.move(0, 0);
    await tab.composer.focus();
    const faint = await page.locator('.message-actions').evaluateAll((rows) => rows.filter((row) => Number(getComputedStyle(row).opacity) < 1).length);
    assert.equal(faint, 0);
    await answer.getByTestId('regenerate').waitFor();
  });

  it('draws what is below a task further in, and names its box', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'To do:\n\n- [x] buy bread\n- [ ] pack\n  - the tent\n  - [ ] the stove\n\nThat is it.' }]);
    await tab.send('What is to do?');
    await tab.sees('That is it.');
    await tab.idle();
    const answer = tab.answers.last();
    await answer.getByRole('checkbox', { name: 'buy bread', checked: true }).waitFor();
    await answer.getByRole('checkbox', { name: 'the stove', checked: false }).waitFor();
    const left = (text) => answer.locator('li').getByText(text).last().evaluate((element) => {
      const range = document.createRange();
      range.selectNodeContents([...element.childNodes].find(({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim() !== ''));
      return range.getBoundingClientRect().left;
    });
    const [above, below] = [await left('pack'), await left('the tent')];
    assert.ok(below >= above + 12, `${below} below ${above}`);
    await tab.screenshot('answer-tasks');
  });

  it('keeps numbers of a table in one line on a narrow page', async () => {
    const { model, tab } = it_has;
    const words = 'a rather long description of what was measured there and why';
    await model.script([{ text: `| what | gauge | when | change |\n|---|--:|---|--:|\n| ${words} | 1 435 mm | 2026-11-27 | −3 400 € |\n\nMeasured.` }]);
    await tab.send('How wide?');
    await tab.sees('Measured.');
    await tab.idle();
    await tab.page.setViewportSize({ width: 360, height: 740 });
    const lines = await tab.answers.last().locator('td.number').evaluateAll((cells) => cells.map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
    }));
    assert.deepEqual(lines, [1, 1, 1]);
    await tab.screenshot('answer-numbers');
    await tab.page.setViewportSize({ width: 1100, height: 700 });
  });

  it('explains words in lists of definitions', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: 'The words:\n\nDelta\n: A piece of a stream.\n: Where a river ends.\n\n`--fast`\n:   Quicker.\n' }]);
    await tab.send('What do they mean?');
    await tab.sees('Quicker.');
    await tab.idle();
    const answer = tab.answers.last();
    assert.deepEqual(await answer.locator('dt').allInnerTexts(), ['Delta', '--fast']);
    assert.deepEqual(await answer.locator('dd').allInnerTexts(), ['A piece of a stream.', 'Where a river ends.', 'Quicker.']);
    await tab.screenshot('answer-definitions');
  });

  it('lays out what is in sight of a long list, and numbers all of it', async () => {
    const { model, tab } = it_has;
    const items = (from, to) => Array.from({ length: to - from }, (_, i) => `${from + i + 1}. item ${from + i + 1}\n      - below it\n`).join('');
    await model.script([{ text: items(0, 1_200) }, { hold: 'rest' }, { text: `${items(1_200, 1_205)}\nThat is all.` }]);
    await tab.send('List it all.');
    await tab.sees('item 1200');
    const answer = tab.answers.last();
    const lists = answer.locator('ol.piece');
    const out_of_sight = () => lists.evaluateAll((all) => all.filter((list) => !list.firstElementChild.checkVisibility({ contentVisibilityAuto: true })).length);
    await tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    assert.equal(await lists.count(), 30);
    assert.ok(await out_of_sight() > 20, `${await out_of_sight()} of ${await lists.count()}`);
    await model.release('rest');
    await tab.sees('That is all.');
    await tab.idle();
    const numbers = await lists.evaluateAll((all) => all.flatMap((list) => [...list.children].map((item, i) => [list.start + i, item.firstChild.textContent.trim()])));
    assert.deepEqual(numbers, Array.from({ length: 1_205 }, (_, i) => [i + 1, `item ${i + 1}`]));
    await tab.screenshot('answer-long-list');
  });

  it('lays out what is in sight of a table of many rows, whose columns stand one below the other', async () => {
    const { model, tab } = it_has;
    const rows = (from, to) => Array.from({ length: to - from }, (_, i) => `| ${from + i + 1} | Row ${from + i + 1} with **some** words | ${(from + i) * 7} |\n`).join('');
    await model.script([{ text: `| n | What it is | How much |\n|--:|---|--:|\n${rows(0, 1_200)}` }, { hold: 'rows' }, { text: `${rows(1_200, 1_205)}\nThat is the table.` }]);
    await tab.send('As a table.');
    await tab.sees('Row 1195');
    const answer = tab.answers.last();
    const groups = answer.locator('tbody.piece');
    await tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const out_of_sight = await groups.evaluateAll((all) => all.filter((group) => !group.firstElementChild.checkVisibility({ contentVisibilityAuto: true })).length);
    assert.equal(await groups.count(), 30);
    assert.ok(out_of_sight > 20, `${out_of_sight} of 30`);
    await model.release('rows');
    await tab.sees('That is the table.');
    await tab.idle();
    assert.equal(await answer.locator('tbody tr').count(), 1_205);
    // A screen reader goes through it as through any other table.
    const roles = await answer.locator('table').evaluate((table) => [...new Set([table, ...table.querySelectorAll('*')].map((part) => `${part.localName} ${part.getAttribute('role')}`))]);
    assert.deepEqual(roles.filter((role) => !role.startsWith('strong')), ['table table', 'thead rowgroup', 'tr row', 'th columnheader', 'tbody rowgroup', 'td cell']);
    await assertAccessible(tab.page, 'a table of many rows', '.message table');
    const lefts = await answer.locator('table').evaluate((table) => [table.rows[0], table.rows[5], table.rows[1_205]].map((row) => [...row.cells].map((cell) => Math.round(cell.getBoundingClientRect().left))));
    assert.deepEqual(lefts[1], lefts[0]);
    assert.deepEqual(lefts[2], lefts[0]);
    await tab.screenshot('answer-long-table');
  });
});

/** Waits until the page was scrolled so far. */
async function inView(locator) {
  await locator.evaluate((element) => new Promise((done) => {
    const seen = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      seen.disconnect();
      done(null);
    });
    seen.observe(element);
  }));
}
