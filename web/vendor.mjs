// Makes `vendor/` from the packages that package-lock.json pins, or checks that it still
// is what they make. The page is served without a build step, so the bundles are committed:
// import maps would need inline script, which the page's CSP forbids, and bare specifiers
// mean nothing to a browser without one.
//
//   node vendor.mjs           writes the bundles, the licences and vendor/manifest.json
//   node vendor.mjs --check   fails when any of them differs from what would be written

import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const vendor = join(here, 'vendor');

/** Each bundle: what it exports, and the packages whose code ends up in it. */
const bundles = [
  {
    file: 'lit.js',
    packages: ['lit', 'lit-html', 'lit-element', '@lit/reactive-element', '@lit-labs/signals', 'signal-polyfill'],
    source: `
      export { LitElement, html, svg, nothing, render } from 'lit';
      export { repeat } from 'lit/directives/repeat.js';
      export { live } from 'lit/directives/live.js';
      export { signal, SignalWatcher } from '@lit-labs/signals';
    `,
  },
  {
    file: 'marked.js',
    packages: ['marked'],
    source: `export { Lexer } from 'marked';`,
  },
  {
    file: 'idb-keyval.js',
    packages: ['idb-keyval'],
    source: `export { createStore, entries, promisifyRequest } from 'idb-keyval';`,
  },
  {
    file: 'anser.js',
    packages: ['anser'],
    source: `export { default } from 'anser';`,
  },
];

/** @param {string | Uint8Array} data */
const sha256 = (data) => createHash('sha256').update(data).digest('hex');

/**
 * The folder's files by name, as they should be.
 * @returns {Promise<Map<string, string>>}
 */
async function wanted() {
  /** @type {Map<string, string>} */
  const files = new Map();
  const entries = [];
  const esbuildVersion = (await packageJson('esbuild')).version;
  for (const bundle of bundles) {
    const result = await build({
      stdin: { contents: bundle.source, resolveDir: here, sourcefile: bundle.file },
      bundle: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      write: false,
      metafile: true,
      legalComments: 'inline',
    });
    const code = result.outputFiles[0].text;
    files.set(bundle.file, code);
    const inside = new Set(
      Object.keys(result.metafile.inputs)
        .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
        .filter((name) => name !== undefined),
    );
    const stray = [...inside].filter((name) => !bundle.packages.includes(name));
    if (stray.length > 0) throw new Error(`${bundle.file} holds packages that are not listed: ${stray.join(', ')}`);
    const packages = [];
    for (const name of bundle.packages) {
      const meta = await packageJson(name);
      const licenceFile = `LICENSE.${name.replace('@', '').replace('/', '-')}.txt`;
      files.set(licenceFile, await licenceText(name));
      packages.push({ name, version: meta.version, license: meta.license, license_file: licenceFile });
    }
    entries.push({
      file: bundle.file,
      sha256: sha256(code),
      bytes: Buffer.byteLength(code),
      made_by: `esbuild ${esbuildVersion}: bundle, minify, format esm, target es2022`,
      exports: bundle.source.trim().split('\n').map((line) => line.trim()),
      packages,
    });
  }
  files.set('manifest.json', `${JSON.stringify({ bundles: entries }, null, 2)}\n`);
  return files;
}

/** @param {string} name */
async function packageJson(name) {
  return JSON.parse(await readFile(join(here, 'node_modules', name, 'package.json'), 'utf8'));
}

/** @param {string} name */
async function licenceText(name) {
  const folder = join(here, 'node_modules', name);
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} carries no licence file`);
  return readFile(join(folder, file), 'utf8');
}

const files = await wanted();
if (process.argv.includes('--check')) {
  const wrong = [];
  for (const [name, content] of files) {
    const found = await readFile(join(vendor, name), 'utf8').catch(() => null);
    if (found !== content) wrong.push(name);
  }
  // Type declarations and the README are ours and stand beside the bundles.
  for (const name of await readdir(vendor)) {
    if (!files.has(name) && !name.endsWith('.d.ts') && name !== 'README.md') wrong.push(`${name} (unknown)`);
  }
  if (wrong.length > 0) {
    console.error(`vendor/ is not what its packages make: ${wrong.join(', ')}; run \`npm ci && npm run vendor\``);
    process.exit(1);
  }
  console.log(`vendor/ is as recorded: ${files.size} files`);
} else {
  await mkdir(vendor, { recursive: true });
  for (const [name, content] of files) await writeFile(join(vendor, name), content);
  console.log(`vendor/ written: ${[...files.keys()].join(', ')}`);
}
