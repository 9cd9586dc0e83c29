// A snippet with the words that were searched for.

/** @import { Snippet } from './wire.js' */

/**
 * The snippet cut where its matches begin and end. Ranges that are empty, overlap, or lie
 * outside are left out: a snippet is shown whole in any case.
 * @param {Snippet} snippet
 * @returns {{ text: string, match: boolean }[]}
 */
export function pieces({ text, marks }) {
  /** @type {{ text: string, match: boolean }[]} */
  const found = [];
  let done = 0;
  for (const { start, end } of [...marks].sort((a, b) => a.start - b.start)) {
    if (!(start >= done && end > start && end <= text.length)) continue;
    if (start > done) found.push({ text: text.slice(done, start), match: false });
    found.push({ text: text.slice(start, end), match: true });
    done = end;
  }
  if (done < text.length) found.push({ text: text.slice(done), match: false });
  return found;
}

/** What matched in a snippet, each once. @param {Snippet} snippet */
export const matched = (snippet) => [...new Set(pieces(snippet).filter(({ match }) => match).map(({ text }) => text))];
