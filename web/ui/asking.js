/** @import { ReactiveController } from 'lit' */
/** @import { NaviElement } from './element.js' */

import { pageError } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { errorCard } from './cards.js';

/**
 * A request that its element is drawn by: whether it goes on, and what became of it.
 * @implements {ReactiveController}
 */
export class Asking {
  busy = false;
  /** @type {import('../state/types.js').Problem | null} */
  problem = null;

  /** @param {NaviElement} host */
  constructor(host) {
    this.host = host;
    host.addController(this);
  }

  hostConnected() {}

  /** @param {() => Promise<void>} request */
  async ask(request) {
    this.busy = true;
    this.problem = null;
    this.host.requestUpdate();
    try {
      await request();
    } catch (error) {
      this.problem = pageError(error);
    } finally {
      this.busy = false;
      this.host.requestUpdate();
    }
  }

  /** What went wrong, with a button that tries again. @param {() => void} again @param {string} label */
  card(again, label = t('subagent.retry')) {
    return this.problem === null
      ? nothing
      : errorCard(this.problem,
        html`<button type="button" class="button small" @click=${again}>${label}</button>`);
  }
}
