// The newest plan as a live list: its steps stand as the todo items with their numbers do.

/** @import { Entry } from './types.js' */
/** @import { Plan, PlanEdit, PlanStep, TodoItem, TodoStatus } from './wire.js' */

/**
 * `unlisted`: the list of steps has no room for it any more, and nothing can be done about it.
 * @typedef {PlanStep & Pick<TodoItem, 'status' | 'note' | 'held' | 'edited'> & { unlisted?: true }}
 *  LiveStep
 */
/**
 * What a person does about a step.
 * @typedef {'skip' | 'restore' | 'hold' | 'release' | 'up' | 'down' | 'rewrite'} StepAction
 */

/** @typedef {{ id: number, place: number, weight: number, before: Chain | null }} Chain */

/** @param {Chain | null} best @param {Chain} next */
const heavier = (best, next) => (next.weight > (best?.weight ?? 0) ? next : best);

/**
 * The steps that stand where their plan has them: those that nobody touched, and as many of the others
 * as go on in its order. Whether one of these was moved is said no more where it was reworded too.
 * @param {Plan} plan
 * @param {TodoItem[]} todo
 * @returns {Set<number>}
 */
function inPlace(plan, todo) {
  const places = new Map(plan.steps.map(({ number }, place) => [number, place]));
  /** The heaviest that ends with each. @type {Chain[]} */
  const chains = [];
  for (const { id, edited } of todo) {
    const place = places.get(id);
    if (place === undefined || edited?.how === 'moved') continue;
    const before = chains.filter((chain) => chain.place < place).reduce(heavier, /** @type {Chain | null} */ (null));
    chains.push({ id, place, weight: (before?.weight ?? 0) + (edited === undefined ? todo.length : 1), before });
  }
  const ids = new Set();
  for (let last = chains.reduce(heavier,
    /** @type {Chain | null} */ (null)); last !== null; last = last.before) ids.add(last.id);
  return ids;
}

/**
 * The list of steps with what the plan says of them, in the list's order. What was added or moved
 * stands under the milestone of what it stands behind; what comes first, under the first there is.
 * @param {Plan} plan
 * @param {TodoItem[]} todo
 * @returns {LiveStep[]}
 */
export function liveSteps(plan, todo) {
  const listed = new Set(todo.map(({ id }) => id));
  const planned = new Map(plan.steps.map((step) => [step.number, step]));
  /** What a full list has no room for any more came first. @type {LiveStep[]} */
  const steps = plan.steps.filter(({ number }) => !listed.has(number))
    .map((step) => ({ ...step, status: 'pending', unlisted: true }));
  const in_place = inPlace(plan, todo);
  let milestone = (steps.at(-1) ?? planned.get(todo.find(({ id }) => in_place.has(id))?.id ?? 0))?.milestone;
  for (const { id, ...item } of todo) {
    const step = planned.get(id) ?? /** @type {const} */ ({ number: id, executor: 'self' });
    if (in_place.has(id)) milestone = planned.get(id)?.milestone;
    steps.push({ ...step, ...item, milestone });
  }
  return steps;
}

/** What can be done about a step as it stands. @param {LiveStep} step @returns {StepAction[]} */
export function actionsOf({ status, held, unlisted }) {
  if (unlisted === true) return [];
  switch (status) {
    case 'pending': return ['skip', held === true ? 'release' : 'hold', 'up', 'down', 'rewrite'];
    case 'in_progress': return ['skip', 'up', 'down', 'rewrite'];
    case 'failed': return ['restore', 'skip'];
    case 'skipped': return ['restore'];
    default: return [];
  }
}

/**
 * What is sent for that.
 * @param {number} id
 * @param {Exclude<StepAction, 'rewrite'>} action
 * @param {TodoItem[]} todo
 * @returns {PlanEdit | undefined} undefined where it stands there already
 */
export function editOf(id, action, todo) {
  if (action !== 'up' && action !== 'down') return { edit: action, id };
  const at = todo.findIndex((item) => item.id === id);
  if (at === -1 || at === (action === 'up' ? 0 : todo.length - 1)) return undefined;
  return { edit: 'move', id, before: todo[action === 'up' ? at - 1 : at + 2]?.id };
}

/**
 * All of it that a press on its menu is about, as one text.
 * @param {LiveStep} step
 * @param {TodoItem[]} todo
 */
export const standing = ({ number, text, status, held },
  todo) => JSON.stringify([text, status, held === true, todo.findIndex(({ id }) => id === number)]);

/**
 * What is said of a step that its user did something about.
 * @param {Pick<TodoItem, 'status' | 'held' | 'edited'>} step
 */
export function markOf({ status, held, edited }) {
  if (held === true) return 'held';
  if (edited?.how === 'skipped') return status === 'skipped' ? 'skipped' : null;
  return edited?.how === 'added' || edited?.how === 'rewritten' ? edited.how : null;
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
