// Ollama's API through Ollama's own client for Python.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { PYTHON, python, SKIPPED } from './python.js';

const KEY = 'a-token-of-the-tests';
const WEATHER = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

describe("Ollama's client for Python", { skip: PYTHON ? false : SKIPPED }, () => {
  let model, navi, asked;
  before(async () => {
    model = await startModel();
    navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY });
    const host = new URL(navi.link).origin;
    asked = (question, more) => python('ollama_client.py', { host, api_key: KEY, question, ...more });
  });
  after(async () => {
    await navi?.remove();
    await model?.stop();
  });

  it('lists the models, and reads an answer with thinking and a tool of ours', async () => {
    await model.script(
      [{ thinking: 'First the list.' }, { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }],
      [{ text: 'All ' }, { text: 'done.' }],
    );
    const [models, answer] = await asked('Begin.');
    assert.equal(models.models[0], 'navi:latest');
    assert.ok(models.capabilities.includes('tools'));
    assert.deepEqual(answer, { text: 'All done.', thinking: 'First the list.', calls: [] });
  });

  it('runs its own tools', async () => {
    await model.script([{ tool_call: { name: 'weather', arguments: { city: 'Kyiv' } } }], [{ text: 'It snows.' }]);
    const [, first, second] = await asked('The weather?', { tools: [WEATHER], result: 'snow, -3' });
    assert.equal(first.calls[0].function.name, 'weather');
    assert.equal(second.text.trim(), 'It snows.');
    await model.runCallsWhere((runs) => JSON.stringify(runs.at(-1).body).includes('snow, -3'));
  });

  it('understands a failure in mid-stream, and a wrong token', async () => {
    await model.script([{ text: 'Half' }, { error: 'the model broke' }]);
    const failed = await asked('Fail.');
    assert.match(failed.at(-1).error, /broke|stream|model/);
    const [refused] = await asked('Hi.', { api_key: 'wrong' });
    assert.equal(refused.status, 401);
  });
});
