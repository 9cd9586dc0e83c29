import { conversation } from './uk/conversation.js';
import { passkeys } from './uk/passkeys.js';
import { people } from './uk/people.js';
import { places } from './uk/places.js';
import { service } from './uk/service.js';
import { waiting } from './uk/waiting.js';

/** @type {import('./index.js').Dictionary} */
export const uk = { ...conversation, ...passkeys, ...people, ...places, ...service, ...waiting };
