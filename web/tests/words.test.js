// What a person reads comes from the three languages, and names what there is.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { parse } from 'acorn';

const root = new URL('../', import.meta.url);
/** Where no language is known yet, or no script runs to choose one. */
const BEFORE_ANY_LANGUAGE = [
  'Navi',
  'Navi, a personal AI agent on your own machine',
  "Navi's page needs JavaScript.",
  'Сторінці Navi потрібен JavaScript.',
  'Странице Navi нужен JavaScript.',
];
/** What is said to a machine, or means the same in every language. */
const NOBODY_READS = new Set([
  'noopener noreferrer', 'command line', 'as all', 'Mac OS', 'event: closed',
  // What the service said, told apart by its beginning.
  'nobody answered in time whether this is allowed, ', 'the user did not allow this: ', 'the user has forbidden this once and for all; ',
]);
const NAMES = /^(Navi|SHA-256)$/;
/** Attributes that are read out or shown. */
const READ = /\b(aria-label|aria-description|aria-roledescription|aria-valuetext|title|placeholder|alt|label)\s*=\s*(?:"([^"]*)"|([^\s">]+))/g;
/** Calls whose words go to a machine. */
const TO_MACHINES = /^(console|matchMedia|querySelector|querySelectorAll|closest|matches)$/;
/** Calls whose words, one alone too, are shown or said aloud. */
const SAYS = /^(showToast|announce)$/;
/** Stands for what is put into a template. */
const VALUE = '\u0000';
const WORD = /\p{L}{2,}/u;
const SENTENCE = /\p{L}{2,}\p{P}? \p{L}{2,}/u;

/** @param {string} folder */
const files = async (folder) => (await readdir(new URL(folder, root))).filter((name) => name.endsWith('.js')).map((name) => `${folder}/${name}`);

/** @type {(quasi: any) => string} */
const textOf = (quasi) => quasi.quasis.map((/** @type {any} */ { value }) => value.cooked ?? '').join(VALUE);

/** What a text of a script says. @type {(node: any) => unknown} */
const textIn = (node) => (node.type === 'Literal' ? node.value : textOf(node));

/** @param {any} node */
function isOneWord(node) {
  const text = node.type === 'Literal' || node.type === 'TemplateLiteral' ? textIn(node) : '';
  return typeof text === 'string' && WORD.test(text) && !SENTENCE.test(text);
}

/** The words that stand in markup, by themselves: what is code is the same in each language. @param {string} markup */
function inMarkup(markup) {
  const shown = markup.replace(/<(code|kbd)\b[^>]*>[^<]*<\/\1>/g, '').replace(/<[^>]*>/g, VALUE).split(VALUE);
  const read = [...markup.matchAll(READ)].flatMap(([, , quoted, bare]) => (quoted ?? bare).split(VALUE));
  return [...shown, ...read].map((text) => text.trim()).filter((text) => WORD.test(text) && !NAMES.test(text));
}

/**
 * What of a script a person might read: words in its templates, and texts of more than one word.
 * @param {string} source
 * @param {Set<string>} classes
 */
function wordsOf(source, classes) {
  /** @type {string[]} */
  const found = [];
  const isStyle = (/** @type {string} */ text) => text.startsWith('--') || text.split(' ').every((name) => classes.has(name));
  /** @param {any} node @param {any} parent */
  const visit = (node, parent) => {
    if (node === null || typeof node !== 'object') return;
    if (Array.isArray(node)) {
      for (const each of node) visit(each, parent);
      return;
    }
    if (node.type === 'ImportDeclaration' || node.type === 'NewExpression' && /Error$/.test(node.callee.name)) return;
    if (node.type === 'CallExpression' && TO_MACHINES.test(node.callee.name ?? node.callee.object?.name ?? '')) return;
    if (node.type === 'CallExpression' && TO_MACHINES.test(node.callee.property?.name ?? '')) return;
    if (node.type === 'CallExpression' && SAYS.test(node.callee.name ?? '')) found.push(...node.arguments.filter(isOneWord).map(textIn));
    if (node.type === 'TaggedTemplateExpression') found.push(...inMarkup(textOf(node.quasi)));
    else if (node.type === 'Literal' || node.type === 'TemplateLiteral' && parent.type !== 'TaggedTemplateExpression') {
      const text = textIn(node);
      if (typeof text === 'string' && SENTENCE.test(text) && !NOBODY_READS.has(text) && !isStyle(text)) found.push(text);
    }
    for (const key of Object.keys(node)) visit(node[key], node);
  };
  visit(parse(source, { ecmaVersion: 'latest', sourceType: 'module' }), null);
  return found;
}

async function classes() {
  const styles = await Promise.all((await readdir(new URL('styles', root))).map((name) => readFile(new URL(`styles/${name}`, root), 'utf8')));
  return new Set([...styles.join('\n').matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => name));
}

test('no text stands in the page outside of the three languages', async () => {
  const known = await classes();
  const scripts = (await Promise.all(['app', 'ui', 'state', 'net', 'markdown'].map(files))).flat();
  assert.ok(scripts.length > 100);
  for (const name of ['main.js', 'early.js', ...scripts]) {
    assert.deepEqual(wordsOf(await readFile(new URL(name, root), 'utf8'), known), [], name);
  }
});

test('words that stand in a script are found, wherever a person would read them', () => {
  const script = String.raw`
    html${'`'}<p class="big red" title="Read me">Some words ${'${'}x ? 'and some more' : html${'`'}<b>deep</b>${'`'}}</p><code>navi link</code>${'`'};
    showToast('It went wrong');
    announce('Done');
    element.querySelector('.a .b, button small');
    throw new Error('nobody reads this');
  `;
  assert.deepEqual(wordsOf(script, new Set(['big', 'red'])), ['Some words', 'Read me', 'and some more', 'deep', 'It went wrong', 'Done']);
});

test('the page has no words of its own but where no language is known yet', async () => {
  const html = await readFile(new URL('index.html', root), 'utf8');
  const described = [...html.matchAll(/name="description" content="([^"]*)"/g)].map(([, text]) => text);
  assert.deepEqual([...inMarkup(html), ...described].filter((text) => !BEFORE_ANY_LANGUAGE.includes(text)), []);
  const { name, short_name, description } = JSON.parse(await readFile(new URL('manifest.webmanifest', root), 'utf8'));
  assert.deepEqual([name, short_name, description], ['Navi', 'Navi', undefined]);
});

test('every setting that a text names is there', async () => {
  const defaults = await readFile(new URL('../config/default.toml', root), 'utf8');
  const settings = new Set([...defaults.matchAll(/^# \[(\w+)\]/gm)].map(([, name]) => name));
  assert.ok(settings.size > 50);
  const dictionaries = (await readdir(new URL('i18n', root), { recursive: true })).filter((name) => /(^|[/_])(en|uk|ru)(\/|\.js$)/.test(name) && name.endsWith('.js'));
  assert.ok(dictionaries.length > 20);
  let named_at_all = 0;
  for (const name of dictionaries) {
    const { default: _, ...parts } = await import(new URL(`i18n/${name}`, root).href);
    const texts = JSON.stringify(Object.values(parts));
    const named = [...texts.matchAll(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g)].map(([word]) => word);
    named_at_all += named.length;
    assert.deepEqual(named.filter((word) => !settings.has(word)), [], name);
  }
  assert.ok(named_at_all > 100);
});
