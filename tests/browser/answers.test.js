// What an answer is made of, while it comes and after: footnotes that lead there and back, lists
// of definitions, and a list of more items than a screen shows.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

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
