// Keeps the end of a growing text in view for who reads at the end, and leaves everyone else alone.

/** This near to the end counts as at the end. */
const NEAR_PX = 24;

/** Whether a pane's reader is at its end. @param {HTMLElement} pane */
export const isAtEnd = (pane) => pane.scrollHeight - pane.clientHeight - pane.scrollTop <= NEAR_PX;
const SMOOTH_SCREENS = 3;

export class ScrollKeeper {
  #at_end = true;
  #last_top = 0;
  /** @type {HTMLElement | null} */
  #scroller = null;
  /** Distance from the end to keep once, while earlier text is put in above. @type {number | null} */
  #held = null;
  #away = false;
  #observer = new ResizeObserver(() => this.#grown());
  #onscroll = () => this.#scrolled();
  /** @type {(away: boolean) => void} */
  #onaway;

  /** @param {(away: boolean) => void} onaway told when the reader leaves the end or comes back */
  constructor(onaway) {
    this.#onaway = onaway;
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

  /** The reader's place stays while earlier text is put in above it. */
  hold() {
    const scroller = this.#scroller;
    if (scroller !== null) this.#held = scroller.scrollHeight - scroller.scrollTop;
  }

  #grown() {
    const scroller = this.#scroller;
    if (scroller === null) return;
    if (this.#held !== null) {
      scroller.scrollTop = scroller.scrollHeight - this.#held;
      this.#held = null;
    } else if (this.#at_end) {
      scroller.scrollTop = scroller.scrollHeight;
    }
    this.#last_top = scroller.scrollTop;
    this.#tell(!this.#at_end && this.#distance(scroller) > NEAR_PX);
  }

  #scrolled() {
    const scroller = this.#scroller;
    if (scroller === null) return;
    const distance = this.#distance(scroller);
    // Only a move upwards is a wish to leave: text that grows moves nobody.
    if (distance <= NEAR_PX) this.#at_end = true;
    else if (scroller.scrollTop < this.#last_top) this.#at_end = false;
    this.#last_top = scroller.scrollTop;
    this.#tell(!this.#at_end && distance > NEAR_PX);
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
