// A unified difference as rows with line numbers, out of a text that may hold more than it.

/**
 * @typedef {{ kind: 'same' | 'added' | 'removed' | 'gap' | 'file', text: string, before: number |
 *  null, after: number | null }} Row
 */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const FILE = /^(?:---|\+\+\+) /;

/**
 * The first difference in a text, and what stands before and after it; null where there is none.
 * @param {string} text
 * @returns {{ before: string, rows: Row[], after: string } | null}
 */
export function findDiff(text) {
  if (!text.includes('@@ -')) return null;
  const lines = text.split('\n');
  const first = lines.findIndex((line) => HUNK.test(line));
  if (first < 0) return null;
  const heads = first >= 2 && lines[first - 2].startsWith('--- ') && lines[first - 1].startsWith('+++ ') ? 2 : 0;
  const begin = first - heads;
  /** @type {Row[]} */
  const rows = [];
  let at = begin;
  while (at < lines.length) {
    const hunk = HUNK.exec(lines[at]);
    if (hunk !== null) {
      at = readHunk(lines, at, hunk, rows);
    } else if (FILE.test(lines[at]) && lines.slice(at, at + 3).some((line) => HUNK.test(line))) {
      rows.push({ kind: 'file', text: lines[at], before: null, after: null });
      at += 1;
    } else {
      break;
    }
  }
  return { before: lines.slice(0, begin).join('\n').trim(), rows, after: lines.slice(at).join('\n').trim() };
}

/**
 * @param {string[]} lines
 * @param {number} from the hunk's own line
 * @param {RegExpExecArray} hunk
 * @param {Row[]} rows
 * @returns {number} the line after it
 */
function readHunk(lines, from, hunk, rows) {
  let before = Number(hunk[1]);
  let after = Number(hunk[3]);
  let left = Number(hunk[2] ?? 1);
  let right = Number(hunk[4] ?? 1);
  rows.push({ kind: 'gap', text: lines[from], before: null, after: null });
  let at = from + 1;
  for (; at < lines.length; at += 1) {
    const line = lines[at];
    const sign = line[0];
    if (sign === '\\') {
      rows.push({ kind: 'gap', text: line, before: null, after: null });
    } else if (sign === '+' && right > 0) {
      rows.push({ kind: 'added', text: line.slice(1), before: null, after });
      after += 1;
      right -= 1;
    } else if (sign === '-' && left > 0) {
      rows.push({ kind: 'removed', text: line.slice(1), before, after: null });
      before += 1;
      left -= 1;
    } else if ((sign === ' ' || line === '') && left > 0 && right > 0) {
      rows.push({ kind: 'same', text: line.slice(1), before, after });
      before += 1;
      after += 1;
      left -= 1;
      right -= 1;
    } else {
      break;
    }
  }
  return at;
}

/** @param {Row[]} rows */
export function counts(rows) {
  let added = 0;
  let removed = 0;
  for (const { kind } of rows) {
    if (kind === 'added') added += 1;
    if (kind === 'removed') removed += 1;
  }
  return { added, removed };
}
