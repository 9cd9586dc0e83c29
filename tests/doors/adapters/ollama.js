// Ollama's own client for Python.

import { PYTHON, SKIPPED, startPython } from '../python.js';
import { weather, WEATHER } from './answer.js';
import { headersOf } from './openai.js';

const TOOLS = [{ type: 'function', function: WEATHER }];

/** Starts it. */
export function startOllama() {
  const client = startPython('ollama_client.py');
  const line = ({ origin, token, tools, ...options }) =>
    ({ host: origin, api_key: token, headers: headersOf(options), tools: tools ? TOOLS : [], result: weather({ city: 'Kyiv' }) });
  return { ask: (text, options) => client.ask({ text, ...line(options) }), close: client.close };
}

export default [{
  name: "Ollama's client for Python",
  skip: PYTHON ? false : SKIPPED,
  asks: 'page',
  tellsOfOurs: false,
  ends: { done: /^stop$/, stopped: /^CancelledError/, failed: /^ResponseError: .*broke/, refused: /^ResponseError: .*401/ },
  open: startOllama,
}];
