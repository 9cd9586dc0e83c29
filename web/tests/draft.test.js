import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ofSame } from '../state/draft.js';

test('an answer is told of the draft that was asked about, and of no later one', async () => {
  let draft = { address: 'a' };
  assert.equal(await ofSame(() => draft, async () => 'found'), 'found');
  assert.equal(await ofSame(() => draft, async () => { draft = { address: 'b' }; return 'found'; }), null);
  // Written anew in the same words it is the same.
  assert.equal(await ofSame(() => draft, async () => { draft = { address: 'b' }; return 'found'; }), 'found');
});

test('a refusal of what is written no more is not told', async () => {
  let draft = 'a';
  const refuse = async () => { throw new Error('refused'); };
  await assert.rejects(ofSame(() => draft, refuse), /refused/);
  assert.equal(await ofSame(() => draft, () => { draft = 'b'; return refuse(); }), null);
});
