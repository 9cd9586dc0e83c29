/** What Tab reaches one of, and arrows the others. */
const LINKS = '.session-link';

/**
 * The one row of a list that Tab reaches: where one was last, else the one that is open, else the
 * first. A row that goes while it has the keyboard hands it on to the next one; where it only moves, it keeps it.
 */
export class TabStop {
  /** Where one was last, by its address: a row may be drawn anew elsewhere in the list. */
  #at = '';
  /** The addresses of the rows, as they stood. @type {string[]} */
  #rows = [];
  /** What has the keyboard or had it last. @type {Element | null} */
  #held = null;

  /** @param {HTMLElement} list @param {() => void} leave where the keyboard goes when no row is left */
  constructor(list, leave) {
    this.list = list;
    this.leave = leave;
    new MutationObserver((changes) => this.#settle(changes)).observe(list,
      { childList: true, subtree: true, attributeFilter: ['aria-current'] });
    list.addEventListener('toggle', () => this.#settle(), true);
    list.addEventListener('focusin', ({ target }) => this.#stand(/** @type {Element} */ (target)));
    list.addEventListener('focusout', ({ relatedTarget }) => { if (relatedTarget !== null) this.#held = null; });
    this.#settle();
  }

  /** Those that are not folded away. */
  links() {
    return /** @type {HTMLAnchorElement[]} */ ([...this.list.querySelectorAll(LINKS)]).filter(
      (link) => link.closest('details:not([open])') === null,
    );
  }

  /** @param {Element} target */
  #stand(target) {
    this.#held = target;
    const link = target.closest('li')?.querySelector(LINKS);
    if (link == null) return;
    this.#at = address(link);
    this.#settle();
  }

  /** @param {MutationRecord[]} [changes] */
  #settle(changes = []) {
    const links = this.links();
    const stop = links.find((link) => address(link) === this.#at)
      ?? links.find((link) => link.ariaCurrent === 'page') ?? links[0];
    for (const link of links) link.tabIndex = link === stop ? 0 : -1;
    const gone = changes.some(({ removedNodes }) => [...removedNodes].some((node) => node.contains(this.#held)));
    // In place of a row that is renamed stands a form.
    if (gone && document.activeElement === document.body
      && this.list.querySelector('form') === null) this.#handOn(links);
    this.#rows = links.map(address);
  }

  /** @param {HTMLAnchorElement[]} links */
  #handOn(links) {
    const here = Math.max(0, this.#rows.indexOf(this.#at));
    const next = [...this.#rows.slice(here), ...this.#rows.slice(0, here).reverse()];
    const row = next.map((href) => links.find((link) => address(link) === href)).find((link) => link !== undefined);
    if (row === undefined) this.leave();
    else row.focus();
  }
}

/** @param {Element} link */
const address = (link) => link.getAttribute('href') ?? '';
