// SPDX-License-Identifier: MIT
// Mouse and touch on the strip of the whole recording: a new window, or the old one moved.
import { Axis } from './axis.js';
import { moveCursor } from './navigation.js';

const EDGE_NEAR = 7; // pixels
const BRUSH_STILL = 3; // pixels that a click may move

export class Brush {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.overview = /** @type {HTMLCanvasElement} */ (app.overview);
    /** @type {any} */
    this.drag = null;
  }

  listen() {
    const { app, overview } = this;
    overview.addEventListener('pointerdown', (event) => this.press(event));
    overview.addEventListener('pointermove', (event) => this.move(event));
    overview.addEventListener('pointerup', () => {
      if (this.drag && !this.drag.moved) moveCursor(app, this.drag.place);
      this.drag = null;
    });
    overview.addEventListener('dblclick', () => app.set({ from: 0, to: app.source.count }));
  }

  /** @param {PointerEvent} event */
  spot(event) {
    const { source, state } = this.app;
    const box = this.overview.getBoundingClientRect();
    const axis = new Axis(source, state.axis, 0, Math.max(1, source.count), box.width);
    const x = event.clientX - box.left;
    return { place: axis.place(Math.max(0, Math.min(box.width, x))), axis, x };
  }

  /** What a press takes hold of. @param {{x: number, axis: Axis}} spot */
  kindAt(spot) {
    const { source, state } = this.app;
    if (state.from <= 0 && state.to >= source.count) return 'new';
    const from = spot.axis.pixel(state.from);
    const to = spot.axis.pixel(state.to);
    if (Math.abs(spot.x - from) < EDGE_NEAR) return 'from';
    if (Math.abs(spot.x - to) < EDGE_NEAR) return 'to';
    return spot.x > from && spot.x < to ? 'move' : 'new';
  }

  /** @param {PointerEvent} event */
  press(event) {
    const { source, state } = this.app;
    if (!source || source.count === 0) return;
    const spot = this.spot(event);
    this.drag = {
      kind: this.kindAt(spot),
      place: spot.place,
      from: state.from,
      to: state.to,
      moved: false,
      x: spot.x,
    };
    this.overview.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { app, drag } = this;
    if (!drag) return;
    const spot = this.spot(event);
    if (Math.abs(spot.x - drag.x) > BRUSH_STILL) drag.moved = true;
    if (drag.moved) app.set(this.windowAt(spot.place));
  }

  /** @param {number} place */
  windowAt(place) {
    const { kind, from, to, place: begun } = this.drag;
    if (kind === 'from') return { from: Math.min(place, to - 4), to };
    if (kind === 'to') return { from, to: Math.max(place, from + 4) };
    if (kind === 'new') return { from: Math.min(place, begun), to: Math.max(place, begun) };
    const span = to - from;
    const first = Math.max(0, Math.min(this.app.source.count - span, from + place - begun));
    return { from: first, to: first + span };
  }
}
