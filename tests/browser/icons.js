// Makes `web/icons/`, for systems that show no SVG, from `web/icon.svg`. They are committed.
//
//   npm --prefix web run icons
//
// Needs `npm ci` here, and a Chromium (`CHROMIUM`).

import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { startBrowser } from './harness/browser.js';

const web = new URL('../../web/', import.meta.url);
const svg = await readFile(new URL('icon.svg', web), 'utf8');
/** Where a system cuts a shape of its own out of an icon, it reaches to the edges. */
const whole = svg.replace(/ rx="\d+"/, '');
const ICONS = [['icon_192', 192, svg], ['icon_512', 512, svg], ['icon_maskable', 512, whole], ['icon_apple', 180, whole]];

const browser = await startBrowser();
try {
  await mkdir(new URL('icons/', web), { recursive: true });
  const page = await browser.newPage();
  for (const [name, size, picture] of ICONS) {
    await page.setViewportSize({ width: size, height: size });
    await page.setContent(`<style>body { margin: 0 } svg { display: block; width: 100vw; height: 100vh }</style>${picture}`);
    await page.screenshot({ path: fileURLToPath(new URL(`icons/${name}.png`, web)), omitBackground: true });
  }
} finally {
  await browser.close();
}
