// Chat Completions through OpenAI's own client for JavaScript: what clients.test.js has not.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import OpenAI from 'openai';

import { startWorld } from './adapters/world.js';

let world, model;
before(async () => {
  world = await startWorld();
  model = world.model;
});
after(() => world?.close());

const js = ({ origin = world.origin, ...options } = {}) => new OpenAI({ baseURL: `${origin}/v1`, apiKey: world.token, ...options });
const asked = (content) => ({ model: 'navi', messages: [{ role: 'user', content }] });
const said = ({ choices: [{ message }] }) => message.content;

/** The model calls that answer, so far. */
const answers = () => model.runCallsWhere(() => true);

describe("OpenAI's client for JavaScript", () => {
  it('sends a file along, which the model reads', async () => {
    await model.script([{ text: 'Read.' }]);
    const data = Buffer.from('the code word is marmalade').toString('base64');
    const content = [{ type: 'file', file: { filename: 'word.txt', file_data: `data:text/plain;base64,${data}` } }, { type: 'text', text: 'Read it.' }];
    assert.equal(said(await js().chat.completions.create(asked(content))), 'Read.');
    assert.match(JSON.stringify((await answers()).at(-1).body), /the code word is marmalade/);
    const wrong = [{ type: 'file', file: { file_id: 'file-1' } }];
    await assert.rejects(js().chat.completions.create(asked(wrong)), OpenAI.BadRequestError);
  });

  it('joins the run again by itself when the connection was cut', async () => {
    const line = await world.line();
    const before = (await answers()).length;
    await model.script([{ hold: 'cut' }, { text: 'Whole.' }]);
    const answer = js({ origin: line.origin, maxRetries: 3 }).chat.completions.create(asked('Only once.'));
    await model.runCallsWhere((runs) => runs.length > before);
    line.cut();
    await model.release('cut');
    assert.equal(said(await answer), 'Whole.');
    assert.equal((await answers()).length, before + 1);
    line.close();
  });

  it('lists the models, and is refused one that is not there', async () => {
    await assert.rejects(js().chat.completions.create({ ...asked('Hi'), model: 'gpt-9' }), OpenAI.NotFoundError);
    const ids = (await js().models.list()).data.map(({ id }) => id);
    assert.ok(ids.includes('navi'), `${ids}`);
  });
});
