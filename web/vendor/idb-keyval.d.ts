export { createStore, entries, promisifyRequest } from 'idb-keyval';
