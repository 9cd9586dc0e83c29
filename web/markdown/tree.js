// Markdown to a tree of plain nodes. HTML in the source is shown as the text that it is: no
// string is ever parsed as HTML, so there is nothing to sanitise. Only the tags and attributes
// that stand in this file can come out of it.

/** @import { Token, Tokens } from 'marked' */

import { isOpen } from './fence.js';

/**
 * @typedef {object} TreeNode
 * @property {string} tag
 * @property {Record<string, string>} attrs a name that begins with a dot is a property
 * @property {(TreeNode | string)[]} children
 */

/**
 * @param {string} tag
 * @param {Record<string, string>} attrs
 * @param {(TreeNode | string)[]} children
 * @returns {TreeNode}
 */
export function node(tag, attrs = {}, children = []) {
  return { tag, attrs, children };
}

/**
 * One block of the document; null for what shows nothing.
 * @param {Token} token
 * @returns {TreeNode | null}
 */
export function blockOf(token) {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      // The page's own headings look like h1 and h2: an answer's start below them (`outline.js` has their levels).
      return node(`h${Math.min(6, token.depth + 2)}`, {}, inlineOf(token.tokens));
    case 'paragraph':
      return node('p', {}, inlineOf(token.tokens));
    case 'text':
      return node('p', {}, token.tokens === undefined ? [plain(token.text)] : inlineOf(token.tokens));
    case 'code':
      return codeOf(/** @type {Tokens.Code} */ (token));
    case 'blockquote':
      return quoteOf(/** @type {Tokens.Blockquote} */ (token));
    case 'list':
      return listOf(/** @type {Tokens.List} */ (token));
    case 'table':
      return tableOf(/** @type {Tokens.Table} */ (token));
    case 'hr':
      return node('hr');
    case 'footnote':
      // They are moved under the text before anything is shown (`footnotes.js`).
      return node('footnote', { '.label': token.label }, blocksOf(token.tokens));
    case 'definitions':
      return definitionsOf(token);
    default:
      return token.raw.trim() === '' ? null : node('p', {}, [token.raw.trim()]);
  }
}

/**
 * @param {Token[] | undefined} tokens
 * @returns {TreeNode[]}
 */
function blocksOf(tokens) {
  return (tokens ?? []).map(blockOf).filter((block) => block !== null);
}

/** A quote, or what GitHub calls an alert: its first line says of which kind. @param {Tokens.Blockquote} token */
function quoteOf(token) {
  const children = blocksOf(token.tokens);
  const [first, ...rest] = children;
  const words = first?.tag === 'p' ? first.children[0] : '';
  const found = typeof words === 'string'
    ? /^\[!(note|tip|important|warning|caution)\][ \t]*(?:\n|$)/i.exec(words)
    : null;
  if (found === null) return node('blockquote', {}, children);
  const kind = found[1].toLowerCase();
  const left = [/** @type {string} */ (words).slice(found[0].length),
    ...first.children.slice(1)].filter((child) => child !== '');
  return node('blockquote', { class: `alert ${kind}` },
    [node('navi-alert', { '.kind': kind }), ...(left.length === 0 ? [] : [node('p', {}, left)]), ...rest]);
}

/** @param {Tokens.Code} token */
function codeOf(token) {
  const language = (token.lang ?? '').trim().split(/\s+/)[0].slice(0, 30);
  // The element draws its own head with the language and the copy button.
  return node('navi-code', { '.lang': language, '.code': token.text, '.growing': isOpen(token.raw) ? 'yes' : '' });
}

/**
 * The end of a text that is complete: its last fence is over, closed or not.
 * @param {TreeNode | string | undefined} last
 */
export function finish(last) {
  if (last === undefined || typeof last === 'string') return;
  if (last.tag === 'navi-code') last.attrs['.growing'] = '';
  finish(last.children.at(-1));
}

/** @param {Tokens.List} token */
function listOf(token) {
  /** @type {Record<string, string>} */
  const attrs = {};
  if (token.ordered && token.start !== 1 && token.start !== '') attrs.start = String(token.start);
  const items = token.items.map((item) => {
    // The lexer sets a checkbox's mark beside its text.
    const tokens = item.tokens.filter(({ type }) => type !== 'checkbox');
    const parts = tokens.map((child) => (child.type === 'text' && !token.loose
      ? inlineOf(child.tokens ?? [child])
      : blocksOf([child])));
    return item.task ? taskOf(item.checked === true, parts) : node('li', {}, parts.flat());
  });
  return node(token.ordered ? 'ol' : 'ul', attrs, items);
}

/**
 * What may be done or not: the words beside the box name it.
 * @param {boolean} checked
 * @param {(TreeNode | string)[][]} parts
 */
function taskOf(checked, parts) {
  const [words, ...below] = parts.length > 0 ? parts : [[]];
  const [first] = words;
  const is_block = typeof first === 'object' && first.tag === 'p';
  const box = node('input', { type: 'checkbox', disabled: '', ...(checked ? { checked: '' } : {}) });
  const label = node('label', {}, [box, ...(is_block ? first.children : words)]);
  return node('li', { class: 'task' }, [is_block ? node('p', {}, [label]) : label, ...below.flat()]);
}

