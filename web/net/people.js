// REST calls about accounts: one's own, those of all people, and the record.

/**
 * @import { AccountInfo, CreatedToken, Device, InvitationInfo, InvitationOffer, LeftHere,
 *  LinkedSignOn, MadeInvitation, OwnLimits, PersonInfo, PowersInfo, ProofRequest, RecordLine,
 *  UserRole, Scope, SignOnBegun, TokenInfo, WaysIn } from '../state/wire.js'
 */
/** @import { SignOnReturned } from '../app/signals.js' */

import { call, download } from './api.js';

/** @param {string} folder @param {string} id */
const one = (folder, id) => `api/${folder}/${encodeURIComponent(id)}`;

/** How many lines of the record are read at a time. */
export const RECORD_PAGE = 100;

export const people = {
  /** Whether people sign in here, and by what. @returns {Promise<WaysIn>} */
  waysIn: () => call('GET', 'api/sign-in'),
  /**
   * @param {{ name: string, password: string } | { name: string, recovery_code: string }} proof
   * @returns {Promise<{ key: string }>}
   */
  signIn: (proof) => call('POST', 'api/sign-in', proof),
  /** Where one signs out of the provider, too, where one came in by it. @returns {Promise<LeftHere | null>} */
  signOut: () => call('POST', 'logout'),
  /** @param {string} [invitation] the secret of the one by which somebody new joins @returns {Promise<SignOnBegun>} */
  beginSignOn: (invitation) => (invitation === undefined
    ? call('POST', 'api/sign-on')
    : call('POST', 'api/sign-on', { invitation })),
  /** @param {SignOnReturned} answer @returns {Promise<{ key: string }>} */
  finishSignOn: (answer) => call('POST', 'api/sign-on/finish', answer),
  /** @returns {Promise<{ key: string }>} */
  signInByProxy: () => call('POST', 'api/sign-on/proxy'),
  /** @param {string} invitation the secret of its link @returns {Promise<InvitationOffer>} */
  offer: (invitation) => call('POST', 'api/invitation', { invitation }),
  /** @param {string} invitation @param {string} name @param {string} password @returns {Promise<{ key: string }>} */
  accept: (invitation, name, password) => call('POST', 'api/invitation/accept', { invitation, name, password }),

  /** @returns {Promise<AccountInfo>} */
  account: () => call('GET', 'api/account'),
  /**
   * What is left out stays.
   * @param {{ name?: string, password?: string, current_password?: string }} changes
   * @returns {Promise<AccountInfo>}
   */
  changeAccount: (changes) => call('PATCH', 'api/account', changes),
  /** @param {ProofRequest} proof @returns {Promise<{ codes: string[] }>} */
  makeRecoveryCodes: (proof) => call('POST', 'api/account/recovery-codes', proof),
  /** @returns {Promise<Device[]>} */
  devices: () => call('GET', 'api/account/devices'),
  /** @param {string} id */
  signOutDevice: (id) => call('DELETE', one('account/devices', id)),
  /** @returns {Promise<{ signed_out: number }>} */
  signOutOthers: () => call('DELETE', 'api/account/devices'),
  /** @returns {Promise<LinkedSignOn[]>} */
  signOns: () => call('GET', 'api/account/sign-ons'),
  /** @param {ProofRequest} proof @returns {Promise<SignOnBegun>} */
  beginLink: (proof) => call('POST', 'api/account/sign-ons', proof),
  /** @param {SignOnReturned} answer @returns {Promise<LinkedSignOn>} */
  finishLink: (answer) => call('POST', 'api/account/sign-ons/finish', answer),
  /** @param {string} id */
  unlink: (id) => call('DELETE', one('account/sign-ons', id)),
  /** @returns {Promise<TokenInfo[]>} */
  tokens: () => call('GET', 'api/tokens'),
  /**
   * @param {{ name: string, scopes: Scope[], days?: number, current_password?: string }} token
   * @returns {Promise<CreatedToken>}
   */
  makeToken: (token) => call('POST', 'api/tokens', token),
  /** @param {string} id */
  removeToken: (id) => call('DELETE', one('tokens', id)),

  /** @returns {Promise<PersonInfo[]>} */
  all: () => call('GET', 'api/people'),
  /** @param {string} id @param {UserRole} role @param {ProofRequest} [proof] for an admin */
  setRole: (id, role, proof = {}) => call('PATCH', one('people', id), { role, ...proof }),
  /** What all users may use, and what there is to grant. @returns {Promise<PowersInfo>} */
  powers: () => call('GET', 'api/powers'),
  /** In the place of what they had. @param {string} id @param {string[]} powers */
  grant: (id, powers) => call('PATCH', one('people', id), { powers }),
  /** What is left out stays; null: what everybody has. @param {string} id @param {Partial<OwnLimits>} limits */
  setLimits: (id, limits) => call('PATCH', one('people', id), { limits }),
  /** In the place of what they had. @param {string[]} users */
  grantToUsers: (users) => call('PUT', 'api/powers', { users }),
  /** @param {string} id */
  remove: (id) => call('DELETE', one('people', id)),
  /** @param {string} id @param {ProofRequest} proof @returns {Promise<MadeInvitation>} */
  reset: (id, proof) => call('POST', `${one('people', id)}/reset`, proof),
  /** @returns {Promise<InvitationInfo[]>} */
  invitations: () => call('GET', 'api/invitations'),
  /**
   * @param {UserRole} role
   * @param {number} days
   * @param {ProofRequest} proof for an admin
   * @returns {Promise<MadeInvitation>}
   */
  invite: (role, days, proof) => call('POST', 'api/invitations', { role, days, ...proof }),
  /** @param {string} id */
  removeInvitation: (id) => call('DELETE', one('invitations', id)),

  /**
   * The newest first.
   * @param {number | null} before only lines from before this one
   * @returns {Promise<RecordLine[]>}
   */
  record: (before) => call('GET', `api/record?limit=${RECORD_PAGE}${before === null ? '' : `&before=${before}`}`),
  /** All of it, as a file. */
  exportRecord: () => download('api/record/export'),
  /** Everything of one's own, as a file. */
  archive: () => download('api/account/archive'),
};
