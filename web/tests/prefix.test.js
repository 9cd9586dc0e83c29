// What of a prompt was read again, as a sentence.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { loadTroubles, useLanguage } from '../i18n/index.js';
import { lastPrefix, prefixWords } from '../ui/prefix.js';

/** @import { CallInfo, CallPrefix } from '../state/wire.js' */

/** @param {Partial<CallPrefix>} [of] @returns {CallPrefix} */
const prefix = (of = {}) => ({ broken_by: null, kept_tokens: 3_000, read_again_tokens: 0, counted: true, ...of });
const calls = (/** @type {(CallPrefix | undefined)[]} */ ...of) => of.map((one) => /** @type {CallInfo} */ ({ prefix: one }));

/** @param {import('../i18n/choose.js').Language} language */
async function speak(language) {
  await useLanguage(language);
  await loadTroubles();
}

before(() => speak('en'));

test('what was read again is told with its time and its price', () => {
  const broken = { broken_by: /** @type {const} */ ('memory'), read_again_tokens: 3_100, read_again_ms: 4_100, cost: { amount: 0.002, currency: 'EUR' } };
  assert.equal(prefixWords(prefix(broken)), 'The memory changed: 3,100 tokens were read again, 4.1 s, €0.002');
  assert.equal(prefixWords(prefix({ broken_by: 'tools', read_again_tokens: 1, counted: false })), 'The tools changed: ≈ 1 token was read again');
  assert.equal(prefixWords(prefix({ broken_by: 'message' })), 'The conversation went another way: nothing was read again');
});

test('a request that goes on says so', () => {
  assert.equal(prefixWords(prefix()), 'Nothing before it changed; tokens kept: 3,000');
});

test('every piece has its words', async () => {
  for (const language of /** @type {const} */ (['uk', 'ru', 'en'])) {
    await speak(language);
    for (const broken_by of /** @type {const} */ (['model', 'system', 'tools', 'memory', 'summary', 'window', 'message', 'note', 'server'])) {
      assert.doesNotMatch(prefixWords(prefix({ broken_by })), /runs\./, `${language} ${broken_by}`);
    }
  }
});

test('of a run the newest call counts that had something read again', () => {
  const [again, whole] = [prefix({ broken_by: 'memory', read_again_tokens: 5 }), prefix()];
  assert.equal(lastPrefix(calls(again, undefined, whole)), again);
  assert.equal(lastPrefix(calls(undefined, whole)), whole);
  assert.equal(lastPrefix(calls(undefined)), null);
});
