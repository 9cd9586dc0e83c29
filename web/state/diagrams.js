// What is asked of the frame that draws diagrams, what it answers, and what is said of that.

/** @typedef {{ id: number, source: string, dark: boolean }} Asked */
/** @typedef {{ svg: string, width: number, height: number, kind: string }} Drawn */
/** @typedef {{ id: number } & (Drawn | { error: string })} Answer */
/**
 * Why something is no picture.
 * @typedef {{ why: 'syntax' | 'unknown' | 'size' | 'large' | 'time' | 'load', line?: number }}
 *  Problem
 */

/** Longer than any diagram that a person reads. */
export const MAX_SOURCE_CHARS = 20_000;
/** An image of more is none that a page should hold. */
export const MAX_IMAGE_CHARS = 2_000_000;

/** The kinds that have a word, by how their names begin. @type {[RegExp, string][]} */
const KINDS = [
  [/^(flow|graph)/i, 'flowchart'], [/^sequence/i, 'sequence'], [/^class/i, 'class'], [/^state/i, 'state'],
  [/^er/i, 'er'], [/^gantt/i, 'gantt'], [/^pie/i, 'pie'],
  [/^gitgraph/i, 'git'], [/^mindmap/i, 'mindmap'], [/^timeline/i, 'timeline'], [/^journey/i, 'journey'],
  [/^(xychart|quadrant|radar|sankey)/i, 'chart'],
];

/** @param {string} kind as the library calls it */
export const kindOf = (kind) => KINDS.find(([begins]) => begins.test(kind))?.[1] ?? 'other';

/** Kinds of which a line may begin with `title` and be none. */
const UNTITLED = new Set(['flowchart', 'class', 'state', 'er', 'mindmap']);

/**
 * How a diagram is called by who wrote it; '' where it has no name.
 * @param {string} source
 * @param {string} kind as `kindOf` has it
 */
export function titleOf(source, kind) {
  const front = /^\s*---[ \t]*\r?\n([\s\S]*?)\n[ \t]*---/.exec(source)?.[1] ?? '';
  const found = /^[ \t]*accTitle[ \t]*:[ \t]*(.+)$/m.exec(source)?.[1] ?? /^title[ \t]*:[ \t]*(.+)$/m.exec(front)?.[1]
    ?? (UNTITLED.has(kind)
      ? null
      : /^[ \t]*(?:pie[ \t]+(?:showData[ \t]+)?)?title:?[ \t]+(.+)$/m.exec(source)?.[1]) ?? '';
  return found.trim().replace(/^(["'])(.*)\1$/, '$2').slice(0, 200);
}

/**
 * What the library's complaint is about.
 * @param {string} error
 * @param {string} source
 * @returns {Problem}
 */
export function problemOf(error, source) {
  if (/no diagram type detected/i.test(error)) return { why: 'unknown' };
  // What ends too early is missed after its last line.
  const line = Math.min(Number(/\bline:? (\d+)/i.exec(error)?.[1]), source.trimEnd().split('\n').length);
  // Before it counts, the library takes out what is no part of the diagram.
  const counts = line > 0 && !/^[ \t]*(%%|---)/m.test(source);
  return counts ? { why: 'syntax', line } : { why: 'syntax' };
}

/** An image's text as an address. @param {string} svg */
export const imageAddress = (svg) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
