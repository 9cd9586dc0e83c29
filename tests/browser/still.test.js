// What grows while one reads in it stays where one reads.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const lines = (word, count) => Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join('');

describe('what is read while it grows', () => {
  const it_has = world();

  /** Scrolls as a person does, and gives what is read there once the page has taken it in. */
  const scrollTo = (box, top) => box.evaluate((element, wanted) => new Promise((done) => {
    const end = wanted === null ? element.scrollHeight : wanted;
    if (Math.abs(element.scrollTop - Math.min(end, element.scrollHeight - element.clientHeight)) < 1) return done(element.scrollTop);
    element.addEventListener('scroll', () => requestAnimationFrame(() => done(element.scrollTop)), { once: true });
    element.scrollTop = end;
    return undefined;
  }), top);
  const place = (box) => box.evaluate(({ scrollTop, scrollHeight, clientHeight }) => ({ top: scrollTop, left: scrollHeight - clientHeight - scrollTop }));
  /** All of it has come, and two frames more were drawn. */
  async function has(box, text) {
    await box.filter({ hasText: text }).waitFor();
    await it_has.tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  }

  /** Its end is followed; it stays where somebody went back in it; whoever comes to its end follows again. */
  async function staysWhereOneReads(box, more) {
    assert.ok((await place(box)).left < 2, 'the end is followed');
    await scrollTo(box, 40);
    await more('first');
    assert.equal((await place(box)).top, 40, 'it stays where one reads');
    await scrollTo(box, null);
    await more('second');
    assert.ok((await place(box)).left < 2, 'the end is followed again');
  }

  it('is reasoning', async () => {
    const { model, tab } = it_has;
    await model.script([
      { thinking: lines('I weigh reason', 60) }, { hold: 'first' },
      { thinking: lines('I weigh more, and that is', 40) }, { hold: 'second' },
      { thinking: lines('I come to', 40) }, { hold: 'done' }, { text: 'So it is.' },
    ]);
    await tab.send('Think about it for long.');
    const box = tab.page.locator('.thinking-body');
    await has(box, 'I weigh reason 59');
    await staysWhereOneReads(box, async (gate) => {
      await model.release(gate);
      await has(box, gate === 'first' ? 'I weigh more, and that is 39' : 'I come to 39');
    });
    await model.release('done');
    await tab.sees('So it is.');
    await tab.idle();
  });

  it('is the output of a command', async () => {
    const { model, navi, tab } = it_has;
    const waits = (name) => `while [ ! -e ${name} ]; do sleep 0.1; done`;
    const command = `seq -f 'row %g' 200; ${waits('first')}; seq -f 'more %g' 100; ${waits('second')}; seq -f 'last %g' 100; ${waits('done')}`;
    await model.script([{ tool_call: { name: 'terminal', arguments: { action: 'run', command } } }], [{ text: 'It ran.' }]);
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('consent-auto').check();
    await tab.page.locator('[data-testid="mode"][data-mode="auto"]').waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.send('Run it.');
    const box = tab.page.getByTestId('output-text');
    await has(box, 'row 200');
    const folder = join(navi.dataDir, 'session_files', new URL(tab.page.url()).hash.split('/')[2]);
    await staysWhereOneReads(box, async (name) => {
      await writeFile(join(folder, name), '');
      await has(box, name === 'first' ? 'more 100' : 'last 100');
    });
    await writeFile(join(folder, 'done'), '');
    await tab.sees('It ran.');
    await tab.idle();
  });
});
