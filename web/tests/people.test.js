import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { en } from '../i18n/en.js';
import { browserName, faultIn, ROLES, SCOPES, wholeLink } from '../state/people.js';
import { apart, limitIn } from '../state/record.js';

test('a name and a password are measured in characters, as the service does', () => {
  assert.equal(faultIn('Olena', 'long enough'), null);
  assert.equal(faultIn('  ', 'long enough'), 'name');
  assert.equal(faultIn('a'.repeat(65), 'long enough'), 'name');
  assert.equal(faultIn('Olena', null), null);
  assert.equal(faultIn('Olena', 'nine char'), 'password');
  assert.equal(faultIn('Olena', '🔑'.repeat(9)), 'password');
  assert.equal(faultIn('🙂'.repeat(64), '🔑'.repeat(200)), null);
  assert.equal(faultIn('Olena', 'x'.repeat(201)), 'password');
});

test('a browser is told by its name, and by its own words where it has none', () => {
  assert.equal(browserName('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'), 'Firefox, Linux');
  assert.equal(browserName('Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0'), 'Edge, Windows');
  assert.equal(browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Safari/604.1'), 'Safari, iPhone');
  assert.equal(browserName('curl/8.0'), 'curl/8.0');
  assert.equal(browserName(null), null);
});

test('what the record tells of is taken apart into whose it is and what changed', () => {
  assert.deepEqual(apart('Olena: the second: ssh, mcp:notes'), { whose: 'Olena: the second', told: 'ssh, mcp:notes' });
  assert.deepEqual(apart('Bohdan: '), { whose: 'Bohdan', told: '' });
  assert.deepEqual(apart('invitation'), { whose: 'invitation', told: '' });
  assert.deepEqual(limitIn('tokens_a_day 2000000'), { name: 'tokens_a_day', value: 2_000_000 });
  assert.deepEqual(limitIn('sessions as all'), { name: 'sessions', value: null });
});

test('a link is the page and what follows it', () => {
  assert.equal(wholeLink('https://example.org/navi/#/s/1', '#invitation=ab'), 'https://example.org/navi/#invitation=ab');
  assert.equal(wholeLink('http://127.0.0.1:8000/', '#invitation=ab'), 'http://127.0.0.1:8000/#invitation=ab');
  assert.equal(wholeLink('http://127.0.0.1:8000/', 'https://example.org/navi/#invitation=ab'), 'https://example.org/navi/#invitation=ab');
});

test('the page knows every role and scope, and has words for them and for all that is recorded', async () => {
  const { $defs } = JSON.parse(await readFile(new URL('../state/wire.json', import.meta.url), 'utf8'));
  const told = (/** @type {string} */ name) => ($defs[name].enum ?? $defs[name].oneOf.flatMap((/** @type {any} */ one) => one.enum ?? [one.const])).sort();
  assert.deepEqual([...ROLES].sort(), told('UserRole'));
  assert.deepEqual([...SCOPES].sort(), told('Scope'));
  for (const [prefix, name] of [['role', 'UserRole'], ['scope', 'Scope'], ['record.what', 'Recorded']]) {
    for (const one of told(name)) assert.ok(`${prefix}.${one}` in en, `${prefix}.${one}`);
  }
});
