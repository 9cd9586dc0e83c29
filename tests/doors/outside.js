// Somebody who comes from outside: by a public name that no server knows, and a certificate of the tests.

import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';

export const NAME = 'navi.test';

/** A key and a certificate for the name, in a folder. */
export function certificate(folder) {
  const [key, file] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME}`, '-keyout', key, '-out', file,
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  const pem = readFileSync(file, 'utf8');
  const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return {
    key,
    file,
    pem,
    hash: createHash('sha256').update(spki).digest('base64'),
  };
}

/** What tells Chromium of the name and of these certificates. */
export const switches = (...certificates) => [
  `--host-resolver-rules=MAP ${NAME} 127.0.0.1`,
  `--ignore-certificate-errors-spki-list=${certificates.map(({ hash }) => hash).join()}`,
];

/**
 * A `fetch` that finds the name and trusts the certificate; from another address of this machine where `from` is one.
 * A body is text, a form's fields, bytes, or anything that comes in pieces.
 */
export function outsider(ca, { from } = {}) {
  const lookup = (host, { all }, found) => {
    if (host !== NAME && isIP(host) === 0) found(new Error(`${host} is not to be asked`));
    else if (all) found(null, [{ address: '127.0.0.1', family: 4 }]);
    else found(null, '127.0.0.1', 4);
  };
  return async function ask(url, { method = 'GET', headers, body: given, signal } = {}) {
    const isForm = given instanceof URLSearchParams;
    const body = isForm ? `${given}` : given;
    const named = Object.fromEntries(headers instanceof Headers ? headers : Object.entries(headers ?? {}));
    if (isForm) named['content-type'] = 'application/x-www-form-urlencoded;charset=UTF-8';
    if (typeof body === 'string' && !Object.keys(named).some((name) => /^content-length$/i.test(name))) named['content-length'] = String(Buffer.byteLength(body));
    const answer = await new Promise((resolve, reject) => {
      const asked = request(url, { method, headers: named, ca, lookup, servername: NAME, localAddress: from, signal, agent: false }, resolve);
      asked.on('error', reject);
      if (body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array) asked.end(body ?? undefined);
      else Readable.from(body).on('error', reject).pipe(asked);
    });
    const told = new Headers();
    for (let at = 0; at < answer.rawHeaders.length; at += 2) told.append(answer.rawHeaders[at], answer.rawHeaders[at + 1]);
    const empty = [204, 304].includes(answer.statusCode) || method === 'HEAD';
    if (empty) answer.resume();
    return new Response(empty ? null : Readable.toWeb(answer), { status: answer.statusCode, headers: told });
  };
}
