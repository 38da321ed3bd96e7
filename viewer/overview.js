// SPDX-License-Identifier: MIT
// The whole recording in a strip under every view: what is in use and reserved, which part is being
// looked at, and where the cursor is.
import { openCanvas } from './paint.js';
import { Axis } from './axis.js';

/** From the head alone, before the trace has been read.
 * @param {HTMLCanvasElement} canvas @param {any} info @param {import('./paint.js').Theme} theme
 * @param {{width: number, height: number}} [size]
 * @param {{left: number, right: number, top: number, bottom: number}} [edge] what stays free */
export function drawFirstPicture(
  canvas,
  info,
  theme,
  size = canvas.getBoundingClientRect(),
  edge = { left: 0, right: 0, top: 0, bottom: 0 },
) {
  const { width, height } = size;
  const { context } = openCanvas(canvas, width, height);
  const top = Math.max(
    1,
    ...info.overview.map((/** @type {number[]} */ pair) => pair[1]),
    ...info.overview.map((/** @type {number[]} */ pair) => pair[0]),
  );
  const high = height - edge.top - edge.bottom;
  const step = (width - edge.left - edge.right) / info.overview.length;
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  info.overview.forEach(
    (/** @type {number[]} */ [requested, reserved], /** @type {number} */ i) => {
      for (const [bytes, colour] of [
        [reserved, theme.free],
        [requested, theme.strong],
      ]) {
        const tall = (Number(bytes) / top) * high;
        context.fillStyle = String(colour);
        context.fillRect(edge.left + i * step, height - edge.bottom - tall, step + 0.5, tall);
      }
    },
  );
}

/** @param {any} app @param {HTMLCanvasElement} canvas */
export function drawOverview(app, canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const { source, curve, theme, state } = app;
  const axis = new Axis(source, state.axis, 0, Math.max(1, source.count), width);
  const depends = [width, height, state.axis, source.id, theme.paper, window.devicePixelRatio];
  if (app.isStale('overview', ...depends)) {
    app.overviewPicture = document.createElement('canvas');
    const { context } = openCanvas(app.overviewPicture, width, height);
    const columns = Math.max(1, Math.floor(width));
    const { first, end } = axis.ranges(columns);
    const top = Math.max(1, curve.reservedPeak.value, curve.peak.value) * 1.05;
    for (let i = 0; i < columns && source.count > 0; i++) {
      const most = curve.most(first[i], end[i]).value;
      const reserved = curve.reservedMost(first[i], end[i]);
      context.fillStyle = theme.free;
      context.fillRect(i, height * (1 - reserved / top), 1, height);
      context.fillStyle = theme.strong;
      context.fillRect(i, height * (1 - most / top), 1, height);
    }
  }
  const { context } = openCanvas(canvas, width, height);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  context.drawImage(app.overviewPicture, 0, 0, width, height);
  const from = axis.pixel(state.from);
  const to = Math.max(from + 2, axis.pixel(state.to));
  if (to - from < width - 1) {
    context.fillStyle = theme.range;
    context.fillRect(from, 0, to - from, height);
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    context.strokeRect(
      Math.round(from) + 0.5,
      0.5,
      Math.max(1, Math.round(to - from) - 1),
      height - 1,
    );
    context.fillStyle = theme.accent;
    for (const at of [from, to]) context.fillRect(Math.round(at) - 1.5, height / 2 - 8, 4, 16);
  }
  context.fillStyle = theme.warn;
  for (const entry of source.ooms) context.fillRect(axis.pixel(entry) - 1, 0, 2, height);
  for (const [place, colour] of [
    [state.mark, theme.mark],
    [state.cursor, theme.cursor],
  ]) {
    if (place >= -1) {
      context.fillStyle = colour;
      context.fillRect(Math.round(axis.pixel(Math.max(0, place))), 0, 2, height);
    }
  }
}
