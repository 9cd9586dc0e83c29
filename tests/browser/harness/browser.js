// Chromium, and a page in it as a person sees it.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { chromium } from 'playwright-core';

import { LIMIT_MS } from './program.js';

const ARTIFACTS = process.env.NAVI_ARTIFACTS ?? join(tmpdir(), 'navi-artifacts');

/** Chromium. `more` are switches of its command line. */
export async function startBrowser(more = []) {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
  if (!existsSync(executablePath)) throw new Error(`no Chromium at ${executablePath}: install it, or name it in CHROMIUM`);
  const args = ['--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync', ...more];
  // Chromium's own sandbox refuses root.
  if (process.getuid?.() === 0) args.push('--no-sandbox');
  return chromium.launch({ executablePath, args });
}

/** A browser with a storage of its own. */
export async function newContext(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(LIMIT_MS);
  return context;
}

/**
 * A browser that has logged in by the link; each tab that is opened in it shares its cookie. Its user knows Navi
 * already, but for a `newcomer`; what it complains of and fits `expected` is the test's doing.
 */
export async function logIn(browser, navi, { newcomer = false, expected = null, ...options } = {}) {
  // What a test says of the page's requests would not hold for those of its worker. What moves costs a
  // browser without a graphics card an eighth of its time, and shows a test nothing.
  const context = await newContext(browser, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', serviceWorkers: 'block', ...options });
  const faults = [];
  // Reported as console errors by Chromium too, but only the event names the directive.
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      console.error(`content security policy: ${event.violatedDirective} blocked ${event.blockedURI}`);
    });
  });
  // A frame without an origin has no storage.
  if (!newcomer) await context.addInitScript(() => { if (location.protocol.startsWith('http') && origin !== 'null') localStorage.setItem('navi.first_steps', 'done'); });
  context.on('weberror', (error) => faults.push(`uncaught: ${error.error().stack ?? error.error()}`));
  context.on('console', (message) => {
    if (message.type() === 'error' && !isTheTestsDoing(message.text()) && !expected?.test(message.text())) faults.push(message.text());
  });

  const first = new Tab(await context.newPage());
  await first.page.goto(navi.link);
  await first.ready();
  return {
    context,
    first,
    /** Another tab, at the same place as the given one. */
    async tabBeside(tab) {
      const beside = new Tab(await context.newPage());
      await beside.page.goto(tab.page.url());
      await beside.ready();
      return beside;
    },
    /** Closes the browser's window; what the page complained of fails the test. */
    async close() {
      await context.close();
      assert.deepEqual(faults, [], 'the page logged errors');
    },
  };
}

/** A server that is killed or not there yet, or a file that is wrong or too large, is the test's doing; Chromium logs it all the same. */
function isTheTestsDoing(text) {
  return /ERR_CONNECTION_|WebSocket connection to .* failed|net::ERR_|status of 4(00|13)/.test(text);
}

/** One tab, by what a person finds in it. */
export class Tab {
  constructor(page) {
    this.page = page;
    this.composer = page.getByTestId('composer');
    this.sendButton = page.getByTestId('send');
    this.stopButton = page.getByTestId('stop');
    this.messages = page.getByTestId('message');
    this.answers = page.locator('[data-testid="message"][data-role="assistant"]');
    this.toolCards = page.getByTestId('tool-card');
    this.todo = page.getByTestId('todo');
    this.banner = page.getByTestId('banner');
    this.statusLine = page.getByTestId('status-line');
    this.errorCard = page.getByTestId('error-card');
    this.sessions = page.getByTestId('session-item');
    this.newSession = page.getByTestId('new-session');
    this.undo = page.getByTestId('undo');
    this.continueButton = page.getByTestId('continue');
    this.plan = page.getByTestId('plan');
    this.planSteps = page.getByTestId('plan-step');
    this.subagents = page.getByTestId('subagent');
  }

  async ready() {
    await this.composer.waitFor();
  }

  async send(text) {
    await this.composer.fill(text);
    await this.sendButton.click();
  }

