// Chromium's own virtual authenticator.

/** An authenticator in the tab's browser, which its person answers at once. @param {import('./browser.js').Tab} tab */
export async function authenticator(tab, options = {}) {
  const cdp = await tab.page.context().newCDPSession(tab.page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true, ...options },
  });
  return {
    /** Whether its person is who they say. */
    verifies: (isUserVerified) => cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    credentials: async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
  };
}
