import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Lexer } from 'marked';

import { MarkdownStream, MAX_ITEMS } from '../markdown/stream.js';
import { GROUP_ROWS, LONG_ROWS } from '../markdown/table.js';
import { safeHref } from '../markdown/tree.js';
import { CHUNK, showBlocks } from '../markdown/dom.js';
import { FakeDocument, serialise } from './fake_dom.js';

const SAMPLE = `# Title

First paragraph with **bold**, \`code <b>\` and a [link](https://example.org/a?b=1&c=2).
Second line of it.

- one

- two
  - nested
  - again

    continued

1. first
2. second

3. third

> quote
> - with a list

| a | b |
|---|:-:|
| 1 | **2** |
| 3 | 4<br>5 |

\`\`\`js title
const a = 1; // <script>

const b = 2;
\`\`\`

Setext
======

- [x] done
- [ ] open

<div onclick="alert(1)">html</div>

See [ref] and ![pic](https://example.org/p.png).

    indented code

[ref]: https://example.org/ref
Last words 🙂 &amp; &#128578; end
`;

/** @param {string} text */
const whole = (text) => new MarkdownStream().update(text, true).map((block) => block.node);

/** @param {string} text @param {number[]} cuts */
function streamed(text, cuts) {
  const stream = new MarkdownStream();
  for (const cut of cuts) stream.update(text.slice(0, cut), false);
  return stream.update(text, true).map((block) => block.node);
}

test('any split of the text ends in the same tree as the whole text', () => {
  const expected = whole(SAMPLE);
  assert.deepEqual(streamed(SAMPLE, [...SAMPLE].map((_, i) => i)), expected);
  let seed = 7;
  for (let round = 0; round < 200; round += 1) {
    const cuts = [];
    for (let at = 0; at < SAMPLE.length; at += 1 + (seed % 40)) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      cuts.push(at);
    }
    assert.deepEqual(streamed(SAMPLE, cuts), expected);
  }
});

test('the headings of a text begin below the page\'s own and leave none out, however it came', () => {
  const text = '## Ways\n\n#### On foot\n\ntext\n\n### By train\n\n> # Quoted\n> ### Below\n\n#### Fares\n\n- item\n\n  ## In a list\n\n# Rest\n\n###### Notes\n\nend\n';
  /** @param {(import('../markdown/tree.js').TreeNode | string)[]} nodes @returns {string[]} */
  const levels = (nodes) => nodes.flatMap((node) => (typeof node === 'string' ? [] : /^h\d$/.test(node.tag)
    ? [`${node.children.join('')} ${node.attrs['aria-level'] ?? node.tag[1]}`] : levels(node.children)));
  const expected = ['Ways 2', 'On foot 3', 'By train 3', 'Quoted 4', 'Below 5', 'Fares 4', 'In a list 5', 'Rest 2', 'Notes 3'];
  assert.deepEqual(levels(whole(text)), expected);
  const stream = new MarkdownStream();
  let blocks = stream.update('', false);
  for (let i = 1; i <= text.length; i += 1) blocks = stream.update(text.slice(0, i), false);
  assert.deepEqual(levels(blocks.map(({ node }) => node)), expected);
});

test('without references to what comes later, freezing alone gets every block right', () => {
  const text = SAMPLE.replace('[ref]: https://example.org/ref\n', '');
  const stream = new MarkdownStream();
  let blocks = stream.update('', false);
  for (let i = 1; i <= text.length; i += 1) blocks = stream.update(text.slice(0, i), false);
  assert.deepEqual(blocks.map((block) => block.node), whole(text));
});

test('a frozen block stays the same object, and the same DOM node', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const parent = document.createElement('div');
  const stream = new MarkdownStream();
  let shown = stream.update('', false);
  /** @type {Map<number, unknown>} */
  const nodes = new Map();
  for (let i = 1; i <= SAMPLE.length; i += 1) {
    const next = stream.update(SAMPLE.slice(0, i), false);
    showBlocks(/** @type {any} */ (parent), shown, next);
    for (const [index, block] of next.entries()) {
      if (shown[index] !== block) continue;
      if (nodes.has(index)) assert.equal(parent.childNodes[index], nodes.get(index), `block ${index} was replaced`);
      nodes.set(index, parent.childNodes[index]);
    }
    shown = next;
  }
  assert.ok(nodes.size > 8, `only ${nodes.size} blocks were ever frozen`);
  const final = stream.update(SAMPLE, true);
  showBlocks(/** @type {any} */ (parent), shown, final);
  const fresh = document.createElement('div');
  showBlocks(/** @type {any} */ (fresh), [], new MarkdownStream().update(SAMPLE, true));
  assert.equal(serialise(parent), serialise(fresh));
});

