// Images as they come over the wire: where they are, or base64 without a type. The type is in its
// first bytes.

import { openPanel } from '../app/actions.js';
import { shownImage } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';

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
  return html`<div class="images">${images.map((image, i) => openable(imageSource(image), alt(i + 1)))}</div>`;
}

/**
 * A picture that is shown large when it is pressed.
 * @param {string} src
 * @param {string} alt
 * @param {string | null} [download] where its file is
 * @param {{ width: number, height: number }} [size] in pixels, where that is known
 */
export function openable(src, alt, download = null, size = undefined) {
  return html`<button type="button" class="picture" aria-haspopup="dialog"
    aria-label=${t('image.open', { name: alt })} title=${t('image.open', { name: alt })} data-testid="picture"
    @click=${() => {
      shownImage.set({ src, alt, download });
      void openPanel('image');
    }}><img src=${src} loading="lazy" alt=${alt} width=${size?.width ?? nothing}
      height=${size?.height ?? nothing}></button>`;
}

/** A picture as large as the window. */
export class NaviImage extends NaviPanel {
  render() {
    const image = shownImage.get();
    if (image === null) return nothing;
    return html`<dialog class="picture-panel" data-testid="picture-panel" aria-label=${image.alt} @close=${this.closed}
      @click=${(/** @type {MouseEvent} */ event) => {
        if (event.target instanceof Element && event.target.closest('a, button, .toast') === null) this.close();
      }}>
      <img src=${image.src} alt=${image.alt}>
      <div class="picture-actions">
        ${image.download === null
          ? nothing
          : html`<a class="icon-button" href=${image.download} download=${image.alt}
            aria-label=${t('files.download', { name: image.alt })}
            title=${t('files.download', { name: image.alt })}>${icons.download}</a>`}
        ${this.closeButton('picture')}
      </div>
      <navi-toasts class="toasts"></navi-toasts>
    </dialog>`;
  }
}

customElements.define('navi-image', NaviImage);
