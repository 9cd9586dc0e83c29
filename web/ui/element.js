import { LitElement, SignalWatcher } from '../vendor/lit.js';

/** An element in light DOM that is drawn again when a signal that it read changes. */
export class NaviElement extends SignalWatcher(LitElement) {
  createRenderRoot() {
    return this;
  }
}
