// The programs of examples/clients, as a person runs them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { required, startProgram } from '../browser/harness/program.js';

const KEY = 'a-token-of-the-tests';
const example = (name) => fileURLToPath(new URL(`../../examples/clients/${name}`, import.meta.url));
const PROGRAMS = {
  Python: ['python3', example('talk.py')],
  JavaScript: [process.execPath, example('talk.mjs')],
  curl: ['bash', example('talk.sh')],
  Rust: [required('TALK_BIN')],
};
const WRITES = { tool_call: { name: 'terminal', arguments: { command: 'echo 1 > a.txt' } } };

let model, navi, url;
before(async () => {
  model = await startModel();
  navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY, NAVI_CONSENT_MODE: 'ask', LLM_PARALLEL: '8' });
  url = new URL(navi.link).origin;
});
after(async () => {
  await navi?.remove();
  await model?.stop();
});

/** Starts one of them. */
function talk([program, ...args], text, session, token = KEY) {
  const more = session === undefined ? [] : [session];
  return startProgram(program, { args: [...args, text, ...more], env: { NAVI_URL: url, NAVI_TOKEN: token } });
}

for (const [language, program] of Object.entries(PROGRAMS)) {
  describe(`the example for ${language}`, () => {
    it('tells an answer while it comes, and goes on in its session', async () => {
      await model.script([{ text: 'First.\n' }, { hold: language }, { text: 'Second.' }], [{ text: 'Third.' }]);
      const begun = talk(program, 'Begin.');
      const [, session] = await begun.line(/^session (\S+)$/);
      await begun.line(/^First\.$/);
      await model.release(language);
      await begun.line(/^Second\.$/);
      assert.equal(await begun.exited, 0);
      const again = talk(program, 'Go on.', session);
      await again.line(/^Third\.$/);
      assert.equal(await again.exited, 0);
      const asked = (await model.runCallsWhere(() => true)).at(-1).body.messages;
      assert.ok(JSON.stringify(asked).includes('Second.'), 'the session has what was said before');
    });

    it('answers what is asked', async () => {
      for (const said of ['y', 'n']) {
        await model.script([WRITES], [{ text: `After ${said}.` }]);
        const asking = talk(program, 'Write it.');
        await asking.line(/^May Navi .*a\.txt.*\? \[y\/n\]$/);
        asking.say(said);
        await asking.line(new RegExp(`^After ${said}\\.$`));
        assert.equal(await asking.exited, 0);
        const asked = (await model.runCallsWhere(() => true)).at(-1).body.messages;
        const { content } = asked.filter(({ role }) => role === 'tool').at(-1);
        assert.equal(/^the user did not allow this/.test(content), said === 'n', content);
      }
    });

    it('stops her with Ctrl-C', async () => {
      await model.script([{ text: 'Long.\n' }, { hold: `${language} for ever` }]);
      const stopped = talk(program, 'Talk.');
      const [, session] = await stopped.line(/^session (\S+)$/);
      await stopped.line(/^Long\.$/);
      stopped.signal('SIGINT');
      await stopped.line(/^stopped$/);
      assert.equal(await stopped.exited, 130);
      const response = await fetch(`${url}/sessions/${session}`, { headers: { authorization: `Bearer ${KEY}` } });
      const { messages } = await response.json();
      assert.deepEqual([messages.at(-1).content, messages.at(-1).state], ['Long.\n', 'stopped']);
    });

    it('says what was wrong', async () => {
      const refused = talk(program, 'Hello.', undefined, 'wrong');
      await refused.line(/token|log in|401|not known/i);
      assert.notEqual(await refused.exited, 0);
    });
  });
}
