// The files that a run left behind.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { madeFiles } from '../state/made.js';
import { newAssistant, newCall } from '../state/model.js';
import { at } from './fake_service.js';

/** @import { Change } from '../state/wire.js' */

/** @param {string} id @param {string} run_id @param {number} ms @param {import('../state/types.js').Call[]} [calls] */
const entry = (id, run_id, ms, calls = []) => ({ ...newAssistant(id, run_id, at(ms)), calls });
const wrote = (/** @type {string} */ path) => newCall(`w-${path}`, 'filesystem', { action: 'write', path }, 'success');

const entries = [entry('a1', 'r1', 10), entry('a2', 'r1', 20), entry('b1', 'r2', 100), entry('b2', 'r2', 110)];

/** @param {Partial<Change>[]} told oldest first */
const changes = (...told) => told.map((change, i) => /** @type {Change} */ ({ id: `c${i}`, action: 'write', path: 'a.md', at: at(15), run_id: 'r1', undoable: true, ...change })).reverse();

/** @param {Change[]} list @param {string | null} [going] */
const made = (list, going = null) => [...madeFiles(entries, list, going, new Map())];

test('a run that wrote one file ends with it, and a file that is written twice is one', () => {
  assert.deepEqual(made(changes({}, { action: 'edit' }, { path: 'b.md', run_id: 'r2' })), [['a2', ['a.md']], ['b2', ['b.md']]]);
  assert.deepEqual(made(changes({})), [['a2', ['a.md']]]);
});

test('what a subagent wrote is of the run that went then', () => {
  assert.deepEqual(made(changes({ run_id: 'child', at: at(15) }, { run_id: 'other', path: 'b.md', at: at(105) })), [['a2', ['a.md']], ['b2', ['b.md']]]);
  assert.deepEqual(made(changes({ run_id: 'child', at: at(5) })), [], 'of a run that is not there');
});

test('what a subagent wrote on another branch is of no run that is shown', () => {
  assert.deepEqual(made(changes({ run_id: 'child', at: at(50) })), [], 'between two runs');
  assert.deepEqual(made(changes({ run_id: 'child', at: at(200) })), [], 'after the last');
  const stopped = [entry('a1', 'r1', 10, [newCall('s', 'spawn_agent', {}, 'stopped')])];
  assert.deepEqual([...madeFiles(stopped, changes({ run_id: 'child', at: at(50) }), null, new Map())], [['a1', ['a.md']]], 'it was stopped in the call');
});

test('a file that was moved is where it went, and one that is gone is none', () => {
  assert.deepEqual(made(changes({ path: 'old/a.md' }, { path: 'old/b.md' }, { action: 'move', path: 'old', to: 'new' }, { action: 'delete', path: 'new/b.md' })), [['a2', ['new/a.md']]]);
  assert.deepEqual(made(changes({ path: 'older.md' }, { action: 'delete', path: 'old' })), [['a2', ['older.md']]]);
  assert.deepEqual(made(changes({ path: '/etc/hosts' })), [], 'no file of the workspace');
});

test('what was taken back is not there, and is again where that was taken back too', () => {
  const undo = /** @type {const} */ ({ action: 'undo', run_id: undefined });
  assert.deepEqual(made(changes({}, { ...undo, undoes: 'c0' })), []);
  assert.deepEqual(made(changes({}, { ...undo, undoes: 'c0' }, { ...undo, undoes: 'c1' })), [['a2', ['a.md']]]);
});

test('a run that goes on has made nothing yet', () => {
  assert.deepEqual(made(changes({}, { run_id: 'r2', path: 'b.md' }), 'r2'), [['a2', ['a.md']]]);
});

test('where the changes are not known the calls tell it', () => {
  const told = [entry('a1', 'r1', 10, [wrote('a.md')]), entry('a2', 'r1', 20)];
  const known = madeFiles(told, [], null, new Map());
  assert.deepEqual([...known], [['a2', ['a.md']]]);
  assert.deepEqual([...madeFiles(told, changes({}, { action: 'undo', run_id: undefined, undoes: 'c0' }), null, new Map())], []);
  assert.equal(madeFiles(told, changes({}), null, known).get('a2'), known.get('a2'), 'the same stays the same object');
});
