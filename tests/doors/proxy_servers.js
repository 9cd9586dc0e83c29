// The proxies that people put before Navi, as `docs/people.md` sets them up.

import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';

import { LIMIT_MS, startProgram } from '../browser/harness/program.js';
import { NAME } from './outside.js';

const DOCUMENT = new URL('../../docs/people.md', import.meta.url);

/** The document's configuration in this language, with places of the test's for those that it has. */
function configured(language, places) {
  const [, found] = new RegExp(`\`\`\`${language}\\n([^]*?)\n\`\`\``).exec(readFileSync(DOCUMENT, 'utf8'));
  return Object.entries(places).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${language}: the document has no ${from}`);
    return text.replaceAll(from, to);
  }, found);
}

/** Waits until it speaks TLS there: caddy listens a moment before it has its certificate. */
async function listening(port, program) {
  const ended = program.exited.then(() => { throw new Error(`it ended:\n${program.output.join('\n')}`); });
  ended.catch(() => {});
  for (const end = Date.now() + LIMIT_MS; ;) {
    const socket = connect({ host: '127.0.0.1', port, servername: NAME, rejectUnauthorized: false });
    const opened = await Promise.race([once(socket, 'secureConnect').then(() => true, () => false), ended]);
    socket.destroy();
    if (opened) return;
    if (Date.now() > end) throw new Error('nothing listens');
  }
}

/** What a proxy says with each request, where it signs people in itself. */
export const USER_HEADER = 'Remote-User';

const nginx = {
  program: '/usr/sbin/nginx',
  set_up({ folder, port, upstream, cert, keeps_prefix = false, people = null }) {
    // Whoever has no name and password here gets no further, and nobody's own header does.
    const users = join(folder, 'users');
    if (people !== null) writeFileSync(users, Object.entries(people).map(([name, password]) => `${name}:{PLAIN}${password}\n`).join(''));
    const site = configured('nginx', {
      ...(keeps_prefix && { 'http://127.0.0.1:8000/;': 'http://127.0.0.1:8000;' }),
      ...(people !== null && { 'proxy_http_version 1.1;': `proxy_http_version 1.1; auth_basic Household; auth_basic_user_file ${users}; proxy_set_header ${USER_HEADER} $remote_user; proxy_set_header Authorization "";` }),
      'listen 443 ': `listen 127.0.0.1:${port} `,
      '/etc/ssl/home.example.org.pem': cert.file,
      '/etc/ssl/home.example.org.key': cert.key,
      'home.example.org': NAME,
      'http://127.0.0.1:8000': `http://127.0.0.1:${upstream}`,
    });
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${join(folder, kind)};`);
    writeFileSync(join(folder, 'nginx.conf'), [
      'daemon off; master_process off; error_log stderr;', `pid ${join(folder, 'pid')};`,
      'events {}', `http { access_log off; ${temporary.join(' ')}`, site, '}',
    ].join('\n'));
    return { args: ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')] };
  },
};

const caddy = {
  program: '/usr/bin/caddy',
  set_up({ folder, port, upstream, cert, keeps_prefix = false, people = null }) {
    const hashed = (password) => execFileSync(this.program, ['hash-password', '--plaintext', password], { encoding: 'utf8' }).trim();
    const users = Object.entries(people ?? {}).map(([name, password]) => `${name} ${hashed(password)}`);
    const site = configured('caddyfile', {
      ...(keeps_prefix && { 'handle_path /navi/*': 'handle /navi/*' }),
      ...(people !== null && { 'reverse_proxy 127.0.0.1:8000 {': `basicauth {\n${users.join('\n')}\n}\nreverse_proxy 127.0.0.1:8000 {\nheader_up ${USER_HEADER} {http.auth.user.id}\nheader_up -Authorization` }),
      'home.example.org {': `${NAME}:${port} {\n    bind 127.0.0.1\n    tls ${cert.file} ${cert.key}`,
      '127.0.0.1:8000': `127.0.0.1:${upstream}`,
    });
    // No ports but its own, and nothing of the machine's.
    const global = '{\n    admin off\n    auto_https off\n    servers {\n        protocols h1 h2\n    }\n}\n';
    writeFileSync(join(folder, 'Caddyfile'), `${global}${site}\n`);
    const home = { HOME: folder, XDG_DATA_HOME: join(folder, 'data'), XDG_CONFIG_HOME: join(folder, 'config') };
    return { args: ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], env: home };
  },
};

export const PROXIES = { nginx, caddy };

/** Whether it can be started here. */
export const isThere = ({ program }) => spawnSync(program, ['version']).error === undefined;

/**
 * Starts one of them, in a folder of its own. With `keeps_prefix` it leaves the prefix on, and with `people`, names and
 * passwords, it signs them in itself and says who somebody is.
 */
export async function startProxy(proxy, places) {
  const { program } = proxy;
  mkdirSync(places.folder, { recursive: true });
  const { args, env } = proxy.set_up(places);
  let running;
  async function start() {
    running = startProgram(program, { args, env, cwd: places.folder });
    await listening(places.port, running);
  }
  await start();
  return { start, kill: () => running.stop('SIGKILL'), output: () => running.output };
}
