/** @import { LiveStep } from '../state/plan.js' */
/** @import { AssistantEntry } from '../state/types.js' */

import { isRunning, plan, profileName, todo } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { byMilestone, isOver, liveSteps } from '../state/plan.js';
import { NaviElement } from './element.js';
import { icons, toolIcon } from './icons.js';
import './markdown.js';
import { stepText } from './step.js';

/** A plan where it was made: the session's newest one as a live list, an older one as its text. */
export class NaviPlan extends NaviElement {
  static properties = { entry: { attribute: false }, subagent: { type: Boolean }, _chosen: { state: true } };

  constructor() {
    super();
    this.entry = /** @type {AssistantEntry} */ (/** @type {unknown} */ (null));
    /** Whether a subagent made it, for itself. */
    this.subagent = false;
    /** What the reader chose, if they did. @type {boolean | null} */
    this._chosen = null;
  }

  render() {
    const newest = plan.get();
    const current = newest?.message_id === this.entry.id;
    const steps = current ? liveSteps(newest, todo.get()) : [];
    const live = steps.length > 0;
    const open = this._chosen ?? (current || this.subagent);
    const done = steps.filter(isOver).length;
    const body = `plan-${this.entry.id}`;
    return html`<section role="group" class="plan ${isRunning.get() ? 'running' : ''}" data-testid="plan"
      data-current=${String(live)} aria-label=${t('message.plan')}>
      <h2 class="plan-heading"><button type="button" class="fold plan-head" aria-expanded=${String(open)}
        aria-controls=${body} data-testid="plan-toggle"
        @click=${() => { this._chosen = !open; }}>
        ${icons.steps}<span class="plan-title">${t(current || this.subagent ? 'message.plan' : 'plan.earlier')}</span>
        ${live ? html`<span class="todo-progress">${t('todo.progress', { done, total: steps.length })}</span>
          <progress max=${steps.length} value=${done} aria-hidden="true"></progress>` : nothing}
        <span class="turn">${icons.chevron}</span>
      </button></h2>
      <div id=${body} class="plan-body" ?hidden=${!open}>${!open ? nothing : live
        ? byMilestone(steps).map(milestone)
        : html`<navi-markdown class="prose" dir="auto" .text=${this.entry.content}
          .complete=${true}></navi-markdown>`}${
          open && current ? html`<navi-step-add></navi-step-add>` : nothing}</div>
    </section>`;
  }
}

/** @param {{ milestone: string, steps: LiveStep[] }} group */
function milestone(group) {
  return html`${group.milestone === ''
    ? nothing
    : html`<h3 class="milestone" dir="auto" data-testid="plan-milestone">${group.milestone}</h3>`}
    <ol class="steps">${repeat(group.steps, (item) => item.number, step)}</ol>`;
}

/** @param {LiveStep} item */
function step(item) {
  return html`<li class="todo-item ${item.status}" data-testid="plan-step" data-status=${item.status}
    data-number=${item.number} data-held=${String(item.held === true)} value=${item.number}>
    ${stepText(item)}${executor(item)}<navi-step-menu .step=${item}></navi-step-menu></li>`;
}

/** Who carries the step out. @param {LiveStep} item */
function executor(item) {
  if (item.executor === 'tool') return chip('tool', toolIcon(item.tool), item.tool);
  if (item.executor === 'self') return chip('self', nothing, t('conversation.navi'));
  return chip('agent', icons.agent, profileName(item.profile_id));
}

/**
 * @param {LiveStep['executor']} kind
 * @param {unknown} icon
 * @param {string} name
 */
function chip(kind, icon, name) {
  return html`<span class="chip" data-testid="plan-executor" data-executor=${kind}
    title=${t(`plan.executor.${kind}`)}>${icon}<span>${name}</span></span>`;
}

customElements.define('navi-plan', NaviPlan);
