import { conversation } from './ru/conversation.js';
import { passkeys } from './ru/passkeys.js';
import { people } from './ru/people.js';
import { places } from './ru/places.js';
import { service } from './ru/service.js';
import { waiting } from './ru/waiting.js';

/** @type {import('./index.js').Dictionary} */
export const ru = { ...conversation, ...passkeys, ...people, ...places, ...service, ...waiting };
