// SPDX-License-Identifier: MIT
// Every allocation as one rectangle: from its birth to its death, and as high as it is large. By
// address it lies where the allocator put it; piled, blocks stand on each other in the order of
// their birth, as they are at the moment of the column at which most is in use.
//
// The picture is painted into an array of pixels, in slices between frames: what is smaller than a
// pixel adds its share of colour to it, so nothing is ever left out. Until it is there the one
// before is shown stretched, over the one of the whole recording where that does not reach.
import { Axis } from './axis.js';
import { countText, sizeText, sizeTicks, timeText } from './format.js';
import { lifetimesAt } from './layout.js';
import { colourBytes, groupColour, openCanvas } from './paint.js';
import { Pixels, Raster, addShares, mixed } from './pixels.js';
import { drawChosenSpan, drawCursors, drawLanes, drawPlaceAxis, hitLanes } from './over_time.js';
import { LEFT, OTHERS_SHARE, timelineBox } from './timeline.js';
import { KIND, NEVER } from './trace.js';
import { placeName } from './describe.js';

const SLICE = 20000; // what is painted between looks at the clock, in pixels
const LIFE_COST = 6; // of a block, beside its pixels
const REST = 60; // milliseconds without a change after which all time is for painting
const SLICE_MS = 12; // then
const MOVING_MS = 4; // of a frame while one moves

/** Addresses that were ever reserved, without the gaps between them. */
export class Extents {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    const ranges = source.spans.map((span) => [span.address, span.address + span.size]);
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      if (ranges.length > 0 && source.spans.length > 0) break;
      ranges.push([
        source.lifetimeAddress[lifetime],
        source.lifetimeAddress[lifetime] + source.blockSize(lifetime),
      ]);
    }
    ranges.sort((a, b) => a[0] - b[0]);
    /** @type {number[]} */
    this.start = [];
    /** @type {number[]} */
    this.end = [];
    for (const [from, to] of ranges) {
      const last = this.end.length - 1;
      if (last >= 0 && from <= this.end[last]) this.end[last] = Math.max(this.end[last], to);
      else {
        this.start.push(from);
        this.end.push(to);
      }
    }
    this.below = new Float64Array(this.start.length + 1);
    for (let i = 0; i < this.start.length; i++) {
      this.below[i + 1] = this.below[i] + this.end[i] - this.start[i];
    }
    this.total = Math.max(1, this.below[this.start.length]);
  }

  /** The last range that begins at or below an address; -1: none. @param {number} address */
  find(address) {
    let low = 0;
    let high = this.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] <= address) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Height of an address above the lowest one, gaps not counted. @param {number} address */
  height(address) {
    const i = this.find(address);
    return i < 0 ? 0 : this.below[i] + Math.min(address, this.end[i]) - this.start[i];
  }

  /** @param {number} height */
  address(height) {
    let i = 0;
    while (i + 1 < this.start.length && this.below[i + 1] <= height) i++;
    return (this.start[i] ?? 0) + height - this.below[i];
  }
}

/** Colours of the groups, then those of blocks that a search does not find. @param {any} app */
function blockTints(app) {
  const { grouping, theme, state } = app;
  const free = colourBytes(theme.free);
  const plain = Array.from({ length: grouping.count }, (_, group) => {
    const colour = colourBytes(groupColour(theme, grouping, group));
    const isOther = state.group !== '' && app.groupOfSelection !== group;
    return isOther ? mixed(free, colour, OTHERS_SHARE) : colour;
  });
  return [...plain, ...plain.map((colour) => mixed(free, colour, OTHERS_SHARE))];
}

/** The number of a block's colour in these. @param {any} app
 * @returns {(lifetime: number) => number} */
function tintOf(app) {
  const { groupOfLifetime, count } = app.grouping;
  const { matching } = app;
  if (!matching) return (lifetime) => groupOfLifetime[lifetime];
  return (lifetime) => groupOfLifetime[lifetime] + (matching[lifetime] ? 0 : count);
}

/** Paints blocks by address; gives the cost of what it did, in slices. @param {any} app
 * @param {Axis} axis @param {Raster} raster @param {Float32Array} ground
 * @param {{low: number, high: number}} scale */
function* paintByAddress(app, axis, raster, ground, scale) {
  const { source, extents } = app;
  const tint = tintOf(app);
  const index = source.index();
  const { width, height } = raster;
  const times = height / (scale.high - scale.low);
  const y = (/** @type {number} */ at) => height - (at - scale.low) * times;
  for (const span of source.spans) {
    const x0 = axis.pixel(Math.max(0, span.start));
    const x1 = axis.pixel(Math.min(source.count, span.end));
    const y0 = y(extents.height(span.address + span.size));
    yield 1 + addShares(ground, width, height, x0, y0, x1, y(extents.height(span.address)));
  }
  const next = (/** @type {number} */ chunk) => index.next(chunk, axis.from, axis.to);
  for (let chunk = next(0); chunk < index.chunks; chunk = next(chunk + 1)) {
    const before = raster.cost;
    const last = index.end(chunk);
    for (let lifetime = index.first(chunk); lifetime < last; lifetime++) {
      const start = source.lifetimeStart[lifetime] === NEVER ? 0 : source.lifetimeStart[lifetime];
      const end =
        source.lifetimeEnd[lifetime] === NEVER ? source.count : source.lifetimeEnd[lifetime];
      if (end <= axis.from || start >= axis.to) continue;
      const address = source.lifetimeAddress[lifetime];
      const top = extents.height(address + source.blockSize(lifetime));
      const foot = extents.height(address);
      raster.add(axis.pixel(start), y(top), axis.pixel(end), y(foot), tint(lifetime));
    }
    yield raster.cost - before + LIFE_COST * (last - index.first(chunk));
  }
}

