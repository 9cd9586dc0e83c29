// People of one service, each with a browser of their own: what is theirs, what their browser is told, and what
// of somebody else's is found in it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { inflateRawSync } from 'node:zlib';

import { newContext, Tab } from './browser.js';
import { LIMIT_MS } from './program.js';

const ID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** Each panel with its tabs, and what tells that a tab is there. */
export const PANELS = {
  memory: [[null, 'fact']],
  permissions: [['rules', 'rules-empty'], ['log', 'log-entry'], ['extensions', 'tools-empty']],
  setup: [['models', 'model'], ['profiles', 'profile']],
  account: [['profile', 'account-name'], ['passkeys', 'passkey-make'], ['sign_ons', 'sign-on'], ['devices', 'device'], ['tokens', 'tokens-empty']],
  files: [[null, 'workspace-entry']],
  share: [[null, 'share-memory']],
};
export const PANELS_OF_ADMINS = {
  ...PANELS,
  setup: [['settings', 'setting'], ...PANELS.setup, ['diagnostics', 'check']],
  people: [['people', 'person'], ['powers', 'powers'], ['invitations', 'invitations-empty'], ['record', 'record-line']],
};

/** What in a path is somebody's. */
const PERSONAL = ['session_id', 'run_id', 'message_id', 'file_id', 'response_id', 'key'];

/** Somebody in a browser of their own. */
export class Person {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** A word that stands in all that is theirs, and nowhere else. */
    this.canary = `canary${randomBytes(8).toString('hex')}`;
    /** What their browser was sent, by the service and over its sockets. @type {{ from: string, text: string }[]} */
    this.heard = [];
    /** The ids of what is theirs. @type {Set<string>} */
    this.ids = new Set();
    /** What the paths of their own things are made of, by the names in the service's document. @type {Record<string, string>} */
    this.things = {};
  }

  /** Opens a browser at this address. */
  async arrive(browser, address) {
    this.address = address;
    this.context = await newContext(browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block' });
    await this.context.addInitScript(() => { if (location.protocol === 'http:') localStorage.setItem('navi.first_steps', 'done'); });
    this.faults = [];
    this.context.on('weberror', (error) => this.faults.push(`${error.error().stack ?? error.error()}`));
    this.context.on('response', (response) => {
      // What the browser has dropped again went to no page.
      if (response.url().startsWith(address)) response.text().then((text) => this.heard.push({ from: response.url(), text }), () => {});
    });
    const page = await this.context.newPage();
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => this.heard.push({ from: socket.url(), text: `${payload}` })));
    this.tab = new Tab(page);
    await page.goto(address);
  }

  part(id) {
    return this.tab.page.getByTestId(id);
  }

  /** A panel, at one of its tabs where it has some. */
  async open(panel, tab = null) {
    if (await this.part(panel).count() === 0) await this.part(`open-${panel}`).click();
    if (tab !== null) await this.part(`tab-${tab}`).click();
  }

  async close(panel) {
    await this.tab.page.keyboard.press('Escape');
    await this.part(panel).waitFor({ state: 'detached' });
  }

  /** Everything that can be read in the page now. */
  text() {
    return this.tab.page.locator('body').innerText();
  }

  /** Asks the service as their page does. The answer's bytes, or of a stream that does not end what came until there was something of theirs. */
  async ask(path, { method = 'GET', body } = {}) {
    const cookies = (await this.context.cookies(this.address)).map(({ name, value }) => `${name}=${value}`).join('; ');
    const key = await this.tab.page.evaluate(() => localStorage.getItem('navi.key'));
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error(`${path} has no end`)), LIMIT_MS);
    const isForm = body instanceof FormData;
    const answer = await fetch(new URL(path.slice(1), this.address), {
      method,
      redirect: 'manual',
      signal: stop.signal,
      headers: { cookie: cookies, 'x-navi-key': key, origin: new URL(this.address).origin, ...(isForm ? {} : { 'content-type': 'application/json' }) },
      body: isForm ? body : JSON.stringify(body),
    });
    const flows = answer.headers.get('content-type')?.startsWith('text/event-stream');
    const pieces = [];
    for await (const piece of answer.body ?? []) {
      pieces.push(piece);
      if (flows && Buffer.concat(pieces).includes(this.canary)) break;
    }
    clearTimeout(timer);
    stop.abort();
    const bytes = Buffer.concat(pieces);
    return { path, status: answer.status, bytes, text: `${JSON.stringify([...answer.headers])}\n${bytes.subarray(0, 2).equals(Buffer.from('PK')) ? unzipped(bytes) : bytes}` };
  }

  /** The same where it is answered, by JSON. */
  async json(path, request) {
    const { status, bytes } = await this.ask(path, request);
    assert.ok(status === 200 || status === 201, `${path}: ${status} ${bytes}`);
    return JSON.parse(bytes);
  }

  /** Waits until a part of the page is there whose name begins so. */
  shows(id) {
    return this.tab.page.locator(`[data-testid^="${id}"]`).first().waitFor();
  }

  /** Learns the ids of all that is theirs, as these paths tell them. */
  async collect(...paths) {
    for (const path of paths) for (const [id] of (await this.ask(path)).text.matchAll(ID)) this.ids.add(id);
  }
}