test('what follows the first blocks of a long text stands in elements of its own', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const parent = /** @type {any} */ (document.createElement('div'));
  const stream = new MarkdownStream();
  const text = (/** @type {number} */ blocks) => Array.from({ length: blocks }, (_, i) => `Paragraph ${i}.\n\n`).join('');
  /** @type {ReturnType<MarkdownStream['update']>} */
  let shown = [];
  const show = (/** @type {string} */ source, /** @type {boolean} */ complete) => {
    const next = stream.update(source, complete);
    showBlocks(parent, shown, next);
    shown = next;
  };
  const words = () => parent.childNodes.flatMap((/** @type {any} */ child) => (child.className === 'chunk' ? child.childNodes : [child])).map(serialise).join('');
  const whole = text(3 * CHUNK + 1);
  for (let i = 1; i < whole.length; i += 7) show(whole.slice(0, i), false);
  show(whole, true);
  assert.equal(parent.childNodes.length, CHUNK + 3);
  assert.equal(parent.childNodes[CHUNK + 2].childNodes.length, 1);
  assert.equal(words(), Array.from({ length: 3 * CHUNK + 1 }, (_, i) => `<p>Paragraph ${i}.</p>`).join(''));
  for (const fewer of [2 * CHUNK + 3, 2 * CHUNK, CHUNK, 5, 0]) {
    show(text(fewer), true);
    assert.equal(words(), Array.from({ length: fewer }, (_, i) => `<p>Paragraph ${i}.</p>`).join(''), `${fewer}`);
  }
});

test('a list or table that becomes long is right at each length, and its beginning is read once', () => {
  const row = (/** @type {number} */ i) => `| ${i} | **b** |\n`;
  const long = {
    tight: Array.from({ length: 30 }, (_, i) => `- item ${i}\n`).join(''),
    loose: Array.from({ length: 30 }, (_, i) => `${i + 3}. item\n\n   more of it\n\n`).join(''),
    nested: Array.from({ length: 30 }, (_, i) => `* item ${i}\n  - below\n    \`\`\`\n    code\n    \`\`\`\n`).join(''),
    tasks: Array.from({ length: 30 }, (_, i) => `- [${i % 2 === 0 ? 'x' : ' '}] item\n`).join(''),
    table: `| a | b |\n|---|:-:|\n${Array.from({ length: 30 }, (_, i) => row(i)).join('')}`,
  };
  for (const [name, text] of Object.entries(long)) {
    const document = `Before.\n\n${text}\nAfter.\n\n${text}`;
    const stream = new MarkdownStream();
    /** @type {unknown} */
    let first = null;
    for (const { index } of document.matchAll(/\n/g)) {
      if (document[index - 1] !== '\n') stream.update(document.slice(0, index), false);
      const lines = document.slice(0, index + 1);
      const blocks = stream.update(lines, false);
      const ended = JSON.stringify(blocks.map((block) => block.node)).replaceAll('".growing":"yes"', '".growing":""');
      assert.equal(ended, JSON.stringify(whole(lines)), `${name}, ${index}`);
      const list = blocks[1]?.node;
      const rows = name === 'table' ? /** @type {any} */ (list)?.children[0]?.children?.[1]?.children : list?.children;
      if (first !== null) assert.equal(rows?.[0], first, `${name}, ${index}: read again`);
      if (rows?.length > 15) first = rows?.[0];
    }
    assert.deepEqual(stream.update(document, true).map((block) => block.node), whole(document), name);
  }
});

