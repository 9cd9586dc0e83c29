// Navi as an MCP server, through the clients that others wrote: the one for Python speaks the
// current revision, the one for JavaScript the last that begins with `initialize`.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { LIMIT_MS, required } from '../browser/harness/program.js';
import { PYTHON } from './python.js';

const NAVI = required('NAVI_BIN');

/** How a program is told to start `navi mcp` for a service. */
export function stdio(navi, { args = [], env = {} } = {}) {
  const { PATH, HOME } = process.env;
  return { command: NAVI, args: ['mcp', ...args], env: { PATH, HOME, NAVI_DATA_DIR: navi.dataDir, ...env } };
}

/** What came of a call: `data`, or `error` where the protocol said no; `progress` on the way. */
function came(result, progress) {
  const text = result.content.map((part) => part.text ?? '').join('');
  return { data: result.structuredContent, text, failed: result.isError === true, progress };
}

/** Connects the client for JavaScript. `answer` is what its user says when they are asked. */
export async function javascript(how, { answer } = {}) {
  const asked = [];
  const client = new Client({ name: 'navi-tests', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push({ message: params.message, schema: params.requestedSchema });
      return answer();
    });
  }
  const transport = how.url
    ? new StreamableHTTPClientTransport(new URL(how.url), { requestInit: { headers: { authorization: `Bearer ${how.token}` } } })
    : new StdioClientTransport({ ...how, stderr: 'pipe' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  return {
    version: transport.protocolVersion,
    name: client.getServerVersion().name,
    tools,
    asked,
    async call(tool, args = {}, { onprogress, timeout = LIMIT_MS + 15_000 } = {}) {
      const progress = [];
      const told = ({ message }) => {
        progress.push(message);
        onprogress?.(message);
      };
      try {
        return came(await client.callTool({ name: tool, arguments: args }, undefined, { onprogress: told, timeout }), progress);
      } catch (error) {
        return { error: `${error}`, progress };
      }
    },
    close: () => client.close(),
    kill: () => process.kill(transport.pid, 'SIGKILL'),
  };
}

/** Connects the client for Python. */
export async function python(how, { answer } = {}) {
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  const child = spawn(PYTHON, ['clients/mcp_client.py'], { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  const say = (line) => child.stdin.write(`${JSON.stringify(line)}\n`);
  const asked = [];
  const calls = new Map();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const ready = new Promise((resolve, reject) => {
    ended.then(() => {
      reject(new Error('the client ended'));
      for (const { settle } of calls.values()) settle({ error: 'the client ended' });
    });
    createInterface({ input: child.stdout }).on('line', async (text) => {
      const line = JSON.parse(text);
      if ('ready' in line) resolve(line);
      if ('refused' in line) reject(new Error(line.refused));
      if ('progress' in line) calls.get(line.progress).told(line.message);
      if ('came' in line) calls.get(line.came).settle(line);
      if ('asked' in line) {
        asked.push({ message: line.asked, schema: line.schema });
        say({ answer: await answer() });
      }
    });
  });
  say(how);
  const { ready: version, name, tools } = await ready;
  return {
    version,
    name,
    tools,
    asked,
    async call(tool, args = {}, { onprogress, timeout = LIMIT_MS + 15_000 } = {}) {
      const id = calls.size;
      const progress = [];
      const told = (message) => {
        progress.push(message);
        onprogress?.(message);
      };
      const line = await new Promise((settle) => {
        calls.set(id, { told, settle });
        say({ id, tool, args, timeout_seconds: timeout / 1_000 });
      });
      return { ...line, progress };
    },
    async close() {
      child.stdin.end();
      await ended;
    },
    kill: () => child.kill('SIGKILL'),
  };
}
