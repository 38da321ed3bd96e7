// SPDX-License-Identifier: MIT
// Every allocation as one rectangle: from its birth to its death, and as high as it is large. By
// address it lies where the allocator put it; piled, blocks stand on each other in the order of
// their birth, as they are at the moment of the column at which most is in use.
import { beforeText } from './begin.js';
import { pileAt } from './blocks_paint.js';
import { blocksScale, drawPictures, paintForFrame } from './blocks_picture.js';
import { countText, sizeText, sizeTickText, sizeTicks, timeText } from './format.js';
import { lifetimesAt } from './layout.js';
import { openCanvas } from './paint.js';
import { drawChosenSpan, drawCursors, drawLanes, drawPlaceAxis, hitLanes } from './over_time.js';
import { timelineBox } from './timeline.js';
import { NEVER } from './kind.js';
import { placeName } from './describe.js';

/**
 * @param {any} app
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function drawBlocks(app, canvas, width, height) {
  const { theme } = app;
  paintForFrame(app, width, height);
  const { context } = openCanvas(canvas, width, height);
  const box = timelineBox(app, width, height);
  const scale = blocksScale(app);
  const y = (/** @type {number} */ at) =>
    box.bottom - ((at - scale.low) / (scale.high - scale.low)) * (box.bottom - box.top);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.axis.width, box.bottom - box.top);
  context.clip();
  drawPictures(app, context, box, y);
  drawSelected(app, context, box, y);
  context.restore();
  drawHeightAxis(app, context, box, scale, y);
  drawPlaceAxis(app, context, box);
  drawLanes(app, context, box);
  if (app.state.mode === 'pile') drawChosenSpan(app, context, box);
  drawCursors(app, context, box, height);
  app.picture = { box, scale, y };
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box
 * @param {(at: number) => number} y */
function drawSelected(app, context, box, y) {
  const { source, state, extents, theme } = app;
  if (state.lifetime < 0 || state.mode === 'pile') return;
  const start =
    source.lifetimeStart[state.lifetime] === NEVER ? 0 : source.lifetimeStart[state.lifetime];
  const end =
    source.lifetimeEnd[state.lifetime] === NEVER
      ? source.count
      : source.lifetimeEnd[state.lifetime];
  const address = source.lifetimeAddress[state.lifetime];
  const x0 = box.left + box.axis.pixel(start);
  const x1 = box.left + box.axis.pixel(end);
  const y0 = y(extents.height(address + source.blockSize(state.lifetime)));
  const y1 = y(extents.height(address));
  context.strokeStyle = theme.text;
  context.lineWidth = 2;
  context.strokeRect(x0 - 1, y0 - 1, Math.max(3, x1 - x0 + 2), Math.max(3, y1 - y0 + 2));
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {any} scale
 * @param {(at: number) => number} y */
function drawHeightAxis(app, context, box, scale, y) {
  const { theme, state } = app;
  const ticks = sizeTicks(
    scale.high - scale.low,
    Math.max(2, Math.floor((box.bottom - box.top) / 56)),
  );
  const step = ticks[1] || scale.high;
  context.textAlign = 'right';
  context.fillStyle = theme.muted;
  for (let tick = Math.ceil(scale.low / step) * step; tick <= scale.high; tick += step) {
    context.fillText(
      sizeTickText(tick, step),
      box.left - 8,
      Math.min(box.bottom - 5, Math.max(box.top + 6, y(tick))),
    );
    context.fillStyle = theme.strong;
    context.fillRect(box.left - 5, Math.round(y(tick)), 5, 1);
    context.fillStyle = theme.muted;
  }
  context.textAlign = 'left';
  if (state.mode !== 'pile') {
    context.fillStyle = theme.strong;
    for (const below of app.extents.below) {
      const at = Math.round(y(below));
      if (at > box.top && at < box.bottom) context.fillRect(box.left - 3, at, 3, 1);
    }
  }
}

/** The block at a point. @param {any} app @param {number} px @param {number} py */
export function hitBlocks(app, px, py) {
  const { picture, source, state, extents, curve } = app;
  if (!picture || !picture.scale || px < picture.box.left || px > picture.box.right) return null;
  const { box, scale } = picture;
  if (py < box.top) return hitLanes(app, box, px, py);
  if (py > box.bottom || source.count + source.lifetimes === 0) return null;
  const height =
    scale.low + ((box.bottom - py) / (box.bottom - box.top)) * (scale.high - scale.low);
  let entry = box.axis.entry(px - box.left);
  let found = -1;
  if (state.mode === 'pile') {
    const next = Math.ceil(box.axis.place(px + 1 - box.left));
    entry =
      source.count > 0
        ? curve.most(entry, Math.max(entry + 1, Math.min(next, source.count))).entry
        : -1;
    let ground = 0;
    for (const lifetime of pileAt(source, entry)) {
      if (height >= ground && height < ground + source.size(lifetime)) found = lifetime;
      ground += source.size(lifetime);
    }
  } else {
    const address = extents.address(height);
    for (const lifetime of lifetimesAt(source, entry)) {
      const from = source.lifetimeAddress[lifetime];
      if (address >= from && address < from + source.blockSize(lifetime)) found = lifetime;
    }
  }
  const lines = [[placeName(source, entry), '']];
  if (found >= 0) lines.push(...lifetimeLines(app, found));
  else if (state.mode !== 'pile') {
    const address = extents.address(height);
    const span = source.spans.find(
      (/** @type {any} */ s) =>
        s.start <= entry && s.end > entry && address >= s.address && address < s.address + s.size,
    );
    lines.push([span ? 'reserved, not allocated' : 'not reserved', source.hex(address)]);
  }
  return {
    entry,
    group: found >= 0 ? app.grouping.group(found) : -1,
    lifetime: found,
    lines,
    of: found < 0 ? null : { names: source.names, stack: source.lifetimeStack[found] },
  };
}

/** A block in few words. @param {any} app @param {number} lifetime */
export function lifetimeLines(app, lifetime) {
  const { source } = app;
  const start = source.lifetimeStart[lifetime];
  const end = source.lifetimeEnd[lifetime];
  const lines = [
    [source.names.stackText(source.lifetimeStack[lifetime]), ''],
    ['requested', sizeText(source.size(lifetime))],
    ['address', source.hex(source.lifetimeAddress[lifetime])],
  ];
  if (start === NEVER) lines.push([`from ${beforeText(source, 'before the recording')}`, '']);
  else if (end === NEVER) lines.push(['still allocated at the end', '']);
  else {
    lines.push([
      'lasted',
      source.hasTime
        ? timeText(source.time[end] - source.time[start])
        : `${countText(end - start)} events`,
    ]);
  }
  return lines;
}
