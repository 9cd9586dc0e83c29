import { conversation } from './ru/conversation.js';
import { places } from './ru/places.js';
import { service } from './ru/service.js';

/** @type {import('./index.js').Dictionary} */
export const ru = { ...conversation, ...places, ...service };