test('a fence that becomes long is right at each length, and is read once', (t) => {
  let read_chars = 0;
  const { lex } = Lexer.prototype;
  t.mock.method(Lexer.prototype, 'lex', /** @this {Lexer} @param {string} text */ function read(text) {
    read_chars += text.length;
    return lex.call(this, text);
  });
  const lines = Array.from({ length: 5_000 }, (_, i) => (i % 7 === 0 ? '\n' : `${' '.repeat(i % 5)}const line_${i} = \`\`; // ~~~\n`));
  const begin = 'Before[^1].\n\n[^1]: Note.\n\n```js\n';
  const text = `${begin}${lines.join('')}`;
  const stream = new MarkdownStream();
  let blocks = stream.update(begin, false);
  const [before] = blocks;
  for (let at = begin.length; at < text.length; at += 131) blocks = stream.update(text.slice(0, at), false);
  blocks = stream.update(text, false);
  assert.ok(read_chars < 3 * begin.length, `${read_chars} characters were read`);
  assert.equal(blocks[0], before);
  assert.deepEqual([blocks[1].node.attrs['.lang'], blocks[1].node.attrs['.growing']], ['js', 'yes']);
  assert.equal(blocks[1].node.attrs['.code'], lines.join('').slice(0, -1));
  const after = `${text}\`\`\`\n\nAfter.\n`;
  assert.deepEqual(stream.update(after, false).map(({ node }) => node), whole(after));
});

test('an open fence has at each length what the lexer makes of it', () => {
  const lines = ['code', '  set in', '', '   ', ' \t', '    ```', '```js', '``', ' ~~~~', '\tx', '~~~ no', '   deeper', '\u00a0 space', '> quote', '- item', '| a |', '````x'];
  const documents = ['```', '   ```js', '  ~~~', '~~~~ a b', ' `````', '- ```', '> ~~~', '1. item\n\n   ```'].flatMap((fence) => [fence, `Words.\n\n${fence}`])
    .flatMap((begin) => lines.map((line, i) => `${begin}\n${[line, ...lines.slice(i), ...lines.slice(0, i), line].join(/^[>-] /.test(begin) ? `\n${begin.startsWith('>') ? '> ' : '  '}` : '\n')}`));
  const ended = (/** @type {unknown} */ nodes) => JSON.stringify(nodes).replaceAll('".growing":"yes"', '".growing":""');
  for (const text of documents) {
    const stream = new MarkdownStream();
    for (let at = 1; at <= text.length; at += 1) {
      const grown = stream.update(text.slice(0, at), false).map(({ node }) => node);
      assert.equal(ended(grown), ended(whole(text.slice(0, at))), JSON.stringify(text.slice(0, at)));
    }
  }
});

test('a list of many items is shown as several, whose numbers go on and whose items stay where they are', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const items = (/** @type {number} */ count, /** @type {string} */ begin) => Array.from({ length: count }, (_, i) => `${begin} item ${i}\n\n    - below\n\n`).join('');
  const stream = new MarkdownStream();
  const parent = /** @type {any} */ (document.createElement('div'));
  /** @type {ReturnType<MarkdownStream['update']>} */
  let shown = [];
  /** @type {any} */
  let first = null;
  const text = items(2 * MAX_ITEMS + 5, '3.');
  for (let at = 20; at <= text.length; at += 20) {
    const next = stream.update(text.slice(0, at), false);
    showBlocks(parent, shown, next);
    shown = next;
    first ??= parent.childNodes[0].childNodes[0];
    assert.equal(parent.childNodes[0].childNodes[0], first);
  }
  const told = stream.update(text, true).map(({ node }) => node);
  assert.deepEqual(told.map(({ tag, attrs, children }) => [tag, attrs, children.length]), [
    ['ol', { class: 'piece more', start: '3' }, MAX_ITEMS], ['ol', { class: 'piece more', start: String(3 + MAX_ITEMS) }, MAX_ITEMS], ['ol', { class: 'piece', start: String(3 + 2 * MAX_ITEMS) }, 5],
  ]);
  assert.deepEqual(told, whole(text));
  assert.deepEqual(whole(items(MAX_ITEMS, '-')).map(({ attrs, children }) => [attrs, children.length]), [[{}, MAX_ITEMS]]);
  assert.deepEqual(whole(items(MAX_ITEMS + 1, '-')).map(({ attrs, children }) => [attrs, children.length]), [[{ class: 'piece more' }, MAX_ITEMS], [{ class: 'piece' }, 1]]);
});

