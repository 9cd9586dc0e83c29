// A text of which nothing stays unseen. What a person consents to must be what would happen:
// characters that hide, turn around or overwrite others are shown by their names.

// Controls but tab and newline, marks that turn the direction of what follows, characters
// without a width, other spaces that look like one, and those no font has.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/u;

/**
 * @param {string} text
 * @returns {{ text: string, unseen: boolean }[]}
 */
export function seen(text) {
  /** @type {{ text: string, unseen: boolean }[]} */
  const pieces = [];
  let rest = text;
  for (;;) {
    const found = UNSEEN.exec(rest);
    if (found === null) break;
    if (found.index > 0) pieces.push({ text: rest.slice(0, found.index), unseen: false });
    pieces.push({ text: nameOf(/** @type {number} */ (found[0].codePointAt(0))), unseen: true });
    rest = rest.slice(found.index + found[0].length);
  }
  if (rest !== '' || pieces.length === 0) pieces.push({ text: rest, unseen: false });
  return pieces;
}

/** @param {number} code */
function nameOf(code) {
  if (code === 0x0d) return '\\r';
  if (code === 0x1b) return '\\e';
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
