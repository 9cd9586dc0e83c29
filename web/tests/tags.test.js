import assert from 'node:assert/strict';
import { test } from 'node:test';

import { tagged, tagsOf, toggled } from '../state/tags.js';
import { FakeService } from './fake_service.js';

const row = (/** @type {string} */ id, /** @type {string[] | undefined} */ tags) => ({ ...new FakeService().snapshot, id, tags });

test('tags of a list, the most used first, and those that have one', () => {
  const list = [row('a', ['trips', 'дім']), row('b', ['дім']), row('c', undefined)];
  assert.deepEqual(tagsOf(list), ['дім', 'trips']);
  assert.deepEqual(tagged(list, 'trips').map(({ id }) => id), ['a']);
  assert.deepEqual(tagged(list, null), list);
});

test('a tag comes and goes, in whatever case', () => {
  assert.deepEqual(toggled(['a'], ' new  one '), ['a', 'new one']);
  assert.deepEqual(toggled(['a', 'B'], 'b'), ['a']);
  assert.deepEqual(toggled(['a'], ' '), ['a']);
});
