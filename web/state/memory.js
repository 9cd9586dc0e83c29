// Facts as the memory page shows them.

/** @import { Fact } from './wire.js' */

/** Below this Navi is not sure that the user meant it. */
const SURE_FROM = 0.6;

/** @param {Fact} fact */
export const isUnconfirmed = (fact) => fact.confidence < SURE_FROM;

/** @param {Fact} a @param {Fact} b */
export const sameFact = (a, b) => a.category === b.category && a.key === b.key;

/**
 * A name of the service's making as a person reads it.
 * @param {string} name
 */
export function plainName(name) {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return words === '' ? name : words.charAt(0).toLocaleUpperCase() + words.slice(1);
}

/**
 * Facts that hold every word of the query, by category, both in alphabetical order.
 * @param {Fact[]} facts
 * @param {string} query
 * @returns {{ category: string, facts: Fact[] }[]}
 */
export function byCategory(facts, query) {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== '');
  /** @type {Map<string, Fact[]>} */
  const groups = new Map();
  for (const fact of facts) {
    const text = `${plainName(fact.category)} ${plainName(fact.key)} ${fact.key} ${fact.value}`.toLocaleLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    groups.set(fact.category, [...(groups.get(fact.category) ?? []), fact]);
  }
  return [...groups]
    .map(([category, found]) => ({ category, facts: found.sort((a, b) => a.key.localeCompare(b.key)) }))
    .sort((a, b) => a.category.localeCompare(b.category));
}