/** @param {Tokens.Generic} token */
function definitionsOf({ term, items }) {
  return node('dl', {}, [node('dt', {}, inlineOf(term)), ...items.map((/** @type {Token[]} */ tokens) => {
    const blocks = blocksOf(tokens);
    return node('dd', {}, blocks.length === 1 && blocks[0].tag === 'p' ? blocks[0].children : blocks);
  })]);
}

/** @param {Tokens.Table} token */
function tableOf(token) {
  /** @param {string} tag @param {Tokens.TableCell[]} cells */
  const row = (tag, cells) => node('tr', {}, cells.map((cell, i) => {
    const align = token.align[i];
    const children = inlineOf(cell.tokens);
    const classes = [...(align == null ? [] : [`align-${align}`]),
      ...(tag === 'td' && isNumber(textOf(children)) ? ['number'] : [])];
    return node(tag, classes.length === 0 ? {} : { class: classes.join(' ') }, children);
  }));
  const table = node('table', {}, [
    node('thead', {}, [row('th', token.header)]),
    node('tbody', {}, token.rows.map((cells) => row('td', cells))),
  ]);
  // A wide table scrolls by itself, and by keyboard too, instead of widening the page.
  return node('div', { class: 'table-scroll', tabindex: '0', role: 'region' }, [table]);
}

/** A number, a date or a time with its sign, currency and unit: it stays in one line. */
const NUMBER = /^[~≈<>≤≥+−-]?\s?\p{Sc}?\s?\d[\d\s.,:/%×±–−-]*(?:\s?[\p{L}\p{Sc}°%²³/]{1,6})?$/u;
const NUMBER_CHARS = 24;

/** @param {string} text */
const isNumber = (text) => text.length <= NUMBER_CHARS && NUMBER.test(text);

/** @param {(TreeNode | string)[]} children @returns {string} */
const textOf = (children) => children.map((child) => (typeof child === 'string'
  ? child
  : textOf(child.children))).join('');

/**
 * @param {Token[] | undefined} tokens
 * @returns {(TreeNode | string)[]}
 */
function inlineOf(tokens) {
  /** @type {(TreeNode | string)[]} */
  const out = [];
  for (const token of tokens ?? []) {
    switch (token.type) {
      case 'strong':
      case 'em':
      case 'del':
        out.push(node(token.type, {}, inlineOf(token.tokens)));
        break;
      case 'codespan':
        out.push(node('code', {}, [token.text]));
        break;
      case 'br':
        out.push(node('br'));
        break;
      case 'link':
        out.push(linkOf(token.href, inlineOf(token.tokens).map(asWords)));
        break;
      case 'image':
        out.push(imageOf(token.href, plain(token.text)));
        break;
      case 'text':
        if (token.tokens !== undefined) out.push(...inlineOf(token.tokens));
        else out.push(plain(token.text));
        break;
      case 'mathematics':
        out.push(node('navi-math', { '.source': token.raw }));
        break;
      case 'footnote_mark':
        out.push(node('navi-footnote', { '.label': token.label, '.number': '' }));
        break;
      case 'escape':
        out.push(token.text);
        break;
      case 'checkbox':
        break;
      case 'html':
        // The one tag that models write inside table cells.
        out.push(/^<br\s*\/?>$/i.test(token.raw) ? node('br') : token.raw);
        break;
      default:
        out.push(token.raw);
    }
  }
  return joined(out);
}

/**
 * @param {string} href
 * @param {(TreeNode | string)[]} children
 */
function linkOf(href, children) {
  const safe = safeHref(href);
  if (safe === null) return node('span', { class: 'dead-link' }, children);
  return node('a', { href: safe, target: '_blank', rel: 'noopener noreferrer' }, children);
}

/**
 * An image would tell its host that the answer is being read: it is asked for by hand.
 * @param {string} href
 * @param {string} alt
 */
function imageOf(href, alt) {
  const safe = safeHref(href);
  if (safe === null || safe.startsWith('mailto:')) return linkOf(href, [`🖼 ${alt || href}`]);
  return node('navi-remote-image', { href: safe, alt });
}

/**
 * An image in a link is words of it: nothing else can be pressed there.
 * @param {TreeNode | string} child
 * @returns {TreeNode | string}
 */
function asWords(child) {
  if (typeof child === 'string') return child;
  if (child.tag === 'navi-remote-image') return `🖼 ${child.attrs.alt || child.attrs.href}`;
  return { ...child, children: child.children.map(asWords) };
}

/**
 * A link that can only lead to a page or a letter; null for anything else.
 * @param {string} href
 * @returns {string | null}
 */
export function safeHref(href) {
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    // Relative links have no place to lead to: the model knows nothing of this page's paths.
    return null;
  }
}

const ENTITIES = /** @type {Record<string, string>} */ ({
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', mdash: '—', ndash: '–', hellip: '…',
  rarr: '→', larr: '←', times: '×', deg: '°', laquo: '«', raquo: '»', bull: '•', middot: '·', le: '≤', ge: '≥', ne: '≠',
});

/**
 * The text with its character references resolved; it becomes a text node, never HTML.
 * @param {string} text
 */
function plain(text) {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/**
 * Neighbouring texts as one, so that the same words make the same nodes however they were cut.
 * @param {(TreeNode | string)[]} parts
 */
function joined(parts) {
  /** @type {(TreeNode | string)[]} */
  const out = [];
  for (const part of parts) {
    const last = out[out.length - 1];
    if (typeof part === 'string' && typeof last === 'string') out[out.length - 1] = last + part;
    else out.push(part);
  }
  return out;
}
