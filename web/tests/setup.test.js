import assert from 'node:assert/strict';
import { test } from 'node:test';

import { settingsFor } from '../state/setup.js';

/** @import { Setting } from '../state/wire.js' */

/** @param {string} key @param {Partial<Setting>} [more] @returns {Setting} */
const setting = (key, more = {}) => ({ key, variable: key.toUpperCase().replace('.', '_'), description: '', secret: false, value: null, origin: 'default', ...more });

const SETTINGS = [
  setting('ollama.host', { description: 'Where Ollama is.', value: 'http://localhost:11434' }),
  setting('ollama.think', { value: 'true', origin: 'environment' }),
  setting('openai.api_key', { secret: true, value: '[hidden]', origin: '/x/navi.toml' }),
];

test('settings are found by all their words, under their headings', () => {
  /** @param {string} query @param {boolean} [only_set] */
  const found = (query, only_set = false) => settingsFor(SETTINGS, query, only_set).map(({ section, settings }) => [section, settings.map(({ key }) => key)]);
  assert.deepEqual(found(''), [['ollama', ['ollama.host', 'ollama.think']], ['openai', ['openai.api_key']]]);
  assert.deepEqual(found('where OLLAMA'), [['ollama', ['ollama.host']]]);
  assert.deepEqual(found('', true), [['ollama', ['ollama.think']], ['openai', ['openai.api_key']]]);
  assert.deepEqual(found('nothing of it'), []);
});
