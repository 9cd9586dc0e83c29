// Subagents side by side: each has its name, its plan and its work, and is drawn for itself.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { LIMIT_MS } from './harness/program.js';
import { world } from './harness/world.js';

const call = (name, args) => ({ tool_call: { name, arguments: args } });
const spawn = (task, more = {}) => call('spawn_agent', { task, ...more });

const PENS = 'Count the pens. Look in every drawer, and leave none out.';
const PAPER = 'Count the paper.';

describe('subagents', () => {
  // Each is answered at once, whoever else speaks.
  const it_has = world({ settings: { LLM_PARALLEL: '4' } });
  const pens = () => it_has.tab.subagents.filter({ hasText: 'Count the pens.' });
  const names = () => it_has.tab.page.getByTestId('subagent-name').allInnerTexts();

  it('are called by what they do, and by a number where that is the same', async () => {
    const { model, tab } = it_has;
    await model.script(
      { when: 'Ask them', steps: [spawn(PENS), spawn(PAPER), spawn(PAPER)] },
      { when: PENS, steps: [call('filesystem', { action: 'list', path: '.' })] },
      { when: PENS, steps: [call('filesystem', { action: 'search_names', pattern: '*.md' })] },
      { when: PENS, steps: [{ text: 'One, ' }, { hold: 'one' }, { text: 'two, ' }, { hold: 'two' }, { text: 'three.' }] },
      { when: PAPER, steps: [{ text: 'Ten, ' }, { hold: 'two' }, { text: 'eleven.' }] },
      { when: PAPER, steps: [{ text: 'Ten, ' }, { hold: 'two' }, { text: 'eleven.' }] },
      { when: 'Ask them', steps: [{ text: 'All is counted.' }] },
    );
    await tab.send('Ask them all.');
    await tab.subagents.nth(2).waitFor();
    assert.deepEqual(await names(), ['Count the pens.', 'Count the paper. 1', 'Count the paper. 2']);
    assert.deepEqual(await tab.page.getByTestId('subagent-profile').allInnerTexts(), Array(3).fill('Personal Secretary'));
    assert.deepEqual(await tab.page.getByTestId('subagent-task').allInnerTexts(), [PENS], 'said once where the name is all of it');
  });

  it('have their work in one line', async () => {
    const { tab } = it_has;
    await tab.page.getByTestId('subagent-activity').and(tab.page.getByText('Writing its report')).nth(2).waitFor();
    await pens().getByTestId('subagent-toggle').click();
    await pens().getByTestId('work').getByText('looked in files for *.md').waitFor();
    assert.equal(await pens().getByTestId('tool-card').count(), 0);
    await assertLooks(tab, (look) => tab.screenshot(`${look}-subagents`));
    await pens().getByTestId('work').click();
    await pens().getByTestId('tool-card').nth(1).waitFor();
  });

  it('are drawn again only where they did something', async () => {
    const { model, tab } = it_has;
    await tab.page.evaluate(() => {
      const { prototype } = customElements.get('navi-subagent');
      const { render } = prototype;
      window.draws = {};
      prototype.render = function draw() {
        window.draws[this.call.args.task] = (window.draws[this.call.args.task] ?? 0) + 1;
        return render.call(this);
      };
    });
    await model.release('one');
    await pens().getByText('One, two,').waitFor();
    const draws = await tab.page.evaluate(() => window.draws);
    assert.deepEqual(Object.keys(draws), [PENS]);
    await model.release('two');
    await tab.sees('All is counted.');
    await tab.idle();
    await pens().getByText('One, two, three.').first().waitFor();
  });

  it('are the same after a reload', async () => {
    const { tab } = it_has;
    await tab.page.reload();
    await tab.subagents.nth(2).getByText('Personal Secretary').waitFor();
    assert.deepEqual(await names(), ['Count the pens.', 'Count the paper. 1', 'Count the paper. 2']);
    await pens().getByTestId('subagent-toggle').click();
    await pens().getByTestId('work').getByText('looked in files for *.md').waitFor();
  });

  it('have plans that are no earlier ones', async () => {
    const { model, navi, tab } = it_has;
    const folder = join(navi.dataDir, 'profiles');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'planner.toml'), 'id = "planner"\nname = "Planner"\ndescription = "Plans"\nsystem_prompt = "Plan it."\nenabled_tools = ["filesystem"]\ntemperature = 0.5\nplanning_enabled = true\nplanning_phase2_enabled = true\nsubagent_planning_enabled = true\n');
    const end = Date.now() + LIMIT_MS;
    const listed = () => tab.page.evaluate(async () => (await fetch('/agents/profiles', { headers: { 'x-navi-key': localStorage.getItem('navi.key') } })).json());
    while (!(await listed()).some(({ id }) => id === 'planner')) if (Date.now() > end) assert.fail('the profile is not taken in');
    await model.script(
      { when: 'Ask the planner', with_tools: true, steps: [spawn('Prepare the trip.', { profile_id: 'planner' })] },
      { when: 'Prepare the trip.', streamed: false, system: 'You sort a user', steps: [{ text: 'Some work.\nREFLECT: no' }] },
      { when: 'Prepare the trip.', streamed: false, system: 'You write the plan', steps: [{ text: '1. Pack the bag | SELF\n2. Close the door | SELF' }] },
      { when: 'Prepare the trip.', with_tools: true, steps: [{ text: 'The bag is packed.' }] },
      { when: 'Ask the planner', with_tools: true, steps: [{ text: 'It is prepared.' }] },
    );
    await tab.send('Ask the planner.');
    await tab.sees('It is prepared.');
    await tab.idle();
    await tab.subagents.last().getByTestId('subagent-toggle').click();
    const plan = tab.subagents.last().getByTestId('plan');
    await plan.getByText('Pack the bag').waitFor();
    assert.equal((await plan.getByRole('heading').first().innerText()).trim(), 'Plan');
  });
});
