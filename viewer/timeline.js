// SPDX-License-Identifier: MIT
// Bytes in use over time, stacked by group. A column of pixels shows the composition at the moment
// of the column at which most is in use, so that no peak is lost however far one zooms out.
import { areaLabels, drawAreaLabels } from './area_label.js';
import { Axis } from './axis.js';
import { sinceText } from './begin.js';
import { placeName } from './describe.js';
import { countText, shareText, sizeText, sizeTickText, sizeTicks } from './format.js';
import {
  drawChosenSpan,
  drawCursors,
  drawLanes,
  drawPlaceAxis,
  hitLanes,
  lanesOf,
} from './over_time.js';
import { FONT, FONT_BOLD, colourBytes, groupColour, openCanvas } from './paint.js';
import { Pixels, Stacker, mixed, pixelOf, shareOfColour } from './pixels.js';
import { hitSegment, segmentColours, segmentLines, stackSegments } from './segment_stack.js';

export const LEFT = 76; // room for the labels of bytes
const FOOT = 24;
const EDGE_LEAST = 4; // times its edge that an area with one is high, at least
export const OTHERS_SHARE = 0.25; // of the colour of groups that are not the chosen one

/**
 * Where things are in the picture.
 * @param {any} app
 * @param {number} width
 * @param {number} height
 */
export function timelineBox(app, width, height) {
  const { source, state } = app;
  const { lanes, top } = lanesOf(app);
  const axis = new Axis(source, state.axis, state.from, state.to, Math.max(1, width - LEFT - 12));
  return { left: LEFT, top, bottom: height - FOOT, axis, lanes, right: LEFT + axis.width };
}

/** The columns of the picture: their moments, and what is in use then. The truth of the picture is
 * here: drawing only turns these numbers into heights.
 * @param {any} app @param {Axis} axis @param {number} columns */
export function timelineColumns(app, axis, columns) {
  const { curve, grouping, source, state } = app;
  const { first, end } = axis.ranges(columns);
  const groups = grouping.count;
  const moment = new Float64Array(columns);
  const most = new Float64Array(columns);
  const least = new Float64Array(columns);
  const reserved = new Float64Array(columns);
  const sums = new Float64Array(columns * groups);
  curve.mostOfEach(
    first,
    end,
    (
      /** @type {number} */ i,
      /** @type {{value: number, entry: number, least: number}} */ found,
    ) => {
      moment[i] = found.entry;
      most[i] = found.value;
      least[i] = found.least;
      reserved[i] = curve.reservedMost(first[i], end[i]);
      if (!state.segments) sums.set(grouping.sumsAt(found.entry), i * groups);
    },
  );
  return { moment, most, least, reserved, sums, groups, source };
}

/** The highest value to be drawn, with room above.
 * @param {{most: Float64Array, reserved: Float64Array}} columns
 * @param {boolean} [isFit] to what is allocated: what is reserved may lie above the picture */
export function timelineTop(columns, isFit = false) {
  let top = 0;
  for (const value of columns.most) top = Math.max(top, value);
  if (!isFit || top === 0) for (const value of columns.reserved) top = Math.max(top, value);
  return Math.max(1, top) * 1.06;
}

/**
 * @param {any} app
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function drawTimeline(app, canvas, width, height) {
  const { theme, state } = app;
  const { context, ratio } = openCanvas(canvas, width, height);
  const box = timelineBox(app, width, height);
  const columns = Math.max(1, Math.round(box.axis.width * ratio));
  const data = timelineColumns(app, box.axis, columns);
  const high = app.top ?? timelineTop(data, state.fit && !state.segments);
  const scale = { low: state.low * high, high: state.high * high };
  const y = (/** @type {number} */ bytes) =>
    box.bottom - ((bytes - scale.low) / (scale.high - scale.low)) * (box.bottom - box.top);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  const lines = drawBytesAxis(app, context, box, scale, y);
  drawAreas(app, context, box, data, scale, ratio, lines);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.axis.width, box.bottom - box.top);
  context.clip();
  drawReserved(app, context, box, data, columns, y);
  const labels = state.segments ? [] : areaLabels(app, context, box, data, y);
  drawAreaLabels(app, context, labels);
  drawPeak(app, context, box, data, y);
  context.restore();
  drawPlaceAxis(app, context, box);
  drawLanes(app, context, box);
  drawChosenSpan(app, context, box);
  drawCursors(app, context, box, height);
  app.picture = { box, data, columns, y, scale, high, labels };
}

/** What is behind the areas, by row of pixels: paper, and the lines of the axis.
 * @param {any} app @param {any} box @param {number} rows @param {number} ratio
 * @param {number[]} lines where lines are, in pixels of the page */
