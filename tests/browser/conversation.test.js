// The main way, against each backend: a person types, and Navi answers live.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { world } from './harness/world.js';

for (const backend of ['ollama', 'openai']) {
  describe(`a conversation over ${backend}`, () => {
    // As most people have it: with what moves.
    const it_has = world({ backend, options: { reducedMotion: 'no-preference' } });

    it('streams the answer while the model still speaks', async () => {
      const { model, tab } = it_has;
      await model.script([{ text: 'The river is **wide**' }, { hold: 'more' }, { text: ' and slow.' }]);

      await tab.send('What is the river like?');

      await tab.sees('wide');
      await tab.stopButton.waitFor();
      assert.equal(await tab.answers.last().locator('strong').innerText(), 'wide');
      assert.doesNotMatch(await tab.answers.last().innerText(), /slow/);
      await model.release('more');
      await tab.sees('and slow.');
      await tab.idle();
      assert.equal(await tab.composer.inputValue(), '');
      assert.match(await tab.messages.first().innerText(), /What is the river like\?/);
    });

    it('folds the reasoning away from the answer', async () => {
      const { model, tab } = it_has;
      await model.script([{ thinking: 'Two and two are four.' }, { text: 'Four.' }]);

      await tab.send('How much is two and two?');

      await tab.sees('Four.');
      await tab.idle();
      await tab.page.getByTestId('thinking').last().waitFor();
    });

    it('shows a tool at work and its result', async () => {
      const { model, tab } = it_has;
      const [add, look] = [{ action: 'add', texts: ['buy bread'] }, { action: 'list' }];
      await model.script([{ tool_call: { name: 'todo', arguments: add } }, { tool_call: { name: 'filesystem', arguments: look } }], [{ text: 'It is on the list.' }]);

      await tab.send('Remind me to buy bread.');

      await tab.sees('It is on the list.');
      await tab.idle();
      const card = tab.toolCards.last();
      assert.equal(await card.getAttribute('data-state'), 'success');
      assert.match(await card.innerText(), /Looked through the workspace/);
      await tab.todo.getByText('buy bread').first().waitFor();
    });

    it('keeps the choice of a language within the list of conversations, in each', async () => {
      const { tab } = it_has;
      const choice = tab.page.getByTestId('language');
      for (const language of ['uk', 'ru', 'en']) {
        await choice.selectOption(language);
        await tab.page.locator(`html[lang="${language}"]`).waitFor({ state: 'attached' });
        const [inner, outer] = [await choice.boundingBox(), await tab.page.locator('.sidebar').boundingBox()];
        assert.ok(inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width, `${language}: ${JSON.stringify({ inner, outer })}`);
        await tab.screenshot(`sidebar-${backend}-${language}`);
      }
    });

    it('still knows the conversation after a restart', async () => {
      const { navi, tab } = it_has;
      const before = await tab.conversation();
      assert.ok(before.length >= 6);

      await navi.stop();
      await navi.start();
      await tab.page.reload();
      await tab.ready();

      assert.deepEqual(await tab.conversationWhere((now) => now.length === before.length), before);
    });
  });
}

// The demo model says what it likes, so only that it answers is checked. The directory that
// holds its weights is given by whoever could fetch them. It computes in a build without
// optimisation, and other tests may have the processors: a short persona leaves it less to read.
const models = process.env.NAVI_TEST_MODELS;
describe('a conversation with the model in the process', { skip: models === undefined && 'its weights are not here' }, () => {
  const it_has = world({ backend: 'starter', settings: { STARTER_MODEL: 'smollm2-135m', NAVI_PERSONA: 'You are Navi.' }, models });

  it('is answered without any server', { timeout: 960_000 }, async () => {
    const { tab } = it_has;
    tab.page.setDefaultTimeout(900_000);
    await tab.page.locator('[data-testid="banner"][data-kind="demo"]').waitFor();

    await tab.send('Say hello.');

    await tab.answers.last().getByText(/\w/).first().waitFor();
    // It may have come to its end by now.
    await tab.stopButton.click({ timeout: 5_000 }).catch(() => {});
    await tab.idle();
    assert.match(await tab.answers.last().innerText(), /\w/);
  });
});
