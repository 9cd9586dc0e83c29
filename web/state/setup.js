// What of Navi's set-up is shown, and in which order.

/** @import { BackendStatus, ModelInfo, ProfileModel, Report, ShownValue, SystemStatus } from './wire.js' */

/** What nobody set has this origin. */
const BUILT_IN = 'default';

/** Where a start says what no file can change. */
const FIXED = ['environment', 'command line'];

/** What an OpenAI-compatible server is set up by. */
export const MODEL_SERVER = { address: 'openai.base_url', key: 'openai.api_key', model: 'openai.default_model' };

/** Whether the file has no say in it. @param {ShownValue} setting */
export const isFixed = ({ origin, pending }) => FIXED.includes(pending?.origin ?? origin);

/** Whether the page may change it. @param {ShownValue} setting */
export const isChangeable = (setting) => setting.file_only === undefined && !isFixed(setting);

/**
 * The variable that keeps the page from setting a model server up; null where none does.
 * @param {ShownValue[]} settings
 */
export function fixedOf(settings) {
  const names = Object.values(MODEL_SERVER);
  return settings.find((setting) => names.includes(setting.key) && isFixed(setting))?.variable ?? null;
}

/** @param {ShownValue} setting */
export const isSet = ({ origin }) => origin !== BUILT_IN;

/** A setting's names in its file: the heading that it stands under, and its own. @param {ShownValue} setting */
export function namesOf({ key }) {
  const at = key.indexOf('.');
  return { section: key.slice(0, at), name: key.slice(at + 1) };
}

/**
 * The settings in which every word is found, under their headings.
 * @param {ShownValue[]} settings
 * @param {string} query
 * @param {boolean} only_set
 * @returns {{ section: string, settings: ShownValue[] }[]}
 */
export function settingsFor(settings, query, only_set) {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== '');
  /** @type {Map<string, ShownValue[]>} */
  const found = new Map();
  for (const setting of settings) {
    const text = [setting.key, setting.variable, setting.value, setting.description].join(' ').toLocaleLowerCase();
    if ((only_set && !isSet(setting)) || !words.every((word) => text.includes(word))) continue;
    const { section } = namesOf(setting);
    found.set(section, [...(found.get(section) ?? []), setting]);
  }
  return [...found].map(([section, list]) => ({ section, settings: list }));
}

/**
 * The names of the profiles that a model would answer for.
 * @param {ProfileModel[]} profiles
 * @param {BackendStatus} backend
 * @param {ModelInfo} model
 */
export function answersFor(profiles, backend, model) {
  return profiles.filter((it) => it.backend === backend.kind && it.model === model.name).map(({ name }) => name);
}

/**
 * What does not fit where a model answers for a profile, as keys of the dictionary.
 * @param {SystemStatus} status
 * @param {ProfileModel} profile
 * @returns {{ key: 'nobody' | 'fell_back' | 'instead' | 'tool_less', params: Record<string, string> }[]}
 */
export function misfits(status, profile) {
  const { backend, model, fell_back_from, instead_of, has_tools } = profile;
  if (backend === undefined) return [{ key: 'nobody', params: {} }];
  const known = status.backends.find(({ kind }) => kind === backend)?.models.find(({ name }) => name === model);
  /** @type {ReturnType<typeof misfits>} */
  const found = [];
  if (fell_back_from !== undefined) found.push({ key: 'fell_back', params: { backend: fell_back_from } });
  if (instead_of !== undefined) found.push({ key: 'instead', params: { model: instead_of } });
  if (known?.tools === false && has_tools) found.push({ key: 'tool_less', params: {} });
  return found;
}

const MARKS = { fine: '✓', warning: '!', broken: '✗' };

/**
 * What a person may send to somebody who helps: the service hides secrets in all of it.
 * @param {string} version
 * @param {Report} report
 * @param {ShownValue[]} settings
 */
export function reportText(version, report, settings) {
  const checks = report.checks.map(
    ({ name, level, detail, remedy }) =>
      `${MARKS[level]} ${name}: ${detail}${remedy === undefined ? '' : `\n  → ${remedy}`}`,
  );
  const set = settings.filter(isSet).map(({ variable, value, origin }) => `${variable}=${value ?? ''} (${origin})`);
  return [`Navi ${version}`, ...checks, '', ...set].join('\n').trimEnd();
}

/** The line of a profile's file that names it. */
const ID_LINE = /^(\s*id\s*=\s*)(["'])(.*?)\2/m;

/** The id in a profile's file; the service says what is wrong where there is none. @param {string} text */
export const idIn = (text) => ID_LINE.exec(text)?.[3] || '-';

/** A profile's file with an id of its own. @param {string} text */
export const copied = (text) => text.replace(ID_LINE, '$1$2$3_copy$2');