/** The blocks that stand on each other right after an entry, oldest first.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function pileAt(source, entry) {
  /** @type {number[]} */
  const old = [];
  /** @type {number[]} */
  const list = [];
  source
    .index()
    .eachAt(source, entry, (lifetime) =>
      (source.lifetimeStart[lifetime] === NEVER ? old : list).push(lifetime),
    );
  return old.concat(list);
}

/** Paints piled blocks; gives the cost of what it did, in slices.
 * @param {any} app @param {Axis} axis @param {Raster} raster
 * @param {{low: number, high: number}} scale */
function* paintPile(app, axis, raster, scale) {
  const { source, curve } = app;
  const tint = tintOf(app);
  const { first, end } = axis.ranges(raster.width);
  const times = raster.height / (scale.high - scale.low);
  let list = pileAt(source, first[0]);
  let at = first[0];
  for (let i = 0; i < raster.width; i++) {
    const entry = curve.most(first[i], end[i]).entry;
    const before = raster.cost;
    const from = at;
    for (at++; at <= entry; at++) {
      const kind = source.kind[at];
      if (kind === KIND.ALLOC || kind === KIND.ALLOC_AGAIN) list.push(source.ref[at]);
    }
    at = Math.max(at - 1, entry);
    let ground = 0;
    let kept = 0;
    for (const lifetime of list) {
      if (source.lifetimeEnd[lifetime] !== NEVER && source.lifetimeEnd[lifetime] <= entry)
        continue;
      list[kept++] = lifetime;
      const size = source.size(lifetime);
      raster.add(
        i,
        raster.height - (ground + size - scale.low) * times,
        i + 1,
        raster.height - (ground - scale.low) * times,
        tint(lifetime),
      );
      ground += size;
    }
    list.length = kept;
    yield raster.cost - before + LIFE_COST * kept + (at - from);
  }
}

/** What the picture shows of the height: bytes of addresses, or in use. @param {any} app */
export function blocksScale(app) {
  const { state, extents, curve } = app;
  const top = state.mode === 'pile' ? Math.max(1, curve.peak.value) * 1.04 : extents.total;
  return { low: state.low * top, high: state.high * top, top };
}

/** Everything that a picture depends on beside the window: one of another look is of no use.
 * @param {any} app @param {number} width @param {number} height */
function lookKey(app, width, height) {
  const { state, source, theme, grouping } = app;
  return JSON.stringify([
    width,
    height,
    window.devicePixelRatio,
    state.axis,
    state.mode,
    source.id,
    theme.paper,
    app.groupingNumber,
    grouping.by,
    state.group,
    state.query,
  ]);
}

/** What of the whole a picture shows. @param {any} app */
function frameOf(app) {
  const { from, to, low, high } = app.state;
  return { from, to, low, high };
}

/** @typedef {{from: number, to: number, low: number, high: number}} Frame */

/** @param {Frame | null} a @param {Frame} b */
function isSameFrame(a, b) {
  return (
    a !== null &&
    ['from', 'to', 'low', 'high'].every(
      (k) => /** @type {any} */ (a)[k] === /** @type {any} */ (b)[k],
    )
  );
}

/** Whether a picture of one frame is good enough until that of the other is there.
 * @param {Frame} a @param {Frame} b */
function isNear(a, b) {
  const near = (
    /** @type {number} */ from,
    /** @type {number} */ to,
    /** @type {number} */ low,
    /** @type {number} */ high,
  ) => {
    const common = Math.min(to, high) - Math.max(from, low);
    return common > 0.5 * (high - low) && common > 0.25 * (to - from);
  };
  return near(a.from, a.to, b.from, b.to) && near(a.low, a.high, b.low, b.high);
}

/** The arrays that pictures are painted in: they are kept from one to the next.
 * @param {any} app @param {number} wide @param {number} high */
function workshopOf(app, wide, high) {
  const old = app.blocksWorkshop;
  if (old && old.raster.width === wide && old.raster.height === high) return old;
  app.blocksWorkshop = {
    raster: new Raster(wide, high),
    ground: new Float32Array(wide * high),
    pixels: new Pixels(wide, high),
  };
  return app.blocksWorkshop;
}

/** Paints a picture and returns it; gives the cost of what it did, in slices.
 * @param {any} app @param {number} width @param {number} height */
