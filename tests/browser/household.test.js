// Two people in one service, at once: both write, send files, have something remembered, run commands and approve them, and
// neither finds a trace of the other, wherever they look. Then one shares a conversation, and both watch one run.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { authenticator } from './harness/authenticator.js';
import { startBrowser } from './harness/browser.js';
import { exchanged, filled, lookThrough, looksAround, PANELS, PANELS_OF_ADMINS, Person, readable, tracesOf } from './harness/household.js';
import { startModel } from './harness/model.js';
import { backendSettings, freePort, startNavi } from './harness/navi.js';
import { providerSettings, signInThere, startProvider } from './harness/provider.js';

const PASSWORD = 'a window by the river';
/** Where an admin manages people. */
const MANAGED = /people|powers|record/;
/** What is for admins alone. */
const ADMINS = ['/api/diagnostics', '/api/invitations', '/api/people', '/api/powers', '/api/record', '/api/record/export', '/api/settings', '/extensions', '/mcp/{name}', '/metrics'];
/** What answers otherwise to who asks for it so. */
const OTHERWISE = { '/api/mcp': 406, '/mcp/{name}': 404, '/sessions/{session_id}/remote-image': 404, '/api/shared': 400, '/api/shared/events': 400, '/api/sign-on/callback': 303, '/login/{secret}': 303 };
const call = (name, args) => ({ tool_call: { name, arguments: args } });

