// Images as they come over the wire: base64 without a type. The type is in their first bytes.

import { html } from '../lit.js';

/** @param {string} base64 */
export function imageSource(base64) {
  if (base64.startsWith('data:image/')) return base64;
  let type = 'png';
  if (base64.startsWith('/9j/')) type = 'jpeg';
  else if (base64.startsWith('R0lG')) type = 'gif';
  else if (base64.startsWith('UklG')) type = 'webp';
  return `data:image/${type};base64,${base64}`;
}

/**
 * @param {string[]} images
 * @param {(n: number) => string} alt
 */
export function imageRow(images, alt) {
  return html`<div class="images">${images.map((image, i) => html`<img src=${imageSource(image)} alt=${alt(i + 1)}>`)}</div>`;
}
