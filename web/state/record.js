// What a line of the record is about, taken apart: the service tells it as one text.

/**
 * Whose it is, and what was told of it.
 * @param {string} about
 */
export function apart(about) {
  const at = about.lastIndexOf(': ');
  if (at < 0) return { whose: about, told: '' };
  return { whose: about.slice(0, at), told: about.slice(at + 2) };
}

/** A limit and what it was set to; null: what everybody has. @param {string} text */
export function limitIn(text) {
  const [name, ...words] = text.split(' ');
  const value = words.join(' ');
  return { name, value: value === 'as all' ? null : Number(value) };
}
