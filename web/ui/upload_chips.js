/** @import { Attachment } from '../state/attachments.js' */

import { remove, retry } from '../app/attachments.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { errorGroup } from '../state/errors.js';
import { formatBytes, sentence } from './format.js';
import { icons } from './icons.js';

/**
 * What goes with a message, and is not a picture to be seen yet.
 * @param {Attachment[]} list
 */
export function uploadChips(list) {
  const chips = list.filter(({ image }) => image === null);
  if (chips.length === 0) return nothing;
  return html`<ul class="file-row uploads"
    aria-label=${t('files.attached')}>${repeat(chips, ({ id }) => id, chip)}</ul>`;
}

/** @param {Attachment} attachment */
function chip({ id, name, bytes, picture, state, sent, error }) {
  const problem = error === null
    ? ''
    : sentence(phraseText(error.phrase, error.message) || t(`error.${errorGroup(error.code)}.title`));
  const label = t(state === 'sending' || state === 'waiting' ? 'files.cancel' : 'files.take_out', { name });
  return html`<li class="file-chip ${state}" data-testid="upload"
    data-state=${state}>${state === 'failed' ? icons.warning : icons.file}
    <span class="file-text"><span class="file-name" dir="auto">${name}</span>
      ${state === 'failed'
        ? html`<span class="file-problem" role="alert">${problem}</span>`
        : html`<span class="file-size">${formatBytes(bytes)}</span>`}
      ${state === 'sending' && !picture
        ? html`<progress max=${Math.max(1, bytes)} value=${sent}
          aria-label=${t('files.progress', { name })}></progress>`
        : nothing}</span>
    ${state === 'failed'
      ? html`<button type="button" class="icon-button" data-testid="upload-retry" title=${t('subagent.retry')}
        aria-label="${t('subagent.retry')}: ${name}" @click=${() => retry(id)}>${icons.again}</button>`
      : nothing}
    <button type="button" class="icon-button" data-testid="upload-remove" title=${label} aria-label=${label}
      @click=${() => remove(id)}>${icons.close}</button></li>`;
}
