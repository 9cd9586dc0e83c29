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

/** @param {McpForm} form @param {McpEntry | null} entry that it began with @returns {McpDraft} */
export function draftOf(form, entry) {
  const is_program = form.kind === 'program';
  const tools = linesOf(form.tools);
  return {
    command: is_program ? form.command.trim() : undefined,
    args: is_program ? form.args.split('\n').filter((line) => line !== '') : [],
    env: is_program ? pairs(form.env, '=') : {},
    cwd: is_program && form.cwd.trim() !== '' ? form.cwd.trim() : undefined,
    url: is_program ? undefined : form.url.trim(),
    headers: is_program ? {} : pairs(form.headers, ':'),
    tools: tools.length === 0 ? undefined : tools,
    timeout_seconds: form.timeout.trim() === '' ? undefined : Math.trunc(Number(form.timeout)),
    disabled: entry?.disabled ?? false,
    before: entry?.version,
  };
}

/** As one would type it: what has a space in it stands in quotes. @param {McpForm} form */
export function commandLine({ command, args }) {
  const words = [command.trim(), ...args.split('\n').filter((line) => line !== '')];
  return words.map((word) => (/^[\w@%+=:,./\\[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

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
