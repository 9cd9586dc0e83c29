// The very words that were looked for, in what is shown of a message: marked, and brought into view.

/** The name that the styles know these by. */
const NAME = 'found';
/** Words within so many characters stand together. */
const NEAR_CHARS = 240;

/** Takes the marks away. */
export const unmark = () => globalThis.CSS?.highlights?.delete(NAME);

/**
 * Marks words in a part of the page, and gives back where most of them stand together.
 * @param {Element} part
 * @param {string[]} words
 * @returns {Range | null}
 */
export function markWords(part, words) {
  unmark();
  const found = rangesOf(part, words);
  if (found.length === 0) return null;
  globalThis.CSS?.highlights?.set(NAME, new Highlight(...found.map(({ range }) => range)));
  return found[densest(found)].range;
}

/**
 * Scrolls whatever a range stands in until it is in view.
 * @param {Range} range
 */
export function bringIntoView(range) {
  for (let box = range.startContainer.parentElement; box !== null; box = box.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(box);
    const { top, left, right } = box.getBoundingClientRect();
    const at = range.getBoundingClientRect();
    if (isScroller(overflowY)
      && box.scrollHeight > box.clientHeight) box.scrollTop += at.top - top - box.clientHeight / 3;
    if (isScroller(overflowX) && (at.left < left
      || at.right > right)) box.scrollLeft += at.left - left - box.clientWidth / 3;
  }
}

/** @param {string} overflow */
const isScroller = (overflow) => overflow === 'auto' || overflow === 'scroll';

/** @typedef {{ range: Range, at: number, word: string }} Found */

/**
 * What finds any of these words, however the spaces in them are broken; null where there are none.
 * @param {string[]} words
 */
export function patternOf(words) {
  const parts = words.map((word) => word.trim()).filter((word) => word !== '')
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\s+/g, '\\s+'));
  return parts.length === 0 ? null : new RegExp(parts.join('|'), 'giu');
}

/** @param {Element} part @param {string[]} words @returns {Found[]} */
function rangesOf(part, words) {
  const pattern = patternOf(words);
  if (pattern === null) return [];
  /** @type {Found[]} */
  const found = [];
  let before = 0;
  const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const text = node.nodeValue ?? '';
    if (node.parentElement?.checkVisibility() === true) {
      for (const match of text.matchAll(pattern)) {
        const range = new Range();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        found.push({ range, at: before + match.index, word: match[0].toLowerCase() });
      }
    }
    before += text.length;
  }
  return found;
}

/** The place from which on most different words stand near. @param {Pick<Found, 'at' | 'word'>[]} found */
export function densest(found) {
  let [best, most] = [0, 0];
  for (const [i, { at }] of found.entries()) {
    const near = new Set();
    for (let j = i; j < found.length && found[j].at - at < NEAR_CHARS; j += 1) near.add(found[j].word);
    if (near.size > most) [best, most] = [i, near.size];
  }
  return best;
}
