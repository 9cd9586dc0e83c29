import { conversation } from './en/conversation.js';
import { passkeys } from './en/passkeys.js';
import { people } from './en/people.js';
import { places } from './en/places.js';
import { service } from './en/service.js';
import { waiting } from './en/waiting.js';

/** @type {import('./index.js').Dictionary} */
export const en = { ...conversation, ...passkeys, ...people, ...places, ...service, ...waiting };
