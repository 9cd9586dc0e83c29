// What is read beside GitHub's Markdown: mathematics, footnotes, and lists of definitions. Each is
// known by its beginning alone, and reads no further than its own lines.

/** @import { Lexer, Token } from 'marked' */

/** Begins a line that is no more of the words before it. */
const NO_WORDS = String.raw`(?! {0,3}(?:\[\^[^\]\s]+\]:|#{1,6}[ \t]|>|\||~~~|\x60{3}`
  + String.raw`|[-+*][ \t]|\d{1,9}[.)][ \t]|:[ \t]|(?:[-*_][ \t]*){3,}(?:\n|$)))`;
/** Further lines that stand below a mark because they are set in, with what is blank before them. */
const setIn = (/** @type {string} */ by) => String.raw`(?:\n[ \t]*)*\n(?: {${by}}|\t)(?! ?:[ \t])[ \t]*\S[^\n]*`;

const NOTE = new RegExp(
  String.raw`^ {0,3}\[\^([^\]\s]{1,100})\]:[ \t]*([^\n]*(?:${setIn('4')}|\n${NO_WORDS}[ \t]*\S[^\n]*)*)`,
);
const NOTE_BEGINS = /\n {0,3}\[\^[^\]\s]{1,100}\]:/;
const NOTE_MARK = /^\[\^([^\]\s]{1,100})\](?!\()/;
const DEFINITION = String.raw`\n {0,3}:[ \t]+\S[^\n]*(?:${setIn('2')})*`;
const TERM = new RegExp(String.raw`^${NO_WORDS} {0,3}(\S[^\n]*)((?:(?:\n[ \t]*)?${DEFINITION})+)`);
const EACH_DEFINITION = new RegExp(DEFINITION, 'g');
/** Between its marks a backslash escapes nothing and a star stresses nothing: it stays as it was written. */
const MATHEMATICS = /^(?:\\\([^]+?\\\)|\\\[[^]+?\\\]|\$\$[^]+?\$\$)/;

/**
 * The blocks of a text that was set in.
 * @param {Lexer} lexer
 * @param {string} text
 * @returns {Token[]}
 */
function blocksOf(lexer, text) {
  const { top } = lexer.state;
  lexer.state.top = true;
  const tokens = lexer.blockTokens(text.replace(/\n(?: {1,4}|\t)/g, '\n'), []);
  lexer.state.top = top;
  return tokens;
}

/** @this {{ lexer: Lexer }} @param {string} source */
function note(source) {
  const found = NOTE.exec(source);
  return found === null
    ? undefined
    : { type: 'footnote', raw: found[0], label: found[1], tokens: blocksOf(this.lexer, found[2]) };
}

/** A paragraph ends where a note begins. @param {string} source */
function noteBegins(source) {
  const end = source.indexOf('\n\n');
  const at = (end < 0 ? source : source.slice(0, end)).search(NOTE_BEGINS);
  return at < 0 ? undefined : at + 1;
}

/**
 * A term with its definitions: each is a block, so that it is finished when the next one begins.
 * @this {{ lexer: Lexer }}
 * @param {string} source
 */
function definitions(source) {
  const found = TERM.exec(source);
  if (found === null) return undefined;
  const [raw, words, rest] = found;
  const term = this.lexer.inline(words, []);
  const items = (rest.match(EACH_DEFINITION)
    ?? []).map((text) => blocksOf(this.lexer, text.replace(/^\n {0,3}:[ \t]+/, '')));
  return { type: 'definitions', raw, term, items };
}

/**
 * @param {string} type
 * @param {RegExp} mark
 * @returns {(source: string) => { type: string, raw: string, label?: string } | undefined}
 */
const inline = (type, mark) => (source) => {
  const found = mark.exec(source);
  return found === null ? undefined : { type, raw: found[0], label: found[1] };
};

export const EXTENSIONS = /** @type {any} */ ({
  inline: [inline('mathematics', MATHEMATICS), inline('footnote_mark', NOTE_MARK)],
  startInline: [(/** @type {string} */ source) => source.indexOf('$$')],
  block: [note, definitions],
  startBlock: [noteBegins],
});
