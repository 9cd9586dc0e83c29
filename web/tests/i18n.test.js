import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { en as enFirst } from '../i18n/en.js';
import { ru as ruFirst } from '../i18n/ru.js';
import { settings as ruSettings } from '../i18n/settings_ru.js';
import { settings as ukSettings } from '../i18n/settings_uk.js';
import { OWN_PROFILES } from '../i18n/phrases.js';
import { trouble as enTrouble } from '../i18n/trouble_en.js';
import { trouble as ruTrouble } from '../i18n/trouble_ru.js';
import { trouble as ukTrouble } from '../i18n/trouble_uk.js';
import { uk as ukFirst } from '../i18n/uk.js';
import { ERROR_GROUPS } from '../state/errors.js';

/** @type {import('../i18n/index.js').Dictionary} */
const en = { ...enFirst, ...enTrouble };
const dictionaries = { en, uk: { ...ukFirst, ...ukTrouble }, ru: { ...ruFirst, ...ruTrouble } };
const root = new URL('..', import.meta.url);

/** @param {string | Record<string, string>} entry */
const texts = (entry) => (typeof entry === 'string' ? [entry] : Object.values(entry));

/** @param {string | Record<string, string>} entry */
const parameters = (entry) => new Set(texts(entry).flatMap((text) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)));

async function sources() {
  const out = [];
  for (const folder of ['ui', 'app', 'state', 'i18n']) {
    for (const file of await readdir(new URL(folder, root))) {
      if (/^(settings_|trouble_)?(en|uk|ru)(\.js)?$/.test(file)) continue;
      out.push(await readFile(new URL(`${folder}/${file}`, root), 'utf8'));
    }
  }
  return out.join('\n');
}

test('every language has the same keys with the same parameters', () => {
  for (const [name, dictionary] of Object.entries(dictionaries)) {
    assert.deepEqual(Object.keys(dictionary).sort(), Object.keys(en).sort(), name);
    for (const key of Object.keys(en)) {
      assert.deepEqual(parameters(dictionary[key]), parameters(en[key]), `${name}: ${key}`);
      for (const text of texts(dictionary[key])) assert.notEqual(text.trim(), '', `${name}: ${key}`);
    }
  }
});

test('no key stands in two parts of a language', async () => {
  for (const name of Object.keys(dictionaries)) {
    const files = (await readdir(new URL(`i18n/${name}`, root))).map((file) => `${name}/${file}`);
    const parts = [...files, `trouble_${name}.js`].map((file) => readFile(new URL(`i18n/${file}`, root), 'utf8'));
    const keys = [...(await Promise.all(parts)).join('\n').matchAll(/^ {2}'([^']+)':/gm)].map(([, key]) => key);
    assert.equal(keys.length, Object.keys(en).length, name);
  }
});

test('every plural has each category that its language needs', () => {
  for (const [name, dictionary] of Object.entries(dictionaries)) {
    const needed = new Intl.PluralRules(name).resolvedOptions().pluralCategories;
    for (const [key, entry] of Object.entries(dictionary)) {
      if (typeof entry !== 'string') assert.deepEqual(Object.keys(entry).sort(), [...needed].sort(), `${name}: ${key}`);
    }
  }
});

test('every key that the page asks for is there, and every key is asked for', async () => {
  const source = await sources();
  const asked = [...source.matchAll(/['"`]((?:[a-z_]+\.)+[a-z_]+)['"`]/g)].map(([, key]) => key);
  // Keys that are put together: `session.state.${…}` asks for all that begin so.
  const prefixes = [...source.matchAll(/`((?:[a-z_]+\.)+)\$\{/g)].map(([, prefix]) => prefix);
  for (const [, key] of source.matchAll(/\bt\('([^']+)'/g)) assert.ok(key in en, `${key} is asked for and missing`);
  for (const key of Object.keys(en)) {
    assert.ok(asked.includes(key) || prefixes.some((prefix) => key.startsWith(prefix)), `${key} is never asked for`);
  }
});

test('every error code of the protocol has its advice', async () => {
  const source = await readFile(new URL('../actors/src/protocol/error.rs', root), 'utf8');
  const body = source.slice(source.indexOf('pub enum ErrorCode {'), source.indexOf('/// An error as it crosses'));
  const codes = [...body.matchAll(/^ {4}([A-Z]\w+),/gm)].map(([, name]) => name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase());
  assert.ok(codes.length > 30);
  for (const code of codes) assert.ok(code in ERROR_GROUPS, `${code} has no advice`);
  for (const group of new Set(Object.values(ERROR_GROUPS))) {
    for (const part of ['title', 'hint']) assert.ok(`error.${group}.${part}` in en, `error.${group}.${part}`);
  }
});

test('the page has words for every phrase of the service, and the English ones are its own', async () => {
  const source = await readFile(new URL('../actors/src/protocol/phrase/codes.rs', root), 'utf8');
  const [, labels, codes, checks] = source.split('\ncodes! {');
  /** Quotes are set in the page. @param {string} text */
  const plain = (text) => text.replaceAll('’', "'").replace(/[“”]/g, '"');
  for (const [prefix, list] of [['said.label', labels], ['said', codes], ['said.check', checks]]) {
    const told = [...list.matchAll(/^ {8}(\w+) => ("(?:[^"\\]|\\.)*"),/gm)];
    assert.equal(told.length, list.split(' => "').length - 1, prefix);
    assert.ok(told.length > 10, prefix);
    for (const [, name, english] of told) {
      const key = `${prefix}.${name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase()}`;
      assert.ok(key in en, `${key} has no words`);
      assert.equal(plain(texts(en[key])[0]), JSON.parse(english), key);
    }
  }
});

test('every setting says what it is for in every language, with the same names and numbers', async () => {
  const defaults = await readFile(new URL('../config/default.toml', root), 'utf8');
  const english = new Map([...defaults.matchAll(/^# \[(\w+)\] (.*(?:\n# .*)*)/gm)].map(([, name, text]) => [name, text.replaceAll('\n# ', ' ')]));
  /** Names, addresses, paths and numbers are the same in each. @param {string} text */
  const fixed = (text) => (text.match(/`[^`]+`|\w+(?:[./_:@]+\w+)+|\b[A-Z]{2,}\b|\d+/g) ?? []).filter((word) => /[\d./_`A-Z]/.test(word)).sort();
  for (const settings of [ukSettings, ruSettings]) {
    assert.deepEqual(Object.keys(settings).sort(), [...english.keys()].sort());
    for (const [name, text] of english) assert.deepEqual(fixed(settings[name]), fixed(text), name);
  }
});

test('the profiles that come with Navi are called as in their files', async () => {
  const files = (await readdir(new URL('../config/profiles/', root))).map((name) => name.replace('.toml', ''));
  assert.deepEqual(Object.keys(OWN_PROFILES).sort(), files.sort());
  for (const [id, own] of Object.entries(OWN_PROFILES)) {
    const file = await readFile(new URL(`../config/profiles/${id}.toml`, root), 'utf8');
    for (const [what, text] of Object.entries(own)) {
      assert.ok(file.includes(`\n${what} = "${text}"\n`), `${id}: ${what}`);
      assert.equal(en[`profile.${id}.${what}`], text);
    }
  }
});
