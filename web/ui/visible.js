// Texts of which nothing stays unseen.

import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { seen } from '../state/invisible.js';

/** @param {string} text */
export function visible(text) {
  return seen(text).map((piece) => (piece.unseen
    ? html`<span class="unseen" title=${t('approval.unseen')}>${piece.text}</span>`
    : piece.text));
}

/** The same, with `backquoted` words as code. @param {string} text */
export function visibleWords(text) {
  return text.split('`').map((part, i) => (i % 2 === 0 ? visible(part) : html`<code>${visible(part)}</code>`));
}
