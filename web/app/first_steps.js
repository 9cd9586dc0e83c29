// The first steps of somebody who is new here: they come by themselves once, and again when they are asked for.

import { signal } from '../lit.js';
import { storage } from './prefs.js';
import { archived, sessions } from './signals.js';

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

/** Whether nothing but what is put away could still show that nobody is new here. */
export const mayBeNew = () => state.get() === 'new' && sessions.get().loaded && sessions.get().list.length === 0;

/** Who has a conversation, put away or not, is not new. */
export const showsFirstSteps = () => state.get() === 'asked' || (mayBeNew() && archived.get().state === 'read' && archived.get().list.length === 0);
