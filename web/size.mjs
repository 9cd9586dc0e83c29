// What the page's first load costs, compressed; and whether index.html preloads every module, so
// that a load is one round trip deep instead of one per import.
//
//   node size.mjs           prints the files and their sizes; fails over the limit or on drift
//   node size.mjs --write   brings the preload list of index.html up to date

import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const LIMIT_BYTES = 150 * 1024;
const here = dirname(fileURLToPath(import.meta.url));
const PRELOAD = /<!-- preload -->[^]*<!-- \/preload -->/;

/** @param {string} path relative to this folder */
const read = (path) => readFile(join(here, path), 'utf8');

/**
 * Every module that `entry` imports, itself first.
 * @param {string} entry
 */
async function modulesFrom(entry) {
  const found = [entry];
  for (const path of found) {
    if (path.startsWith('vendor/')) continue;
    const source = await read(path);
    for (const [, specifier] of source.matchAll(/^(?:import|export)\b[^'"]*?['"](\.{1,2}\/[^'"]+)['"]/gm)) {
      const target = posix.join(posix.dirname(path), specifier);
      if (!found.includes(target)) found.push(target);
    }
  }
  return found;
}

const modules = await modulesFrom('main.js');
const html = await read('index.html');
const block = ['<!-- preload -->', ...modules.slice(1).sort().map((path) => `  <link rel="modulepreload" href="/web/${path}">`), '  <!-- /preload -->'].join('\n');
if (process.argv.includes('--write')) {
  await writeFile(join(here, 'index.html'), html.replace(PRELOAD, block));
} else if (html.match(PRELOAD)?.[0] !== block) {
  console.error('index.html preloads other modules than the page imports; run `node size.mjs --write`');
  process.exit(1);
}

// Of the languages one is loaded: the largest counts.
const dictionaries = await Promise.all(['en', 'uk', 'ru'].map(async (name) => ({ path: `i18n/${name}.js`, bytes: gzipSync(await read(`i18n/${name}.js`), { level: 9 }).length })));
const { path: dictionary } = dictionaries.reduce((a, b) => (a.bytes > b.bytes ? a : b));

const linked = [...html.matchAll(/(?:href|src)="\/web\/([^"]+)"/g)].map(([, path]) => path);
let total = 0;
for (const path of ['index.html', ...new Set([...linked, ...modules, dictionary])]) {
  const content = await readFile(join(here, path));
  const bytes = gzipSync(content, { level: 9 }).length;
  total += bytes;
  console.log(`${String(bytes).padStart(7)}  ${path}`);
}
console.log(`${String(total).padStart(7)}  in all, of ${LIMIT_BYTES}`);
if (total > LIMIT_BYTES) {
  console.error('the first load is over its limit');
  process.exit(1);
}
