// Ollama's API through Ollama's own client for Python: what clients.test.js has not.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { startOllama } from './adapters/ollama.js';
import { startWorld } from './adapters/world.js';
import { PYTHON, SKIPPED } from './python.js';

describe("Ollama's client for Python", { skip: PYTHON ? false : SKIPPED }, () => {
  let world, client;
  before(async () => {
    world = await startWorld();
    client = startOllama();
  });
  after(async () => {
    await client?.close();
    await world?.close();
  });

  it('finds the models, and what they can', async () => {
    const { model, can } = await client.ask('Hi.', world).ended;
    assert.equal(model, 'navi:latest');
    assert.ok(can.includes('tools'), `${can}`);
  });
});
