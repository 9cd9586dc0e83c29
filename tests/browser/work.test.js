// What a run did stands in one line, and opens to its calls.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const write = (path) => call('filesystem', { action: 'write', path, content: 'Rivers.\n' });
const read = (path) => call('filesystem', { action: 'read', path });
const run = (command) => call('terminal', { action: 'run', command });

describe('the work of a run', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'auto' } });
  const heads = () => it_has.tab.page.getByTestId('work');
  const cards = (state) => it_has.tab.page.locator(`[data-testid="tool-card"]${state === undefined ? '' : `[data-state="${state}"]`}`);

  it('is open while it goes on, and one line once the answer begins', async () => {
    const { model, tab } = it_has;
    await model.script(
      [{ thinking: 'I write first.' }, write('notes/report.md'), call('todo', { action: 'add', texts: ['buy bread'] })],
      [read('notes/report.md'), run('echo done')],
      [run('sleep 100')],
    );
    await tab.send('Write a report.');
    await cards('running').getByText('Run sleep 100').waitFor();
    assert.equal(await heads().getAttribute('data-live'), 'true');
    assert.equal(await heads().getAttribute('aria-expanded'), 'true');
    assert.equal(await cards().count(), 4, 'what came of the list of steps stands there alone');
    await tab.screenshot('work-live');
    await tab.stopButton.click();
    await tab.idle();
    assert.equal(await cards().count(), 0);
    assert.match(await heads().innerText(), /^Worked.* · wrote report\.md · read report\.md · ran echo done/s);
    await tab.todo.getByText('buy bread').first().waitFor();
  });

  it('opens to its calls, each with what it was sent', async () => {
    const { tab } = it_has;
    await heads().click();
    await cards('success').first().waitFor();
    assert.equal(await cards().count(), 4);
    await assertLooks(tab, (look) => tab.screenshot(`${look}-work-open`));
    await cards().first().getByRole('button', { expanded: false }).first().click();
    await cards().first().getByText('filesystem', { exact: true }).waitFor();
    await heads().focus();
    await tab.page.keyboard.press('Enter');
    await cards().first().waitFor({ state: 'detached' });
    await assertLooks(tab, (look) => tab.screenshot(`${look}-work-folded`));
  });

  it('shows a failure that nothing made up for, and no other', async () => {
    const { model, tab } = it_has;
    const had = await heads().count();
    await model.script([read('missing.md')], [read('notes/report.md'), run('exit 3')], [{ text: 'One of them failed.' }]);
    await tab.send('Read both.');
    await tab.sees('One of them failed.');
    await tab.idle();
    for (const again of [false, true]) {
      if (again) await tab.page.reload();
      await heads().nth(had).waitFor();
      assert.equal(await cards().count(), 1);
      assert.equal(await cards().getAttribute('data-state'), 'exited');
      assert.match(await heads().nth(had).innerText(), /read report\.md · 2 failed/);
    }
  });

  it('is left alone where it is a single call, and where a paragraph stands between', async () => {
    const { model, tab } = it_has;
    const [had, shown] = [await heads().count(), await cards().count()];
    const found = `${'It says what rivers there are. '.repeat(8)}Now I write. `;
    await model.script([{ text: 'I look first. ' }, read('notes/report.md')], [{ text: found }, write('one.md')], [{ text: 'Both are done.' }]);
    await tab.send('Look, then write.');
    await tab.sees('Both are done.');
    await tab.idle();
    assert.equal(await heads().count(), had);
    assert.equal(await cards().count(), shown + 2);
    await cards().getByText('Read report.md').waitFor();
    await cards().getByText('Wrote one.md').waitFor();
  });

  it('takes in what was said in passing, once the answer stands', async () => {
    const { model, tab } = it_has;
    const [had, shown] = [await heads().count(), await cards().count()];
    const aside = tab.page.getByText('Then I write.');
    await model.script(
      [{ text: 'I look first. ' }, read('notes/report.md')],
      [{ text: 'Then I write. ' }, write('two.md')],
      [{ text: 'All of it' }, { hold: 'answer' }, { text: ' is done.' }],
    );
    await tab.send('Look, and write the other one.');
    await tab.sees('All of it');
    await aside.waitFor();
    assert.equal(await heads().count(), had);
    await model.release('answer');
    await tab.sees('All of it is done.');
    await tab.idle();
    for (const again of [false, true]) {
      if (again) await tab.page.reload();
      await heads().nth(had).waitFor();
      assert.match(await heads().nth(had).innerText(), /read report\.md · wrote two\.md/);
      assert.equal(await aside.count(), 0);
      assert.equal(await cards().count(), shown);
    }
    await heads().nth(had).click();
    await aside.waitFor();
    assert.equal(await cards().count(), shown + 2);
    await tab.screenshot('work-with-asides');
    await heads().nth(had).click();
    await aside.waitFor({ state: 'detached' });
    // On paper nobody unfolds it.
    await tab.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await aside.waitFor();
    assert.equal(await cards().count(), shown);
    await tab.page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await aside.waitFor({ state: 'detached' });
  });
});