test('a table of many rows stands in groups, whose rows stay where they are while it grows, and whose columns keep their widths', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const count = 3_000;
  const lines = Array.from({ length: count }, (_, i) => `| ${i} | **name** ${i} |\n`);
  const head = '| n | what it is |\n|--:|---|\n';
  const stream = new MarkdownStream();
  const parent = /** @type {any} */ (document.createElement('div'));
  /** @type {ReturnType<MarkdownStream['update']>} */
  let shown = [];
  /** @type {any} */
  let first = null;
  const styles = new Set();
  let text = head;
  for (let at = 0; at < count; at += 30) {
    text += lines.slice(at, at + 30).join('');
    const next = stream.update(text, false);
    showBlocks(parent, shown, next);
    shown = next;
    const table = parent.childNodes[0].childNodes[0];
    const rows = table.childNodes.slice(1).flatMap((/** @type {any} */ group) => group.childNodes);
    assert.equal(rows.length, at + 30);
    first ??= rows[0];
    assert.equal(rows[0], first, 'drawn again');
    if (at + 30 > LONG_ROWS) styles.add(table.style);
  }
  assert.equal(styles.size, 1);
  assert.match([...styles][0], /^--columns: minmax\(calc\(3ch \+ 1\.6rem\), 7fr\) minmax\(calc\(10ch \+ 1\.6rem\), 14fr\); --least: calc/);
  const told = stream.update(text, true).map(({ node }) => node);
  assert.deepEqual(told, whole(text));
  const [, ...groups] = /** @type {any[]} */ (/** @type {any} */ (told[0].children[0]).children);
  assert.deepEqual(groups.map(({ tag, attrs, children }) => [tag, attrs, children.length]), Array.from({ length: count / GROUP_ROWS }, () => ['tbody', { class: 'piece', role: 'rowgroup' }, GROUP_ROWS]));
  const roles = (/** @type {any} */ node) => [node.attrs.role, ...node.children.map((/** @type {any} */ cell) => cell.attrs.role)];
  assert.deepEqual(roles(groups[0].children[0]), ['row', 'cell', 'cell']);
  const titles = /** @type {any} */ (told[0].children[0]).children[0].children[0];
  assert.deepEqual(roles(titles), ['row', 'columnheader', 'columnheader']);
  const few = /** @type {any} */ (whole(head + lines.slice(0, LONG_ROWS).join('')))[0].children[0];
  assert.deepEqual([few.attrs, few.children.length], [{}, 2], 'one that is short has the widths of its content');
});

test('a thousand nasty documents, cut anywhere, end as they do at once, in the page too', () => {
  const document = new FakeDocument();
  Object.assign(globalThis, { document });
  const pieces = [
    '# head\n', 'text', ' ', '\n', '\n\n', '**', '*', '_', '`', '```\n', '```js\n', '~~~\n', '> ', '> - ', '- ', '* ', '1. ', '7) ', '  ', '    ', '\t',
    '- [ ] ', '- [x] ', '| a | b |\n|---|---|\n', '| 1 | `|` |\n', '|', '---\n', '===\n', '[ref]', '[ref]: https://example.org/x\n', '[a](https://example.org)',
    '![p](x.png)', '<div>', '</div>\n', '<!-- ', '-->', '&amp;', '&#0;', '\\', '\\(x^2\\)', '$$a_b$$', 'https://example.org/a_b', '🙂', '\r\n', '\u0000', '~~', '~',
    '[^1]', '[^2]', '[^a]', '[^1]: note\n', '[^2]: ', '[^A]:\n    ', '    set in\n', 'Term\n: meaning\n', '\n: ', ': ', '- item[^a]\n[^a]: in a list\n',
    ...Array.from({ length: 3 }, (_, i) => '- long list\n'.repeat(20 * i + 20)), '| 1 | 2 |\n'.repeat(30),
    '````md\n', '``` \n', '   ```\n', '  ~~~~\n', '```~\n', '> ```\n> ', '- ```\n  ', '   ', 'code\n  set in\n\n'.repeat(12),
  ];
  let seed = 20_261_125;
  /** @param {number} below */
  const random = (below) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  for (let round = 0; round < 1_000; round += 1) {
    const text = Array.from({ length: 3 + random(30) }, () => pieces[random(pieces.length)]).join('');
    const parent = document.createElement('div');
    const stream = new MarkdownStream();
    let shown = stream.update('', false);
    for (let at = 0; at < text.length; at += 1 + random(text.length / 4 + 2)) {
      const next = stream.update(text.slice(0, at), false);
      showBlocks(/** @type {any} */ (parent), shown, next);
      shown = next;
    }
    const final = stream.update(text, true);
    showBlocks(/** @type {any} */ (parent), shown, final);
    assert.deepEqual(final.map((block) => block.node), whole(text), JSON.stringify(text));
    const fresh = document.createElement('div');
    showBlocks(/** @type {any} */ (fresh), [], new MarkdownStream().update(text, true));
    assert.equal(serialise(parent), serialise(fresh), JSON.stringify(text));
  }
});

