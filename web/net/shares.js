// REST calls about who is in a conversation, and links to it.

/** @import { LinkInfo, MadeLink, PersonRef, Shared } from '../state/wire.js' */

import { call, sessionPath } from './api.js';

/** @param {string} id @param {string} person */
const one = (id, person) => `${sessionPath(id)}/people/${encodeURIComponent(person)}`;

export const shares = {
  /** @param {string} id @returns {Promise<Shared>} */
  people: (id) => call('GET', `${sessionPath(id)}/people`),
  /** @param {string} id @param {string} name @returns {Promise<PersonRef>} */
  add: (id, name) => call('POST', `${sessionPath(id)}/people`, { name }),
  /** @param {string} id @param {string} person */
  remove: (id, person) => call('DELETE', one(id, person)),
  /** @param {string} id */
  leave: (id) => call('POST', `${sessionPath(id)}/leave`),
  /** @param {string} id @returns {Promise<LinkInfo[]>} */
  links: (id) => call('GET', `${sessionPath(id)}/links`),
  /** @param {string} id @param {number} days @returns {Promise<MadeLink>} */
  makeLink: (id, days) => call('POST', `${sessionPath(id)}/links`, { days }),
  /** @param {string} id @param {string} link */
  endLink: (id, link) => call('DELETE', `${sessionPath(id)}/links/${encodeURIComponent(link)}`),
};
