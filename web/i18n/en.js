import { conversation } from './en/conversation.js';
import { places } from './en/places.js';
import { service } from './en/service.js';

/** @type {import('./index.js').Dictionary} */
export const en = { ...conversation, ...places, ...service };
