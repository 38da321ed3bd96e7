// SPDX-License-Identifier: MIT
// Mouse and touch on the picture: drag, pinch, wheel, click.
import { Axis } from './axis.js';
import { panWindow, zoomWindow } from './moves.js';
import { showTip } from './tip.js';
import { CANVAS_VIEWS } from './views.js';

const STILL = 4; // pixels that a click may move
const LINE = 32; // pixels of a line of a wheel that counts lines

/** @typedef {{x: number, y: number}} Point */

/** The distance of two fingers, and what is between them. @param {Map<number, Point>} down */
function pinchOf(down) {
  const [a, b] = [...down.values()];
  return { away: Math.max(20, Math.abs(a.x - b.x)), x: (a.x + b.x) / 2 };
}

export class Pointer {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.canvas = /** @type {HTMLCanvasElement} */ (app.canvas);
    /** @type {Map<number, Point>} */
    this.down = new Map();
    /** @type {any} */
    this.start = null;
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => showTip(null, 0, 0));
    canvas.addEventListener('dblclick', (event) => {
      if (this.view()?.isOverTime && this.app.picture?.box)
        zoomWindow(this.app, 0.25, this.placeOf(this.at(event).x));
    });
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
  }

  view() {
    return CANVAS_VIEWS[this.app.state.view];
  }

  /** @param {MouseEvent} event @returns {Point} */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {number} x */
  placeOf(x) {
    const { box } = this.app.picture;
    return box.axis.place(Math.max(0, Math.min(box.axis.width, x - box.left)));
  }

  /** @param {PointerEvent} event */
  press(event) {
    const { app } = this;
    const point = this.at(event);
    this.down.set(event.pointerId, point);
    this.canvas.setPointerCapture(event.pointerId);
    this.start = {
      ...point,
      from: app.state.from,
      to: app.state.to,
      scroll: app.mapScroll || 0,
      flameScroll: app.flameScroll || 0,
      moved: false,
      shift: event.shiftKey,
      low: app.state.low,
      high: app.state.high,
    };
    if (this.down.size === 2) this.start.pinch = pinchOf(this.down);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { app, down, start } = this;
    const point = this.at(event);
    if (down.has(event.pointerId)) down.set(event.pointerId, point);
    if (!start || down.size === 0) {
      showTip(app.picture ? this.view()?.hit(app, point.x, point.y) : null, point.x, point.y);
      return;
    }
    if (Math.abs(point.x - start.x) + Math.abs(point.y - start.y) > STILL) start.moved = true;
    if (!start.moved) return;
    showTip(null, 0, 0);
    this.drag(point);
  }

  /** @param {PointerEvent} event */
  release(event) {
    const { down, start } = this;
    if (start && !start.moved && event.type === 'pointerup' && down.size === 1)
      this.click(this.at(event), event.shiftKey);
    down.delete(event.pointerId);
    if (down.size === 0) this.start = null;
  }

  /** @param {Point} point */
  drag(point) {
    const { app, start } = this;
    if (!this.view()?.isOverTime) {
      if (app.state.view === 'map') app.mapScroll = start.scroll + start.y - point.y;
      else app.flameScroll = start.flameScroll + start.y - point.y;
      app.refresh();
      return;
    }
    if (!app.picture?.box) return;
    if (this.down.size === 2 && start.pinch) this.pinch();
    else if (start.shift) {
      app.set({
        mark: Math.floor(this.placeOf(start.x)),
        cursor: Math.floor(this.placeOf(point.x)),
      });
    } else this.pan(point);
  }

  pinch() {
    const { start } = this;
    const now = pinchOf(this.down);
    const times = start.pinch.away / now.away;
    start.pinch = now;
    zoomWindow(this.app, times, this.placeOf(now.x));
  }

  /** What was under the pointer when it went down stays under it. @param {Point} point */
  pan(point) {
    const { app, start } = this;
    const { box } = app.picture;
    const axis = new Axis(app.source, app.state.axis, start.from, start.to, box.axis.width);
    const by = axis.place(start.x - point.x) - axis.place(0);
    const height = box.bottom - box.top;
    const up = ((point.y - start.y) / Math.max(1, height)) * (start.high - start.low);
    const span = start.to - start.from;
    const from = Math.max(0, Math.min(app.source.count - span, start.from + by));
    const low = Math.max(0, Math.min(1 - (start.high - start.low), start.low + up));
    app.set({ from, to: from + span, low, high: low + start.high - start.low });
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { app } = this;
    const point = this.at(event);
    const lines = event.deltaMode === 1 ? LINE : 1;
    const amount = (event.deltaY || event.deltaX) * lines;
    event.preventDefault();
    if (!this.view()?.isOverTime) {
      if (app.state.view === 'map') app.mapScroll = (app.mapScroll || 0) + amount;
      else app.flameScroll = (app.flameScroll || 0) + amount;
      app.refresh();
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      panWindow(app, (event.deltaX || event.deltaY) * lines * 0.0008);
    } else if (event.ctrlKey) {
      this.zoomHeight(point, amount);
    } else if (app.picture?.box) {
      const times = Math.exp(Math.max(-200, Math.min(200, amount)) * 0.0022);
      zoomWindow(app, times, this.placeOf(point.x));
    }
  }

  /** @param {Point} point @param {number} amount */
  zoomHeight(point, amount) {
    const { app } = this;
    const box = app.picture?.box;
    if (!box) return;
    const { low, high } = app.state;
    const share = Math.max(0, Math.min(1, (box.bottom - point.y) / (box.bottom - box.top)));
    const span = Math.max(0.01, Math.min(1, (high - low) * Math.exp(amount * 0.0022)));
    const at = low + share * (high - low);
    const from = Math.max(0, Math.min(1 - span, at - span * share));
    app.set({ low: from, high: from + span });
  }

  /** @param {Point} point @param {boolean} isShift */
  click(point, isShift) {
    const { app } = this;
    const { state } = app;
    const hit = this.view()?.hit(app, point.x, point.y);
    if (!hit) {
      app.set({ life: -1 });
      return;
    }
    if (hit.node) {
      app.flameFocus = hit.node.parent ? hit.node : null;
      app.refresh();
      return;
    }
    /** @type {Partial<import('./state.js').State>} */
    const changes = {};
    if (hit.entry >= -1) changes[isShift ? 'mark' : 'cursor'] = hit.entry;
    if (state.view === 'timeline') changes.group = this.groupAt(hit);
    else changes.life = hit.life;
    app.set(changes);
  }

  /** The group that a click on the timeline chooses; a second one at the same entry lets go.
   * @param {any} hit */
  groupAt(hit) {
    const { state, grouping } = this.app;
    if (!(hit.group > 0 && hit.group < grouping.count - 1)) return '';
    const { key } = grouping.keys[grouping.shown[hit.group - 1]];
    return state.group === key && state.cursor === hit.entry ? '' : key;
  }
}
