// SPDX-License-Identifier: MIT
// Mouse and touch on the picture. A mouse drags, turns its wheel and clicks. One finger drags, two
// pinch and drag, a tap is a click, two taps zoom in, and a finger that rests opens the card.
import { Axis } from './axis.js';
import { panWindow, zoomWindow } from './navigation.js';
import { byId } from './paint.js';
import { chosenBox } from './flame_tree.js';
import { showTip } from './tip.js';
import { CANVAS_VIEWS } from './views.js';

const STILL = 4; // pixels that a click may move
const FINGER_STILL = 10; // and a tap
const LINE = 32; // pixels of a line of a wheel that counts lines
const LONG = 500; // milliseconds until a finger that rests is a long press
const TWICE = 350; // milliseconds between two taps that are one gesture
const TWICE_NEAR = 32; // pixels between them
const ZOOM_TWICE = 0.25;

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
    /** @type {number | undefined} */
    this.longTimer = undefined;
    this.wasTouch = false;
    this.lastTap = { time: -Infinity, x: 0, y: 0 };
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => {
      this.app.hover = null;
      showTip(null, 0, 0);
    });
    canvas.addEventListener('dblclick', (event) => {
      if (!this.wasTouch) this.zoomIn(this.at(event));
    });
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('contextmenu', (event) => {
      if (this.wasTouch) event.preventDefault(); // a long press has a meaning here
    });
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
    const point = this.at(event);
    this.down.set(event.pointerId, point);
    this.canvas.setPointerCapture(event.pointerId);
    this.wasTouch = event.pointerType === 'touch';
    clearTimeout(this.longTimer);
    if (this.wasTouch && this.down.size === 1)
      this.longTimer = setTimeout(() => this.longPress(point), LONG);
    this.begin(point, event.shiftKey);
  }

  /** A movement begins here. @param {Point} point @param {boolean} shift */
  begin(point, shift) {
    const { app } = this;
    this.start = {
      ...point,
      from: app.state.from,
      to: app.state.to,
      scroll: app.mapScroll || 0,
      flameScroll: app.flameScroll || 0,
      moved: this.down.size > 1,
      isLong: false,
      shift,
      low: app.state.low,
      high: app.state.high,
      axis: app.picture?.box?.axis,
    };
    if (this.down.size === 2) this.start.pinch = pinchOf(this.down);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { app, down, start } = this;
    const point = this.at(event);
    if (down.has(event.pointerId)) down.set(event.pointerId, point);
    app.hover = point;
    if (!start || down.size === 0) {
      showTip(app.picture ? this.view()?.hit(app, point.x, point.y) : null, point.x, point.y);
      return;
    }
    const still = this.wasTouch ? FINGER_STILL : STILL;
    if (Math.abs(point.x - start.x) + Math.abs(point.y - start.y) > still) start.moved = true;
    if (!start.moved || start.isLong) return;
    clearTimeout(this.longTimer);
    showTip(null, 0, 0);
    this.drag(point);
  }

  /** @param {PointerEvent} event */
  release(event) {
    const { down, start } = this;
    const isClick =
      start && !start.moved && !start.isLong && event.type === 'pointerup' && down.size === 1;
    clearTimeout(this.longTimer);
    down.delete(event.pointerId);
    if (isClick) {
      if (this.wasTouch) this.tap(this.at(event), event.timeStamp);
      else this.click(this.at(event), event.shiftKey);
    }
    if (start?.hasCard) byId('panel').scrollIntoView({ block: 'nearest' });
    if (down.size === 0) this.start = null;
    else if (start && !start.isLong) this.goOn([...down.values()][0]);
  }

  /** One finger of two was lifted: the other goes on from where it is. @param {Point} point */
  goOn(point) {
    this.begin(point, false);
    this.start.moved = true;
  }

  /** @param {Point} point
   * @param {number} now when the finger was lifted, not when the page, busy perhaps, heard of it */
  tap(point, now) {
    const { time, x, y } = this.lastTap;
    const isNear = Math.abs(point.x - x) + Math.abs(point.y - y) < TWICE_NEAR;
    if (isNear && now - time < TWICE && this.view()?.isOverTime) {
      this.lastTap.time = -Infinity;
      this.zoomIn(point);
      return;
    }
    this.lastTap = { time: now, ...point };
    this.click(point, false);
  }

  /** What is under the finger, in full: its card, or what a mouse shows beside it.
   * @param {Point} point */
  longPress(point) {
    const { app, start } = this;
    if (!start || start.moved || this.down.size !== 1) return;
    const hit = app.picture ? this.view()?.hit(app, point.x, point.y) : null;
    start.isLong = true;
    if (!hit) return;
    this.choose(hit, false);
    showTip(hit, point.x, point.y);
    start.hasCard = hit.lifetime >= 0 || Boolean(hit.picked);
  }

  /** @param {Point} point */
  zoomIn(point) {
    if (this.view()?.isOverTime && this.app.picture?.box)
      zoomWindow(this.app, ZOOM_TWICE, this.placeOf(point.x));
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

  /** What was between the fingers when there were two stays there, and so does what is under
   * them. */
  pinch() {
    const { app, start } = this;
    const { source } = app;
    const { axis, pinch } = start;
    const left = app.picture.box.left;
    const now = pinchOf(this.down);
    const times = pinch.away / now.away;
    const span = (axis.high - axis.low) * times;
    const held = axis.low + ((pinch.x - left) / axis.width) * (axis.high - axis.low);
    const low = held - ((now.x - left) / axis.width) * span;
    const place = (/** @type {number} */ value) => (axis.isTime ? source.atTime(value) : value);
    const least = Math.min(4, source.count);
    const wide = Math.max(least, Math.min(source.count, place(low + span) - place(low)));
    const from = Math.max(0, Math.min(source.count - wide, place(low)));
    app.set({ from, to: from + wide });
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
    showTip(null, 0, 0); // what it says is not there any more
    if (!this.view()?.isOverTime) {
      if (app.state.view === 'map') app.mapScroll = (app.mapScroll || 0) + amount;
      else app.flameScroll = (app.flameScroll || 0) + amount;
      app.refresh();
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      panWindow(app, (event.deltaX || event.deltaY) * lines * 0.0008);
    } else if (event.altKey) {
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
    const hit = app.picture ? this.view()?.hit(app, point.x, point.y) : null;
    showTip(null, 0, 0);
    if (hit) this.choose(hit, isShift);
    else app.set({ lifetime: -1, picked: '' });
  }

  /** @param {any} hit @param {boolean} isShift */
  choose(hit, isShift) {
    const { app } = this;
    const { state } = app;
    if (hit.node) {
      app.set(chosenBox(app, hit.node));
      return;
    }
    /** @type {Partial<import('./state.js').State>} */
    const changes = {};
    if (hit.entry >= -1) changes[isShift ? 'mark' : 'cursor'] = hit.entry;
    changes.picked = hit.picked ?? '';
    if (state.view === 'timeline' && !hit.picked) changes.group = this.groupAt(hit);
    changes.lifetime = hit.lifetime;
    app.set(changes);
  }

  /** The group that a click on the timeline chooses; a second one at the same entry lets go.
   * @param {any} hit */
  groupAt(hit) {
    const { state, grouping } = this.app;
    const key = grouping.keyOf(hit.group);
    return state.group === key && state.cursor === hit.entry ? '' : key;
  }
}
