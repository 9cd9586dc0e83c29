// What the page costs: on the wire, in frames, in time to open, in memory. Real Navi, real Chromium.
//
//   npm --prefix web run measure [-- --minutes N]     N: how long the last one streams (1)
//
// Needs `npm ci` here, and three programs by their paths in the environment: NAVI_BIN
// (a release build), FAKE_MODEL_BIN (the example `fake_model`), NAVI_FILL_BIN (`navi-bench-fill`).

import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';

import { logIn, newContext, startBrowser, Tab } from './harness/browser.js';
import { startModel } from './harness/model.js';
import { backendSettings, startNavi } from './harness/navi.js';
import { required } from './harness/program.js';

const { values: { minutes } } = parseArgs({ options: { minutes: { type: 'string', default: '1' } } });
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
/** 200 pieces a second, each a word of it. */
function pieces(ms) {
  const words = ANSWER.match(/\S+\s*/g);
  return Array.from({ length: ms / PIECE_MS }, (_, i) => [{ text: words[i % words.length] }, { delay_ms: PIECE_MS }]).flat();
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

/** What its JavaScript holds, in MiB, once the garbage is gone. */
async function heap(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable');
  await devtools.send('HeapProfiler.enable');
  await devtools.send('HeapProfiler.collectGarbage');
  const { metrics } = await devtools.send('Performance.getMetrics');
  await devtools.detach();
  return (metrics.find(({ name }) => name === 'JSHeapUsedSize').value / KIB / KIB).toFixed(1);
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
  for (let minute = 1; minute <= Number(minutes); minute += 1) {
    await model.script(pieces(2 * MINUTE_MS));
    await tab.send(`Minute ${minute}.`);
    await tab.stopButton.waitFor();
    const times = await frames(tab.page, MINUTE_MS);
    await tab.stopButton.click();
    await tab.idle();
    console.log(`streamed for ${minute} min: ${await heap(tab.page)} MiB, ${told(times)}`);
  }
  await window.context.close();
} finally {
  await browser.close();
  await navi.remove();
  await model.stop();
}
