// The newest plan as a live list: its steps stand as the todo items with their numbers do.

/** @import { Entry } from './types.js' */
/** @import { Plan, PlanStep, TodoItem, TodoStatus } from './wire.js' */

/** @typedef {PlanStep & { status: TodoStatus, note?: string }} LiveStep */

/**
 * The plan's steps, and after them what was added to the list since.
 * @param {Plan} plan
 * @param {TodoItem[]} todo
 * @returns {LiveStep[]}
 */
export function liveSteps(plan, todo) {
  const numbers = new Set(plan.steps.map(({ number }) => number));
  const added = todo.filter(({ id }) => !numbers.has(id)).map(({ id, text }) => /** @type {const} */ ({ number: id, text, executor: 'self' }));
  return [...plan.steps, ...added].map((step) => {
    const item = todo.find(({ id }) => id === step.number);
    return { ...step, status: item?.status ?? 'pending', ...(item?.note === undefined ? {} : { note: item.note }) };
  });
}

/**
 * Whether the plan stands where the conversation is: what was said after it, a run took in.
 * @param {Plan | null} plan
 * @param {Entry[]} entries
 */
export function isAtHand(plan, entries) {
  const last = entries.findLast((entry) => entry.id === plan?.message_id || (entry.kind === 'user' && !entry.steered));
  return plan !== null && last?.id === plan.message_id;
}

/**
 * Steps under their milestones, in order; '' for those that stand under none.
 * @param {LiveStep[]} steps
 * @returns {{ milestone: string, steps: LiveStep[] }[]}
 */
export function byMilestone(steps) {
  /** @type {{ milestone: string, steps: LiveStep[] }[]} */
  const groups = [];
  for (const step of steps) {
    const milestone = step.milestone ?? '';
    const last = groups[groups.length - 1];
    if (last !== undefined && last.milestone === milestone) last.steps.push(step);
    else groups.push({ milestone, steps: [step] });
  }
  return groups;
}

/** Whether nothing is left to do about a step. @param {{ status: TodoStatus }} step */
export const isOver = ({ status }) => status === 'done' || status === 'skipped';
