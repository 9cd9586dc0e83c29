// Above the field where one writes: the question that waits for an answer, wherever the conversation
// is read. Where there are several, the next one stands here once this one is answered.

import { approvals } from '../app/signals.js';
import { html } from '../lit.js';
import { isOpen } from '../state/approvals.js';
import { NaviElement } from './element.js';
import { unknownPlaces } from './unknown_calls.js';
import './approval.js';

export class NaviQuestion extends NaviElement {
  render() {
    const open = approvals.get().filter(isOpen);
    if (open.length === 0) return unknownPlaces('line');
    return html`<div class="question" data-testid="question"
      data-count=${open.length}><navi-approval .approval=${open[0]} .of=${open.length}></navi-approval></div>`;
  }
}

customElements.define('navi-question', NaviQuestion);
