// What a run did, and what its model was sent: the panel behind “Details”.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';


const REQUEST = 'Count the notes and have somebody read them.';
const TASK = 'Read the notes and say what stands in them.';
const call = (name, args) => ({ tool_call: { name, arguments: args } });

describe('the details of a run', () => {
  const it_has = world();

  const panel = () => it_has.tab.page.getByTestId('run-panel');
  const rows = (kind, name) => panel().locator(`[data-testid="run-row"]${kind === undefined ? '' : `[data-kind="${kind}"]`}${name === undefined ? '' : `[data-name="${name}"]`}`);
  /** What the rows are, in order, without what passes by between them. */
  const order = async () => (await rows().evaluateAll((items) => items.map(({ dataset }) => (dataset.kind === 'child' ? 'child' : dataset.name))))
    .filter((name) => !['run_waiting', 'notice', 'todo_updated'].includes(name));

  it('open from its answer', async () => {
    const { model, tab } = it_has;
    await model.script(
      { with_tools: true, when: REQUEST, steps: [{ thinking: 'First the notes.' }, call('filesystem', { action: 'list', path: '.' })] },
      { with_tools: true, when: REQUEST, steps: [call('spawn_agent', { task: TASK })] },
      { when: TASK, steps: [call('filesystem', { action: 'search_names', pattern: '*.md' })] },
      { when: TASK, steps: [{ text: 'There are no notes.' }] },
      { with_tools: true, when: REQUEST, steps: [{ text: 'There is nothing to read.' }] },
    );
    await tab.send(REQUEST);
    await tab.sees('There is nothing to read.');
    await tab.idle();

    await tab.answers.last().hover();
    await tab.page.getByTestId('run-details').last().click();
    await panel().waitFor();
    await rows('event', 'stream_end').waitFor();
    assert.equal(await panel().getByTestId('run-state').getAttribute('data-state'), 'completed');
    assert.match(await panel().getByTestId('run-tokens').innerText(), /\d.* read, .*\d.* written/);
  });

  it('show what was spent, and what that cost once there are prices', async () => {
    const { navi } = it_has;
    for (const name of ['run-session', 'run-day']) {
      assert.match(await panel().getByTestId(name).innerText(), /^\d.* read, .*\d.* written$/);
    }
    assert.equal(await panel().getByTestId('run-cost').count(), 0);
    await writeFile(join(navi.dataDir, 'prices.toml'), 'currency = "EUR"\n[[price]]\nmodel = "*"\nprompt = 1000\ncompletion = 1000\n');
    await panel().getByTestId('run-refresh').click();
    await panel().getByTestId('run-cost').waitFor();
    for (const name of ['run-cost', 'run-session', 'run-day']) {
      assert.match(await panel().getByTestId(name).innerText(), /€\d/, name);
    }
  });

  it('list what happened in its order, with its times', async () => {
    const names = await order();
    assert.equal(names[0], 'message_accepted');
    assert.ok(names.indexOf('stream_start') < names.indexOf('filesystem'));
    assert.ok(names.indexOf('filesystem') < names.indexOf('spawn_agent'));
    assert.ok(names.indexOf('spawn_agent') <= names.indexOf('child'));
    assert.ok(names.indexOf('child') < names.lastIndexOf('text'));
    assert.equal(names.at(-1), 'stream_end');
    const times = await rows().evaluateAll((items) => items.map((row) => ({ kind: row.dataset.kind, ms: Number(row.querySelector('[data-testid="run-when"]').dataset.ms) })));
    assert.ok(times.every(({ ms }) => ms >= 0));
    // Whoever calls the model times that, and the session what it tells: one may be late beside the other.
    for (const kind of ['call', 'event', 'tool', 'child']) {
      const own = times.filter((row) => row.kind === kind).map(({ ms }) => ms);
      assert.ok(own.every((ms, i) => i === 0 || ms >= own[i - 1]), `${kind}: ${own.join(' ')}`);
    }

    // Each answer of the model is there, before what came of it.
    assert.ok(await rows('call', 'turn').count() >= 3);
    assert.ok(names.indexOf('turn') < names.indexOf('filesystem'));
    for (const row of await rows('call', 'turn').all()) {
      await row.getByTestId('run-duration').waitFor();
      await row.getByTestId('call-tokens').waitFor();
      assert.equal(await row.getByTestId('call-outcome').getAttribute('data-outcome'), 'done');
    }
    await rows('tool', 'filesystem').getByTestId('run-duration').waitFor();
    assert.equal(await rows('tool', 'filesystem').count(), 1, 'what the subagent did is its own');
  });

  it('show by keyboard what a model was sent and what it replied', async () => {
    const { model, tab } = it_has;
    const head = rows('call', 'turn').last().locator('button').first();
    await head.focus();
    await tab.page.keyboard.press('Enter');
    assert.equal(await head.getAttribute('aria-expanded'), 'true');
    const sent = rows('call', 'turn').last().getByTestId('call-sent');
    await sent.waitFor();
    assert.equal(await sent.getAttribute('data-exact'), 'true');
    assert.equal(await sent.getByTestId('call-inexact').count(), 0);

    const told = (await model.runCallsWhere((calls) => calls.length > 0)).filter(({ body }) => JSON.stringify(body).includes(REQUEST)).at(-1);
    const roles = await sent.getByTestId('sent-message').evaluateAll((items) => items.map(({ dataset }) => dataset.role));
    assert.deepEqual(roles, told.body.messages.map(({ role }) => role));
    const user = sent.locator('[data-testid="sent-message"][data-role="user"]').first();
    await user.locator('summary').click();
    await user.locator('pre').getByText(REQUEST).waitFor();
    await sent.getByTestId('call-reply-text').getByText('There is nothing to read.').waitFor();
  });

  it('say plainly where that is not exactly what was sent, and when it cannot be read', async () => {
    const { tab } = it_has;
    const path = /\/runs\/[^/]+\/calls\/\d+$/;
    await tab.page.route(path, (route) => route.abort(), { times: 1 });
    const first = rows('call', 'turn').first();
    await first.locator('button').first().click();
    await first.getByTestId('error-card').waitFor();
    const sent = { model: 'gemma', messages: [{ role: 'user', content: 'What is left of it.', images: [] }], tools: [] };
    await tab.page.route(path, (route) => route.fulfill({ json: { request: sent, exact: false, reply: null } }), { times: 1 });
    await first.getByTestId('call-retry').click();
    await first.getByTestId('call-inexact').getByText('is not exactly what was sent').waitFor();
    await first.getByText('There was none.').waitFor();
    await first.locator('button').first().click();
    await first.getByTestId('call-sent').waitFor({ state: 'detached' });
  });

  it('can be read, wide and narrow, dark and light', async () => {
    const { tab } = it_has;
    await assertLooks(tab, async (name) => {
      await panel().getByTestId('run-facts').scrollIntoViewIfNeeded();
      await tab.screenshot(`${name}-run-details`);
      await panel().getByTestId('call-options').scrollIntoViewIfNeeded();
      await tab.screenshot(`${name}-run-call`);
    }, 'dialog .panel-page');
  });

  it('lead to the subagent and back', async () => {
    const { tab } = it_has;
    const parent = await panel().getAttribute('data-run-id');
    const child = await panel().getByTestId('run-child').getAttribute('data-run-id');
    await panel().getByTestId('run-child').focus();
    await tab.page.keyboard.press('Enter');
    await rows('tool', 'filesystem').waitFor();
    assert.equal(await panel().getAttribute('data-run-id'), child);
    assert.equal(await tab.page.evaluate(() => document.activeElement?.id), 'run-title', 'who came by keyboard is told where they are');
    await rows('text', 'text').getByText('There are no notes.').waitFor();
    assert.equal(await rows('tool', 'spawn_agent').count(), 0);
    assert.ok(await rows('call').count() >= 2);
    await rows('call').first().locator('button').first().click();
    await rows('call').first().locator('[data-testid="sent-message"]', { hasText: TASK }).first().waitFor();

    await panel().getByTestId('run-back').click();
    await rows('tool', 'spawn_agent').waitFor();
    assert.equal(await panel().getAttribute('data-run-id'), parent);
    await tab.page.keyboard.press('Escape');
    await panel().waitFor({ state: 'detached' });
    assert.equal(await tab.page.evaluate(() => document.activeElement?.getAttribute('data-testid')), 'run-details');
  });

  it('say what went wrong when they cannot be read, and try again', async () => {
    const { tab } = it_has;
    await tab.page.route(/\/runs\/[^/]+$/, (route) => route.abort(), { times: 1 });
    await tab.answers.last().hover();
    await tab.page.getByTestId('run-details').last().click();
    await panel().getByTestId('error-card').waitFor();
    await panel().getByTestId('run-retry').click();
    await rows('event', 'stream_end').waitFor();
    assert.equal(await panel().getByTestId('error-card').count(), 0);
    await panel().getByTestId('run-close').click();
  });

  it('are listed with what they used, the newest first, and opened from there', async () => {
    const { model, tab } = it_has;
    await model.script({ with_tools: true, when: 'And once more', steps: [{ text: 'Still nothing.' }] });
    await tab.send('And once more.');
    await tab.sees('Still nothing.');
    await tab.idle();
    const listed = tab.page.getByTestId('runs-run');
    const list = async () => {
      await tab.page.keyboard.press('Control+k');
      await tab.page.getByTestId('palette-input').fill('Runs and what');
      await tab.page.keyboard.press('Enter');
      await listed.nth(1).waitFor();
    };
    await list();
    assert.deepEqual(await listed.getByTestId('runs-open').allInnerTexts(), ['And once more.', REQUEST], 'those of subagents stand under theirs');
    for (const text of await listed.allInnerTexts()) assert.match(text, /completed · .*\d.* read, .*\d.* written · €\d/);
    assert.match(await tab.page.getByTestId('runs-today').innerText(), /^\d.* read, .*\d.* written · €\d/);
    assert.match(await tab.page.getByTestId('runs-spent').innerText(), /^\d.* read, .*\d.* written · €\d/);
    await assertLooks(tab, (look) => tab.screenshot(`${look}-runs`), 'dialog .panel-page');
    const id = await listed.last().getAttribute('data-run-id');
    await listed.last().getByTestId('runs-open').click();
    await panel().waitFor();
    assert.equal(await panel().getAttribute('data-run-id'), id);
    await panel().getByTestId('run-close').click();

    await tab.page.route(/\/runs$/, (route) => route.abort(), { times: 1 });
    await tab.page.keyboard.press('Control+k');
    await tab.page.getByTestId('palette-input').fill('Runs and what');
    await tab.page.keyboard.press('Enter');
    await tab.page.getByTestId('runs-retry').click();
    await listed.nth(1).waitFor();
    await tab.page.getByTestId('runs-close').click();
  });

  it('tell what of a prompt was read again, what broke it and what that cost', async () => {
    const { tab } = it_has;
    const details = async () => {
      await tab.idle();
      await tab.answers.last().hover();
      await tab.page.getByTestId('run-details').last().click();
      const line = rows('call', 'turn').first().getByTestId('call-prefix');
      await line.waitFor();
      const told = [await line.getAttribute('data-broken-by'), await line.innerText()];
      await panel().getByTestId('run-close').click();
      await panel().waitFor({ state: 'detached' });
      return told;
    };
    for (const words of ['hello', 'thanks']) {
      await tab.send(words);
      await tab.sees(`You said: ${words}`);
      await tab.idle();
    }
    const [nothing, kept] = await details();
    assert.equal(nothing, '');
    assert.match(kept, /^Nothing before it changed; tokens kept: ≈ [\d,]+$/);
    await tab.page.getByTestId('mode-button').click();
    await tab.page.locator('[data-testid="choice-profile_id"][value="server_admin"]').check();
    await tab.page.getByTestId('profile-name').getByText('Server Administrator').waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.send('good morning');
    await tab.sees('You said: good morning');
    const [piece, words] = await details();
    assert.equal(piece, 'system');
    assert.match(words, /^The instructions changed: ≈ [\d,]+ tokens were read again, .*€[\d.,]+$/);
    await tab.page.getByTestId('context-meter').click();
    await tab.page.getByTestId('context-prefix').getByText(`About the last run. ${words}.`).waitFor();
    await tab.page.keyboard.press('Escape');
  });

  it('have words in every language', async () => {
    const { tab } = it_has;
    for (const [language, title] of [['uk', 'Подробиці запуску'], ['ru', 'Подробности запуска'], ['en', 'Details of the run']]) {
      await tab.page.evaluate((chosen) => localStorage.setItem('navi.language', chosen), language);
      await tab.page.reload();
      await tab.answers.last().hover();
      await tab.page.getByTestId('run-details').last().click();
      await panel().getByRole('heading', { name: title }).waitFor();
      await rows('event', 'stream_end').waitFor();
      const text = await panel().innerText();
      assert.doesNotMatch(text, /\b(runs|tool|subagent|unknown)\.[a-z_]+/, 'a key in place of its words');
      await panel().getByTestId('run-close').click();
    }
  });
});
