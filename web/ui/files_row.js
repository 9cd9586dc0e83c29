// Files as a message carries them: pictures are shown, the rest can be had.

/** @import { AttachedFile } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { filePath } from '../net/api.js';
import { formatBytes } from './format.js';
import { icons } from './icons.js';
import { openable } from './image.js';

/**
 * @param {string} session_id
 * @param {AttachedFile[]} files
 */
export function fileRow(session_id, files) {
  const others = files.filter(({ image }) => image !== true);
  return html`${others.length === files.length ? nothing : fileImages(session_id, files)}
    ${others.length === 0
      ? nothing
      : html`<ul class="file-row" aria-label=${t('files.attached')}>${others.map((file) => html`<li>
      <a class="file-chip" href=${filePath(session_id, file.file_id)} download=${file.name}
        data-testid="file-chip"
        title=${t('files.download', { name: file.name })}>${icons.file}<span class="file-name"
        dir="auto">${file.name}</span>
        <span class="file-size">${formatBytes(file.bytes)}</span></a></li>`)}</ul>`}`;
}

/**
 * The pictures among files.
 * @param {string} session_id
 * @param {AttachedFile[]} files
 */
export function fileImages(session_id, files) {
  const images = files.filter(({ image }) => image === true);
  if (images.length === 0) return nothing;
  return html`<div class="images file-images">${
      images.map((file) => openable(`${filePath(session_id, file.file_id)}/image`, file.name,
        filePath(session_id, file.file_id)))}</div>`;
}
