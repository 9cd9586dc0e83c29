// curl, for Chat Completions.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { Answer, weather, WEATHER } from './answer.js';
import { headersOf } from './openai.js';

/** Starts curl; its lines, and how it ends. */
export function curl(path, { origin, token }, { headers = {}, body } = {}) {
  const told = Object.entries({ Authorization: `Bearer ${token}`, ...headers }).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
  const args = ['--silent', '--show-error', '--fail-with-body', '--no-buffer', ...told, ...(body ? ['--json', JSON.stringify(body)] : []), `${origin}${path}`];
  const child = spawn('curl', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaints = '';
  child.stderr.on('data', (data) => { complaints += data; });
  const exited = once(child, 'close').then(([code, signal]) => (code === 0 ? 'done' : `${signal ?? code} ${complaints.trim()}`));
  return { lines: createInterface({ input: child.stdout }), exited, stop: () => child.kill('SIGINT') };
}

export default [{
  name: 'curl, Chat Completions',
  asks: 'page',
  ends: { done: /^stop, done$/, stopped: /^no end, SIGINT/, failed: /broke.*, done$/, refused: /the token is not known.*, 22 .*401/ },
  open: () => ({
    ask: (text, options) => new Answer(async (answer) => {
      const messages = [{ role: 'user', content: text }];
      const tools = options.tools && [{ type: 'function', function: WEATHER }];
      for (;;) {
        const { lines, exited, stop } = curl('/v1/chat/completions', options, { headers: headersOf(options), body: { model: 'navi', stream: true, messages, tools } });
        answer.stop = stop;
        const calls = [];
        let end = 'no end';
        for await (const line of lines) {
          const data = line.replace(/^data: /, '');
          if (!data.startsWith('{')) continue;
          const { error, event, choices: [choice] = [] } = JSON.parse(data);
          const { content, reasoning_content, tool_calls = [] } = choice?.delta ?? {};
          answer.add({ text: content, thinking: reasoning_content, did: event?.data.description });
          calls.push(...tool_calls);
          end = error?.message ?? choice?.finish_reason ?? end;
        }
        end = `${end}, ${await exited}`;
        if (calls.length === 0) return end;
        messages.push({ role: 'assistant', content: '', tool_calls: calls });
        for (const call of calls) {
          answer.add({ calls: call.function.name });
          messages.push({ role: 'tool', tool_call_id: call.id, content: weather(JSON.parse(call.function.arguments)) });
        }
      }
    }),
  }),
}];
