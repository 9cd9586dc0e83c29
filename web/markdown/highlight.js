// Colours for code: comments, strings, numbers and the usual keywords. A guess that helps the
// eye, not a parser; a language that is not listed is shown plainly.

/** @typedef {'comment' | 'string' | 'number' | 'keyword' | 'added' | 'removed' | ''} Kind */
/** @typedef {{ kind: Kind, text: string }} Piece */

/** Longer code is shown plainly: it is coloured anew with every word that streams in. */
const MAX_CHARS = 20_000;

const SLASHES = String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`;
const HASH = String.raw`#[^\n]*`;
const DASHES = String.raw`--[^\n]*`;

/** @type {Record<string, string>} */
const COMMENTS = {
  c: SLASHES, cpp: SLASHES, 'c++': SLASHES, cs: SLASHES, csharp: SLASHES, css: String.raw`\/\*[^]*?(?:\*\/|$)`, dart: SLASHES,
  go: SLASHES, java: SLASHES, javascript: SLASHES, js: SLASHES, jsx: SLASHES, json: SLASHES, jsonc: SLASHES, kotlin: SLASHES,
  php: `${SLASHES}|${HASH}`, rs: SLASHES, rust: SLASHES, scala: SLASHES, swift: SLASHES, ts: SLASHES, tsx: SLASHES, typescript: SLASHES,
  bash: HASH, dockerfile: HASH, elixir: HASH, ini: HASH, make: HASH, nix: HASH, perl: HASH, py: HASH, python: HASH, r: HASH,
  rb: HASH, ruby: HASH, sh: HASH, shell: HASH, toml: HASH, yaml: HASH, yml: HASH, zsh: HASH,
  haskell: DASHES, lua: DASHES, sql: DASHES,
};

const STRING = String.raw`"""[^]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|` + '`(?:\\\\.|[^`\\\\])*`?';
const NUMBER = String.raw`\b(?:0x[\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b`;
const KEYWORDS = ('abstract and as async await begin break case catch class const continue crate def default del delete do done '
  + 'echo elif else elsif end enum esac except export extends false fi final finally fn for from func function global go if impl '
  + 'implements import in interface is lambda let local loop match mod module move mut namespace new nil none not null of or '
  + 'package pass private protected pub public raise ref return self sizeof static struct super switch then this throw trait '
  + 'true try type typeof undefined unless until use using var void where while with yield '
  + 'select insert update create table into values join left right inner outer group order by having limit union alter drop').split(' ');
const KEYWORD = String.raw`\b(?:${KEYWORDS.join('|')})\b`;

/** @type {Map<string, RegExp>} */
const compiled = new Map();

/**
 * @param {string} code
 * @param {string} language
 * @returns {Piece[]}
 */
export function highlight(code, language) {
  const name = language.toLowerCase();
  if (code.length > MAX_CHARS) return [{ kind: '', text: code }];
  if (name === 'diff' || name === 'patch') return diff(code);
  const comments = COMMENTS[name];
  if (comments === undefined) return [{ kind: '', text: code }];
  let pattern = compiled.get(name);
  if (pattern === undefined) {
    pattern = new RegExp(`(${comments})|(${STRING})|(${NUMBER})|(${KEYWORD})`, name === 'sql' ? 'gi' : 'g');
    compiled.set(name, pattern);
  }
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    if (match.index > at) pieces.push({ kind: '', text: code.slice(at, match.index) });
    const kind = match[1] !== undefined ? 'comment' : match[2] !== undefined ? 'string' : match[3] !== undefined ? 'number' : 'keyword';
    pieces.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < code.length) pieces.push({ kind: '', text: code.slice(at) });
  return pieces;
}

/**
 * @param {string} code
 * @returns {Piece[]}
 */
function diff(code) {
  return code.split(/(?<=\n)/).map((line) => {
    if (line.startsWith('+')) return { kind: 'added', text: line };
    return { kind: line.startsWith('-') ? 'removed' : '', text: line };
  });
}
