// Makes `dist/`, the few files that a browser loads, from the modules, styles and packages here.
// They are committed, so that building Navi needs no Node.
//
//   node build.mjs           writes them
//   node build.mjs --check   fails when any differs from what would be written, or the first
//                            load is over its limit

import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

import { templates } from './templates.mjs';

/** On the wire, with one language. */
const FIRST_LOAD_BYTES = 150 * 1024;
const LANGUAGES = ['en', 'ru', 'uk'];
/** Served as they lie here. */
const PLAIN = ['icon.svg', 'index.html', 'manifest.webmanifest', 'frame/diagram.html', ...['192', '512', 'apple', 'maskable'].map((name) => `icons/icon_${name}.png`)];
/** Of what draws diagrams: formulas in their labels, with fonts of their own, are left as they are written. */
const LEFT_OUT = { katex: './frame/left_out.js' };
const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, 'dist');

/**
 * The folder's files by name, as they should be.
 * @returns {Promise<Map<string, Buffer>>}
 */
async function wanted() {
  const made = await Promise.all([
    bundled({
      early: 'early.js', sw: 'sw.js', page: 'styles/page.css', math: 'markdown/math.js', colours: 'markdown/colours.js',
      ansi: 'ui/ansi.js',
      ...Object.fromEntries([...LANGUAGES, 'settings_ru', 'settings_uk', ...LANGUAGES.map((language) => `trouble_${language}`)].map((name) => [name, `i18n/${name}.js`])),
    }),
    // What is opened later uses the very modules that the page began with: those are a file for both.
    bundled({ main: 'main.js', panels: 'ui/panels.js' }, { splitting: true, chunkNames: 'shared' }),
    // No module: a frame without an origin may load a script, and not a module, of another.
    bundled({ diagram: 'frame/diagram.js' }, { format: 'iife', alias: LEFT_OUT }),
  ]);
  /** @type {Map<string, Buffer>} */
  const files = new Map(made.flatMap(({ outputFiles }) => outputFiles.map(({ path, contents }) => [path.slice(dist.length + 1), Buffer.from(contents)])));
  for (const path of PLAIN) files.set(basename(path), await readFile(join(here, path)));
  files.set('licenses.txt', Buffer.from(await licenses(made.flatMap(({ metafile }) => Object.keys(metafile.inputs)))));
  return files;
}

/**
 * @param {Record<string, string>} entryPoints by the names that they get
 * @param {Pick<import('esbuild').BuildOptions, 'splitting' | 'chunkNames' | 'format' | 'alias'>} [more]
 */
const bundled = (entryPoints, more) => build({
  absWorkingDir: here,
  entryPoints,
  outdir: dist,
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'esm',
  target: 'es2022',
  legalComments: 'none',
  metafile: true,
  write: false,
  plugins: [templates],
  ...more,
});

/** What came from others, and under which terms. @param {string[]} inputs */
async function licenses(inputs) {
  // A package may bring another one in a version of its own, below itself.
  const folders = new Set(inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0]).filter((name) => name !== undefined));
  const lock = JSON.parse(await readFile(join(here, 'package-lock.json'), 'utf8'));
  const parts = await Promise.all([...folders].sort().map(async (path) => {
    const { version, license, integrity } = lock.packages[path];
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const text = await licenseText(join(here, path));
    if (text === undefined) throw new Error(`${name} carries no licence`);
    return `${name} ${version} (${license ?? 'as it says'})\nnpm ${integrity}\n\n${text.trim()}\n`;
  }));
  return `The page holds these packages, bundled by esbuild ${lock.packages['node_modules/esbuild'].version}.\n\n${parts.join('\n\n')}`;
}

/** Its own file, or the end of what it says of itself. @param {string} folder of a package */
async function licenseText(folder) {
  const entries = await readdir(folder);
  const file = entries.find((entry) => /^licen[cs]e/i.test(entry));
  if (file !== undefined) return readFile(join(folder, file), 'utf8');
  const readme = entries.find((entry) => /^readme/i.test(entry));
  return readme === undefined ? undefined : /^#+ licen[cs]e\s([^]+)/im.exec(await readFile(join(folder, readme), 'utf8'))?.[1];
}

/** @param {Map<string, Buffer>} files */
function measure(files) {
  /** @param {string} name */
  const onTheWire = (name) => gzipSync(files.get(name) ?? '', { level: 9 }).length;
  // Of the languages one is loaded: the largest counts.
  const language = LANGUAGES.map((name) => `${name}.js`).reduce((a, b) => (onTheWire(a) > onTheWire(b) ? a : b));
  const first = ['index.html', 'early.js', 'page.css', 'main.js', 'shared.js', language, 'icon.svg', 'manifest.webmanifest', 'sw.js'];
  for (const name of first) console.log(`${String(onTheWire(name)).padStart(7)}  ${name}`);
  const total = first.reduce((sum, name) => sum + onTheWire(name), 0);
  console.log(`${String(total).padStart(7)}  in all, of ${FIRST_LOAD_BYTES}`);
  if (total > FIRST_LOAD_BYTES) throw new Error('the first load is over its limit');
}

const files = await wanted();
measure(files);
if (process.argv.includes('--check')) {
  const found = await readdir(dist);
  const wrong = found.filter((name) => !files.has(name));
  for (const [name, content] of files) {
    if (!found.includes(name) || !content.equals(await readFile(join(dist, name)))) wrong.push(name);
  }
  if (wrong.length > 0) throw new Error(`dist/ is not what the page's sources make: ${wrong.join(', ')}; run \`npm ci && npm run build\``);
} else {
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist);
  for (const [name, content] of files) await writeFile(join(dist, name), content);
}
