// What the page costs: on the wire, in frames, in time to open, in memory. Real Navi, real Chromium.
//
//   npm --prefix web run measure [-- --minutes N] [--hour]
//
// `--minutes`: how long the last one streams (1). `--hour`: then as many words as an hour of 50 a second has, as quickly
// as they come, and what the page holds afterwards beside a page that reads the same conversation anew.
//
// Needs `npm ci` here, and three programs by their paths in the environment: NAVI_BIN
// (a release build), FAKE_MODEL_BIN (the example `fake_model`), NAVI_FILL_BIN (`navi-bench-fill`).

import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';

import { logIn, newContext, startBrowser, Tab } from './harness/browser.js';
import { startModel } from './harness/model.js';
import { backendSettings, startNavi } from './harness/navi.js';
import { required } from './harness/program.js';

const { values: { minutes, hour } } = parseArgs({ options: { minutes: { type: 'string', default: '1' }, hour: { type: 'boolean', default: false } } });
/** 1.6 Mbit down, 750 kbit up, 150 ms there and back. */
const SLOW_LINE = { offline: false, downloadThroughput: 200_000, uploadThroughput: 93_750, latency: 150 };
const FAST_LINE = { offline: false, downloadThroughput: -1, uploadThroughput: -1, latency: 0 };
/** An answer as models give them, said over and over. */
const ANSWER = `## What the harbour needs

The old wall holds, but its **eastern end** has moved by \`12 mm\` since spring; see [the survey](https://example.org/survey). Nothing
of that is urgent, and all of it gets dearer with each winter.

1. Measure once more, before the storms.
2. Ask two companies what they would do:
   - the one that built it,
   - and one that did not.
3. Decide in *January*.

| part | state | cost |
| --- | --- | --: |
| wall | holds | 12,000 |
| gate | rusty | 3,400 |

\`\`\`python
def cost(parts):
    return sum(part.price for part in parts if part.state != "holds")
\`\`\`

> The sea always wins; the question is when.

`;
const PIECE_MS = 5;
/** So many words of it, with as long after each. */
function words(count, delay_ms) {
  const all = ANSWER.match(/\S+\s*/g);
  return Array.from({ length: count }, (_, i) => [{ text: all[i % all.length] }, { delay_ms }]).flat();
}
/** 200 pieces a second. */
const pieces = (ms) => words(ms / PIECE_MS, PIECE_MS);
/** An hour of 50 words a second, in answers that a page reads all at once. */
const HOUR = { answers: 40, words: 4_500 };
/** 500 lines of code a second, in one fence. */
function fence(ms) {
  const lines = Array.from({ length: ms / PIECE_MS * 2.5 }, (_, i) => `    total += parts[${i}].price * factor(${i}); // and its share\n`);
  return [{ text: '```js\n' }, ...Array.from({ length: ms / PIECE_MS }, (_, i) => [{ text: lines.slice(i * 2.5, (i + 1) * 2.5).join('') }, { delay_ms: PIECE_MS }]).flat()];
}
const STREAMED_MS = 10_000;
const MINUTE_MS = 60_000;
const KIB = 1024;

/** Loads the page, and tells what took the wire until it could be used. */
async function visit(context, address, line) {
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  const bytes = new Map();
  devtools.on('Network.requestWillBeSent', ({ requestId }) => bytes.set(requestId, 0));
  devtools.on('Network.webSocketCreated', ({ requestId }) => bytes.set(requestId, 0));
  devtools.on('Network.responseReceived', ({ requestId, response }) => response.fromDiskCache && bytes.delete(requestId));
  devtools.on('Network.requestServedFromCache', ({ requestId }) => bytes.delete(requestId));
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => bytes.has(requestId) && bytes.set(requestId, encodedDataLength));
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', line);
  const begun = performance.now();
  await page.goto(address);
  await new Tab(page).ready();
  const ms = Math.round(performance.now() - begun);
  await page.waitForLoadState('networkidle');
  await page.close();
  return `${bytes.size} requests, ${Math.round([...bytes.values()].reduce((sum, part) => sum + part, 0) / KIB)} KiB, usable after ${ms} ms`;
}

async function wire(browser, navi, state) {
  const address = `${new URL(navi.link).origin}/`;
  for (const [name, line] of [['fast line', FAST_LINE], ['1.6 Mbit/s, 150 ms', SLOW_LINE]]) {
    // The page's worker sends on what the page asks for (`offline.test.js`): its requests would be counted twice.
    const context = await newContext(browser, { storageState: state, serviceWorkers: 'block' });
    for (const time of ['first visit', 'second visit']) console.log(`${name}, ${time}: ${await visit(context, address, line)}`);
    await context.close();
  }
}

