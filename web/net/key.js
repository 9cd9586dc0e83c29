// The half of a login that no cookie carries. Browsers send cookies to every port of a host; what
// is stored for an origin only its own pages read.

const PLACE = 'navi.key';
/** Where nothing can be stored, a login lasts as long as the page. */
let kept = '';

/** Takes the key in that stands behind the address to which a login's link led. */
export function takeKey() {
  const found = /^#key=([0-9a-f]{64})$/.exec(location.hash);
  if (found === null) return;
  keepKey(found[1]);
  history.replaceState(null, '', location.pathname);
}

/** @param {string} key of a login that was just made; '' where it ended */
export function keepKey(key) {
  kept = key;
  try {
    if (key === '') localStorage.removeItem(PLACE);
    else localStorage.setItem(PLACE, key);
  } catch {
    // Full or forbidden.
  }
}

/** Another tab signed in or out. @param {() => void} handler */
export function onOtherKey(handler) {
  addEventListener('storage', ({ key }) => {
    if (key === PLACE) handler();
  });
}

/** Takes the secret of an invitation in, and out of the address at once. @returns {string | null} */
export function takeInvitation() {
  const found = /^#invitation=([\w-]+)$/.exec(location.hash);
  if (found === null) return null;
  history.replaceState(null, '', location.pathname);
  return found[1];
}

/**
 * Takes in what a provider sent back with the browser, and out of the address at once.
 * @returns {{ state: string, code: string | null, iss: string | null, error: string | null } | null}
 */
export function takeReturned() {
  const found = /^#sign-on\?(.*)$/.exec(location.hash);
  if (found === null) return null;
  history.replaceState(null, '', location.pathname);
  const answer = new URLSearchParams(found[1]);
  return { state: answer.get('state') ?? '', code: answer.get('code'), iss: answer.get('iss'),
    error: answer.get('error') };
}

/**
 * The secret of a link to a conversation. It stays behind the address, so that the page can be
 * loaded again.
 * @returns {string | null}
 */
export const sharedSecret = () => /^#\/shared\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;

/** Another tab may have logged in since. */
export function key() {
  try {
    return localStorage.getItem(PLACE) ?? kept;
  } catch {
    return kept;
  }
}
