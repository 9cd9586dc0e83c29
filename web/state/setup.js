// What of Navi's set-up is shown, and in which order.

/** @import { Setting } from './wire.js' */

/** What nobody set has this origin. */
const BUILT_IN = 'default';

/** @param {Setting} setting */
export const isSet = ({ origin }) => origin !== BUILT_IN;

/** A setting's names in its file: the heading that it stands under, and its own. @param {Setting} setting */
export function namesOf({ key }) {
  const at = key.indexOf('.');
  return { section: key.slice(0, at), name: key.slice(at + 1) };
}

/**
 * The settings in which every word is found, under their headings.
 * @param {Setting[]} settings
 * @param {string} query
 * @param {boolean} only_set
 * @returns {{ section: string, settings: Setting[] }[]}
 */
export function settingsFor(settings, query, only_set) {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== '');
  /** @type {Map<string, Setting[]>} */
  const found = new Map();
  for (const setting of settings) {
    const text = [setting.key, setting.variable, setting.value, setting.description].join(' ').toLocaleLowerCase();
    if ((only_set && !isSet(setting)) || !words.every((word) => text.includes(word))) continue;
    const { section } = namesOf(setting);
    found.set(section, [...(found.get(section) ?? []), setting]);
  }
  return [...found].map(([section, list]) => ({ section, settings: list }));
}