/** What there is of somebody in a text. `known` is what may stand there. */
export function tracesOf({ canary, name, ids }, text, known = []) {
  const marks = [canary, name, ...ids, ...[...ids].map((id) => id.replaceAll('-', ''))];
  return marks.filter((mark) => !known.includes(mark) && text.includes(mark));
}

/** What is in an archive, names and contents. @param {Buffer} bytes */
function unzipped(bytes) {
  const end = bytes.lastIndexOf('PK\x05\x06');
  let at = bytes.readUInt32LE(end + 16);
  const found = [];
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left -= 1) {
    assert.equal(bytes.subarray(at, at + 4).toString('latin1'), 'PK\x01\x02', 'a file of the archive');
    const [name, extra, comment] = [28, 30, 32].map((place) => bytes.readUInt16LE(at + place));
    const local = bytes.readUInt32LE(at + 42);
    const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const packed = bytes.subarray(from, from + bytes.readUInt32LE(at + 20));
    found.push(bytes.subarray(at + 46, at + 46 + name), bytes.readUInt16LE(at + 10) === 0 ? packed : inflateRawSync(packed));
    at += 46 + name + extra + comment;
  }
  return Buffer.concat(found).toString();
}

/**
 * What the service's document says can be asked for: each path, the names in it, and the query that it needs. With an
 * epoch that is none of its own a stream begins with all that there is.
 */
export async function readable(person) {
  const { paths } = await person.json('/api/openapi.json');
  return Object.entries(paths).filter(([, { get }]) => get !== undefined).map(([path, { get }]) => ({
    path,
    names: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
    query: (get.parameters ?? []).filter((it) => it.in === 'query' && (it.required || it.name === 'epoch')).map(({ name }) => name),
  }));
}

/** A path with things put into it. */
export function filled({ path, query }, things) {
  const put = (name, within) => {
    const value = things[`${path} ${name}`] ?? things[name];
    assert.notEqual(value, undefined, `${path} has a {${name}} that the test has nothing for`);
    return within(value);
  };
  const asked = query.map((name) => `${name}=${put(name, encodeURIComponent)}`).join('&');
  return path.replace(/\{(\w+)\}/g, (_, name) => put(name, encodeURIComponent)) + (asked && `?${asked}`);
}

/** The person's own things, with each of another's that a path names in the place of theirs, and with all of them; and what of the other's is asked for. */
export function exchanged({ path, names }, mine, theirs) {
  const personal = names.filter((name) => PERSONAL.includes(name));
  const choices = personal.length > 1 ? [...personal.map((name) => [name]), personal] : personal.map((name) => [name]);
  return choices.map((taken) => {
    const places = taken.flatMap((name) => [name, `${path} ${name}`]).filter((place) => place in theirs);
    const others = Object.fromEntries(places.map((place) => [place, theirs[place]]));
    return { things: { ...mine, ...others }, asked: Object.values(others) };
  });
}

/** Opens every panel of the page at each of its tabs, and gives what can be read there. @param {(text: string, where: string) => void} read */
export async function lookThrough(person, panels, read) {
  for (const [panel, tabs] of Object.entries(panels)) {
    for (const [tab, content] of tabs) {
      await person.open(panel, tab);
      await person.shows(content);
      read(await person.text(), `${panel} ${tab ?? ''}`);
    }
    await person.close(panel);
  }
}

/** A command that looks for all that it can reach when it is told to, and ends when it is told to. */
export const looksAround = (canary, data_dir) => `
wait_for() { while [ ! -e "$1" ]; do sleep 0.1; done; }
echo ${canary} begins
wait_for look
{ ps axww
  ls -laR "$PWD/.." "${data_dir}" .
  find / /tmp /var /root /home /dev /etc
  for process in /proc/[0-9]*; do tr '\\0' ' ' < "$process/cmdline"; tr '\\0' ' ' < "$process/environ"; ls -l "$process/cwd" "$process/fd"; done
  cat /proc/net/unix /proc/self/mountinfo "${data_dir}"/navi.db* "${data_dir}"/*/*/*
  grep -rhosa 'canar[y][0-9a-f]*' . "$PWD/.." "${data_dir}" /tmp /var/tmp /dev/shm
} > seen.txt 2>&1
echo ${canary} has looked
wait_for go
echo ${canary} is over`;
