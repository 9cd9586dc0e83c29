// As much of a DOM as `markdown/dom.js` touches, so that node identity can be tested here.

class FakeNode {
  /** @type {FakeNode[]} */
  childNodes = [];

  get lastChild() {
    return this.childNodes[this.childNodes.length - 1] ?? null;
  }

  /** @param {FakeNode} child */
  appendChild(child) {
    this.childNodes.push(child);
  }

  /** @param {FakeNode} next @param {FakeNode} old */
  replaceChild(next, old) {
    this.childNodes[this.childNodes.indexOf(old)] = next;
  }

  /** @param {FakeNode} child */
  removeChild(child) {
    this.childNodes.splice(this.childNodes.indexOf(child), 1);
  }
}

class FakeText extends FakeNode {
  /** @param {string} data */
  constructor(data) {
    super();
    this.data = data;
  }

  /** @param {string} more */
  appendData(more) {
    this.data += more;
  }
}

class FakeElement extends FakeNode {
  /** @type {Map<string, string>} */
  attributes = new Map();

  /** @param {string} tag */
  constructor(tag) {
    super();
    this.tag = tag;
  }

  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.attributes.set(name, value);
  }

  /** @param {string} name */
  removeAttribute(name) {
    this.attributes.delete(name);
  }
}

export class FakeDocument {
  /** @param {string} tag */
  createElement(tag) {
    return new FakeElement(tag);
  }

  /** @param {string} data */
  createTextNode(data) {
    return new FakeText(data);
  }
}

/**
 * @param {FakeNode} node
 * @returns {string}
 */
export function serialise(node) {
  if (node instanceof FakeText) return node.data;
  const element = /** @type {FakeElement & { code?: string }} */ (node);
  const attributes = [...element.attributes].sort().map(([name, value]) => ` ${name}=${value}`).join('');
  return `<${element.tag}${attributes}>${element.code ?? ''}${element.childNodes.map(serialise).join('')}</${element.tag}>`;
}
