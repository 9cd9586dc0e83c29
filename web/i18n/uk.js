import { conversation } from './uk/conversation.js';
import { places } from './uk/places.js';
import { service } from './uk/service.js';

/** @type {import('./index.js').Dictionary} */
export const uk = { ...conversation, ...places, ...service };
