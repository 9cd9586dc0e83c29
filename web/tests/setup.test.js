import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answersFor, copied, fixedOf, idIn, isChangeable, misfits, reportText, settingsFor } from '../state/setup.js';

/** @import { Report, ShownValue, SystemStatus } from '../state/wire.js' */

/** @param {string} key @param {Partial<ShownValue>} [more] @returns {ShownValue} */
const setting = (key, more = {}) => ({ key, variable: key.toUpperCase().replace('.', '_'), description: '', secret: false, value: null, origin: 'default', ...more });

const SETTINGS = [
  setting('ollama.host', { description: 'Where Ollama is.', value: 'http://localhost:11434' }),
  setting('ollama.think', { value: 'true', origin: 'environment' }),
  setting('openai.api_key', { secret: true, value: '[hidden]', origin: '/x/navi.toml' }),
];

/** @type {SystemStatus} */
const STATUS = {
  version: '1', active: 'ollama', warnings: [], warning_phrases: [], fetchable: [], fence: { files_open: false, commands_open: false }, mode: 'edits',
  backends: [
    { kind: 'ollama', address: 'http://localhost:11434', state: 'ready', models: [{ name: 'a', tools: false }, { name: 'b' }], default_model: 'a' },
    { kind: 'openai', address: 'http://localhost:1', state: 'down', problem: 'gone', remedy: 'start it', models: [] },
  ],
  profile_models: [
    { profile_id: 'one', name: 'ONE', description: '', has_tools: true, is_default: true, backend: 'ollama', model: 'a', instead_of: 'c' },
    { profile_id: 'two', name: 'TWO', description: '', has_tools: true, is_default: false, backend: 'ollama', model: 'b', fell_back_from: 'openai' },
    { profile_id: 'three', name: 'THREE', description: '', has_tools: true, is_default: false },
  ],
};

test('settings are found by all their words, under their headings', () => {
  /** @param {string} query @param {boolean} [only_set] */
  const found = (query, only_set = false) => settingsFor(SETTINGS, query, only_set).map(({ section, settings }) => [section, settings.map(({ key }) => key)]);
  assert.deepEqual(found(''), [['ollama', ['ollama.host', 'ollama.think']], ['openai', ['openai.api_key']]]);
  assert.deepEqual(found('where OLLAMA'), [['ollama', ['ollama.host']]]);
  assert.deepEqual(found('', true), [['ollama', ['ollama.think']], ['openai', ['openai.api_key']]]);
  assert.deepEqual(found('nothing of it'), []);
});

test('a model answers for profiles, and what does not fit is told', () => {
  const { backends: [ollama], profile_models: profiles } = STATUS;
  assert.deepEqual(answersFor(profiles, ollama, { name: 'a' }), ['ONE']);
  const found = profiles.map((profile) => misfits(STATUS, profile).map(({ key }) => key));
  assert.deepEqual(found, [['instead', 'tool_less'], ['fell_back'], ['nobody']]);
});

test('a report has what is wrong and what was set', () => {
  /** @type {Report} */
  const report = { level: 'warning', checks: [{ name: 'disk', level: 'fine', detail: '9 MB free', phrases: { detail: [] } }, { name: 'model', level: 'warning', detail: 'none', remedy: 'start one', phrases: { detail: [] } }] };
  assert.equal(reportText('1.0', report, SETTINGS), [
    'Navi 1.0', '✓ disk: 9 MB free', '! model: none', '  → start one', '',
    'OLLAMA_THINK=true (environment)', 'OPENAI_API_KEY=[hidden] (/x/navi.toml)',
  ].join('\n'));
});

test('a copy of a profile has an id of its own', () => {
  const text = '# mine\nid = "own"\nname = "Own"\n';
  assert.equal(copied(text), '# mine\nid = "own_copy"\nname = "Own"\n');
  assert.deepEqual([text, copied(text), 'name = "x"', 'id = ""'].map(idIn), ['own', 'own_copy', '-', '-']);
});

test('what the environment says, and what opens the house, is not changed from here', () => {
  const [host, think, key] = SETTINGS;
  assert.ok(isChangeable(host) && isChangeable(key));
  assert.ok(!isChangeable(think));
  assert.ok(!isChangeable(setting('server.bind', { file_only: 'doors' })));
  assert.equal(fixedOf(SETTINGS), null);
  assert.equal(fixedOf([host, setting('openai.base_url', { value: 'http://localhost:1', origin: 'environment' })]), 'OPENAI_BASE_URL');
});
