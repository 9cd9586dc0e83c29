// What a screen reader is told, without a browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { announceEvent } from '../app/announce.js';
import { announcements } from '../app/signals.js';
import { useLanguage } from '../i18n/index.js';
import { at } from './fake_service.js';

/** @import { Envelope } from '../state/wire.js' */

/** What is said of an event. @param {object} event */
async function told(event) {
  await announceEvent(/** @type {Envelope} */ ({ seq: 1, run_id: 'r', at: at(0), ...event }));
  return announcements.get().at(-1)?.text ?? '';
}

test('the first trouble is said in the page’s words, too', async () => {
  await useLanguage('en');
  assert.match(await told({ type: 'error', code: 'run_failed', message: 'not in words', recoverable: false, phrase: { code: 'set_clock' } }), /set the machine’s clock/);
});

test('of a long answer only the beginning is looked at', async () => {
  const code = `\`\`\`\n${'x'.repeat(5_000)}\n\`\`\`\n\n`;
  assert.match(await told({ type: 'stream_end', message_id: 'a', content: 'It begins.' }), /It begins\./);
  assert.doesNotMatch(await told({ type: 'stream_end', message_id: 'a', content: `${code}It ends.` }), /It ends/);
});
