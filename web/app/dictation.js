// Words that are spoken and written down by the browser, where it can. Most browsers send the sound to their
// maker for that, which is said before it happens the first time.

import { language } from '../i18n/index.js';
import { signal } from '../lit.js';
import { storage } from './prefs.js';

/**
 * @typedef {{ onheard: (words: string) => void, onwords: (words: string) => void, onend: (problem:
 *  keyof typeof PROBLEMS | null) => void }} Listener
 */

const TAGS = { en: 'en-US', uk: 'uk-UA', ru: 'ru-RU' };

/** What went wrong, as the browser names it, and as the page does. */
export const PROBLEMS = /** @type {const} */ ({
  'not-allowed': 'refused', 'service-not-allowed': 'refused', 'audio-capture': 'no_microphone',
  'language-not-supported': 'language', 'no-speech': 'silence', network: 'network',
});

/** The browser's own, under either of its names. */
function recogniser() {
  const { SpeechRecognition, webkitSpeechRecognition } = /** @type {any} */ (globalThis);
  return SpeechRecognition ?? webkitSpeechRecognition;
}

export const canDictate = () => recogniser() !== undefined;

/** Whether somebody knows that the sound may leave this machine, and wants it so. */
export const isAgreed = signal(storage.get('navi.dictation') === 'agreed');

export function agree() {
  isAgreed.set(true);
  storage.set('navi.dictation', 'agreed');
}

/** Whether the browser can write it down on this machine. */
export async function hearsHere() {
  try {
    return await recogniser().available({ langs: [TAGS[language.get()]], processLocally: true }) === 'available';
  } catch {
    // It has no such thing, or is not let.
    return false;
  }
}

/**
 * Listens until it is stopped, or ends by itself. What is dropped is not told any more.
 * @param {boolean} here whether it is to be written down on this machine
 * @param {Listener} listener
 */
export function dictate(here, { onheard, onwords, onend }) {
  const hearing = new (recogniser())();
  /** @type {any} */
  let problem = null;
  hearing.lang = TAGS[language.get()];
  hearing.continuous = true;
  hearing.interimResults = true;
  if (here) hearing.processLocally = true;
  hearing.onresult = (/** @type {any} */ { results, resultIndex }) => {
    const news = Array.from(results).slice(resultIndex)
      .map((result) => ({ final: result.isFinal, text: result[0].transcript.trim() }));
    for (const { final, text } of news) if (final && text !== '') onwords(text);
    onheard(news.filter(({ final }) => !final).map(({ text }) => text).join(' '));
  };
  hearing.onerror = (/** @type {any} */ { error }) => { if (error !== 'aborted') problem = error; };
  hearing.onend = () => onend(problem);
  hearing.start();
  return {
    stop: () => hearing.stop(),
    drop() {
      hearing.onresult = hearing.onend = null;
      hearing.abort();
    },
  };
}
