// What is powerful, as it is granted: a kind (`ssh`), or one of its names (`ssh:nas`).

/** @param {string} power */
export const kindOf = (power) => power.split(':')[0];

/** Empty where it is a whole kind. @param {string} power */
export const nameOf = (power) => power.slice(kindOf(power).length + 1);

/** Whether it is among these, by itself or by its kind. @param {string[]} granted @param {string} power */
export const isGranted = (granted, power) => granted.includes(power) || granted.includes(kindOf(power));

/** The kinds in the order of the service, each with the names that there are or that were granted.
 * @param {string[]} grantable @param {string[]} granted @returns {{ kind: string, names: string[] }[]} */
export function kindsOf(grantable, granted) {
  const all = [...new Set([...grantable, ...granted])];
  const kinds = [...new Set(all.map(kindOf))];
  return kinds.map((kind) => ({
    kind, names: all.filter((power) => kindOf(power) === kind).map(nameOf).filter((name) => name !== ''),
  }));
}

/** These with one more, or without it. A whole kind takes the place of its names.
 * @param {string[]} granted @param {string} power @param {boolean} is_granted */
export function withPower(granted, power, is_granted) {
  const others = granted.filter((other) => other !== power
    && !(is_granted && nameOf(power) === '' && kindOf(other) === power));
  return is_granted ? [...others, power] : others;
}
