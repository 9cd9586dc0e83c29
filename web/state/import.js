// Files of conversations, as Navi imports them: her own exports, lists of messages as OpenAI's API
// takes them, and ChatGPT's `conversations.json`.

/**
 * A conversation as the service takes it in.
 * @typedef {object} ImportedSession
 * @property {string} title
 * @property {string} [profile_id]
 * @property {unknown[]} [tags]
 * @property {string} [created_at]
 * @property {string} [last_active]
 * @property {ImportedMessage[]} messages
 */

/** @typedef {{ role: string, content: string | null, [field: string]: unknown }} ImportedMessage */

/** What the service reads of a message of Navi's own. */
const OWN_FIELDS = ['run_id', 'images', 'files', 'tool_call_id', 'outcome', 'duration_ms', 'thinking', 'state',
  'is_plan', 'created_at'];

/**
 * The conversations of a file, oldest first where it has many; null where it holds none.
 * @param {string} text
 * @returns {ImportedSession[] | null}
 */
export function conversationsIn(text) {
  const value = parsed(text);
  const all = Array.isArray(value) && !value.some((item) => isObject(item) && typeof item.role === 'string')
    ? value
    : [value];
  const found = all.map((item) => conversation(item)).filter((item) => item !== null);
  return found.length === 0 ? null : found;
}

/** JSON, or one JSON a line. @param {string} text @returns {unknown} */
function parsed(text) {
  const clean = text.replace(/^\uFEFF/, '');
  try {
    return JSON.parse(clean);
  } catch {
    // An export of all conversations is none as a whole.
  }
  try {
    return clean.split('\n').filter((line) => line.trim() !== '').map((line) => JSON.parse(line));
  } catch {
    return null;
  }
}

/** @param {unknown} value @returns {ImportedSession | null} */
function conversation(value) {
  if (Array.isArray(value)) return conversation({ messages: value });
  if (!isObject(value)) return null;
  if (isObject(value.mapping)) return fromChatGpt(value, value.mapping);
  if (!Array.isArray(value.messages)) return null;
  const messages = value.messages.map(message).filter((item) => item !== null);
  const tags = Array.isArray(value.tags) ? { tags: value.tags } : {};
  return messages.length === 0
    ? null
    : { title: textOf(value.title), messages, ...tags, ...texts(value, ['profile_id', 'created_at', 'last_active']) };
}

/**
 * A message of Navi's or of OpenAI's; what a developer told the model is not the conversation's.
 * @param {unknown} value
 * @returns {ImportedMessage | null}
 */
function message(value) {
  if (!isObject(value) || typeof value.role !== 'string' || value.role === 'system'
    || value.role === 'developer') return null;
  /** @type {ImportedMessage} */
  const out = { role: value.role, content: typeof value.content === 'string' ? value.content : null };
  for (const field of OWN_FIELDS) if (value[field] !== undefined && value[field] !== null) out[field] = value[field];
  if (Array.isArray(value.content)) Object.assign(out, fromParts(value.content));
  if (Array.isArray(value.tool_calls) && value.tool_calls.length > 0) out.tool_calls = value.tool_calls.map(call);
  return out;
}

/** @param {unknown[]} parts */
function fromParts(parts) {
  const known = parts.filter(isObject);
  const images = known.map((part) => (isObject(part.image_url) ? textOf(part.image_url.url) : ''))
    .filter((url) => url !== '');
  const content = known.map((part) => textOf(part.text)).filter((text) => text !== '').join('\n\n');
  return { content, ...(images.length === 0 ? {} : { images }) };
}

/** @param {unknown} value */
function call(value) {
  if (!isObject(value) || !isObject(value.function)) return value;
  const { name, arguments: written } = value.function;
  return { id: value.id, name, arguments: typeof written === 'string' ? json(written) : written ?? {} };
}

/** @param {string} text @returns {unknown} */
function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * The way through the tree that was shown last. What tools said is left out: calls have no ids there.
 * @param {Record<string, unknown>} value
 * @param {Record<string, unknown>} mapping
 * @returns {ImportedSession | null}
 */
function fromChatGpt(value, mapping) {
  /** @type {ImportedMessage[]} */
  const messages = [];
  const seen = new Set();
  let id = typeof value.current_node === 'string' ? value.current_node : newestLeaf(mapping);
  while (id !== null && !seen.has(id)) {
    seen.add(id);
    const node = mapping[id];
    if (!isObject(node)) break;
    const said = isObject(node.message) ? fromNode(node.message) : null;
    if (said !== null) messages.unshift(said);
    id = typeof node.parent === 'string' ? node.parent : null;
  }
  if (messages.length === 0) return null;
  return { title: textOf(value.title), messages, ...time('created_at', value.create_time),
    ...time('last_active', value.update_time) };
}

/** @param {Record<string, unknown>} mapping */
function newestLeaf(mapping) {
  const leaves = Object.keys(mapping).filter((id) => {
    const node = mapping[id];
    return isObject(node) && (!Array.isArray(node.children) || node.children.length === 0);
  });
  return leaves.at(-1) ?? null;
}

/** @param {Record<string, unknown>} node @returns {ImportedMessage | null} */
function fromNode(node) {
  const role = isObject(node.author) ? node.author.role : null;
  /** @type {Record<string, unknown>} */
  const metadata = isObject(node.metadata) ? node.metadata : {};
  const hidden = metadata.is_visually_hidden_from_conversation === true;
  const to_all = node.recipient === undefined || node.recipient === null || node.recipient === 'all';
  if ((role !== 'user' && role !== 'assistant') || hidden || !to_all || !isObject(node.content)) return null;
  const { parts, text, content_type } = node.content;
  if (content_type === 'thoughts' || content_type === 'reasoning_recap'
    || content_type === 'user_editable_context') return null;
  const words = Array.isArray(parts)
    ? parts.map((part) => (isObject(part) ? textOf(part.text) : textOf(part)))
    : [textOf(text)];
  const content = words.filter((part) => part !== '').join('\n\n');
  const files = attached(Array.isArray(parts) ? parts : [], metadata.attachments);
  if (content === '' && files.length === 0) return null;
  return { role, content: content === '' ? null : content, ...(files.length === 0 ? {} : { files }),
    ...time('created_at', node.create_time) };
}

/**
 * The pictures and files of a message, which the export only names. Most pictures stand among its
 * parts and in the list as well.
 * @param {unknown[]} parts
 * @param {unknown} attachments
 */
function attached(parts, attachments) {
  const listed = Array.isArray(attachments) ? attachments.filter(isObject) : [];
  const ids = listed.map(({ id }) => textOf(id)).filter((id) => id !== '');
  const others = parts.filter(isObject).filter(({ content_type, asset_pointer }) =>
    textOf(content_type).endsWith('asset_pointer') && !ids.some((id) => textOf(asset_pointer).includes(id)));
  return [...listed, ...others];
}

/** Seconds since 1970. @param {string} name @param {unknown} seconds */
function time(name, seconds) {
  const at = new Date(typeof seconds === 'number' ? seconds * 1000 : NaN);
  return Number.isNaN(at.getTime()) ? {} : { [name]: at.toISOString() };
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {unknown} value */
const textOf = (value) => (typeof value === 'string' ? value : '');

/** @param {Record<string, unknown>} value @param {string[]} fields */
const texts = (value, fields) =>
  Object.fromEntries(fields.filter((field) => typeof value[field] === 'string')
    .map((field) => [field, /** @type {string} */ (value[field])]));
