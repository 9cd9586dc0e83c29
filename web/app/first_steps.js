// The first steps of somebody who is new here: they come by themselves once, and again when they are asked for.

import { signal } from '../lit.js';
import { storage } from './prefs.js';
import { isGuest, sessions } from './signals.js';

const state = signal(/** @type {'new' | 'asked' | 'done'} */ ('new'));

export function loadFirstSteps() {
  state.set(storage.get('navi.first_steps') === 'done' ? 'done' : 'new');
}

export const askForFirstSteps = () => state.set('asked');

/** Taken or skipped: they do not come again by themselves. */
export function endFirstSteps() {
  state.set('done');
  storage.set('navi.first_steps', 'done');
}

/** Who has a conversation is not new, and a guest takes no step. */
export const showsFirstSteps = () => !isGuest.get()
  && (state.get() === 'asked' || (state.get() === 'new' && sessions.get().loaded && sessions.get().list.length === 0));
