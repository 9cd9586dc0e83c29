// The keyboard on a phone's screen: where a browser lays it over the page instead of making that smaller
// (`interactive-widget` in `index.html` asks for the latter), the page keeps to what is left to be seen.

/** Enlarged by two fingers, less is seen without any keyboard. */
const LARGER = 1.01;

/** Has the page follow what can be seen of it. */
export function followKeyboard() {
  const seen = globalThis.visualViewport;
  if (seen == null) return;
  const follow = () => {
    const covered = seen.scale < LARGER && innerHeight - seen.height > 1;
    const { style } = document.documentElement;
    for (const [name, px] of [['--seen-height', seen.height], ['--seen-top', seen.offsetTop]]) {
      if (covered) style.setProperty(String(name), `${px}px`);
      else style.removeProperty(String(name));
    }
  };
  for (const event of ['resize', 'scroll']) seen.addEventListener(event, follow);
}
