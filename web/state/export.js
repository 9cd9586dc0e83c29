// A conversation as a document that other programs read.

/** @import { Message, SessionSnapshot } from './wire.js' */

/**
 * What of it is in the page's language; `left_out` is said of a picture or a file.
 * @typedef {object} Words
 * @property {string} you
 * @property {string} result
 * @property {(n: number) => string} picture
 * @property {(name: string) => string} left_out
 */

/**
 * As Markdown: who said what, and what was done. Pictures and files are named, and not in it.
 * @param {SessionSnapshot} session
 * @param {Words} words
 */
export function toMarkdown(session, words) {
  const parts = session.messages.map((message) => partOf(message, words)).filter((part) => part !== '');
  return `# ${session.title || session.id}\n\n${session.created_at}\n\n${parts.join('\n\n')}\n`;
}

/** How many pictures and files are not in it. @param {Pick<SessionSnapshot, 'messages'>} session */
export const leftOut = ({ messages }) =>
  messages.reduce((n, { images = [], files = [] }) => n + images.length + files.length, 0);

/** @param {Message} message @param {Words} words */
function partOf(message, words) {
  const { role, name, content, images = [], files = [], tool_calls = [] } = message;
  const besides = [...images.map((_image, i) => words.picture(i + 1)), ...files.map((file) => file.name)]
    .map((what) => `- ${words.left_out(what)}`);
  const parts = [content ?? ''];
  if (role === 'tool') parts[0] = `${words.result} \`${name}\`:\n\n${fenced(content ?? '')}`;
  parts.push(
    ...tool_calls.map((call) => `\`${call.name}\`:\n\n${fenced(JSON.stringify(call.arguments, null, 2), 'json')}`),
  );
  if (besides.length > 0) parts.push(besides.join('\n'));
  const said = parts.filter((part) => part !== '').join('\n\n');
  if (role === 'tool' || said === '') return said;
  return `## ${role === 'user' ? words.you : 'Navi'}\n\n${said}`;
}

/** In a fence that nothing in it closes. @param {string} text @param {string} language */
function fenced(text, language = '') {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/**
 * A file's name that every system takes.
 * @param {string} title
 * @param {string} extension
 */
export function fileName(title, extension) {
  const name = title.replace(/[\u0000-\u001f\u007f<>:"/\\|?*]+/g, ' ').replace(/\s+/g, ' ').trim()
    .replace(/^\.+|\.+$/g, '');
  return `${[...name].slice(0, 80).join('').trim() || 'navi'}.${extension}`;
}