function groundRows(app, box, rows, ratio, lines) {
  const ground = new Uint32Array(rows).fill(pixelOf(...colourBytes(app.theme.paper)));
  const line = pixelOf(...colourBytes(app.theme.line));
  for (const at of lines) {
    const row = Math.round((at - box.top) * ratio);
    if (row >= 0) ground.fill(line, row, row + Math.max(1, Math.round(ratio)));
  }
  return ground;
}

/** Colours of the groups as they are, then where a group is only for a part of the column's time,
 * then of the upper edges of their areas, and last of what is reserved and not in use.
 * @param {any} app */
function areaColours(app) {
  const { theme, grouping, state } = app;
  const free = colourBytes(theme.free);
  const [paler, share] = shareOfColour(theme.least);
  const [gap, gapShare] = shareOfColour(theme.edge);
  const plain = Array.from({ length: grouping.count }, (_, group) => {
    const colour = colourBytes(groupColour(theme, grouping, group));
    const isOther = state.group !== '' && app.groupOfSelection !== group;
    return isOther ? mixed(free, colour, OTHERS_SHARE) : colour;
  });
  return [
    ...plain,
    ...plain.map((colour) => mixed(colour, paler, share)),
    ...plain.map((colour) => mixed(colour, gap, gapShare)),
    free,
  ];
}

/** The areas, a column of pixels at a time, from the ground up, each with an edge above it where
 * there is room. @param {any} app @param {any} data @param {Stacker} stacker
 * @param {(bytes: number) => number} high in pixels @param {number} edge its height in pixels */
