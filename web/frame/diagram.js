// Draws diagrams for the page, in a frame that has no origin and no network (`src/http/page.rs` has
// its policy): whatever a source does to the library happens here, and a text is all that leaves.

import mermaid from 'mermaid';

import { MAX_SOURCE_CHARS } from '../state/diagrams.js';

/** @typedef {import('../state/diagrams.js').Asked} Asked */
/** @typedef {import('../state/diagrams.js').Answer} Answer */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", sans-serif';
/** As wide as the column of an answer: some kinds fill what they are given. */
const WIDTH_PX = 736;

/** @typedef {{ paper: string, card: string, ink: string, line: string, edge: string, fill: string, border: string, warm: string, warmBorder: string, strong: string, crit: string, of: string[] }} Colours */

/** The page's colours (`styles/tokens.css`), and eight to tell things apart by. @type {Record<'light' | 'dark', Colours>} */
const COLOURS = {
  light: {
    paper: '#f6f8f7', card: '#ffffff', ink: '#1a2522', line: '#4f5e59', edge: '#c6d0cb', fill: '#eaf4f0', border: '#5f9c8f', warm: '#fdf3df', warmBorder: '#db9a55', strong: '#9ccfc0', crit: '#efb3a9',
    of: ['#9ccfc0', '#f2c48d', '#b7c7e8', '#d9c2e3', '#e8b4a8', '#cfd8a0', '#a8d4e0', '#e3d29a'],
  },
  dark: {
    paper: '#141d1a', card: '#18221f', ink: '#e4ece8', line: '#a9b8b1', edge: '#384742', fill: '#1f3a33', border: '#4f9c89', warm: '#3a2f18', warmBorder: '#b8843f', strong: '#2f6f60', crit: '#8a4238',
    of: ['#2f6f60', '#8a5a24', '#3f5688', '#6d4a80', '#8a4238', '#5f6b2a', '#2f6c7d', '#7d6a26'],
  },
};
/** The library numbers its colours so far. */
const NUMBERED = 12;

/** @param {Colours} c */
function variables(c) {
  const numbered = Array.from({ length: NUMBERED }, (_, i) => ({
    [`pie${i + 1}`]: c.of[i % c.of.length], [`cScale${i}`]: c.of[i % c.of.length], [`cScalePeer${i}`]: c.of[i % c.of.length], [`cScaleLabel${i}`]: c.ink, [`cScaleInv${i}`]: c.line,
  }));
  return Object.assign({
    background: c.card, mainBkg: c.fill, primaryColor: c.fill, primaryTextColor: c.ink, primaryBorderColor: c.border, secondaryColor: c.warm, tertiaryColor: c.paper,
    lineColor: c.line, textColor: c.ink, noteBkgColor: c.warm, noteTextColor: c.ink, noteBorderColor: c.warmBorder, edgeLabelBackground: c.card, clusterBkg: c.paper, clusterBorder: c.edge,
    pieOpacity: '1', pieStrokeColor: c.card, pieOuterStrokeColor: c.edge, pieSectionTextColor: c.ink, pieTitleTextColor: c.ink, pieLegendTextColor: c.ink,
    taskBkgColor: c.fill, taskBorderColor: c.border, activeTaskBkgColor: c.strong, activeTaskBorderColor: c.border, doneTaskBkgColor: c.paper, doneTaskBorderColor: c.edge, critBkgColor: c.crit, critBorderColor: c.crit,
    taskTextColor: c.ink, taskTextDarkColor: c.ink, taskTextLightColor: c.ink, taskTextOutsideColor: c.ink, gridColor: c.edge, sectionBkgColor: c.paper, sectionBkgColor2: c.paper, altSectionBkgColor: c.card, todayLineColor: c.warmBorder,
    xyChart: { backgroundColor: 'transparent', titleColor: c.ink, xAxisLabelColor: c.ink, xAxisTitleColor: c.ink, yAxisLabelColor: c.ink, yAxisTitleColor: c.ink, plotColorPalette: [c.strong, c.warmBorder, ...c.of.slice(2)].join(',') },
  }, ...numbered);
}

