/** @import { OutboxItem } from '../state/outbox.js' */

import { attachmentsOf } from '../app/attachments.js';
import { discard, outboxOf, resend } from '../app/session.js';
import { connection, listConnection, NEW } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { errorGroup } from '../state/errors.js';
import { icons } from './icons.js';
import { imageRow } from './image.js';
import { uploadChips } from './upload_chips.js';

/** Messages that the service has not acknowledged. @param {string} session_id or `NEW` */
export function pendingMessages(session_id) {
  const isHeard = (session_id === NEW ? listConnection : connection).get() === 'open';
  return repeat(outboxOf(session_id), (item) => item.client_id, (item) => pending(item, isHeard));
}

/** @param {OutboxItem} item @param {boolean} isHeard whether the service can be heard */
function pending(item, isHeard) {
  const { client_id, refused, held } = item;
  const list = attachmentsOf(client_id);
  const failed = list.some(({ state }) => state === 'failed');
  const images = [...item.images, ...list.flatMap(({ image }) => image ?? [])];
  const note = refused !== null
    ? t(`error.${errorGroup(refused.code)}.title`)
    : t(held ? 'message.unsent' : failed ? 'composer.upload_failed' : isHeard ? 'message.sending' : 'message.waits');
  return html`<article class="message user pending ${refused === null && !failed ? '' : 'refused'}"
    data-testid="pending-message" data-client-id=${client_id}>
    ${images.length === 0 ? nothing : imageRow(images, (n) => t('conversation.image', { n }))}
    ${item.files.length === 0
      ? nothing
      : html`<ul class="file-row">${
        item.files.map(({ name }) => html`<li><span
          class="file-chip">${icons.file}<span class="file-name" dir="auto">${name}</span></span></li>`)}</ul>`}
    ${uploadChips(list)}
    <div class="bubble" dir="auto">${item.content}</div>
    <div class="message-foot pending-foot"><span>${note}${refused !== null && refused.message !== ''
      ? `: ${phraseText(refused.phrase, refused.message)}`
      : ''}</span>
      ${refused === null && !held && !failed ? nothing : html`
        <button type="button" class="link-button" @click=${() => resend(client_id)}>${t('message.resend')}</button>
        <button type="button" class="link-button" @click=${() => discard(client_id)}>${t('message.discard')}</button>`}
    </div>
  </article>`;
}
