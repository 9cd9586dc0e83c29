#!/usr/bin/env node
// Talks with Navi in a session, with Node alone.
//
//     NAVI_TOKEN=… node talk.mjs "What is on my desk?" [SESSION]
//
// The token is what `navi token add NAME` prints. The answer is printed as it comes. Where Navi asks
// whether she may do something, answer y or n; Ctrl-C stops her.

import { createInterface } from 'node:readline';

const { NAVI_URL = 'http://127.0.0.1:8000', NAVI_TOKEN } = process.env;
const [text, known] = process.argv.slice(2);

async function request(method, path, body) {
  const response = await fetch(NAVI_URL + path, {
    method,
    headers: { authorization: `Bearer ${NAVI_TOKEN}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error((await response.json()).message);
  return response;
}

/** What happens in the session from here on, one event after the other. */
async function* told(response) {
  let rest = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6));
  }
}

/** The next line that the person writes. */
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Prints the answer, and asks about what has to be allowed, until the run ends. */
async function follow(session, events) {
  for await (const event of told(events)) {
    const isChild = 'parent_run_id' in event;
    if (event.type === 'stream_delta' && !isChild) {
      process.stdout.write(event.delta);
    } else if (event.type === 'approval_requested') {
      console.error(`\nMay Navi ${event.request.summary}? [y/n]`);
      const { value } = await answers.next();
      await request('POST', `/sessions/${session}/approvals/${event.approval_id}`, { decision: value === 'y' ? 'allow' : 'deny' });
    } else if (event.type === 'error' && !event.recoverable) {
      throw new Error(event.message);
    } else if (['stream_end', 'stream_stopped', 'run_interrupted'].includes(event.type) && !isChild) {
      console.log();
      return;
    }
  }
}

try {
  const session = known ?? (await (await request('POST', '/sessions', {})).json()).session_id;
  console.error(`session ${session}`);
  process.once('SIGINT', async () => {
    await request('POST', `/sessions/${session}/stop`);
    console.error('\nstopped');
    process.exit(130);
  });
  const events = await request('GET', `/sessions/${session}/events`);
  // Answers when the run is done; what comes meanwhile, the events tell.
  const done = request('POST', `/sessions/${session}/messages`, { content: text, consent: 'ask' });
  await Promise.all([done, follow(session, events)]);
  process.exit(0);
} catch (error) {
  console.error(`\n${error.message}`);
  process.exit(1);
}
