// A program's colours as class names, which the page's own colours stand behind.

import Anser from 'anser';

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/** The levels of the 6 × 6 × 6 cube of 256 colours. */
const LEVELS = [0, 95, 135, 175, 215, 255];
const CUBE_FROM = 16;
const GREYS_FROM = 232;
/** Below this distance between its channels a colour is a grey. */
const GREY_SPREAD = 40;

/**
 * @param {string} text
 * @returns {{ text: string, classes: string }[]}
 */
export function coloured(text) {
  return Anser.ansiToJson(text, { json: true, use_classes: true, remove_empty: true }).map((piece) => ({
    text: piece.content,
    classes: [
      classOf('fg', piece.fg, piece.fg_truecolor),
      classOf('bg', piece.bg, piece.bg_truecolor),
      ...piece.decorations.map((name) => `ansi-${name}`),
    ].filter((name) => name !== '').join(' '),
  }));
}

/**
 * @param {'fg' | 'bg'} plane
 * @param {string | null} name as anser tells it
 * @param {string | null} truecolor as in `10, 20, 30`
 */
function classOf(plane, name, truecolor) {
  if (name === null || name === '') return '';
  let known = name.replace(/^ansi-(bright-)?/, '');
  if (name.startsWith('ansi-palette-')) known = ofPalette(Number(name.slice('ansi-palette-'.length)));
  else if (name === 'ansi-truecolor') known = nearest((truecolor ?? '').split(',').map(Number));
  return NAMES.includes(known) ? `ansi-${plane}-${known}` : '';
}

/** @param {number} at of 256 */
function ofPalette(at) {
  if (at < CUBE_FROM) return NAMES[at % 8];
  if (at >= GREYS_FROM) return at < GREYS_FROM + 12 ? 'black' : 'white';
  const place = at - CUBE_FROM;
  return nearest([LEVELS[Math.floor(place / 36)], LEVELS[Math.floor(place / 6) % 6], LEVELS[place % 6]]);
}

/**
 * One of the eight names: what shade it has is the page's own affair, light or dark.
 * @param {number[]} rgb
 */
function nearest([red = 0, green = 0, blue = 0]) {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (!(most - least >= GREY_SPREAD)) return most < 128 ? 'black' : 'white';
  const middle = (most + least) / 2;
  return NAMES[(red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0)];
}
