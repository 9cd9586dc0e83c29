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

test('a value without quotes does not take in the end of its tag', () => {
  const source = [
    'const a = html`<img src=${x}',
    '  /><img alt=none',
    '  /><img alt="none"',
    '  /><b class=${x}',
    '  >c</b>`;',
  ].join('\n');
  assert.equal(closeUp(source), 'const a = html`<img src=${x} /><img alt=none /><img alt="none"/><b class=${x}>c</b>`;');
});

test('a template is refused where a line ends in text that keeps its lines', () => {
  for (const source of [
    'html`<pre>a\nb</pre>`', 'html`<textarea>\n</textarea>`', 'html`<pre class=${x}>${y}\n</pre>`',
    'html`<pre>${x ? html`<b>a\n</b>` : 1}</pre>`',
  ]) assert.throws(() => closeUp(source), /<pre> or <textarea>/, source);
  for (const source of ['html`<pre\n class=${x}>${y}</pre>\n<p>\n</p>`', 'html`<pre>${x(`a\nb`)}</pre>`', 'html`<p>\n<prefix-a>\n</prefix-a>`']) {
    assert.equal(typeof closeUp(source), 'string', source);
  }
});
