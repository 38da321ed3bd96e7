// SPDX-License-Identifier: MIT
// Lets the map run from entry to entry.
import { moveCursor } from './navigation.js';

const STEPS = 400; // from one end of the window to the other

export class Player {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.isPlaying = false;
  }

  toggle() {
    const willPlay = !this.isPlaying;
    if (willPlay && this.app.state.view !== 'map') this.app.set({ view: 'map' });
    this.isPlaying = willPlay; // a change of the view has stopped it
    if (willPlay) requestAnimationFrame(() => this.step());
    this.app.refresh();
  }

  stop() {
    this.isPlaying = false;
  }

  step() {
    if (!this.isPlaying) return;
    const { app } = this;
    const { state, source } = app;
    const next = app.entryAtCursor() + Math.max(1, Math.round((state.to - state.from) / STEPS));
    if (next >= Math.min(source.count - 1, state.to)) this.isPlaying = false;
    moveCursor(app, next, true);
    setTimeout(
      () => requestAnimationFrame(() => this.step()),
      matchMedia('(prefers-reduced-motion: reduce)').matches ? 400 : 30,
    );
  }
}