function stackAreas(app, data, stacker, high, edge) {
  const { grouping } = app;
  const { most, least, sums, groups, reserved } = data;
  for (let i = 0; i < most.length; i++) {
    let sum = 0;
    stacker.begin(i);
    for (let k = 0; k < groups; k++) {
      const group = grouping.order[k];
      const size = sums[i * groups + group];
      if (!(size > 0)) continue;
      const top = high(sum + size);
      const end = top - high(sum) > EDGE_LEAST * edge ? top - edge : top;
      if (sum < least[i]) stacker.fill(Math.min(end, high(least[i])), group);
      sum += size;
      if (sum > least[i]) stacker.fill(end, groups + group);
      if (end < top) stacker.fill(top, 2 * groups + group);
    }
    stacker.fill(high(reserved[i]), 3 * groups);
    stacker.end();
  }
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {any} data
 * @param {{low: number, high: number}} scale @param {number} ratio @param {number[]} lines */
function drawAreas(app, context, box, data, scale, ratio, lines) {
  const top = Math.round(box.top * ratio);
  const rows = Math.max(1, Math.round(box.bottom * ratio) - top);
  const pixels = Pixels.of(app.areas, data.most.length, rows);
  const times = rows / (scale.high - scale.low);
  app.areas = pixels;
  const ground = groundRows(app, box, rows, ratio, lines);
  const high = (/** @type {number} */ bytes) => (bytes - scale.low) * times;
  if (app.state.segments) {
    const look = segmentColours(app);
    stackSegments(app, data, new Stacker(pixels, look.colours, ground), look, high, ratio);
  } else stackAreas(app, data, new Stacker(pixels, areaColours(app), ground), high, ratio);
  context.putImageData(pixels.image, Math.round(box.left * ratio), top);
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {any} data
 * @param {number} columns @param {(bytes: number) => number} y */
function drawReserved(app, context, box, data, columns, y) {
  const step = box.axis.width / columns;
  context.strokeStyle = app.theme.reserved;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let i = 0; i < columns; i++) {
    const at = y(data.reserved[i]);
    if (i === 0) context.moveTo(box.left, at);
    else if (data.reserved[i] !== data.reserved[i - 1]) {
      context.lineTo(box.left + i * step, y(data.reserved[i - 1]));
      context.lineTo(box.left + i * step, at);
    }
    if (i + 1 === columns) context.lineTo(box.right, at);
  }
  context.stroke();
  const limit = app.capacity;
  if (limit) {
    context.setLineDash([6, 4]);
    context.strokeStyle = app.theme.warn;
    context.beginPath();
    context.moveTo(box.left, y(limit));
    context.lineTo(box.right, y(limit));
    context.stroke();
    context.setLineDash([]);
  }
}

/** The name of the peak: as much of it as fits. @param {any} app
 * @param {CanvasRenderingContext2D} context @param {number} room in pixels */
function peakText({ curve, source }, context, room) {
  const since = sinceText(source);
  const short = `peak${since}${since ? ':' : ''} ${sizeText(curve.peak.value)}`;
  const whole = `${short}, event ${countText(curve.peak.entry + source.info.skipped)}`;
  return context.measureText(whole).width <= room ? whole : short;
}

/** Where the name of the peak begins: beside its line, where neither the cursor nor a failed
 * request after it strike the name out. @param {any} box @param {number} x of the line
 * @param {number} width of the name */
function peakLeft(box, x, width) {
  const [before, behind] = [x - width - 7, x + 7];
  if (before >= box.left + 4) return before;
  if (behind + width <= box.right - 4) return behind;
  return Math.max(box.left + 4, box.right - width - 4);
}

/** Names the peak, above what is reserved then. @param {any} app
 * @param {CanvasRenderingContext2D} context @param {any} box @param {any} data
 * @param {(bytes: number) => number} y */
function drawPeak(app, context, box, data, y) {
  const { curve, state, theme } = app;
  const { entry, value } = curve.peak;
  if (state.segments || !(value > 0) || entry < state.from || entry >= state.to) return;
  const x = box.left + box.axis.pixel(entry + (box.axis.isTime ? 0 : 0.5));
  context.font = FONT_BOLD;
  const text = peakText(app, context, box.axis.width - 8);
  const width = context.measureText(text).width;
  const left = peakLeft(box, x, width);
  const times = data.reserved.length / box.axis.width;
  const from = Math.floor((left - box.left) * times);
  let above = value;
  for (const reserved of data.reserved.subarray(from, Math.ceil(from + width * times)))
    above = Math.max(above, reserved);
  const at = Math.max(box.top + 9, y(above) - 11);
  context.fillStyle = theme.paper;
  context.globalAlpha = 0.8;
  context.fillRect(left - 3, at - 8, width + 6, 16);
  context.globalAlpha = 1;
  context.fillStyle = theme.text;
  context.fillText(text, left, at);
  context.fillRect(Math.round(x) - 0.5, at - 8, 1, Math.max(0, y(value) - at + 8));
  context.font = FONT;
}

/** The labels of the axis; returns where its lines are.
 * @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {any} scale
 * @param {(bytes: number) => number} y @returns {number[]} */
function drawBytesAxis(app, context, box, scale, y) {
  const { theme } = app;
  const count = Math.max(2, Math.floor((box.bottom - box.top) / 56));
  let ticks = sizeTicks(scale.high - scale.low, count);
  const step = ticks.length > 1 ? ticks[1] : scale.high;
  ticks = ticks
    .map((tick) => tick + Math.ceil(scale.low / step) * step)
    .filter((tick) => tick <= scale.high);
  context.textAlign = 'right';
  context.fillStyle = theme.muted;
  for (const tick of ticks)
    context.fillText(sizeTickText(tick, step), box.left - 8, Math.round(y(tick)) + 0.5);
  context.textAlign = 'left';
  return ticks.map((tick) => Math.round(y(tick)));
}

/** What is at a point of the picture. @param {any} app @param {number} px @param {number} py */
export function hitTimeline(app, px, py) {
  const { picture, grouping, source, state, curve } = app;
  if (!picture || px < picture.box.left || px > picture.box.right) return null;
  const { box, data, columns } = picture;
  if (py < box.top) return hitLanes(app, box, px, py);
  const i = Math.max(
    0,
    Math.min(columns - 1, Math.floor(((px - box.left) / box.axis.width) * columns)),
  );
  const entry = data.moment[i];
  const lines = [
    [placeName(source, entry), ''],
    ['requested', sizeText(data.most[i])],
    ['reserved', sizeText(data.reserved[i])],
  ];
  if (data.least[i] < data.most[i])
    lines.splice(2, 0, ['least in this column', sizeText(data.least[i])]);
  let ground = 0;
  let found = -1;
  let segment = -1;
  const bytes =
    picture.scale.low +
    ((box.bottom - py) / (box.bottom - box.top)) * (picture.scale.high - picture.scale.low);
  for (const group of grouping.order) {
    const sum = data.sums[i * data.groups + group];
    if (!state.segments && bytes >= ground && bytes < ground + sum) {
      found = group;
      lines.push([grouping.text(group), `${sizeText(sum)}, ${shareText(sum, data.most[i])}`]);
    }
    ground += sum;
  }
  if (state.segments) segment = hitSegment(app, entry, bytes);
  if (segment >= 0) lines.push(...segmentLines(app, segment));
  else if (found < 0 && bytes < curve.reserved(entry)) {
    lines.push([
      'reserved, not requested',
      sizeText(Math.max(0, data.reserved[i] - data.most[i])),
    ]);
  }
  const of =
    segment >= 0
      ? { names: source.names, stack: source.spans[segment].stack }
      : stackOfGroup(app, found);
  return {
    entry: source.count > 0 ? entry : -1,
    group: found,
    lines,
    lifetime: -1,
    of,
    picked: segment >= 0 ? `s${segment}` : '',
  };
}

/** A stack that the blocks of a group come from, for what hovering shows.
 * @param {any} app @param {number} group */
function stackOfGroup({ grouping, source, state }, group) {
  const key = grouping.keys[grouping.shown[group - 1]];
  if (!(group > 0) || !key || key.stack < 0) return null;
  return { names: source.names, stack: key.stack, isExample: state.by !== 'stack' };
}