describe('a household', () => {
  const solomiya = new Person('Solomiya');
  const bohdan = new Person('bohdan');
  const both = [solomiya, bohdan];
  const otherThan = (person) => both.find((other) => other !== person);
  let model, navi, provider, browser, routes, picture;

  /** An admin knows whom they manage, where they do. */
  const known = (person, where) => (person === solomiya && MANAGED.test(where) ? [bohdan.name, bohdan.account] : []);
  const assertNothing = (person, text, where) => assert.deepEqual(tracesOf(otherThan(person), text, known(person, where)), [], `${where}: of another, for ${person.name}`);
  const folder = ({ account, things }) => join(navi.dataDir, 'session_files', account, things.session_id);
  const atOnce = (does) => Promise.all(both.map(does));

  before(async () => {
    model = await startModel();
    const [here, there] = [await freePort(), await freePort()];
    // Passkeys are at a name, and nowhere else.
    provider = await startProvider({ port: there, page: `http://localhost:${here}/` });
    navi = await startNavi({
      ...backendSettings('ollama', model.address), ...providerSettings(provider),
      LLM_PARALLEL: '4', NAVI_CONSENT_MODE: 'ask', NAVI_SIGN_ON_JOIN: 'user', NAVI_METRICS: 'on',
    }, { port: here });
    browser = await startBrowser();
  });
  after(async () => {
    try {
      for (const { name, faults } of both) assert.deepEqual(faults ?? [], [], `the page of ${name}`);
      assert.deepEqual(await model.violations(), [], 'the model was sent a broken history');
    } finally {
      await browser?.close();
      await navi?.remove();
      await provider?.stop();
      await model?.stop();
    }
  });

  it('one signs in by password, and then by passkey', async () => {
    await solomiya.arrive(browser, provider.page);
    const { tab } = solomiya;
    await tab.page.goto(navi.link);
    await tab.ready();
    await solomiya.part('choose-password').click();
    await solomiya.part('account-new-name').fill(solomiya.name);
    await solomiya.part('account-password').fill(PASSWORD);
    await tab.page.keyboard.press('Enter');
    await solomiya.part('account-name').filter({ hasText: solomiya.name }).waitFor();
    const signOut = async () => {
      await solomiya.open('account', 'profile');
      await solomiya.part('sign-out').click();
      await solomiya.part('sign-in').waitFor();
    };
    await signOut();
    await solomiya.part('signin-name').fill(solomiya.name);
    await solomiya.part('signin-password').fill(PASSWORD);
    await solomiya.part('signin-submit').click();
    await tab.ready();
    await authenticator(tab);
    await solomiya.open('account', 'passkeys');
    await solomiya.part('passkey-password').fill(PASSWORD);
    await solomiya.part('passkey-make').click();
    await solomiya.part('passkey').waitFor();
    await signOut();
    await solomiya.part('signin-passkey').click();
    await tab.ready();
  });

  it('the other by a provider, and is granted commands', async () => {
    await bohdan.arrive(browser, provider.page);
    await bohdan.part('signin-provider').click();
    await signInThere(bohdan.tab.page, bohdan.name);
    await bohdan.tab.ready();
    await solomiya.open('people', 'powers');
    const his = solomiya.tab.page.locator(`[data-testid="powers"][data-name="${bohdan.name}"]`);
    await his.locator('summary').click();
    await his.locator('[data-testid="power"][value="terminal"]').check();
    await his.getByTestId('powers-told').filter({ hasText: 'Commands' }).waitFor();
    await solomiya.close('people');
    for (const person of both) person.account = (await person.json('/api/account')).id;
  });

  it('both write and send files, and both runs go at once', async () => {
    picture = Buffer.from(await solomiya.tab.page.evaluate(() => {
      const canvas = document.createElement('canvas');
      return canvas.toDataURL('image/png').replace(/^.*,/, '');
    }), 'base64');
    for (const { canary } of both) {
      await model.script(
        { when: canary, with_tools: true, results: 0, steps: [{ text: `${canary} is read. ` }, { hold: 'both' }, call('memory_save', { category: 'people', key: canary, value: `${canary} is remembered` })] },
        { when: canary, with_tools: true, results: 1, steps: [call('terminal', { action: 'run', command: looksAround(canary, navi.dataDir), timeout_seconds: 600 })] },
        { when: canary, with_tools: true, results: 2, steps: [{ text: `${canary} is answered.` }] },
      );
    }
    await atOnce(async ({ tab, canary }) => {
      await tab.page.getByTestId('file-input').setInputFiles([
        { name: `${canary}.txt`, mimeType: 'text/plain', buffer: Buffer.from(`${canary} is in the file\n`) },
        { name: `${canary}.png`, mimeType: 'image/png', buffer: picture },
      ]);
      await tab.page.locator('[data-testid="upload"][data-state="waiting"]').waitFor();
      await tab.page.getByTestId('preview').waitFor();
      await tab.send(`Read ${canary}`);
    });
    // Both have begun, and neither goes on.
    await atOnce(({ tab, canary }) => tab.sees(`${canary} is read.`));
    for (const { tab } of both) assert.ok(await tab.stopButton.isVisible());
    await model.release('both');
    for (const { tab, things } of both) things.session_id = new URL(tab.page.url()).hash.split('/')[2];
  });

  it('both are asked at once, and each approves what is theirs', async () => {
    for (const tool of ['memory_save', 'terminal']) {
      await atOnce(async (person) => {
        const asked = person.part('approval');
        await person.tab.page.locator(`[data-testid="approval"][data-tool="${tool}"]`).waitFor();
        assert.equal(await asked.count(), 1);
        assertNothing(person, await asked.innerText(), 'what is asked');
        // A long one is read to its end before it can be allowed.
        await asked.locator('.approval-scroll').evaluate((box) => box.scrollTo(0, box.scrollHeight));
        await person.tab.page.locator('[data-testid="approve-once"][aria-disabled="false"]').waitFor();
      });
      await atOnce((person) => person.part('approve-once').click());
    }
    await atOnce(({ tab, canary }) => tab.page.getByTestId('output-text').getByText(`${canary} begins`).waitFor());
  });

  it('commands of both run side by side, and neither sees the other’s files and processes', async () => {
    await atOnce((person) => writeFile(join(folder(person), 'look'), ''));
    // They look through the whole disk.
    await atOnce(({ tab, canary }) => tab.page.getByTestId('output-text').getByText(`${canary} has looked`).waitFor({ timeout: 600_000 }));
    await atOnce((person) => writeFile(join(folder(person), 'go'), ''));
    await atOnce(async ({ tab, canary }) => {
      await tab.sees(`${canary} is answered.`);
      await tab.idle();
    });
    for (const person of both) {
      const { text } = await person.ask(`/sessions/${person.things.session_id}/workspace/file?path=seen.txt`);
      assert.match(text, new RegExp(`echo ${person.canary} begins`), 'it sees its own process');
      assert.match(text, new RegExp(`^\\./uploads:$[^]*^${person.canary}$`, 'm'), 'and its own file');
      assert.match(text, /Permission denied/);
      person.seen = text;
    }
  });

  it('both come by a door, too', async () => {
    await atOnce(async (person) => {
      const { things, canary } = person;
      const session = `/sessions/${things.session_id}`;
      const { id, conversation } = await person.json('/v1/responses', { method: 'POST', body: { model: 'navi', input: `${canary} by a door` } });
      const form = new FormData();
      form.append('file', new Blob([picture], { type: 'image/png' }), `${canary}.png`);
      await person.json(`${session}/files`, { method: 'POST', body: form });
      const { files } = await person.json(`${session}/files`);
      const { messages } = await person.json(session);
      const [text, image] = [false, true].map((kind) => files.find((file) => file.image === kind));
      Object.assign(things, {
        run_id: messages[0].run_id, message_id: messages[0].id, before: messages.at(-1).id, epoch: 0,
        file_id: text.file_id, path: 'seen.txt',
        '/sessions/{session_id}/files/{file_id}/image file_id': image.file_id,
        '/sessions/{session_id}/workspace/image path': image.path,
        '/sessions/{session_id}/messages/{message_id}/images/{n} n': 0,
        category: 'people', key: canary, response_id: id, n: 1, id: 'secretary', model: 'navi', secret: '0'.repeat(64), q: canary,
        name: 'nobody', url: 'http://127.0.0.1:1/picture.png',
      });
      person.ids.add(id).add(conversation.id);
      await person.collect('/sessions', session, ...['approvals', 'files', 'runs', 'people'].map((part) => `${session}/${part}`),
        `/runs/${things.run_id}`, '/consent/log', '/memory', '/api/account/devices');
    });
    assert.deepEqual([...solomiya.ids].filter((id) => bohdan.ids.has(id)), [], 'what is of one alone');
    for (const person of both) assert.ok(person.ids.has(person.things.session_id) && person.ids.has(person.account), `${[...person.ids]}`);
    for (const person of both) assertNothing(person, person.seen, 'what commands saw');
  });

  it('the model was asked for each of them alone, and the log has nothing of either', async () => {
    const asked = (await model.calls()).map((one) => JSON.stringify(one));
    const whose = asked.map((one) => both.filter((person) => tracesOf(person, one).length > 0).map(({ name }) => name));
    assert.deepEqual(whose.filter((names) => names.length !== 1), []);
    for (const { name } of both) assert.ok(whose.filter(([one]) => one === name).length >= 6, `${whose}`);
    const log = navi.output().join('\n');
    assert.match(log, /run begins/);
    for (const { canary } of both) assert.ok(!log.includes(canary), log);
  });

  it('neither finds the other in the page: in no panel, and by no search', async () => {
    await atOnce(async (person) => {
      const { tab } = person;
      assertNothing(person, await person.text(), 'the page');
      await tab.sessions.nth(1).waitFor();
      assert.equal(await tab.sessions.count(), 2);
      await lookThrough(person, person === solomiya ? PANELS_OF_ADMINS : PANELS, (text, where) => assertNothing(person, text, where));
      await person.part('session-search').fill(otherThan(person).canary);
      await person.part('search-empty').waitFor();
      await person.part('session-search').fill(person.canary);
      await person.part('search-hit').first().waitFor();
      assertNothing(person, await person.text(), 'search');
      await person.part('session-search').fill('');
      await person.part('open-palette').click();
      await person.part('palette-input').fill(otherThan(person).canary);
      await person.part('palette-empty').waitFor();
      await person.close('palette');
      assertNothing(person, await tab.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage })), 'what the browser keeps');
    });
  });

  it('nor in anything that their browsers were sent, over the sockets above all', async () => {
    for (const person of both) {
      const events = person.heard.filter(({ from }) => from.startsWith('ws:'));
      assert.ok(events.filter(({ text }) => text.includes(person.canary)).length > 10, 'their own is there');
      // What was searched for is in its own address alone.
      for (const { from, text } of person.heard) assertNothing(person, text, new URL(from).pathname);
    }
    // Whoever knows where it is finds nothing there.
    await atOnce(async (person) => {
      const before = person.heard.length;
      await person.tab.page.goto(`${provider.page}#/s/${otherThan(person).things.session_id}`);
      await person.tab.errorCard.waitFor();
      const { canary, name } = otherThan(person);
      for (const text of [await person.text(), ...person.heard.slice(before).map((one) => one.text)]) assert.deepEqual(tracesOf({ canary, name, ids: [] }, text), []);
      await person.tab.page.goto(`${provider.page}#/s/${person.things.session_id}`);
      await person.tab.sees(`${person.canary} is answered.`);
    });
  });

  it('nor by whatever the API can be asked for', async () => {
    routes = await readable(solomiya);
    assert.ok(routes.length > 60, `${routes.length}`);
    await atOnce(async (person) => {
      const theirs = otherThan(person).things;
      for (const route of routes) {
        const { status, text, bytes } = await person.ask(filled(route, person.things));
        const expected = person === bohdan && ADMINS.includes(route.path) ? 403 : OTHERWISE[route.path] ?? 200;
        assert.equal(status, expected, `${route.path}: ${bytes}`);
        assertNothing(person, text, route.path);
        for (const { things, asked } of exchanged(route, person.things, theirs)) {
          const refused = await person.ask(filled(route, things));
          assert.equal(refused.status, 404, `${refused.path}, for ${person.name}: ${refused.bytes}`);
          // What was asked for may be named.
          assertNothing(person, asked.reduce((told, name) => told.replaceAll(name, ''), refused.text), route.path);
        }
      }
      const found = await person.ask(`/search?q=${theirs.q}`);
      assertNothing(person, found.text, '/search');
    });
  });

  it('one shares a conversation, and both watch one run, word for word, each message with who wrote it', async () => {
    await solomiya.open('share');
    await solomiya.part('share-name').fill(bohdan.name);
    await solomiya.tab.page.keyboard.press('Enter');
    await solomiya.part('share-person').filter({ hasText: bohdan.name }).waitFor();
    await solomiya.close('share');
    // Who wrote what is said once the list has heard that it is shared.
    await solomiya.part('shared-badge').filter({ hasText: bohdan.name }).waitFor();
    await bohdan.part('session-shared').filter({ hasText: solomiya.name }).waitFor();
    await bohdan.tab.sessions.filter({ has: bohdan.part('session-shared') }).locator('a').click();
    await bohdan.tab.sees(`${solomiya.canary} is answered.`);
    for (const [writer, others] of [[bohdan, [[bohdan.name], [solomiya.name]]], [solomiya, [[bohdan.name], [solomiya.name, solomiya.name]]]]) {
      await model.script([{ text: `For ${writer.name} the first half, ` }, { hold: `half-${writer.name}` }, { text: `and the second for ${writer.name}.` }]);
      await writer.tab.send(`${writer.name} asks before both`);
      for (const { tab } of both) {
        await tab.sees(`For ${writer.name} the first half,`);
        await tab.page.getByText(`${writer.name} asks before both`).first().waitFor();
      }
      const halves = await atOnce(({ tab }) => tab.answers.last().innerText());
      for (const half of halves) assert.ok(half.includes('the first half') && !half.includes('and the second'), half);
      await model.release(`half-${writer.name}`);
      await atOnce(async ({ tab }) => {
        await tab.sees(`and the second for ${writer.name}.`);
        await tab.idle();
      });
      assert.deepEqual(await atOnce((person) => person.part('author').allInnerTexts()), others);
    }
    for (const { tab } of both) await tab.unfold();
    assert.deepEqual(await bohdan.tab.conversation(), await solomiya.tab.conversation());
    await solomiya.tab.screenshot('household-hers');
    await bohdan.tab.screenshot('household-his');
    // What she did not share is not there.
    const { text } = await bohdan.ask('/sessions');
    assert.ok(!text.includes(solomiya.things.response_id.slice(5, 37)));
    assert.deepEqual(tracesOf({ ...solomiya, name: '', ids: [] }, (await bohdan.ask('/memory')).text).filter(Boolean), []);
  });
});
