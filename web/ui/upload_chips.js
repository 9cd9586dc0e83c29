/** @import { Upload } from '../state/uploads.js' */

import { removeUpload, retryUpload } from '../app/uploads.js';
import { t } from '../i18n/index.js';
import { errorGroup } from '../state/errors.js';
import { html, nothing, repeat } from '../vendor/lit.js';
import { formatBytes, sentence } from './format.js';
import { icons } from './icons.js';

/**
 * The files of the message that is being written.
 * @param {string} key
 * @param {Upload[]} list
 */
export function uploadChips(key, list) {
  if (list.length === 0) return nothing;
  return html`<ul class="file-row uploads" aria-label=${t('files.attached')}>${repeat(list, ({ id }) => id, (upload) => chip(key, upload))}</ul>`;
}

/** @param {string} key @param {Upload} upload */
function chip(key, upload) {
  const { id, name, bytes, state, sent, error } = upload;
  const problem = error === null ? '' : sentence(error.message || t(`error.${errorGroup(error.code)}.title`));
  const label = t(state === 'sending' || state === 'waiting' ? 'files.cancel' : 'files.take_out', { name });
  return html`<li class="file-chip ${state}" data-testid="upload" data-state=${state}>${state === 'failed' ? icons.warning : icons.file}
    <span class="file-text"><span class="file-name" dir="auto">${name}</span>
      ${state === 'failed' ? html`<span class="file-problem" role="alert">${problem}</span>` : html`<span class="file-size">${formatBytes(bytes)}</span>`}
      ${state === 'sending' ? html`<progress max=${Math.max(1, bytes)} value=${sent} aria-label=${t('files.progress', { name })}></progress>` : nothing}</span>
    ${state === 'failed' ? html`<button type="button" class="icon-button" data-testid="upload-retry" title=${t('subagent.retry')} aria-label="${t('subagent.retry')}: ${name}" @click=${() => retryUpload(key, id)}>${icons.again}</button>` : nothing}
    <button type="button" class="icon-button" data-testid="upload-remove" title=${label} aria-label=${label} @click=${() => removeUpload(key, id)}>${icons.close}</button></li>`;
}
