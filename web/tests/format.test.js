import assert from 'node:assert/strict';
import { test } from 'node:test';

import { useLanguage } from '../i18n/index.js';
import { formatBytes, formatDuration } from '../ui/format.js';

test('a few bytes are counted in words of the language', async () => {
  const told = { en: ['1 byte', '47 bytes', '4 kB'], uk: ['1 байт', '47 байтів', '4 кБ'], ru: ['1 байт', '47 байт', '4 кБ'] };
  for (const [language, texts] of Object.entries(told)) {
    await useLanguage(/** @type {'en' | 'uk' | 'ru'} */ (language));
    assert.deepEqual([1, 47, 4_000].map(formatBytes).map((text) => text.replaceAll('\u00a0', ' ')), texts);
  }
});

test('a duration has no sixtieth second, and none where there is none', async () => {
  await useLanguage('en');
  assert.deepEqual([400, 1_200, 59_400, 59_600, 119_700, 125_000, 3_600_000].map(formatDuration), ['400 ms', '1.2 s', '59 s', '1 min', '2 min', '2 min 5 s', '60 min']);
});
