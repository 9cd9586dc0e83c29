import { showToast } from '../app/actions.js';
import { announce } from '../app/announce.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { icons } from './icons.js';

const SHOWN_MS = 1_600;

/**
 * A button that copies a text and says that it did.
 * @param {() => string} text
 * @param {string} label key of the dictionary
 */
export function copyButton(text, label) {
  return html`<button type="button" class="icon-button copy" title=${t(label)} aria-label=${t(label)}
    @click=${(/** @type {Event} */ event) => void copy(/** @type {HTMLElement} */ (event.currentTarget), text())}
    >${icons.copy}<span class="copied">${icons.check}</span></button>`;
}

/** @param {HTMLElement} button @param {string} text */
async function copy(button, text) {
  if (!await copyText(text)) return;
  button.classList.add('done');
  setTimeout(() => button.classList.remove('done'), SHOWN_MS);
}

/** Whether the clipboard has it now; where it has not, a person is told. @param {string} text */
export async function copyText(text) {
  try {
    await writeText(text);
  } catch {
    showToast(t('message.copy_failed'), null, undefined, true);
    return false;
  }
  announce(t('message.copied'));
  return true;
}

/** @param {string} text */
async function writeText(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  // The clipboard API is missing on plain http beyond this machine.
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  const focused = document.activeElement;
  // All beside a modal dialog is inert.
  ([...document.querySelectorAll('dialog:modal')].at(-1) ?? document.body).append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!copied) throw new Error('not allowed');
  return undefined;
}
