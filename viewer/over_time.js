// SPDX-License-Identifier: MIT
// What every picture over time has around it: the axis below, annotations and events beside
// allocations above, the cursor, the mark, and when the chosen block is there.
import { countText, roundTicks, shownText, timeText } from './format.js';
import { drawHits } from './hit_marks.js';
import { FONT, FONT_BOLD, fitText, inkOn } from './paint.js';
import { KIND, NEVER } from './kind.js';
import { eventLines } from './describe.js';

const LANE = 18;
const LANES_MAX = 3;
const MARK_SHAPES = 4;

/** How many lanes there are above a picture, and where it begins. @param {any} app */
export function lanesOf(app) {
  const events = app.source.events.length > 0 ? 1 : 0;
  const lanes = Math.min(LANES_MAX, app.annotations.depth) + events;
  return { lanes, top: 8 + lanes * LANE };
}

/** Labels of the axis, and where they belong. @param {any} app @param {any} axis
 * @returns {{at: number, text: string}[]} */
function placeTicks(app, axis) {
  const count = Math.max(axis.width / 110, Math.min(4, axis.width / 75));
  if (!axis.isTime) {
    const { skipped } = app.source.info; // numbers are those of the whole recording
    return roundTicks(axis.low + skipped, axis.high + skipped, count, 1).map((tick) => ({
      at: tick - skipped,
      text: countText(tick),
    }));
  }
  const ticks = roundTicks(axis.low, axis.high, count, 1); // microseconds
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Infinity;
  return ticks.map((tick) => ({ at: tick, text: timeText(tick, step) }));
}

/**
 * The axis below the picture.
 * @param {any} app
 * @param {CanvasRenderingContext2D} context
 * @param {any} box
 */
export function drawPlaceAxis(app, context, box) {
  const { theme } = app;
  const { axis } = box;
  context.strokeStyle = theme.strong;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(box.left, box.bottom + 0.5);
  context.lineTo(box.right, box.bottom + 0.5);
  context.stroke();
  drawHits(app, context, box);
  context.fillStyle = theme.muted;
  context.textAlign = 'center';
  for (const { at, text } of placeTicks(app, axis)) {
    const x = box.left + ((at - axis.low) / (axis.high - axis.low)) * axis.width;
    const half = context.measureText(text).width / 2;
    context.fillRect(Math.round(x), box.bottom, 1, 4);
    if (x + half < box.right - 70)
      context.fillText(text, Math.max(box.left + half, x), box.bottom + 13);
  }
  context.textAlign = 'right';
  context.font = 'italic ' + FONT;
  context.fillText(axis.isTime ? 'time' : 'trace event', box.right, box.bottom + 13);
  context.font = FONT;
  context.textAlign = 'left';
}

/** Annotations and what happened beside allocations, above the picture.
 * @param {any} app @param {CanvasRenderingContext2D} context @param {any} box */
export function drawLanes(app, context, box) {
  const { theme, source } = app;
  const { axis } = box;
  const rows = Math.min(LANES_MAX, app.annotations.depth);
  context.save();
  context.beginPath();
  context.rect(box.left, 0, axis.width, box.bottom);
  context.clip();
  const lastPixel = new Float64Array(LANES_MAX).fill(-2);
  for (const span of app.annotations.spans) {
    if (span.depth >= LANES_MAX || span.end < axis.from || span.start > axis.to) continue;
    const from = box.left + Math.max(-2, axis.pixel(span.start));
    const to = box.left + Math.min(axis.width + 2, axis.pixel(span.end));
    if (to - from < 1 && from - lastPixel[span.depth] < 1) continue;
    lastPixel[span.depth] = to;
    const y = 4 + span.depth * LANE;
    const colour = theme.groups[span.colour % theme.groups.length];
    context.globalAlpha = 0.85;
    context.fillStyle = colour;
    context.fillRect(from, y, Math.max(1, to - from - 1), LANE - 3);
    context.globalAlpha = 1;
    const text = fitText(context, span.name, to - from - 10);
    if (text) {
      context.fillStyle = inkOn(colour);
      context.fillText(text, from + 5, y + (LANE - 3) / 2);
    }
  }
  const y = 4 + rows * LANE;
  const last = new Float64Array(MARK_SHAPES).fill(-9); // by shape: one hides only its like
  for (const event of source.events) {
    if (event.entry < axis.from - 1 || event.entry > axis.to) continue;
    const x = Math.round(box.left + axis.pixel(event.entry));
    const shape = markShape(event.kind);
    if (x <= last[shape]) continue;
    last[shape] = x;
    drawMark(context, theme, shape, x, y, box.bottom);
  }
  context.restore();
}

/** How an event is drawn: 0 what came, 1 what went, 2 what failed, 3 everything else.
 * @param {number} kind */
