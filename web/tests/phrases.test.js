import assert from 'node:assert/strict';
import { test } from 'node:test';

import { loadTroubles, useLanguage } from '../i18n/index.js';
import { allPhrases, checkWords, headOf, phraseText, troubleOf } from '../i18n/phrases.js';

/** @import { Phrase } from '../state/wire.js' */

/** @type {Phrase} */
const refused = {
  code: 'server_silent',
  params: { address: 'http://x', reason: 'connection refused' },
  phrases: { reason: { code: 'connection_refused' } },
};

/** @param {import('../i18n/choose.js').Language} language */
async function speak(language) {
  await useLanguage(language);
  await loadTroubles();
}

/** A code that this page does not know yet. @type {Phrase} */
const newer = { code: /** @type {any} */ ('of_another_version'), params: { x: '1' } };

test('words for what is wrong come with the first of it', async () => {
  await useLanguage('en');
  assert.equal(phraseText({ code: 'set_clock' }, 'not here yet'), 'not here yet');
  await loadTroubles();
  assert.equal(phraseText({ code: 'set_clock' }, ''), 'set the machine’s clock');
});

test('words that stand in words are in the page’s language too', async () => {
  await speak('uk');
  assert.equal(phraseText(refused, 'english'), 'сервер моделі http://x не відповідає: у з’єднанні відмовлено');
  const trouble = { kind: /** @type {const} */ ('ollama'), address: 'x', models: [], state: /** @type {const} */ ('down'), problem: 'p', remedy: 'r' };
  assert.deepEqual(troubleOf({ ...trouble, phrases: { problem: refused, remedy: { code: 'start_ollama' } } }), {
    problem: 'сервер моделі http://x не відповідає: у з’єднанні відмовлено',
    remedy: 'запустіть Ollama (`ollama serve`) або вкажіть в OLLAMA_HOST, де вона працює',
  });
  assert.deepEqual(troubleOf(trouble), { problem: 'p', remedy: 'r' });
});

test('numbers in words are counted as the language counts', async () => {
  await speak('ru');
  const ahead = (/** @type {string} */ n) => phraseText({ code: 'ahead', params: { n } }, '');
  assert.deepEqual(['2', '5', '21'].map(ahead), ['впереди ещё 2 запроса', 'впереди ещё 5 запросов', 'впереди ещё 21 запрос']);
});

test('what a detail has word for word is not said above it', async () => {
  await speak('en');
  const base = { summary: 'old words', effect: /** @type {const} */ ('egress'), reason: '' };
  const address = { label: 'address', code: /** @type {const} */ ('address'), kind: /** @type {const} */ ('code'), text: 'https://example.org/a' };
  const phrases = { summary: { code: /** @type {const} */ ('fetch'), params: { address: 'https://exam…' } }, reason: [] };
  assert.equal(headOf({ ...base, details: [address], phrases }), 'read …');
  assert.equal(headOf({ ...base, details: [{ ...address, code: 'command' }], phrases: { ...phrases, summary: { code: 'run_on', params: { command: 'ls', host: 'nas' } } } }), 'run … on nas');
  assert.equal(headOf({ ...base, details: [], phrases }), 'read https://exam…', 'nothing else says it');
  assert.equal(headOf({ ...base, details: [address] }), 'old words');
});

test('what the page has no words for is said in the service’s', async () => {
  await speak('uk');
  assert.equal(phraseText(newer, 'english'), 'english');
  assert.equal(phraseText(undefined, 'english'), 'english');
  assert.equal(phraseText({ ...refused, params: { address: 'x', reason: 'new words' }, phrases: { reason: newer } }, ''), 'сервер моделі x не відповідає: new words');
  assert.equal(allPhrases([refused, newer], 'both in english'), 'both in english');
  assert.equal(allPhrases([], 'english'), 'english');
});

test('a check of `navi doctor` is told in the page’s language, its name too', async () => {
  await speak('uk');
  const check = { name: /** @type {const} */ ('disk'), level: /** @type {const} */ ('warning'), detail: '9 MB free', remedy: 'make room' };
  assert.deepEqual(checkWords({ ...check, phrases: { detail: [{ code: 'disk_free', params: { megabytes: '9' } }], remedy: { code: 'make_room' } } }), {
    name: 'диск', detail: 'вільно 9 МБ', remedy: 'звільніть місце або вкажіть у NAVI_DATA_DIR більший диск',
  });
  assert.deepEqual(checkWords({ ...check, name: /** @type {any} */ ('new'), phrases: { detail: [newer] } }), { name: 'new', detail: '9 MB free', remedy: 'make room' });
});

test('what somebody else says stays as it is', async () => {
  await speak('uk');
  assert.equal(phraseText({ code: 'plain', params: { text: 'their {words}' } }, ''), 'their {words}');
});
