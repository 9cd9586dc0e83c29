// A text of which nothing stays unseen. What a person consents to must be what would happen:
// characters that hide, turn around or overwrite others are shown by their names.

// Controls but tab and newline, marks that turn the direction of what follows, characters
// without a width or a shape, and other spaces that look like one. The service has the same list
// (`domain/unseen.rs`), and a test holds both against `tests/unseen.json`.
const UNSEEN = /(?![ \t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Z}\p{DI}\p{NChar}\u2800\ufffc\u{1d159}\u{13441}\u{13442}]/u;

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
