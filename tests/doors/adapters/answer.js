// An answer on its way to a client: what it was told so far, and how that ended.

import assert from 'node:assert/strict';

import { LIMIT_MS } from '../../browser/harness/program.js';

/** The tool that a client has of its own, and what it says. */
export const WEATHER = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
export const weather = ({ city }) => `snow in ${city}`;

export class Answer {
  text = '';
  thinking = '';
  /** Names of tools that the client was to run itself. */
  calls = [];
  /** What it was told of Navi's own tools. */
  did = [];
  /** How it ended: the protocol's word for it, or the client's error. */
  end = null;
  /** Stops it in the client's own way. */
  stop = () => assert.fail('this client cannot stop it');
  #watchers = new Set();

  /** `read` has the client ask, adds what it is told, and gives the protocol's word for the end. */
  constructor(read) {
    this.ended = Promise.resolve().then(() => read(this)).then((end) => `${end}`, said).then((end) => {
      this.end = end;
      this.#watchers.forEach((watch) => watch());
      return this;
    });
  }

  add(told) {
    for (const [what, piece] of Object.entries(told)) {
      if (!piece) continue;
      if (Array.isArray(this[what])) this[what].push(piece);
      else if (what === 'text' || what === 'thinking') this[what] += piece;
      else this[what] = piece;
    }
    this.#watchers.forEach((watch) => watch());
  }

  /** Waits until the condition holds; it must before the end. */
  until(holds) {
    return new Promise((resolve, reject) => {
      const finish = (settle) => { clearTimeout(timer); this.#watchers.delete(watch); settle(); };
      const fail = (why) => finish(() => reject(new Error(`${why}: ${JSON.stringify(this)}`)));
      const watch = () => {
        if (holds(this)) finish(resolve);
        else if (this.end !== null) fail('it ended before');
      };
      const timer = setTimeout(() => fail('not in time'), LIMIT_MS);
      this.#watchers.add(watch);
      watch();
    });
  }
}

/** A client's error, by its own name. */
const said = (error) => `${error?.constructor?.name ?? error?.name}: ${error?.message ?? JSON.stringify(error)}`;
