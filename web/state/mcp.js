// A server of tools between its entry, as the service tells it, and a form's fields.

/** @import { McpDraft, McpEntry } from './wire.js' */

/**
 * A list has a line for each. A name alone stands for the value that is kept and not told.
 * @typedef {{ name: string, kind: 'program' | 'address', command: string, args: string, env:
 *  string, cwd: string, url: string, headers: string, tools: string, timeout: string }} McpForm
 */

/** @type {McpForm} */
export const EMPTY = {
  name: '', kind: 'program', command: '', args: '', env: '', cwd: '', url: '', headers: '', tools: '', timeout: '',
};

/** @param {McpEntry} entry @returns {McpForm} */
export function formOf(entry) {
  return {
    name: entry.name,
    kind: entry.url == null ? 'program' : 'address',
    command: entry.command ?? '',
    args: entry.args.join('\n'),
    env: named(entry.env, '='),
    cwd: entry.cwd ?? '',
    url: entry.url ?? '',
    headers: named(entry.headers, ': '),
    tools: (entry.tools ?? []).join('\n'),
    timeout: entry.timeout_seconds == null ? '' : String(entry.timeout_seconds),
  };
}

/** What a form begins with. @param {McpEntry | null} entry null for a new one */
export const begun = (entry) => (entry === null ? EMPTY : formOf(entry));

/** Whether somebody wrote in it. @param {McpForm} form @param {McpEntry | null} entry that it began with */
export const isWritten = (form, entry) => JSON.stringify(form) !== JSON.stringify(begun(entry));

/** Without what is secret, as it began. @param {McpForm} form @param {McpEntry | null} entry @returns {McpForm} */
export function withoutSecrets(form, entry) {
  const { env, headers } = begun(entry);
  return { ...form, env, headers };
}

/**
 * What was not touched stays as the entry has it: a text cannot say all that a list can.
 * @param {McpForm} form
 * @param {McpEntry | null} entry that it began with
 * @returns {McpDraft}
 */
export function draftOf(form, entry) {
  const is_program = form.kind === 'program';
  const before = entry === null ? null : formOf(entry);
  /**
   * @template T
   * @param {keyof McpForm} field
   * @param {(entry: McpEntry) => T} own
   * @param {(text: string) => T} written
   */
  const kept = (field, own, written) =>
    entry !== null && form[field] === before?.[field] ? own(entry) : written(form[field]);
  return {
    command: is_program ? kept('command', ({ command }) => command ?? '', trimmed) : undefined,
    args: is_program
      ? kept('args', ({ args }) => args, (text) => text.split('\n').filter((line) => line !== '')) : [],
    env: is_program ? kept('env', ({ env }) => env, (text) => pairs(text, '=')) : {},
    cwd: is_program ? kept('cwd', ({ cwd }) => cwd ?? undefined, (text) => trimmed(text) || undefined) : undefined,
    url: is_program ? undefined : kept('url', ({ url }) => url ?? '', trimmed),
    headers: is_program ? {} : kept('headers', ({ headers }) => headers, (text) => pairs(text, ':')),
    tools: kept('tools', ({ tools }) => tools ?? undefined, (text) => {
      const tools = linesOf(text);
      return tools.length === 0 ? undefined : tools;
    }),
    timeout_seconds: form.timeout.trim() === '' ? undefined : Number(form.timeout),
    disabled: entry?.disabled ?? false,
    before: entry?.version,
  };
}

/**
 * Whether it has a program run, or variables of Navi's sent out: that is for who shows that they
 * are there themselves.
 * @param {McpDraft} draft
 */
export const needsProof = ({ command, url, headers }) =>
  command != null || [url, ...Object.values(headers ?? {})].some((text) => text?.includes('${'));

/** As one would type it: what has a space in it stands in quotes. @param {McpDraft} draft */
export function commandLine({ command, args }) {
  return [command ?? '', ...args ?? []]
    .map((word) => (/^[\w@%+=:,./\\[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

/** @param {string} text */
const trimmed = (text) => text.trim();

/** @param {string} text */
const linesOf = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line !== '');

/** @param {Record<string, string | null>} values @param {string} between */
const named = (values, between) =>
  Object.entries(values).map(([name, value]) => (value === null ? name : `${name}${between}${value}`)).join('\n');

/** @param {string} text @param {string} between @returns {Record<string, string | null>} */
function pairs(text, between) {
  return Object.fromEntries(linesOf(text).map((line) => {
    const at = line.indexOf(between);
    return at === -1 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + between.length).trim()];
  }));
}