function* paintPicture(app, width, height) {
  const { source, state, theme } = app;
  const frame = frameOf(app);
  const { axis: kind, mode } = state;
  const look = lookKey(app, width, height);
  const scale = blocksScale(app);
  const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
  const box = timelineBox(app, width, height);
  const wide = Math.max(1, Math.round(box.axis.width * ratio));
  const high = Math.max(1, Math.round((box.bottom - box.top) * ratio));
  const axis = new Axis(source, kind, frame.from, frame.to, wide);
  const { raster, ground, pixels } = workshopOf(app, wide, high);
  const isPile = mode === 'pile';
  raster.begin(blockTints(app));
  ground.fill(0);
  yield wide * high;
  if (source.count > 0 || source.lifetimes > 0)
    yield* isPile
      ? paintPile(app, axis, raster, scale)
      : paintByAddress(app, axis, raster, ground, scale);
  for (let row = 0; row < high; row++) {
    const below = isPile ? null : ground;
    raster.develop(
      pixels,
      row,
      row + 1,
      below,
      colourBytes(theme.free),
      colourBytes(theme.paper),
    );
    yield wide;
  }
  const canvas = document.createElement('canvas');
  canvas.width = wide;
  canvas.height = high;
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext('2d', { willReadFrequently: true })
  );
  context.putImageData(pixels.image, 0, 0);
  const { painted } = raster;
  return { canvas, painted, look, frame, mode, axis: kind, number: source.id, scale };
}

/** Starts to paint what is looked at, unless that is there or being painted.
 * @param {any} app @param {number} width @param {number} height */
function wantPicture(app, width, height) {
  const look = lookKey(app, width, height);
  const frame = frameOf(app);
  const { blocksPicture: picture, blocksJob: job } = app;
  if (job && job.look === look && isNear(job.frame, frame)) return;
  if (!job && picture?.look === look && isSameFrame(picture.frame, frame)) return;
  const work = paintPicture(app, width, height);
  app.blocksJob = { look, frame, work, again: () => wantPicture(app, width, height) };
}

/** Paints all that is left to be painted. @param {any} app */
export function finishBlocks(app) {
  while (app.blocksJob) paintSome(app, 1000);
}

/** A picture that is there; that of the whole recording is kept for what lies beside the window.
 * @param {any} app @param {any} picture */
function keepPicture(app, picture) {
  const { frame } = picture;
  const isWhole =
    frame.from <= 0 && frame.to >= app.source.count && frame.low <= 0 && frame.high >= 1;
  app.blocksPicture = picture;
  if (isWhole) app.blocksWhole = picture;
}

/** Goes on painting for some milliseconds; true when the picture is new. @param {any} app */
export function paintSome(app, milliseconds = SLICE_MS) {
  const job = app.blocksJob;
  if (!job) return false;
  const until = performance.now() + milliseconds;
  while (performance.now() < until) {
    let cost = 0;
    while (cost < SLICE) {
      const step = job.work.next();
      if (step.done) {
        keepPicture(app, step.value);
        app.blocksJob = null;
        job.again(); // one may have moved on
        return true;
      }
      cost += step.value;
    }
  }
  return false;
}

/** Whether somebody is moving: frames come before what is painted for them. @param {any} app */
export function isBlocksMoving(app) {
  return performance.now() < app.blocksMoved + REST;
}

/** Goes on with the picture; when the window is another than the last time, only as long as a frame
 * has time. @param {any} app @param {number} width @param {number} height */
function paintForFrame(app, width, height) {
  const hasPicture = isUsable(app, app.blocksPicture);
  const isOther = !isSameFrame(app.blocksFrame, frameOf(app));
  app.blocksFrame = frameOf(app);
  if (isOther) app.blocksMoved = hasPicture ? performance.now() : -Infinity;
  wantPicture(app, width, height);
  if (isOther || !hasPicture) paintSome(app, MOVING_MS);
}

/** @param {any} app @param {any} picture */
function isUsable(app, picture) {
  const { state, source } = app;
  return (
    Boolean(picture) &&
    picture.mode === state.mode &&
    picture.axis === state.axis &&
    picture.number === source.id
  );
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box
 * @param {(at: number) => number} y */
function drawPictures(app, context, box, y) {
  const { blocksPicture: picture, blocksWhole: whole, state } = app;
  if (!isUsable(app, picture)) return;
  const covers = picture.frame.from <= state.from && picture.frame.to >= state.to;
  const hasMore = !covers && whole !== picture && whole?.look === picture.look;
  context.imageSmoothingEnabled = false;
  for (const one of hasMore ? [whole, picture] : [picture]) {
    const x0 = box.left + box.axis.pixel(one.frame.from);
    const x1 = box.left + box.axis.pixel(one.frame.to);
    const top = y(one.scale.high);
    context.drawImage(one.canvas, x0, top, x1 - x0, y(one.scale.low) - top);
  }
}

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
      sizeText(tick),
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
  if (start === NEVER) lines.push(['from before the recording', '']);
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
