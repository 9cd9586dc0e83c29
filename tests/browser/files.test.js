// Files go into a message, to the model, into the session's list, and out again.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

const TEXT = 'The meeting is on Thursday, in the green room.\n';

describe('files of a conversation', () => {
  const it_has = world({ settings: { SESSION_FILES_MAX_SIZE_MB: '1' } });
  let folder;

  const upload = (tab, state) => tab.page.locator(`[data-testid="upload"][data-state="${state}"]`);

  it('are sent with the first message, and the model reads them', async () => {
    const { model, tab } = it_has;
    folder = await mkdtemp(join(tmpdir(), 'navi-files-'));
    await writeFile(join(folder, 'minutes.txt'), TEXT);
    await writeFile(join(folder, 'large.bin'), Buffer.alloc(1_500_000, 7));
    await tab.page.getByTestId('file-input').setInputFiles(join(folder, 'minutes.txt'));
    await upload(tab, 'waiting').waitFor();
    await model.script([{ text: 'On Thursday.' }]);
    await tab.send('When is the meeting?');

    await tab.sees('On Thursday.');
    await tab.idle();
    assert.equal(await tab.page.getByTestId('file-chip').getByText('minutes.txt').count(), 1);
    assert.equal(await tab.page.getByTestId('upload').count(), 0);
    const calls = await model.runCallsWhere((runs) => runs.length > 0);
    assert.ok(JSON.stringify(calls.at(-1).body.messages).includes('in the green room'), 'its text reached the model');
    await tab.page.reload();
    await tab.page.getByTestId('file-chip').getByText('minutes.txt').waitFor();
  });

  it('say why one was refused, and hold the message until it is taken out', async () => {
    const { model, tab } = it_has;
    await tab.page.getByTestId('file-input').setInputFiles([join(folder, 'large.bin'), join(folder, 'minutes.txt')]);
    await upload(tab, 'done').waitFor();
    await upload(tab, 'failed').waitFor();
    await tab.screenshot('upload-refused');
    await tab.send('And this?');
    await tab.page.getByText('A file could not be sent').waitFor();

    await upload(tab, 'failed').getByTestId('upload-remove').click();
    await model.script([{ text: 'The same again.' }]);
    await tab.sendButton.click();
    await tab.sees('The same again.');
    await tab.idle();
  });

  it('are listed, downloaded and deleted', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('open-files').click();
    const files = tab.page.getByTestId('file');
    await files.nth(1).waitFor();
    await tab.screenshot('files');
    const [download] = await Promise.all([tab.page.waitForEvent('download'), files.first().getByTestId('file-download').click()]);
    assert.equal(download.suggestedFilename(), 'minutes.txt');
    assert.equal(await readFile(await download.path(), 'utf8'), TEXT);

    await files.first().getByTestId('file-delete').click();
    await tab.page.getByTestId('file-delete-confirm').click();
    await files.nth(1).waitFor({ state: 'detached' });
    assert.equal(await files.count(), 1);
    await tab.page.getByTestId('files-close').click();
  });

  it('say how many go with a message, where more are chosen, and send those', async () => {
    const { tab } = it_has;
    const paths = Array.from({ length: 11 }, (_, i) => join(folder, `note-${i}.txt`));
    for (const path of paths) await writeFile(path, path);
    await tab.page.getByTestId('open-files').click();
    await tab.page.getByTestId('files-input').setInputFiles(paths);
    await tab.page.getByTestId('files-full').filter({ hasText: 'At most 10 files' }).waitFor();
    await upload(tab, 'done').nth(9).waitFor();
    await tab.screenshot('files-full');
    await tab.page.getByTestId('files-close').click();
    for (let last = 9; last >= 0; last -= 1) {
      await upload(tab, 'done').nth(last).getByTestId('upload-remove').click();
      await upload(tab, 'done').nth(last).waitFor({ state: 'detached' });
    }
  });

  it('make known that text from outside was read, where and since when', async () => {
    const { model, tab, window } = it_has;
    const read = tab.page.getByTestId('outside');
    await tab.newSession.click();
    await model.script([{ text: 'Nothing was read yet.' }]);
    await tab.send('Hello');
    await tab.sees('Nothing was read yet.');
    await tab.idle();
    await tab.page.getByTestId('mode').waitFor();
    assert.equal(await read.count(), 0);

    await tab.page.getByTestId('file-input').setInputFiles(join(folder, 'minutes.txt'));
    await upload(tab, 'done').waitFor();
    const path = await tab.page.evaluate(async () => {
      const answer = await fetch(`sessions/${location.hash.slice(4)}/files`, { headers: { 'x-navi-key': localStorage.getItem('navi.key') } });
      return (await answer.json()).files.at(-1).path;
    });
    await model.script(
      [{ tool_call: { name: 'filesystem', arguments: { action: 'read', path } } }],
      [{ text: 'It was read.' }],
    );
    const beside = await window.tabBeside(tab);
    await tab.send('Read it.');
    await tab.sees('It was read.');
    for (const { page } of [tab, beside]) await page.getByTestId('outside').waitFor();
    await tab.toolCards.last().locator('.tool-head').click();
    await tab.toolCards.last().getByText('Result, from outside').waitFor();
    await tab.screenshot('from-outside');

    await tab.page.reload();
    await read.waitFor();
    await tab.page.getByTestId('mode-button').click();
    await tab.page.getByTestId('outside-text').getByText('what leaves this machine').waitFor();
    const source = tab.page.getByTestId('outside-source');
    await source.first().waitFor();
    const found = await source.allInnerTexts();
    assert.ok(found.length > 0 && found.every((text) => text.includes('minutes')), found.join());
    await tab.screenshot('outside-sources');
    await source.first().getByRole('button').click();
    await tab.page.getByTestId('mode-panel').waitFor({ state: 'hidden' });
    await tab.page.waitForFunction(() => document.activeElement?.matches('article[data-role]'));
  });
});
