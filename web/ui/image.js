// Images as they come over the wire: where they are, or base64 without a type. The type is in its
// first bytes.

import { html } from '../lit.js';

/** @param {string} image */
export function imageSource(image) {
  if (image.startsWith('sessions/') || image.startsWith('data:image/')) return image;
  let type = 'png';
  if (image.startsWith('/9j/')) type = 'jpeg';
  else if (image.startsWith('R0lG')) type = 'gif';
  else if (image.startsWith('UklG')) type = 'webp';
  return `data:image/${type};base64,${image}`;
}

/**
 * @param {string[]} images
 * @param {(n: number) => string} alt
 */
export function imageRow(images, alt) {
  return html`<div class="images">${images.map((image, i) => html`<img src=${imageSource(image)} loading="lazy" alt=${alt(i + 1)}>`)}</div>`;
}
