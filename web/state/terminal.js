// What a program printed, as lines: colours are left for `anser`, everything else that a
// terminal would act upon is carried out here in small, or taken out.

/** So much of a call's live output is kept: its end. */
export const KEPT_CHARS = 256 * 1024;

/**
 * The output grown by a piece, cut at a line's beginning where it is too long.
 * @param {string} output
 * @param {number} from how much came before `output`
 * @param {string} piece
 * @returns {{ output: string, output_from: number }}
 */
export function grown(output, from, piece) {
  const whole = output + piece;
  // Cut seldom and by much: cutting at each piece would copy all of it each time.
  if (whole.length <= KEPT_CHARS * 1.25) return { output: whole, output_from: from };
  const least = whole.length - KEPT_CHARS;
  const line = whole.indexOf('\n', least);
  const cut = line >= 0 && line < least + 4096 ? line + 1 : least;
  return { output: whole.slice(cut), output_from: from + cut };
}

const ESC = '\\u001b';
// Operating system commands and other strings, with their texts; unfinished ones too.
const STRINGS = new RegExp(`${ESC}[\\]PX^_][^\\u0007\\u001b]*(?:\\u0007|${ESC}\\\\|$)?`, 'g');
// Control sequences but those that colour.
const SEQUENCES = new RegExp(`${ESC}\\[[0-?]*[ -/]*(?:[@-ln-~]|$)`, 'g');
const PRIVATE = new RegExp(`${ESC}\\[[<=>?][0-?]*[ -/]*m`, 'g');
const OTHERS = new RegExp(`${ESC}(?:[ -/][0-~]|[0-Z\\\\^-~]|$)`, 'g');
const CONTROLS = /[\u0000-\u0007\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f]/g;
const ERASE_LINE = new RegExp(`^(?:${ESC}\\[[0-9;]*m)*${ESC}\\[[02]?K`);
const COLOURS = new RegExp(`${ESC}\\[[0-9;:]*m`, 'g');

/**
 * Text and colour codes, nothing else: lines that were written over show what stood there last.
 * @param {string} text
 */
export function settled(text) {
  if (!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) return text;
  const lines = text.replace(STRINGS, '').replaceAll('\r\n', '\n').split('\n');
  return lines.map((line) => {
    const written = line.includes('\r') ? overwritten(line.split('\r')) : line;
    return backspaced(written.replace(PRIVATE, '').replace(SEQUENCES, '').replace(OTHERS, '')).replace(CONTROLS, '');
  }).join('\n');
}

/**
 * What a line shows that was begun anew: the last writing, and of the one before it what that
 * did not reach, unless it was erased.
 * @param {string[]} writings
 */
function overwritten(writings) {
  let shown = writings[0];
  for (const writing of writings.slice(1)) {
    if (writing === '') continue;
    const coloured = shown.includes('\u001b') || writing.includes('\u001b');
    shown = coloured || ERASE_LINE.test(writing) || writing.length >= shown.length
      ? writing
      : writing + shown.slice(writing.length);
  }
  return shown;
}

/** @param {string} line */
function backspaced(line) {
  if (!line.includes('\b')) return line;
  let out = '';
  for (const char of line) out = char === '\b' ? out.slice(0, -1) : out + char;
  return out;
}

/** Without its colours. @param {string} text */
export const plain = (text) => settled(text).replace(COLOURS, '');

/** Whether it has colours. @param {string} text */
export const isColoured = (text) => text.includes('\u001b[');

/**
 * The last so many lines.
 * @param {string} text
 * @param {number} lines
 * @returns {{ text: string, hidden: number }} `hidden`: the lines before them
 */
export function tail(text, lines) {
  const all = text.split('\n');
  const hidden = Math.max(0, all.length - lines);
  return { text: hidden === 0 ? text : all.slice(hidden).join('\n'), hidden };
}