describe('work that a person did not allow', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'ask' } });

  it('a stretch with a no says so, and no failure, after a reload too', async () => {
    const { model, tab } = it_has;
    await model.script([call('filesystem', { action: 'list' }), run('rm -r everything')], [{ text: 'Then not.' }]);
    await tab.send('Tidy up.');
    await tab.page.getByTestId('approval').waitFor();
    await tab.page.getByTestId('approve-deny').click();
    await tab.sees('Then not.');
    await tab.idle();
    for (const again of [false, true]) {
      if (again) await tab.page.reload();
      const head = tab.page.getByTestId('work');
      await head.waitFor();
      assert.match(await head.innerText(), /looked through the workspace · 1 not allowed$/);
      assert.doesNotMatch(await head.innerText(), /failed/);
    }
  });
});

describe('the files that Navi made', () => {
  const it_has = world({ settings: { NAVI_CONSENT_MODE: 'auto' } });
  const text = () => it_has.tab.page.getByTestId('file-text');

  it('open beside the conversation as what they are, and can be kept', async () => {
    const { model, tab } = it_has;
    const script = call('filesystem', { action: 'write', path: 'src/sum.py', content: 'print(1 + 1)\n' });
    const report = call('filesystem', { action: 'write', path: 'report.md', content: '# Rivers\n\nThey **run**.\n' });
    await model.script([report, script], [run('printf "\\\\000\\\\001" > blob.bin')], [{ text: 'All of it is there.' }]);
    await tab.send('Make them.');
    await tab.sees('All of it is there.');
    await tab.idle();
    const chips = tab.page.getByTestId('made-file');
    await chips.nth(1).waitFor();
    assert.deepEqual(await chips.allInnerTexts(), ['report.md', 'src/sum.py']);
    await chips.first().click();
    await text().getByRole('heading', { name: 'Rivers' }).waitFor();
    await assertLooks(tab, (look) => tab.screenshot(`${look}-file-view`));
    const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByTestId('file-view-download').click()]);
    assert.equal(download.suggestedFilename(), 'report.md');
    // The conversation goes on beside it, and Escape closes the file before it stops a run.
    await model.script([{ text: 'Three' }, { hold: 'more' }, { text: ' lines.' }]);
    await tab.send('How long is it?');
    await tab.sees('Three');
    await text().getByRole('heading', { name: 'Rivers' }).waitFor();
    await chips.last().click();
    await text().getByText('print(1 + 1)').waitFor();
    await tab.page.keyboard.press('Escape');
    await text().waitFor({ state: 'detached' });
    await model.release('more');
    await tab.sees('Three lines.');
    await tab.idle();
    // Where the window is narrow it stands over the conversation.
    await tab.page.setViewportSize({ width: 360, height: 740 });
    await chips.first().click();
    await text().getByRole('heading', { name: 'Rivers' }).waitFor();
    await tab.page.getByTestId('file-view-close').click();
    await text().waitFor({ state: 'detached' });
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    await chips.last().click();
    await text().getByText('print(1 + 1)').waitFor();
    await tab.page.getByTestId('file-view-close').click();
    await text().waitFor({ state: 'detached' });
  });

  it('stand at the end of an answer that wrote one, or had one written, until that is undone', async () => {
    const { model, tab } = it_has;
    const chips = () => tab.answers.last().getByTestId('made-file');
    await model.script([call('filesystem', { action: 'write', path: 'one.md', content: 'One.\n' })], [{ text: 'One is there.' }]);
    await tab.send('Make one.');
    await tab.sees('One is there.');
    await tab.idle();
    await chips().first().waitFor();
    assert.deepEqual(await chips().allInnerTexts(), ['one.md']);
    await model.script(
      { when: 'Have two made', steps: [call('spawn_agent', { task: 'Make two.' })] },
      { when: 'Make two.', steps: [call('filesystem', { action: 'write', path: 'two.md', content: 'Two.\n' })] },
      { when: 'Make two.', steps: [{ text: 'Done.' }] },
      { when: 'Have two made', steps: [{ text: 'Two is there.' }] },
    );
    await tab.send('Have two made.');
    await tab.answers.last().getByText('Two is there.').waitFor();
    await tab.idle();
    await chips().first().waitFor();
    assert.deepEqual(await chips().allInnerTexts(), ['two.md']);
    await tab.screenshot('made-files');
    await tab.page.reload();
    await chips().first().waitFor();
    await chips().first().click();
    await text().getByText('Two.').waitFor();
    await tab.page.getByTestId('file-view-close').click();
    await tab.page.getByTestId('open-files').click();
    await tab.page.locator('[data-testid="change"]', { hasText: 'two.md' }).getByTestId('undo-change').click();
    await chips().first().waitFor({ state: 'detached' });
    await tab.page.keyboard.press('Escape');
  });

  it('show what was changed in them, the newest first, by a subagent too', async () => {
    const { model, tab } = it_has;
    const edit = (before, after) => call('filesystem', { action: 'edit', path: 'list.md', old_text: before, new_text: after });
    await model.script([call('filesystem', { action: 'write', path: 'list.md', content: 'bread\nmilk\n' })], [edit('milk', 'cheese')], [{ text: 'The list is there.' }]);
    await tab.send('Write a list.');
    await tab.sees('The list is there.');
    await tab.idle();
    await model.script(
      { when: 'Have it mended', steps: [call('spawn_agent', { task: 'Mend the list.' })] },
      { when: 'Mend the list.', steps: [edit('bread', 'butter')] },
      { when: 'Mend the list.', steps: [{ text: 'Done.' }] },
      { when: 'Have it mended', steps: [{ text: 'It is mended.' }] },
    );
    await tab.send('Have it mended.');
    await tab.answers.last().getByText('It is mended.').waitFor();
    await tab.idle();
    await tab.answers.last().getByTestId('made-file').getByText('list.md').click();
    await text().getByText('butter').waitFor();
    await tab.page.getByTestId('tab-changes').click();
    const told = tab.page.getByTestId('file-change');
    const lines = async () => Promise.all((await told.all()).map(async (change) => [
      await change.getAttribute('data-action'), await change.locator('del').allInnerTexts(), await change.locator('ins').allInnerTexts(),
    ]));
    await told.nth(2).waitFor();
    const expected = [['edit', ['bread'], ['butter']], ['edit', ['milk'], ['cheese']], ['write', [], ['bread', 'milk']]];
    assert.deepEqual(await lines(), expected);
    await assertLooks(tab, (look) => tab.screenshot(`${look}-file-changes`));
    // What is changed while it is looked at comes by itself.
    await model.script([edit('cheese', 'tea')], [{ text: 'Tea it is.' }]);
    await tab.send('Tea, please.');
    await tab.sees('Tea it is.');
    await told.nth(3).waitFor();
    assert.deepEqual(await lines(), [['edit', ['cheese'], ['tea']], ...expected]);
    await tab.page.getByTestId('file-view-close').click();
    await tab.idle();
  });

  it('stand there as they are now: changed while they are looked at, or pressed again', async () => {
    const { model, tab } = it_has;
    const edit = call('filesystem', { action: 'edit', path: 'now.md', old_text: 'First', new_text: 'Second' });
    await model.script([call('filesystem', { action: 'write', path: 'now.md', content: 'First.\n' })], [{ text: 'It is begun.' }]);
    await tab.send('Begin it.');
    await tab.sees('It is begun.');
    await tab.idle();
    await tab.answers.last().getByTestId('made-file').getByText('now.md').click();
    await text().getByText('First.').waitFor();
    await model.script([edit], [{ text: 'It goes on.' }]);
    await tab.send('Go on.');
    await text().getByText('Second.').waitFor();
    await tab.sees('It goes on.');
    await tab.idle();
    // Of what a command writes no change tells.
    await model.script([run('echo Third. > now.md')], [{ text: 'A command wrote it.' }]);
    await tab.send('By a command.');
    await tab.sees('A command wrote it.');
    await tab.idle();
    await tab.page.getByTestId('made-file').getByText('now.md').last().click();
    await text().getByText('Third.').waitFor();
    await tab.page.getByTestId('file-view-close').click();
  });

  it('stand in the workspace, folder by folder', async () => {
    const { tab } = it_has;
    const entry = (name) => tab.page.getByTestId('workspace-entry').filter({ hasText: name });
    await tab.page.getByTestId('open-files').click();
    await entry('src').getByRole('button').click();
    await entry('sum.py').waitFor();
    await assertLooks(tab, (look) => tab.screenshot(`${look}-workspace`));
    await tab.page.getByTestId('workspace-top').click();
    await entry('blob.bin').getByRole('button').click();
    await tab.page.getByTestId('file-no-text').waitFor();
    await tab.page.keyboard.press('Escape');
  });
});
