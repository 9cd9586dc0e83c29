// What the page takes for the wire's shapes is what `actors/src/protocol` says.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { EVENT_TYPES } from '../state/session.js';

/** @param {string} file of the protocol */
const rust = (file) => readFile(new URL(`../../actors/src/protocol/${file}.rs`, import.meta.url), 'utf8');
const wire = await readFile(new URL('../state/wire.js', import.meta.url), 'utf8');

/** @param {string} name */
const snake = (name) => name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase();

/** The fields of a block of Rust, without those that are flattened into it. @param {string} block @param {number} indent */
function fields(block, indent) {
  const lines = block.split('\n');
  return lines.flatMap((line, i) => {
    const name = new RegExp(`^ {${indent}}(?:pub )?(\\w+): `).exec(line)?.[1];
    return name === undefined || lines[i - 1]?.includes('flatten') ? [] : [name];
  });
}

/** The type of this name, as `wire.js` writes it. @param {string} name */
function typedef(name) {
  const found = wire.split('*/').find((comment) => new RegExp(`(@typedef \\{object\\} ${name}\\n|\\)?\\} ?${name}\\s*$)`).test(comment));
  assert.ok(found !== undefined, `wire.js has no ${name}`);
  return found;
}

test('the page knows every event of the protocol, with every field of it', async () => {
  const source = await rust('event');
  const body = source.slice(source.indexOf('pub enum Event {'), source.indexOf('/// Why a cursor could not be served'));
  const variants = [...body.matchAll(/^ {4}([A-Z]\w+)(?: \{\}| \{([^]*?)^ {4}\}|\(Delta\))?,/gm)];
  assert.deepEqual(variants.map(([, name]) => snake(name)).sort(), [...EVENT_TYPES].sort());
  for (const [, name, inside = ''] of variants) {
    const line = wire.split('\n').find((text) => text.includes(`type: '${snake(name)}'`)) ?? '';
    assert.notEqual(line, '', `wire.js has no ${snake(name)}`);
    for (const field of fields(inside, 8)) {
      const told = new RegExp(`\\b${field}\\??:`).test(line) || (line.includes('& Delta') && ['part_id', 'offset', 'delta', 'is_subagent'].includes(field));
      assert.ok(told, `wire.js: ${snake(name)} has no ${field}`);
    }
  }
});

test('the page knows every field of the shapes that it reads', async () => {
  const shapes = { session: ['SessionSummary', 'QueuedMessage', 'Fork', 'ActiveRun', 'RunNotice', 'SessionSnapshot', 'Compression', 'UnknownCall'], inspect: ['RunInfo', 'Spending', 'Cost', 'RunSpending'], plan: ['PlanStep', 'Plan'], memory: ['Fact', 'FormerFact'], approval: ['Detail', 'ApprovalRequest', 'PendingApproval', 'ConsentRule', 'ConsentEntry'], status: ['SystemStatus', 'Fence', 'FetchableModel'], change: ['Change'], file: ['AttachedFile', 'SessionFile'], extension: ['ExtensionTool', 'McpServer', 'SkillInfo'] };
  for (const [file, names] of Object.entries(shapes)) {
    const source = await rust(file);
    for (const name of names) {
      const block = new RegExp(`pub struct ${name} \\{([^]*?)^\\}`, 'm').exec(source)?.[1];
      assert.ok(block !== undefined, name);
      const known = typedef(name);
      assert.ok(fields(block, 4).length > 1, name);
      for (const field of fields(block, 4)) assert.match(known, new RegExp(`\\b${field}\\b`), `wire.js: ${name} has no ${field}`);
    }
  }
});
