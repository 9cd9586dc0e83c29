import assert from 'node:assert/strict';
import { test } from 'node:test';

import { en } from '../i18n/en.js';
import { passkeyFault, passkeyPlace } from '../state/passkeys.js';

test('passkeys are where they work, and what is said elsewhere has words', () => {
  const at = 'https://home.example/navi/';
  assert.equal(passkeyPlace(at, 'https://home.example', true), 'here');
  assert.equal(passkeyPlace(at, 'https://home.example', false), 'unsupported');
  for (const origin of ['http://home.example', 'https://home.example:8443', 'http://127.0.0.1:8000', 'http://localhost:8000']) {
    assert.equal(passkeyPlace(at, origin, true), 'elsewhere', origin);
  }
  assert.equal(passkeyPlace('http://localhost:8000/', 'http://localhost:8000', true), 'here');
  assert.equal(passkeyPlace('http://localhost:8000/', 'http://localhost:9000', true), 'elsewhere');
  assert.equal(passkeyPlace(undefined, 'http://192.168.1.2:8000', true), 'nowhere');
  for (const place of ['elsewhere', 'nowhere', 'unsupported']) assert.ok(`passkeys.place.${place}` in en, place);
});

test('each way in which an authenticator does not answer has its words', () => {
  for (const name of ['NotAllowedError', 'AbortError', 'InvalidStateError', 'NotSupportedError', 'ConstraintError', 'SecurityError', 'TypeError']) {
    assert.ok(passkeyFault(name).replace('passkey_', 'passkeys.fault.') in en, name);
  }
});
