import { loadPanels } from '../app/actions.js';
import { choice } from '../app/choice.js';
import { canDictate, isAgreed } from '../app/dictation.js';
import { draftOf, setDraft } from '../app/drafts.js';
import { showsFirstSteps } from '../app/first_steps.js';
import {
  chosenProfile, createError, creating, focusWanted, isGuest, NEW, openId, profiles, status,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { hostOf, staysHere } from '../state/service.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { mark } from './icons.js';
import { pendingMessages } from './pending.js';

const EXAMPLES = ['plan', 'files', 'explain', 'draft'];

/** The page of a new session: who helps, and where to begin. */
export class NaviWelcome extends NaviElement {
  static properties = { _without: { state: true } };

  constructor() {
    super();
    /** Whether the first steps could not be loaded: the page is whole without them. */
    this._without = false;
  }

  updated() {
    if (this.querySelector('navi-first-steps') !== null) loadPanels().catch(() => { this._without = true; });
  }

  render() {
    const error = createError.get();
    const { backend, model } = choice();
    const host = hostOf(status.get(), model, backend);
    if (creating.get()) return html`<div class="scroll"><div class="column">${pendingMessages(NEW)}</div></div>`;
    return html`<div class="scroll"><div class="column welcome" data-testid="welcome">
      <span class="welcome-mark">${mark}</span>
      <h2>${t('welcome.title')}</h2>
      <p class="welcome-text">${t('welcome.text')}
        <span data-testid="welcome-where">${host !== null
          ? t('welcome.hosted', { host })
          : staysHere(status.get(), model)
            ? t(canDictate() && isAgreed.get() ? 'welcome.dictated' : 'welcome.local')
            : nothing}</span></p>
      ${showsFirstSteps() && !this._without ? html`<navi-first-steps></navi-first-steps>` : this.#choices()}
      ${error === null ? nothing : errorCard(error)}
    </div></div>`;
  }

  #choices() {
    if (isGuest.get()) return nothing;
    const list = profiles.get();
    const { profile_id: chosen } = choice();
    return html`${list.length < 2 ? nothing : html`<fieldset class="profiles"><legend>${t('welcome.profile')}</legend>
        ${list.map((profile) => html`<label
          class="profile"><input type="radio" name="profile" class="cover" data-testid="profile-choice"
          value=${profile.profile_id}
          .checked=${profile.profile_id === chosen} @change=${() => chosenProfile.set(profile.profile_id)}>
          <span class="profile-name">${profile.name}</span><span
            class="profile-text">${profile.description}</span></label>`)}
      </fieldset>`}
      <section class="examples" aria-label=${t('welcome.examples')}>
        ${EXAMPLES.map((name) => html`<button type="button" class="example" data-testid="example"
          @click=${() => writeBelow(t(`welcome.example.${name}`))}>${t(`welcome.example.${name}`)}</button>`)}
      </section>`;
  }
}

/** The example that was put there last. */
let example = '';

/**
 * An example is put where it can still be changed, not sent: in place of another one, and behind what
 * somebody wrote.
 * @param {string} text
 */
export function writeBelow(text) {
  if (isGuest.get()) return;
  const key = openId.get() ?? NEW;
  const draft = draftOf(key).trimEnd();
  setDraft(key, draft === '' || draft === example ? text : `${draft}\n\n${text}`);
  example = text.trimEnd();
  focusWanted.set('composer');
}

customElements.define('navi-welcome', NaviWelcome);