test('an image that stands elsewhere is offered by its whole address, and is words where it stands in a link', () => {
  const [first, second] = new MarkdownStream().update('![A chart](https://a.example/c.png?q=1) and ![](mailto:x@a.example)\n\n[**![Badge](https://b.example/b.png)** here](https://c.example/)', true).map(({ node }) => node);
  assert.deepEqual(first.children, [
    { tag: 'navi-remote-image', attrs: { href: 'https://a.example/c.png?q=1', alt: 'A chart' }, children: [] }, ' and ',
    { tag: 'a', attrs: { href: 'mailto:x@a.example', target: '_blank', rel: 'noopener noreferrer' }, children: ['🖼 mailto:x@a.example'] },
  ]);
  assert.deepEqual(/** @type {any} */ (second.children[0]).children, [{ tag: 'strong', attrs: {}, children: ['🖼 Badge'] }, ' here']);
});

test('HTML is text, and links lead only to pages and letters', () => {
  const text = JSON.stringify(whole('<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n<iframe src="x"></iframe>'));
  assert.ok(!/"tag":"(img|script|iframe)"/.test(text));
  assert.equal(safeHref('javascript:alert(1)'), null);
  assert.equal(safeHref(' JaVaScRiPt:alert(1)'), null);
  assert.equal(safeHref('data:text/html,x'), null);
  assert.equal(safeHref('/local'), null);
  assert.equal(safeHref('https://example.org'), 'https://example.org/');
  assert.equal(safeHref('mailto:a@example.org'), 'mailto:a@example.org');
  assert.ok(JSON.stringify(whole('[x](https://example.org)')).includes('"rel":"noopener noreferrer"'));
  assert.ok(!JSON.stringify(whole('![x](https://example.org/a.png)')).includes('"tag":"img"'));
});

test('text that is replaced, not grown, is shown anew', () => {
  const stream = new MarkdownStream();
  stream.update('one\n\ntwo\n\nthree', false);
  assert.deepEqual(stream.update('other', false).map((block) => block.node.children), [['other']]);
});

test('character references become characters, outside code', () => {
  assert.deepEqual(whole('a &lt;b&gt; `&lt;`')[0].children, ['a <b> ', { tag: 'code', attrs: {}, children: ['&lt;'] }]);
});

test('quotes nested deeper than the stack are shown plainly, and what follows grows on', () => {
  const text = '> '.repeat(50_000);
  const stream = new MarkdownStream();
  assert.equal(stream.update(text, false)[0].node.tag, 'pre');
  assert.equal(stream.update(`${text}x`, true)[0].node.tag, 'pre');
});

test('a huge text is shown plainly instead of being laid out', () => {
  const blocks = new MarkdownStream().update('a\n\n'.repeat(200_000), true);
  assert.equal(blocks.length, 1);
  assert.equal(blocks[0].node.tag, 'pre');
});