/** The times between frames while something happens. */
const frames = (page, ms) => page.evaluate((length) => new Promise((done) => {
  const times = [];
  let last = performance.now();
  const end = last + length;
  requestAnimationFrame(function frame(now) {
    times.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(frame);
    else done(times.slice(1));
  });
}), ms);

/** Opens a conversation from the list: until its end is drawn, in ms. */
const open = (page, id) => page.evaluate((session) => new Promise((done) => {
  const begun = performance.now();
  location.hash = `#/s/${session}`;
  requestAnimationFrame(function look() {
    const drawn = document.querySelector('[data-testid="conversation"]') !== null && document.querySelector('navi-message navi-markdown > *') !== null;
    if (drawn) requestAnimationFrame(() => done(performance.now() - begun));
    else requestAnimationFrame(look);
  });
}), id);

/** What its JavaScript holds, in MiB, once the garbage is gone, and how many nodes there are. */
async function held(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable');
  await devtools.send('HeapProfiler.enable');
  // What the first round let go of may have kept something else.
  for (let round = 0; round < 2; round += 1) await devtools.send('HeapProfiler.collectGarbage');
  const { metrics } = await devtools.send('Performance.getMetrics');
  await devtools.detach();
  const value = (wanted) => metrics.find(({ name }) => name === wanted).value;
  return { mib: (value('JSHeapUsedSize') / KIB / KIB).toFixed(1), nodes: value('Nodes') };
}
const heap = async (page) => (await held(page)).mib;

/** What grows with the text itself a page holds that reads it anew; what is more was not let go of. */
async function hourOf(model, tab) {
  const said = async (what) => {
    const { mib, nodes } = await held(tab.page);
    console.log(`${HOUR.answers * HOUR.words} words, ${what}: ${mib} MiB, ${nodes} nodes`);
  };
  await tab.newSession.click();
  for (let answer = 1; answer <= HOUR.answers; answer += 1) {
    const end = `That was answer ${answer}.`;
    await model.script([...words(HOUR.words, 1), { text: `\n\n${end}` }]);
    await tab.send(`Answer ${answer}.`);
    await tab.sees(end);
    await tab.idle();
  }
  await said('as they came');
  await tab.page.reload();
  await tab.sees(`That was answer ${HOUR.answers}.`);
  await said('read anew');
}

function told(times) {
  const sorted = times.toSorted((a, b) => a - b);
  return `${times.length} frames, p95 ${sorted[Math.floor(sorted.length * 0.95)].toFixed(1)} ms, worst ${sorted.at(-1).toFixed(1)} ms, ${times.filter((ms) => ms > 50).length} over 50 ms`;
}

const model = await startModel();
const navi = await startNavi({ ...backendSettings('ollama', model.address) });
const browser = await startBrowser();
try {
  await navi.stop();
  const sessions = [];
  for (const messages of [200, 2_000, 10_000]) {
    const { stdout } = await promisify(execFile)(required('NAVI_FILL_BIN'), [navi.dataDir, '--sessions', '1', '--messages', String(messages)]);
    sessions.push({ messages, id: stdout.trim() });
  }
  await navi.start();
  const window = await logIn(browser, navi);
  const tab = window.first;
  await wire(browser, navi, await window.context.storageState());
  for (const { messages, id } of sessions) {
    const ms = await open(tab.page, id);
    await tab.ready();
    console.log(`${messages} messages: opened in ${ms.toFixed(0)} ms, ${await heap(tab.page)} MiB`);
    if (messages > 2_000) continue;
    await model.script(pieces(2 * STREAMED_MS));
    await tab.send('Tell me all of it.');
    await tab.stopButton.waitFor();
    console.log(`${messages} messages, 200 pieces a second: ${told(await frames(tab.page, STREAMED_MS))}`);
    await tab.stopButton.click();
    await tab.idle();
  }
  await tab.newSession.click();
  await model.script(fence(2 * STREAMED_MS));
  await tab.send('Write it as code.');
  await tab.stopButton.waitFor();
  console.log(`a fence that grows to 5,000 lines: ${told(await frames(tab.page, STREAMED_MS))}`);
  await tab.stopButton.click();
  await tab.idle();
  await tab.newSession.click();
  for (let minute = 1; minute <= Number(minutes); minute += 1) {
    await model.script(pieces(2 * MINUTE_MS));
    await tab.send(`Minute ${minute}.`);
    await tab.stopButton.waitFor();
    const times = await frames(tab.page, MINUTE_MS);
    await tab.stopButton.click();
    await tab.idle();
    console.log(`streamed for ${minute} min: ${await heap(tab.page)} MiB, ${told(times)}`);
  }
  if (hour) await hourOf(model, tab);
  await window.context.close();
} finally {
  await browser.close();
  await navi.remove();
  await model.stop();
}
