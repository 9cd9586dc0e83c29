import assert from 'node:assert/strict';
import { test } from 'node:test';

import { closeUp } from '../templates.mjs';

test('a template in the built page is closed up, and nothing but a template', () => {
  const source = [
    'const a = html`',
    '  <button type="button"',
    '    class="wide">${t(`a',
    ' b`)} words',
    '    go on <b>${x ? html`<i',
    '      >y</i',
    '      >` : `one',
    '  two`}</b></button>`;',
  ].join('\n');
  assert.equal(closeUp(source), [
    'const a = html` <button type="button" class="wide">${t(`a',
    ' b`)} words go on <b>${x ? html`<i>y</i>` : `one',
    '  two`}</b></button>`;',
  ].join('\n'));
});
