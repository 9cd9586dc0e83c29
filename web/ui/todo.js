/** @import { TodoItem } from '../state/wire.js' */

import { isRunning, planAtHand, todo } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { isOver } from '../state/plan.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { stepText } from './step.js';

/** The session's steps, unless the plan shows them: one line that says where it stands, the whole list on demand. */
export class NaviTodo extends NaviElement {
  static properties = { _open: { state: true } };

  constructor() {
    super();
    this._open = false;
  }

  render() {
    const items = todo.get();
    if (items.length === 0 || planAtHand.get()) return nothing;
    const done = items.filter(isOver).length;
    const current = items.find((item) => item.status === 'in_progress')
      ?? items.find((item) => item.status === 'pending' && item.held !== true);
    return html`<section class="todo ${isRunning.get() ? 'running' : ''}" data-testid="todo"
      aria-label=${t('todo.label')}>
      <button type="button" class="fold todo-head" aria-expanded=${String(this._open)} aria-controls="todo-list"
        @click=${() => { this._open = !this._open; }}>
        ${icons.steps}
        <span class="todo-progress">${t('todo.progress', { done, total: items.length })}</span>
        <progress max=${items.length} value=${done} aria-hidden="true"></progress>
        <span class="todo-current">${current?.text ?? nothing}</span>
        <span class="turn">${icons.chevron}</span>
      </button>
      <div id="todo-list" class="todo-body"
        ?hidden=${!this._open}>${!this._open
          ? nothing
          : html`<ol>${repeat(items, ({ id }) => id, todoItem)}</ol><navi-step-add></navi-step-add>`}</div>
    </section>`;
  }
}

/** @param {TodoItem} item */
function todoItem({ id, ...item }) {
  const step = /** @type {const} */ ({ ...item, number: id, executor: 'self' });
  return html`<li class="todo-item ${item.status}" data-testid="todo-item" data-status=${item.status}
    data-held=${String(item.held === true)}>
    ${stepText(step)}<navi-step-menu .step=${step}></navi-step-menu></li>`;
}

customElements.define('navi-todo', NaviTodo);
