// A diagram that was written as text: the picture of it, or its source.

/** @import { Problem } from '../state/diagrams.js' */

import { DiagramError, diagrams, DRAW_SECONDS } from '../app/diagrams.js';
import { theme } from '../app/prefs.js';
import { t } from '../i18n/index.js';
import { html, nothing, signal } from '../lit.js';
import { imageAddress, kindOf, MAX_SOURCE_CHARS, titleOf } from '../state/diagrams.js';
import { NaviCode } from './code.js';
import { copyButton } from './copy.js';
import { icons } from './icons.js';
import { openable } from './image.js';

/** So far from where a person looks it is drawn already. */
const NEAR = '600px';
/** What may go better another time. */
const PASSING = new Set(['load', 'time']);

const darkness = matchMedia('(prefers-color-scheme: dark)');
const isDarkOutside = signal(darkness.matches);
darkness.addEventListener('change', () => isDarkOutside.set(darkness.matches));
const isDark = () => (theme.get() === 'auto' ? isDarkOutside.get() : theme.get() === 'dark');

/** @typedef {{ code: string, dark: boolean }} Asked */

export class NaviDiagram extends NaviCode {
  static properties = {
    ...NaviCode.properties, _near: { state: true }, _picture: { state: true }, _problem: { state: true },
    _source: { state: true },
  };

  constructor() {
    super();
    this._near = false;
    /** @type {{ src: string, width: number, height: number, kind: string, dark: boolean } | null} */
    this._picture = null;
    /** @type {Problem | null} */
    this._problem = null;
    /** Whether its reader wants the source. */
    this._source = false;
    /** What the picture is of, or will be. @type {Asked | null} */
    this._asked = null;
    this._gone = new AbortController();
    this._watch = new IntersectionObserver((seen) => {
      this._near = seen.at(-1)?.isIntersecting === true;
      if (!this._near) this.#forgo();
    }, { rootMargin: NEAR });
  }

  connectedCallback() {
    super.connectedCallback();
    this._watch.observe(this);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._watch.disconnect();
    this._near = false;
    this.#forgo();
  }

  /** What is not drawn yet, or what it takes was not there in time, is asked for again once somebody is near. */
  #forgo() {
    this._gone.abort();
    this._gone = new AbortController();
    if (this._problem === null
      || PASSING.has(this._problem.why))
        this._asked = this._picture === null ? null : { code: this.code, dark: this._picture.dark };
  }

  willUpdate() {
    const dark = isDark();
    if (this._asked !== null && this._asked.code !== this.code) {
      this._picture = null;
      this._problem = null;
      this._asked = null;
    }
    if (!this._near || this._asked?.dark === dark) return;
    this._problem = null;
    this._asked = { code: this.code, dark };
    void this.#draw(this._asked);
  }

  /** @param {Asked} asked */
  async #draw(asked) {
    try {
      const { svg, width, height, kind } = await diagrams.draw(asked.code, asked.dark, this._gone.signal);
      if (asked === this._asked) this._picture = {
        src: imageAddress(svg), width, height, kind: kindOf(kind), dark: asked.dark,
      };
    } catch (error) {
      if (asked !== this._asked) return;
      this._picture = null;
      this._problem = error instanceof DiagramError ? error.problem : { why: 'syntax' };
    }
  }

  render() {
    const picture = this._picture;
    if (picture === null)
      return html`${this.source(t('diagram.kind.other'))}${this._problem === null
        ? nothing
        : html`<p class="diagram-problem" role="note" data-testid="diagram-problem">${problem(this._problem)}</p>`}`;
    const kind = t(`diagram.kind.${picture.kind}`);
    const title = titleOf(this.code, picture.kind);
    const toggle = html`<button type="button" class="icon-button" data-testid="diagram-source"
      aria-pressed=${String(this._source)} title=${t('diagram.source')} aria-label=${t('diagram.source')}
      @click=${() => { this._source = !this._source; }}>${icons.code}</button>`;
    if (this._source) return this.source(kind, toggle);
    const alt = title === '' ? kind : t('diagram.alt', { kind, title });
    return html`<div class="code-head"><span
      class="code-lang">${kind}</span>${toggle}${copyButton(() => this.code, 'code.copy')}</div>
      <div class="diagram-picture" data-testid="diagram"
        data-dark=${String(picture.dark)}>${openable(picture.src, alt, null, picture)}</div>`;
  }
}

/** @param {Problem} problem */
function problem({ why, line }) {
  if (line !== undefined) return t('diagram.problem.line', { line });
  return t(`diagram.problem.${why}`, { n: why === 'size' ? MAX_SOURCE_CHARS : DRAW_SECONDS });
}

customElements.define('navi-diagram', NaviDiagram);
