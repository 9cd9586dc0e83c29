export { LitElement, html, svg, nothing, render } from 'lit';
export type { TemplateResult, PropertyValues } from 'lit';
export { repeat } from 'lit/directives/repeat.js';
export { live } from 'lit/directives/live.js';
export { signal, SignalWatcher } from '@lit-labs/signals';
