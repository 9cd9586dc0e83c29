// How a page looks, and what a screen reader trips over in it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { IS_LONG } from './program.js';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Every size and every colour once; the other two pairs of them show nothing of their own. */
export const ONCE = ['wide-light', 'narrow-dark'];
/** The languages beside English in which views are looked at. Both are as long. */
export const OTHER_LANGUAGES = IS_LONG ? ['uk', 'ru'] : ['uk'];
const SIZES = [['wide', { width: 1280, height: 800 }], ['narrow', { width: 360, height: 740 }]];

/** In each of these boxes such a thing is in sight from edge to edge. */
const IN_SIGHT = [['.tabs', '[aria-selected="true"]'], ['.composer', '.composer-row > :not(.off-screen)']];

/** Nothing breaks WCAG 2.2 AA according to axe, in the whole page or in a part of it. */
export async function assertAccessible(page, name, part = null) {
  // Half of its time goes into reading it anew, and into telling of what is right.
  if (await page.evaluate(() => globalThis.axe === undefined)) await page.evaluate(axe);
  const { violations } = await page.evaluate((within) =>
    globalThis.axe.run(within ?? document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] }), part);
  assert.deepEqual(violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => `${id}: ${html}: ${any.map(({ message }) => message)}`)), [], name);
}

/** Nothing goes over the edge, of the page or of a part of it. */
export async function assertFits(page, name, part = 'html') {
  const overflow = await page.locator(part).first().evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
  // What is cut off at the left makes no page wider; tabs are scrolled.
  const cut = await page.evaluate(() => [...document.querySelectorAll('.message *, dialog[open] *')]
    .filter((element) => element.getBoundingClientRect().left < -1 && element.getBoundingClientRect().width > 1 && element.closest('.off-screen, .tabs') === null)
    .map(({ outerHTML }) => outerHTML.slice(0, 80)));
  assert.deepEqual(cut, [], name);
  const hidden = await page.evaluate((pairs) => pairs.flatMap(([box, what]) => [...document.querySelectorAll(box)].flatMap((outer) => {
    const { left, right } = outer.getBoundingClientRect();
    const sticksOut = (inner) => inner.width > 0 && (inner.left < left - 1 || inner.right > right + 1);
    return [...outer.querySelectorAll(what)].filter((inner) => inner.checkVisibility() && sticksOut(inner.getBoundingClientRect())).map(({ outerHTML }) => outerHTML.slice(0, 80));
  })), IN_SIGHT);
  assert.deepEqual(hidden, [], name);
}

/**
 * Wide and narrow, dark and light: the picture that `take` takes fits, and can be read by everyone.
 * What axe finds comes with the size or with the colours, so it looks at each of them once; so does all of it but
 * with `--long`.
 */
export async function assertLooks(tab, take, part = null) {
  for (const colorScheme of ['light', 'dark']) {
    for (const [size, viewport] of SIZES) {
      const name = `${size}-${colorScheme}`;
      if (!IS_LONG && !ONCE.includes(name)) continue;
      await tab.page.emulateMedia({ colorScheme });
      await tab.page.setViewportSize(viewport);
      await take(name);
      await assertFits(tab.page, name, part ?? 'html');
      if (ONCE.includes(name)) await assertAccessible(tab.page, name, part);
    }
  }
  await tab.page.emulateMedia({ colorScheme: 'light' });
  await tab.page.setViewportSize(SIZES[0][1]);
}