function markShape(kind) {
  if (kind === KIND.SEGMENT_ALLOC || kind === KIND.SEGMENT_MAP) return 0;
  if (kind === KIND.SEGMENT_FREE || kind === KIND.SEGMENT_UNMAP) return 1;
  return kind === KIND.OOM ? 2 : 3;
}

/** @param {CanvasRenderingContext2D} context @param {any} theme @param {number} shape
 * @param {number} x @param {number} y @param {number} bottom */
function drawMark(context, theme, shape, x, y, bottom) {
  context.fillStyle = shape === 2 ? theme.warn : theme.muted;
  if (shape === 0) context.fillRect(x, y, 1, 6);
  else if (shape === 1) context.fillRect(x, y + 7, 1, 6);
  else if (shape === 2) {
    context.fillRect(x, y + 8, 1, bottom - y - 8);
    context.beginPath();
    context.moveTo(x - 5.5, y);
    context.lineTo(x + 6.5, y);
    context.lineTo(x + 0.5, y + 11);
    context.fill();
  } else {
    context.beginPath();
    context.arc(x + 0.5, y + 6.5, 3, 0, 7);
    context.fill();
  }
}

/** The cursor, the mark and what lies between. @param {any} app
 * @param {CanvasRenderingContext2D} context @param {any} box @param {number} height */
export function drawCursors(app, context, box, height) {
  const { theme, state } = app;
  const { axis } = box;
  const at = (/** @type {number} */ entry) =>
    box.left + axis.pixel(Math.max(0, entry) + (axis.isTime ? 0 : 0.5));
  context.save();
  context.beginPath();
  context.rect(box.left - 1, 0, axis.width + 2, height);
  context.clip();
  if (state.mark >= -1 && state.cursor >= -1) {
    const [from, to] = [at(state.mark), at(state.cursor)].sort((a, b) => a - b);
    context.fillStyle = theme.range;
    context.fillRect(from, box.top, to - from, box.bottom - box.top);
  }
  for (const [entry, colour, text] of [
    [state.mark, theme.mark, 'mark'],
    [state.cursor, theme.cursor, ''],
  ]) {
    if (entry < -1) continue;
    const x = Math.round(at(entry));
    context.fillStyle = colour;
    context.fillRect(x - 0.75, box.top - 2, 1.5, box.bottom - box.top + 4);
    if (text) {
      context.font = FONT_BOLD;
      context.fillText(text, x + 5, box.top + 10);
      context.font = FONT;
    }
  }
  context.restore();
}

/** When the chosen block is there: a bar above the picture, where the block itself has no place.
 * @param {any} app @param {CanvasRenderingContext2D} context @param {any} box */
export function drawChosenSpan(app, context, box) {
  const { source, state, theme } = app;
  if (state.lifetime < 0 || source.count === 0) return;
  const start = source.lifetimeStart[state.lifetime];
  const end = source.lifetimeEnd[state.lifetime];
  const pixel = (/** @type {number} */ place) =>
    Math.max(0, Math.min(box.axis.width, box.axis.pixel(place)));
  const from = box.left + pixel(start === NEVER ? 0 : start);
  const to = box.left + pixel(end === NEVER ? source.count : end);
  const isSeen = (start === NEVER || start < state.to) && end > state.from;
  if (!isSeen) return;
  const wide = Math.max(3, to - from);
  context.fillStyle = theme.text;
  context.fillRect(from, box.top + 1, wide, 3);
  context.fillRect(from, box.top + 1, 1, 9);
  context.fillRect(from + wide - 1, box.top + 1, 1, 9);
}

/** What is marked above a picture. @param {any} app @param {any} box @param {number} px
 * @param {number} py */
export function hitLanes(app, box, px, py) {
  const { source } = app;
  const depth = Math.floor((py - 4) / LANE);
  const place = box.axis.place(px - box.left);
  const rows = Math.min(LANES_MAX, app.annotations.depth);
  if (depth >= 0 && depth < rows) {
    const span = app.annotations.spans.find(
      (/** @type {any} */ s) => s.depth === depth && s.start <= place && s.end >= place,
    );
    if (!span) return null;
    const lines = [
      [shownText(span.name, 200), ''],
      ['from event', countText(span.start + source.info.skipped)],
    ];
    if (isFinite(span.from) && isFinite(span.to))
      lines.push(['lasted', timeText(span.to - span.from)]);
    return { entry: Math.floor(span.start), group: -1, lines, lifetime: -1 };
  }
  let near = null;
  let best = 6;
  for (const event of source.events) {
    const away = Math.abs(box.left + box.axis.pixel(event.entry) - px);
    if (away < best || (away < 6 && event.kind === KIND.OOM)) {
      best = event.kind === KIND.OOM ? -1 : away;
      near = event;
    }
  }
  return near
    ? {
        entry: near.entry,
        group: -1,
        lifetime: -1,
        lines: eventLines(source, near),
        picked: `e${near.entry}`,
        of: { names: source.names, stack: source.stack[near.entry] },
      }
    : null;
}
