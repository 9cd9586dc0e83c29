// The newest plan as a live list: its steps stand as the todo items with their numbers do.

/** @import { Plan, PlanStep, TodoItem, TodoStatus } from './wire.js' */

/** @typedef {PlanStep & { status: TodoStatus, note?: string }} LiveStep */

/**
 * @param {Plan} plan
 * @param {TodoItem[]} todo
 * @returns {LiveStep[]}
 */
export function liveSteps(plan, todo) {
  return plan.steps.map((step) => {
    const item = todo.find(({ id }) => id === step.number);
    return { ...step, status: item?.status ?? 'pending', ...(item?.note === undefined ? {} : { note: item.note }) };
  });
}

/**
 * Todo items that no step of the plan shows.
 * @param {Plan | null} plan
 * @param {TodoItem[]} todo
 * @returns {TodoItem[]}
 */
export function besidePlan(plan, todo) {
  if (plan === null) return todo;
  const shown = new Set(plan.steps.map((step) => step.number));
  return todo.filter((item) => !shown.has(item.id));
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
