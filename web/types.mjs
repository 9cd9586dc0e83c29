// Makes `state/wire.d.ts`, the types of what crosses the wire, from the schemas that the service
// serves. A test of the service holds `state/wire.json` equal to those.
//
//   node types.mjs           writes it
//   node types.mjs --check   fails when it differs from what would be written

import { readFile, writeFile } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

/** @typedef {{ [key: string]: unknown, $ref?: string, type?: unknown, properties?: Record<string, Schema>, required?: string[], anyOf?: Schema[] }} Schema */

const SCHEMAS = new URL('state/wire.json', import.meta.url);
const TYPES = new URL('state/wire.d.ts', import.meta.url);

/**
 * The schema as the compiler reads it right, and as the service writes: what it may leave out, it
 * leaves out where there is none, and never writes `null` there.
 * @param {Schema} schema
 * @returns {Schema}
 */
function shaped({ $ref, properties, default: _, ...rest }) {
  const known = new Set(rest.required);
  const fields = properties && Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, known.has(name) ? shaped(field) : shaped(present(field))]),
  );
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, deep(value)]));
  /** @type {Schema} */
  const own = { ...inner, ...(fields && { properties: fields }) };
  // What stands beside a reference would replace its fields.
  if ($ref === undefined) return own;
  const { description, ...beside } = own;
  const parts = Object.keys(beside).length === 0 ? [{ $ref }] : [{ $ref }, beside];
  return description === undefined && parts.length === 1 ? { $ref } : { description, allOf: parts };
}

/** @param {unknown} value @returns {unknown} */
function deep(value) {
  if (Array.isArray(value)) return value.map(deep);
  return typeof value === 'object' && value !== null ? shaped(/** @type {Schema} */ (value)) : value;
}

/** The same without `null`. @param {Schema} schema @returns {Schema} */
function present(schema) {
  const { type, anyOf, ...rest } = schema;
  if (Array.isArray(type)) return { ...rest, type: type.filter((one) => one !== 'null') };
  if (anyOf?.length === 2 && anyOf[1].type === 'null') return { ...rest, ...anyOf[0] };
  return schema;
}

const { $defs } = JSON.parse(await readFile(SCHEMAS, 'utf8'));
const shapes = Object.fromEntries(Object.entries($defs).map(([name, schema]) => [name, shaped(schema)]));
// What the root does not refer to would be left out.
const all = Object.keys(shapes).map((name) => ({ $ref: `#/$defs/${name}` }));
const types = await compile({ $defs: shapes, anyOf: all, description: 'Whatever crosses it.' }, 'Wire', {
  additionalProperties: false,
  bannerComment: '// Made by `npm run types` from `wire.json`.',
  style: { singleQuote: true, printWidth: 140 },
});
if (process.argv.includes('--check')) {
  if (await readFile(TYPES, 'utf8') !== types) throw new Error('state/wire.d.ts is not what state/wire.json makes; run `npm ci && npm run types`');
} else {
  await writeFile(TYPES, types);
}
