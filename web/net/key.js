// The half of a login that no cookie carries. Browsers send cookies to every port of a host; what
// is stored for an origin only its own pages read.

const PLACE = 'navi.key';
/** Where nothing can be stored, a login lasts as long as the page. */
let kept = '';

/** Takes the key in that stands behind the address to which a login's link led. */
export function takeKey() {
  const found = /^#key=([0-9a-f]{64})$/.exec(location.hash);
  if (found === null) return;
  kept = found[1];
  try {
    localStorage.setItem(PLACE, kept);
  } catch {
    // Full or forbidden.
  }
  history.replaceState(null, '', location.pathname);
}

/** Another tab may have logged in since. */
export function key() {
  try {
    return localStorage.getItem(PLACE) ?? kept;
  } catch {
    return kept;
  }
}
