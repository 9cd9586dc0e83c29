// Keeps the end of a growing text in view for who reads at the end, and leaves everyone else alone.

/** This near to the end counts as at the end. */
const NEAR_PX = 24;

/** Whether a pane's reader is at its end. @param {HTMLElement} pane */
export const isAtEnd = (pane) => pane.scrollHeight - pane.clientHeight - pane.scrollTop <= NEAR_PX;
const SMOOTH_SCREENS = 3;
/** This near to an edge more is wanted there. */
const EDGE_SCREENS = 1;

export class ScrollKeeper {
  #at_end = true;
  #last_top = 0;
  /** @type {HTMLElement | null} */
  #scroller = null;
  /**
   * What keeps its place once, while what stands around it changes.
   * @type {{ element: Element, top: number } | null}
   */
  #held = null;
  #away = false;
  #observer = new ResizeObserver(() => this.#grown());
  #onscroll = () => this.#scrolled();
  /** @type {(away: boolean) => void} */
  #onaway;
  /** @type {(edge: 'start' | 'end') => void} */
  #onedge;
  /** @type {() => void} */
  #ongrown;

  /**
   * @param {(away: boolean) => void} onaway told when the reader leaves the end or comes back
   * @param {(edge: 'start' | 'end') => void} onedge told when the reader comes near an edge
   * @param {() => void} ongrown told when the content has another size
   */
  constructor(onaway, onedge, ongrown) {
    this.#onaway = onaway;
    this.#onedge = onedge;
    this.#ongrown = ongrown;
  }

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} content
   */
  watch(scroller, content) {
    if (this.#scroller === scroller) return;
    this.stop();
    this.#scroller = scroller;
    this.#at_end = true;
    scroller.addEventListener('scroll', this.#onscroll, { passive: true });
    this.#observer.observe(content);
    this.#observer.observe(scroller);
  }

  stop() {
    this.#observer.disconnect();
    this.#scroller?.removeEventListener('scroll', this.#onscroll);
    this.#scroller = null;
  }

  /** @param {boolean} smooth */
  toEnd(smooth) {
    this.#at_end = true;
    const scroller = this.#scroller;
    if (scroller === null) return;
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    // A long way is a jump: nobody wants to see all of it fly by.
    const near = this.#distance(scroller) < scroller.clientHeight * SMOOTH_SCREENS;
    scroller.scrollTo({ top: scroller.scrollHeight, behavior: smooth && near && !calm ? 'smooth' : 'instant' });
    this.#tell(false);
  }

  /** The reader was led elsewhere: text that grows moves nobody to the end. */
  leave() {
    this.#at_end = false;
  }

  /**
   * The reader's place stays while text is put in or taken out around it.
   * @param {Iterable<Element>} elements those of which one keeps its place, in order
   */
  hold(elements) {
    const start = this.#scroller?.getBoundingClientRect().top ?? 0;
    for (const element of elements) {
      const { top, bottom } = element.getBoundingClientRect();
      if (bottom <= start) continue;
      this.#held = { element, top };
      return;
    }
  }

  #grown() {
    const scroller = this.#scroller;
    if (scroller === null) return;
    if (this.#held !== null) {
      const { element, top } = this.#held;
      this.#held = null;
      if (element.isConnected) scroller.scrollTop += element.getBoundingClientRect().top - top;
    } else if (this.#at_end) {
      scroller.scrollTop = scroller.scrollHeight;
    }
    this.#last_top = scroller.scrollTop;
    this.#tell(!this.#at_end && this.#distance(scroller) > NEAR_PX);
    this.#ongrown();
  }

  #scrolled() {
    const scroller = this.#scroller;
    if (scroller === null) return;
    const distance = this.#distance(scroller);
    // Only a move upwards is a wish to leave: text that grows moves nobody.
    if (distance <= NEAR_PX) this.#at_end = true;
    else if (scroller.scrollTop < this.#last_top) this.#at_end = false;
    const upwards = scroller.scrollTop < this.#last_top;
    this.#last_top = scroller.scrollTop;
    this.#tell(!this.#at_end && distance > NEAR_PX);
    const edge = scroller.clientHeight * EDGE_SCREENS;
    if (upwards && scroller.scrollTop < edge) this.#onedge('start');
    else if (!upwards && distance < edge) this.#onedge('end');
  }

  /** @param {HTMLElement} scroller */
  #distance(scroller) {
    return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
  }

  /** @param {boolean} away */
  #tell(away) {
    if (away === this.#away) return;
    this.#away = away;
    this.#onaway(away);
  }
}