  /** Waits until the newest answer shows this text. */
  async sees(text) {
    await this.answers.last().getByText(text).first().waitFor();
  }

  /** Waits until nothing runs any more. */
  async idle() {
    await this.stopButton.waitFor({ state: 'hidden' });
  }

  /**
   * The conversation as it can be read: who said it, which message it is, how it ended, and
   * every word of it and of its tools. Without the fold of the reasoning, which says how
   * long it took only to those who were there.
   */
  async conversation() {
    return this.messages.evaluateAll((messages) => {
      const words = (element, within) =>
        [...element.querySelectorAll(within)].map(({ textContent }) => textContent.replace(/\s+/g, ' ').trim());
      return messages.map((message) => ({
        role: message.dataset.role,
        id: message.dataset.messageId,
        state: message.dataset.state,
        text: words(message, '.bubble, .prose').join(' '),
        tools: words(message, '[data-testid="tool-card"]'),
      }));
    });
  }

  /** The statuses of the plan's steps, in order. */
  async steps() {
    return this.planSteps.evaluateAll((steps) => steps.map(({ dataset }) => dataset.status));
  }

  /** Opens what is folded: work, every subagent, the summary, the list of steps. */
  async unfold() {
    // What a subagent did has work to unfold, too.
    for (const testId of ['subagent-toggle', 'work', 'compression-toggle']) {
      for (const toggle of await this.page.getByTestId(testId).all()) {
        if ((await toggle.getAttribute('aria-expanded')) === 'false') await toggle.click();
      }
      await this.page.getByTestId('subagent-loading').first().waitFor({ state: 'detached' });
    }
    const todo = this.todo.locator('button[aria-expanded="false"]');
    if ((await todo.count()) > 0) await todo.click();
    await this.page.getByTestId('compression-divider').getByRole('status').first().waitFor({ state: 'detached' });
  }

  /**
   * All of the conversation as a screen reader reads it, and what scripts tell by: steps,
   * subagents, calls and dividers with their states. Times are left out: to those who watch,
   * an answer is as old as its first word, to those who come later as its last. How quick it came is
   * told only where the pointer is.
   */
  async look() {
    const conversation = this.page.getByTestId('conversation');
    const text = [await conversation.ariaSnapshot(), ...(await this.todo.allInnerTexts())].join('\n');
    const marks = await this.page
      .locator('[data-testid="message"], [data-testid="plan-step"], [data-testid="subagent"], [data-testid="tool-card"], [data-testid$="-divider"]')
      .evaluateAll((elements) => elements.map(({ dataset }) => ({ ...dataset })));
    return { marks, text: text.replace(/^ *- text: · .*first word after .*\n/gm, '').replace(/\btime: .*/g, 'time').replace(/\b\d+(\.\d+)? (ms|s)\b/g, 'TIME').replace(/Thought for TIME/g, 'Reasoning').split('\n') };
  }

  /** Waits until the whole of it looks as expected: pieces are drawn one after the other. */
  async looksLike(expected) {
    const end = Date.now() + LIMIT_MS;
    for (;;) {
      const look = await this.look();
      if (isDeepStrictEqual(look, expected)) return;
      if (Date.now() > end) assert.deepEqual(look, expected);
    }
  }

  /** Waits until the condition on the conversation holds, and gives the conversation. */
  async conversationWhere(holds) {
    const end = Date.now() + LIMIT_MS;
    for (;;) {
      const conversation = await this.conversation();
      if (holds(conversation)) return conversation;
      if (Date.now() > end) assert.fail(`not in time: ${JSON.stringify(conversation, null, 1)}`);
      // The page's own next frame: what it shows cannot change in between.
      await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    }
  }

  async screenshot(name) {
    await mkdir(ARTIFACTS, { recursive: true });
    // What moves is drawn where it comes to rest.
    await this.page.screenshot({ path: join(ARTIFACTS, `${name}.png`), animations: 'disabled' });
  }
}
