// Renders the OpenAPI document as it is: no library, and nothing but text nodes.

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** An element with children; strings become text. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A link to a schema below, or the schema itself. */
function schema(value) {
  const name = value?.$ref?.split('/').pop();
  if (name) return element('a', { href: `#schema-${name}` }, name);
  return element('pre', {}, JSON.stringify(value, null, 2));
}

function body(content) {
  const [[type, media] = []] = Object.entries(content ?? {});
  return type ? [element('code', {}, type), ' ', schema(media.schema)] : [];
}

function operation(path, method, spec) {
  const details = element(
    'details',
    {},
    element(
      'summary',
      {},
      element('span', { class: 'method' }, method.toUpperCase()),
      element('code', {}, path),
    ),
  );
  if (spec.summary) details.append(element('p', {}, spec.summary));
  if (spec.requestBody) {
    const note = spec.requestBody.description ?? '';
    details.append(element('p', {}, 'Body: ', ...body(spec.requestBody.content), ' ', note));
  }
  const rows = Object.entries(spec.responses ?? {}).map(([status, response]) =>
    element(
      'tr',
      {},
      element('td', {}, element('code', {}, status)),
      element('td', {}, response.description ?? '', ' ', ...body(response.content)),
    ),
  );
  details.append(element('table', {}, ...rows));
  return details;
}

function operations(document_) {
  const groups = new Map();
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const tag = item[method].tags?.[0] ?? 'other';
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operation(path, method, item[method]));
    }
  }
  return [...groups].flatMap(([tag, entries]) => [element('h2', {}, tag), ...entries]);
}

function schemas(document_) {
  return Object.entries(document_.components.schemas).map(([name, value]) =>
    element(
      'details',
      { id: `schema-${name}` },
      element('summary', {}, element('code', {}, name)),
      element('pre', {}, JSON.stringify(value, null, 2)),
    ),
  );
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

const place = document.getElementById('operations');
try {
  const response = await fetch(new URL('openapi.json', import.meta.url));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const document_ = await response.json();
  place.replaceChildren(...operations(document_));
  document.getElementById('schemas').replaceChildren(...schemas(document_));
  addEventListener('hashchange', openTarget);
  openTarget();
} catch (error) {
  place.replaceChildren(element('p', {}, `The description could not be read: ${error.message}`));
}
