// A provider of OpenID Connect as people have one: a certified one, from its package, with the pages
// for sign-in and consent that it brings along.

import { createServer } from 'node:http';

import Provider from 'oidc-provider';

import { LIMIT_MS } from './program.js';

/** What it calls Navi, and by what Navi shows that it is the one. */
const CLIENT = { id: 'navi', secret: 'a secret of the tests' };

/** Settings that make it the one to use. @param {{ issuer: string, page: string }} its */
export const providerSettings = ({ issuer, page }) => ({
  NAVI_ACCOUNTS: 'on',
  NAVI_PUBLIC_URL: page,
  NAVI_OIDC_ISSUER: issuer,
  NAVI_OIDC_CLIENT_ID: CLIENT.id,
  NAVI_OIDC_CLIENT_SECRET: CLIENT.secret,
  NAVI_OIDC_NAME: 'House',
  NAVI_OIDC_SCOPES: 'profile email groups',
});

/**
 * A provider on this port, for a Navi whose page this is, which it reaches by `reach`. Whoever signs in there is in
 * `groups`, by their name.
 */
export async function startProvider({ port, page, reach = fetch }) {
  const issuer = `http://127.0.0.1:${port}`;
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  const provider = new Provider(issuer, {
    clients: [{
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      redirect_uris: [`${page}api/sign-on/callback`],
      post_logout_redirect_uris: [page],
      backchannel_logout_uri: `${page}api/sign-on/logout`,
      backchannel_logout_session_required: true,
    }],
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: ['a key of the tests'] },
    // Its own way refuses to ask what stands on this machine, and gives it two and a half seconds.
    fetch: (url, { dispatcher: _, signal: __, ...options }) => reach(url, { ...options, signal: AbortSignal.timeout(LIMIT_MS) }),
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, email: `${id}@example.org`, email_verified: true, groups: groups.get(id) ?? [] }),
    }),
  });
  let server;
  async function start() {
    server = createServer(provider.callback());
    await new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  }
  await start();
  return {
    issuer,
    page,
    groups,
    start,
    async stop() {
      const closed = new Promise((resolve) => { server.close(resolve); });
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Signs in at the provider's own pages, and agrees. @param {import('playwright-core').Page} page */
export async function signInThere(page, name) {
  await page.locator('input[name="login"]').fill(name);
  await page.locator('input[name="password"]').fill('whatever there is');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}
