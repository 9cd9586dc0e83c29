// A proxy in front of Navi, as people have one.

import { createServer, request } from 'node:http';
import { connect } from 'node:net';

/**
 * A proxy that gives Navi the prefix `/a/prefix`. What it was asked is in `asked`. With `folder` set the
 * page's files lie in one of that name, as those of another version do. What stands in `adds` is in each request's
 * head, as what a proxy says of who asks.
 */
export async function prefixed(upstream) {
  const { hostname, port } = new URL(upstream);
  const asked = [];
  const proxy = { asked, folder: null, adds: {} };
  let own_folder;
  const onward = (url) => url.replace(/^\/a\/prefix/, '').replace(`/web/${proxy.folder}/`, `/web/${own_folder}/`);
  /** The page as another version has it. */
  async function renamed(outgoing) {
    const html = await (await fetch(`${upstream}/`)).text();
    own_folder = /web\/([0-9a-f]+)\//.exec(html)[1];
    outgoing.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    outgoing.end(html.replaceAll(own_folder, proxy.folder));
  }
  const server = createServer((incoming, outgoing) => {
    asked.push(incoming.url);
    if (!incoming.url.startsWith('/a/prefix/')) {
      outgoing.writeHead(404).end();
      return;
    }
    if (proxy.folder !== null && incoming.url === '/a/prefix/') {
      renamed(outgoing).catch(() => outgoing.destroy());
      return;
    }
    const sent = request({ hostname, port, method: incoming.method, path: onward(incoming.url), headers: { ...incoming.headers, ...proxy.adds } }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    incoming.pipe(sent);
  });
  server.on('upgrade', (incoming, socket, head) => {
    asked.push(incoming.url);
    const up = connect(Number(port), hostname, () => {
      const lines = Object.entries({ ...incoming.headers, ...proxy.adds }).map(([name, value]) => `${name}: ${value}`);
      up.write(`GET ${onward(incoming.url)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      up.write(head);
      up.pipe(socket);
      socket.pipe(up);
    });
    for (const end of [up, socket]) end.on('error', () => { up.destroy(); socket.destroy(); });
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return Object.assign(proxy, {
    address: `http://127.0.0.1:${server.address().port}/a/prefix`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
}
