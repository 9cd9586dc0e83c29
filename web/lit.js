// What the page takes of Lit and of its signals.

export { html, LitElement, nothing, render, svg } from 'lit';
export { live } from 'lit/directives/live.js';
export { repeat } from 'lit/directives/repeat.js';
export { computed, signal, SignalWatcher } from '@lit-labs/signals';

/** @typedef {import('lit').TemplateResult} TemplateResult */
