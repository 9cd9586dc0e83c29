// Diagrams in answers: drawn where nothing of what they say can do anything, shown as pictures, and
// as code where they are none.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';

import { assertLooks } from './harness/looks.js';
import { world } from './harness/world.js';

const FLOW = 'flowchart TD\n  A[Read the notes] --> B{Are they whole?}\n  B -->|yes| C[Write the letter]\n  B -->|no| D[Ask Olha]\n  D --> A\n';
const fence = (source) => `\`\`\`mermaid\n${source}\`\`\`\n`;

const picture = (answer) => answer.getByTestId('diagram').locator('img');

/** Waits until it is drawn, and gives its size as it is shown. */
async function drawn(image) {
  await image.waitFor();
  await image.evaluate((element) => element.decode());
  return image.evaluate((element) => ({ width: element.clientWidth, height: element.clientHeight, own: element.naturalWidth }));
}

describe('a diagram', () => {
  const it_has = world();

  it('costs nothing where there is none', async () => {
    const { model, tab } = it_has;
    const asked = [];
    tab.page.on('request', (request) => asked.push(request.url()));
    await model.script([{ text: 'Code:\n\n```js\nlet a = 1;\n```\n\nThat is all.' }]);
    await tab.send('Write some code.');
    await tab.sees('That is all.');
    await tab.idle();
    await tab.answers.last().locator('.code-keyword').waitFor();
    assert.deepEqual(asked.filter((url) => /diagram|panels/.test(url)), []);
    assert.equal(tab.page.frames().length, 1);
  });

  it('is code while it comes, and a picture once its fence is closed, with its source a press away', async () => {
    const { model, tab, window } = it_has;
    await model.script([{ text: `So it goes:\n\n\`\`\`mermaid\n${FLOW}` }, { hold: 'fence' }, { text: '```\n' }, { hold: 'rest' }, { text: '\nDone.' }]);
    await tab.send('Draw it.');
    const answer = tab.answers.last();
    await answer.locator('pre').getByText('Ask Olha').waitFor();
    assert.equal(await answer.getByTestId('diagram').count(), 0);
    await model.release('fence');
    const image = picture(answer);
    const size = await drawn(image);
    assert.equal(await image.getAttribute('alt'), 'Flowchart');
    assert.ok(size.width > 100 && size.width === size.own && size.height > 100, JSON.stringify(size));
    await model.release('rest');
    await tab.sees('Done.');
    await tab.idle();

    await answer.getByTestId('diagram-source').click();
    assert.equal(`${await answer.locator('pre').innerText()}\n`, FLOW);
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await answer.locator('navi-diagram .copy').click();
    await tab.page.waitForFunction(async (flow) => `${await navigator.clipboard.readText()}\n` === flow, FLOW);
    await answer.getByTestId('diagram-source').click();
    await image.waitFor();

    await answer.getByTestId('picture').click();
    const large = tab.page.getByTestId('picture-panel');
    await large.waitFor();
    assert.ok((await drawn(large.locator('img'))).height > size.height);
    await tab.screenshot('diagram-large');
    await tab.page.keyboard.press('Escape');
    await large.waitFor({ state: 'detached' });
  });

  it('is drawn in the page\'s colours, and anew when these change', async () => {
    const { tab } = it_has;
    const image = picture(tab.answers.last());
    const sources = new Set();
    await assertLooks(tab, async (name) => {
      await tab.answers.last().locator(`[data-testid="diagram"][data-dark="${name.endsWith('dark')}"]`).waitFor();
      await drawn(image);
      sources.add(await image.getAttribute('src'));
      await tab.screenshot(`diagram-${name}`);
    });
    assert.equal(sources.size, 2);
    await tab.page.emulateMedia({ media: 'print' });
    assert.equal(await image.isVisible(), true);
    await tab.page.emulateMedia({ media: null });
  });

  it('tells its kind and its title in the language of the page', async () => {
    const { model, tab } = it_has;
    await model.script([{ text: `${fence('pie title Домашні тварини\n  "Коти" : 3\n  "Пси" : 2\n')}\n${fence('sequenceDiagram\n  Olha->>Navi: Ask\n  Navi-->>Olha: Tell\n')}\nSo it is.` }]);
    await tab.send('Draw two more.');
    await tab.sees('So it is.');
    await tab.idle();
    const images = picture(tab.answers.last());
    await drawn(images.nth(1));
    const alts = () => images.evaluateAll((all) => all.map(({ alt }) => alt));
    assert.deepEqual(await alts(), ['Pie chart: Домашні тварини', 'Sequence diagram']);
    await tab.page.evaluate(() => localStorage.setItem('navi.language', 'uk'));
    await tab.page.reload();
    await drawn(images.nth(1));
    assert.deepEqual(await alts(), ['Кругова діаграма: Домашні тварини', 'Діаграма послідовності']);
    await tab.screenshot('diagram-kinds');
    await tab.page.evaluate(() => localStorage.setItem('navi.language', 'en'));
    await tab.page.reload();
    await tab.ready();
  });

  it('that is none stays code, and says why', async () => {
    const { model, tab } = it_has;
    const broken = 'flowchart TD\n  A[Begin] --> B\n  B --> C[not closed\n';
    await model.script([{ text: `${fence(broken)}\n${fence('a poem\nof two lines\n')}\n${fence(`flowchart TD\n${'  A --> B\n'.repeat(2_100)}`)}\nThree.` }]);
    await tab.send('Draw what cannot be drawn.');
    await tab.sees('Three.');
    await tab.idle();
    const answer = tab.answers.last();
    // What shows diagrams comes anew after a reload.
    await answer.locator('navi-diagram').first().waitFor();
    // One that was only passed is not looked at.
    for (const diagram of await answer.locator('navi-diagram').all()) {
      await diagram.scrollIntoViewIfNeeded();
      await diagram.getByTestId('diagram-problem').waitFor();
    }
    const problems = answer.getByTestId('diagram-problem');
    assert.equal(await problems.count(), 3);
    const [line, unknown, size] = await problems.allInnerTexts();
    assert.equal(line, 'Shown as code: line 3 is not understood.');
    assert.match(unknown, /no kind of diagram/);
    assert.match(size, /20000 characters at most/);
    assert.equal(`${await answer.locator('pre').first().innerText()}\n`, broken);
    assert.equal(await answer.getByTestId('diagram').count(), 0);
    await answer.locator('navi-diagram').first().scrollIntoViewIfNeeded();
    await tab.screenshot('diagram-broken');
  });

  it('among many is drawn when somebody comes near it, by one frame', async () => {
    const { model, tab } = it_has;
    const many = Array.from({ length: 60 }, (_, i) => `Diagram ${i}:\n\n${fence(`flowchart LR\n  A${i} --> B${i}\n`)}\n`).join('');
    await model.script([{ text: `${many}All of them.` }]);
    await tab.send('Draw many.');
    await tab.sees('All of them.');
    await tab.idle();
    const answer = tab.answers.last();
    await drawn(answer.locator('navi-diagram').last().locator('img'));
    assert.ok(await answer.getByTestId('diagram').count() < 40, `${await answer.getByTestId('diagram').count()} are drawn`);
    assert.ok(tab.page.frames().length <= 2);
    const first = answer.locator('navi-diagram').first();
    await first.scrollIntoViewIfNeeded();
    await drawn(first.locator('img'));
    assert.equal(await first.locator('img').getAttribute('alt'), 'Flowchart');
    // What is out of sight has the new colours once somebody comes back to it.
    await tab.page.emulateMedia({ colorScheme: 'dark' });
    await first.locator('[data-dark="true"]').waitFor();
    assert.equal(await answer.locator('navi-diagram').last().locator('[data-dark="false"]').count(), 1);
    await answer.locator('navi-diagram').last().scrollIntoViewIfNeeded();
    await answer.locator('navi-diagram').last().locator('[data-dark="true"]').waitFor();
    await tab.page.emulateMedia({ colorScheme: 'light' });
  });
});

