// A conversation as a document that other programs read.

/** @import { Message, SessionSnapshot } from './wire.js' */

/**
 * As Markdown: who said what, and what was done.
 * @param {SessionSnapshot} session
 * @param {{ you: string, result: string }} words
 */
export function toMarkdown(session, words) {
  const parts = session.messages.map((message) => partOf(message, words)).filter((part) => part !== '');
  return `# ${session.title || session.id}\n\n${session.created_at}\n\n${parts.join('\n\n')}\n`;
}

/** @param {Message} message @param {{ you: string, result: string }} words */
function partOf(message, { you, result }) {
  const content = message.content ?? '';
  if (message.role === 'user') return `## ${you}\n\n${[content, ...(message.files ?? []).map(({ name }) => `- ${name}`)].join('\n\n')}`;
  if (message.role === 'tool') return `${result} \`${message.name}\`:\n\n${fenced(content)}`;
  const calls = (message.tool_calls ?? []).map((call) => `\`${call.name}\`:\n\n${fenced(JSON.stringify(call.arguments, null, 2), 'json')}`);
  const said = [content, ...calls].filter((part) => part !== '');
  return said.length === 0 ? '' : `## Navi\n\n${said.join('\n\n')}`;
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
  const name = title.replace(/[\u0000-\u001f\u007f<>:"/\\|?*]+/g, ' ').replace(/\s+/g, ' ').trim().replace(/^\.+|\.+$/g, '');
  return `${[...name].slice(0, 80).join('').trim() || 'navi'}.${extension}`;
}