test('an alert is a quote with its kind', () => {
  const [alert] = whole('> [!WARNING]\n> Take *care*.\n>\n> - here');
  assert.deepEqual([alert.tag, alert.attrs], ['blockquote', { class: 'alert warning' }]);
  assert.deepEqual(alert.children[0], { tag: 'navi-alert', attrs: { '.kind': 'warning' }, children: [] });
  assert.deepEqual(alert.children[1], { tag: 'p', attrs: {}, children: ['Take ', { tag: 'em', attrs: {}, children: ['care'] }, '.'] });
  assert.deepEqual(whole('> [!tip]')[0].children.length, 1);
  assert.deepEqual(whole('> [!other]\n> x')[0].attrs, {});
});

test('notes stand under the text, in the order in which it names them, wherever they are written', () => {
  const mark = (/** @type {string} */ label, /** @type {string} */ number) => ({ tag: 'navi-footnote', attrs: { '.label': label, '.number': number }, children: [] });
  const back = (/** @type {string} */ label, /** @type {string} */ number) => ({ tag: 'navi-footnote-back', attrs: { '.label': label, '.number': number }, children: [] });
  const p = (/** @type {any[]} */ ...children) => ({ tag: 'p', attrs: {}, children });
  const [text, list, after, notes, ...rest] = whole('One[^b], two[^1], one[^b]; no[^none], [^x](https://example.org).\n[^1]: First,\nand more.\n\n    Set in.\n\n- a\n[^B]: In *a* list.\n- b\n\nAfter.\n\n[^c]: Never named.\n[^b]: Again.');
  assert.deepEqual(text.children.slice(0, 8), ['One', mark('b', '1'), ', two', mark('1', '2'), ', one', mark('b', '1'), '; no', mark('none', '')]);
  assert.equal(/** @type {any} */ (text.children[9]).tag, 'a');
  assert.deepEqual(list.children.map((item) => /** @type {any} */ (item).children), [['a'], ['b']]);
  assert.deepEqual(after, p('After.'));
  assert.deepEqual([notes.tag, notes.attrs, rest], ['ol', { class: 'footnotes' }, []]);
  assert.deepEqual(notes.children, [
    { tag: 'li', attrs: { value: '1' }, children: [p('In ', { tag: 'em', attrs: {}, children: ['a'] }, ' list.'), back('B', '1')] },
    { tag: 'li', attrs: { value: '2' }, children: [p('First,\nand more.'), p('Set in.'), back('1', '2')] },
    { tag: 'li', attrs: { class: 'unnamed' }, children: [p('Never named.')] },
  ]);
  assert.equal(whole('`[^1]` and \\[^1]\n\n[^1]: x')[1].children.length, 1);
});

test('a term with what it means is a list of definitions', () => {
  const dl = (/** @type {any} */ term, /** @type {any[][]} */ ...meanings) => ({ tag: 'dl', attrs: {}, children: [{ tag: 'dt', attrs: {}, children: [term] }, ...meanings.map((children) => ({ tag: 'dd', attrs: {}, children }))] });
  const code = { tag: 'code', attrs: {}, children: ['--flag'] };
  const [first, second, third, next, more] = whole('Term\n: one\n  of it\n: two\n`--flag`\n:   on\n\nLoose\n\n: - list\n\nNext\nwords\n: no\n\n- a\n: b\n');
  assert.deepEqual([first, second], [dl('Term', ['one\nof it'], ['two']), dl(code, ['on'])]);
  assert.deepEqual(third, dl('Loose', [{ tag: 'ul', attrs: {}, children: [{ tag: 'li', attrs: {}, children: ['list'] }] }]));
  assert.deepEqual(next, { tag: 'p', attrs: {}, children: ['Next\nwords\n: no'] });
  assert.equal(more.tag, 'ul');
  assert.deepEqual(whole('Term\n: one\n two')[1], { tag: 'p', attrs: {}, children: [' two'] });
});

test('notes and definitions that grew are right before they are complete, and a note is no block of the text', () => {
  const text = `A [^99](https://example.org) is a link. Words[^1] of it[^2].\n\n${Array.from({ length: 30 }, (_, i) => `- item[^${i + 3}]\n`).join('')}\nTerm\n: meaning\n\nOther\n: meaning[^1]\n\n${Array.from({ length: 32 }, (_, i) => `[^${i + 1}]: Note ${i}.\n`).join('')}`;
  const stream = new MarkdownStream();
  let blocks = stream.update('', false);
  for (let i = 1; i <= text.length; i += 1) {
    blocks = stream.update(text.slice(0, i), false);
    assert.ok(blocks.length <= 5, text.slice(0, i));
  }
  assert.deepEqual(blocks.map((block) => block.node), whole(text));
  const told = stream.update(text, true);
  assert.deepEqual(told.map((block) => block.node), whole(text));
  assert.deepEqual(told.map((block) => block.node.tag), ['p', 'ul', 'dl', 'dl', 'ol']);
});