describe('a hostile diagram', () => {
  // What it tries, the policy of its frame refuses aloud.
  const it_has = world({ options: { expected: /content security policy: |Content Security Policy/ } });
  let spy;
  let asked = 0;
  before(async () => {
    spy = createServer((_, response) => {
      asked += 1;
      response.end();
    });
    await new Promise((done) => { spy.listen(0, '127.0.0.1', done); });
  });
  after(() => spy.close());

  it('runs nothing, and sends nothing', async () => {
    const { model, navi, tab } = it_has;
    const spied = `http://127.0.0.1:${spy.address().port}`;
    const out = [];
    tab.page.on('request', (request) => { if (new URL(request.url()).protocol !== 'data:' && !request.url().startsWith(new URL(navi.link).origin)) out.push(request); });
    const attacks = [
      'flowchart TD\n  A["<img src=x onerror=\'parent.postMessage(1); globalThis.pwned = 1\'>"] --> B["<script>globalThis.pwned = 1</script>"]\n  click A call alert("pwned")\n  click B href "javascript:globalThis.pwned=1"\n',
      `%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "@import url(${spied}/css); .node { background: url(${spied}/bg) }", "fontFamily": "x; } * { background: url(${spied}/font) }"}}%%\nflowchart TD\n  A["<img src='${spied}/label.png'/>"] --> B\n  classDef evil fill:url(${spied}/fill)\n  class B evil\n`,
      `---\nconfig:\n  securityLevel: loose\n---\nflowchart TD\n  A@{ img: "${spied}/shape.png", label: "A picture", w: 60, h: 60 } --> B\n`,
      'sequenceDiagram\n  participant A as <iframe src="javascript:globalThis.pwned=1"></iframe>\n  A->>A: <svg onload="globalThis.pwned=1">\n  link A: Here @ javascript:globalThis.pwned=1\n',
      'classDiagram\n  class A["<b onclick=globalThis.pwned=1>x</b>"]\n  link A "javascript:globalThis.pwned=1" "go"\n  callback A "globalThis.pwned=1"\n',
    ];
    await model.script([{ text: `${attacks.map(fence).join('\n')}\nThat was all.` }]);
    await tab.page.evaluate(() => document.addEventListener('securitypolicyviolation', ({ blockedURI }) => { globalThis.violated = blockedURI; }));
    await tab.send('Be hostile.');
    await tab.sees('That was all.');
    await tab.idle();
    const answer = tab.answers.last();
    const blocks = answer.locator('navi-diagram');
    // What shows diagrams comes with the first.
    await blocks.first().waitFor();
    assert.equal(await blocks.count(), attacks.length);
    for (const number of attacks.keys()) {
      const block = blocks.nth(number);
      await block.scrollIntoViewIfNeeded();
      await block.locator('[data-testid="diagram"] img, [data-testid="diagram-problem"]').waitFor();
      if (await block.getByTestId('diagram').count() > 0) {
        await drawn(block.locator('img'));
        await block.getByTestId('picture').click({ position: { x: 30, y: 30 } });
        await tab.page.getByTestId('picture-panel').waitFor();
        await tab.page.keyboard.press('Escape');
        await tab.page.getByTestId('picture-panel').waitFor({ state: 'detached' });
      }
    }
    assert.ok(await answer.getByTestId('diagram').count() > 0, 'some are drawn all the same');
    for (const frame of tab.page.frames()) assert.equal(await frame.evaluate(() => globalThis.pwned), undefined, frame.url());
    assert.equal(await tab.page.evaluate(() => globalThis.violated), undefined, 'the page itself was told to do something');
    // The picture is one: nothing of it is in the page's document.
    assert.equal(await answer.locator('navi-diagram :is(svg:not(.icon), script, iframe, a, foreignObject)').count(), 0);
    const left = [];
    for (const request of out) if (await request.response().catch(() => null) !== null) left.push(request.url());
    assert.deepEqual(left, []);
    assert.equal(asked, 0, 'a request left');
  });

  it('finds no page, no storage and no cookie around it', async () => {
    const { tab } = it_has;
    const frame = tab.page.frames().find((other) => other !== tab.page.mainFrame());
    assert.ok(frame !== undefined);
    const found = await frame.evaluate(async () => {
      const can = (use) => {
        try {
          use();
          return true;
        } catch {
          return false;
        }
      };
      return {
        origin: globalThis.origin,
        page: can(() => parent.document.title),
        storage: can(() => localStorage.length),
        cookie: can(() => document.cookie),
        network: await fetch('/api/status').then(() => true, () => false),
      };
    });
    assert.deepEqual(found, { origin: 'null', page: false, storage: false, cookie: false, network: false });
  });
});