/** @param {boolean} dark @returns {import('mermaid').MermaidConfig} */
const config = (dark) => ({
  startOnLoad: false,
  securityLevel: 'strict',
  suppressErrorRendering: true,
  maxTextSize: MAX_SOURCE_CHARS,
  // Texts as texts of the image: HTML inside one is drawn by some browsers only.
  htmlLabels: false,
  theme: 'base',
  themeVariables: { ...variables(dark ? COLOURS.dark : COLOURS.light), darkMode: dark, fontFamily: FONT, fontSize: '15px' },
  fontFamily: FONT,
  gantt: { useWidth: WIDTH_PX },
  // What a source may not choose.
  secure: ['secure', 'securityLevel', 'startOnLoad', 'suppressErrorRendering', 'maxTextSize', 'maxEdges', 'htmlLabels', 'theme', 'themeVariables', 'themeCSS', 'fontFamily'],
});

const stage = document.createElement('div');
stage.style.width = `${WIDTH_PX}px`;
document.body.append(stage);

/** @param {Asked} asked @returns {Promise<Answer>} */
async function drawn({ id, source, dark }) {
  try {
    mermaid.initialize(config(dark));
    stage.style.color = (dark ? COLOURS.dark : COLOURS.light).ink;
    const { svg, diagramType } = await mermaid.render('diagram', source, stage);
    return { id, kind: diagramType, ...imageOf(svg, dark) };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  } finally {
    stage.replaceChildren();
  }
}

/** The image as a document of its own, with its size in pixels. @param {string} text @param {boolean} dark */
function imageOf(text, dark) {
  const image = new DOMParser().parseFromString(text, 'text/html').querySelector('svg');
  const [, , width, height] = image?.getAttribute('viewBox')?.split(/[ ,]+/).map((side) => Math.ceil(Number(side))) ?? [];
  if (image === null || !(width > 0) || !(height > 0)) throw new Error('no image came of it');
  image.style.removeProperty('max-width');
  image.setAttribute('width', String(width));
  image.setAttribute('height', String(height));
  stage.append(image);
  for (const node of image.querySelectorAll('.node')) keepReadable(node, dark);
  return { svg: new XMLSerializer().serializeToString(image), width, height };
}

/** As light as this the ink of both themes can be read. */
const MIDDLE = 140;

/** How light a colour is, of 255; null where it is none. @param {string} colour as a browser computes it */
function lightOf(colour) {
  const [red, green, blue, opacity = 1] = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  return blue === undefined || opacity === 0 ? null : 0.299 * red + 0.587 * green + 0.114 * blue;
}

/** A source that gives something a colour rarely knows in which theme it is read: its words stay readable. @param {Element} node @param {boolean} dark */
function keepReadable(node, dark) {
  const shapes = [...node.querySelectorAll(':is(rect, path, polygon, circle, ellipse)[style*="fill"]')];
  const [light] = shapes.map((shape) => lightOf(getComputedStyle(shape).fill)).filter((found) => found !== null);
  if (light === undefined || light > MIDDLE !== dark) return;
  const { color: ink } = getComputedStyle(stage);
  for (const text of /** @type {NodeListOf<SVGElement>} */ (node.querySelectorAll('text, tspan'))) {
    // Where its author chose that colour too, it stays.
    if (getComputedStyle(text).fill === ink) text.style.setProperty('fill', (dark ? COLOURS.light : COLOURS.dark).ink, 'important');
  }
}

addEventListener('message', ({ data, source }) => {
  if (source !== parent) return;
  // Only the page that frames this hears of it: the policy lets no other one do so.
  void drawn(data).then((answer) => parent.postMessage(answer, '*'));
});
parent.postMessage({ ready: true }, '*');