test('mathematics keeps its backslashes, stars and underscores; code and prices stay as they are', () => {
  const math = (/** @type {string} */ source) => ({ tag: 'navi-math', attrs: { '.source': source }, children: [] });
  assert.deepEqual(whole('Einstein wrote \\(E=mc^2\\) once.')[0].children, ['Einstein wrote ', math('\\(E=mc^2\\)'), ' once.']);
  assert.deepEqual(whole('As \\[\\int_a^b f(x)\\,dx\n= F(b) - F(a)\\] says.')[0].children, ['As ', math('\\[\\int_a^b f(x)\\,dx\n= F(b) - F(a)\\]'), ' says.']);
  assert.deepEqual(whole('So $$a_1 * b_2 * c_3$$ it is.')[0].children, ['So ', math('$$a_1 * b_2 * c_3$$'), ' it is.']);
  assert.deepEqual(whole('\\(a*b*c\\) *d*')[0].children, [math('\\(a*b*c\\)'), ' ', { tag: 'em', attrs: {}, children: ['d'] }]);
  assert.deepEqual(whole('`\\(x\\)`')[0].children, [{ tag: 'code', attrs: {}, children: ['\\(x\\)'] }]);
  assert.deepEqual(whole('It costs $5, or $6 \\*here\\*.')[0].children, ['It costs $5, or $6 *here*.']);
  assert.deepEqual(whole('\\(not closed')[0].children, ['(not closed']);
});

test('a task is named by the words beside its box, and what is below it is not', () => {
  const box = { tag: 'input', attrs: { type: 'checkbox', disabled: '' }, children: [] };
  const label = (/** @type {any[]} */ ...children) => ({ tag: 'label', attrs: {}, children });
  const [tight] = whole('- [ ] buy **bread**\n  - rye\n- [x] eat');
  assert.deepEqual(tight.children, [
    { tag: 'li', attrs: { class: 'task' }, children: [label(box, 'buy ', { tag: 'strong', attrs: {}, children: ['bread'] }), { tag: 'ul', attrs: {}, children: [{ tag: 'li', attrs: {}, children: ['rye'] }] }] },
    { tag: 'li', attrs: { class: 'task' }, children: [label({ ...box, attrs: { ...box.attrs, checked: '' } }, 'eat')] },
  ]);
  const [loose] = whole('- [ ] buy bread\n\n  from the baker\n\n- [ ] eat');
  const paragraph = (/** @type {any[]} */ ...children) => ({ tag: 'p', attrs: {}, children });
  assert.deepEqual(/** @type {any} */ (loose.children[0]).children, [paragraph(label(box, 'buy bread')), paragraph('from the baker')]);
});

test('a number, a date or a time in a table stays in one line, words do not', () => {
  const kept = ['1 435 mm', '2026-11-27', '−3 400', '12:30', '€ 12.50', '3,5 %', '~20 min', '5 km/h', '10–12', '**42**', '1 200 000 USD', '< 5 ms'];
  const words = ['', 'on foot', '3 days of walking', '1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144', 'v1.2', '—', '24 hours a day'];
  const [table] = whole(`| what | 2026 |\n| --- | --: |\n${[...kept, ...words].map((cell) => `| ${cell} | ${cell} |\n`).join('')}`);
  const [head, body] = /** @type {any} */ (table.children[0]).children;
  assert.deepEqual(head.children[0].children.map((/** @type {any} */ { attrs }) => attrs), [{}, { class: 'align-right' }]);
  const classes = body.children.map((/** @type {any} */ { children }) => children.map((/** @type {any} */ { attrs }) => attrs.class));
  assert.deepEqual(classes, [...kept.map(() => ['number', 'align-right number']), ...words.map(() => [undefined, 'align-right'])]);
});
