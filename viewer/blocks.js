// SPDX-License-Identifier: MIT
// Every allocation as one rectangle: from its birth to its death, and as high as it is large. By
// address it lies where the allocator put it; piled, blocks stand on each other in the order of
// their birth, as they are at the moment of the column at which most is in use.
//
// The picture is painted into an array of pixels, in slices between frames: what is smaller than a
// pixel adds its share of colour to it, so nothing is ever left out. While a new picture is being
// painted the old one is shown stretched.
import { Axis } from './axis.js';
import { countText, sizeText, sizeTicks, tickText, timeText } from './format.js';
import { livesAt, roundedSize } from './layout.js';
import { colourBytes, groupColour, openCanvas } from './paint.js';
import { LEFT, drawCursors, drawLanes, drawPlaceAxis, timelineBox } from './timeline.js';
import { KIND, NEVER } from './trace.js';
import { placeName } from './words.js';

const SLICE = 1000; // blocks between looks at the clock
const REST = 60; // milliseconds without a change before a new picture is painted

/** Addresses that were ever reserved, without the gaps between them. */
export class Extents {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    const ranges = source.spans.map((span) => [span.address, span.address + span.size]);
    for (let life = 0; life < source.lives; life++) {
      if (ranges.length > 0 && source.spans.length > 0) break;
      ranges.push([
        source.lifeAddress[life],
        source.lifeAddress[life] + roundedSize(source.size(life)),
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

  /** Height of an address above the lowest one, gaps not counted. @param {number} address */
  height(address) {
    let low = 0;
    let high = this.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] <= address) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return 0;
    return this.below[low - 1] + Math.min(address, this.end[low - 1]) - this.start[low - 1];
  }

  /** @param {number} height */
  address(height) {
    let i = 0;
    while (i + 1 < this.start.length && this.below[i + 1] <= height) i++;
    return (this.start[i] ?? 0) + height - this.below[i];
  }
}

/** Pixels to which shares of colours are added. */
export class Raster {
  /** @param {number} width @param {number} height @param {number[][]} colours */
  constructor(width, height, colours) {
    this.width = width;
    this.height = height;
    this.colours = colours;
    this.red = new Float32Array(width * height);
    this.green = new Float32Array(width * height);
    this.blue = new Float32Array(width * height);
    this.share = new Float32Array(width * height);
    this.painted = 0; // pixels in all, once there is a picture
  }

  /** Adds a rectangle, in pixels with fractions. @param {number} x0 @param {number} y0
   * @param {number} x1 @param {number} y1 @param {number} colour */
  add(x0, y0, x1, y1, colour) {
    x0 = Math.max(0, x0);
    y0 = Math.max(0, y0);
    x1 = Math.min(this.width, x1);
    y1 = Math.min(this.height, y1);
    if (!(x1 > x0) || !(y1 > y0)) return;
    const [r, g, b] = this.colours[colour];
    const hasEdge = x1 - x0 >= 4 && y1 - y0 >= 4;
    const firstX = Math.floor(x0);
    const firstY = Math.floor(y0);
    for (let y = firstY; y < y1; y++) {
      const high = Math.min(y1, y + 1) - Math.max(y0, y);
      for (let x = firstX, at = y * this.width + firstX; x < x1; x++, at++) {
        const share = high * (Math.min(x1, x + 1) - Math.max(x0, x));
        const shade = hasEdge && (y === firstY || x === firstX) ? 0.72 * share : share;
        this.red[at] += r * shade;
        this.green[at] += g * shade;
        this.blue[at] += b * shade;
        this.share[at] += share;
      }
    }
  }

  /**
   * Over what is below.
   * @param {Raster | null} below
   * @param {number[]} paper
   * @returns {ImageData}
   */
  picture(below, paper) {
    const image = new ImageData(this.width, this.height);
    const bytes = image.data;
    this.painted = 0;
    for (let i = 0, at = 0; i < this.share.length; i++, at += 4) {
      const ground = Math.max(0, 1 - this.share[i]);
      this.painted += this.share[i];
      const over = this.share[i] > 1 ? 1 / this.share[i] : 1;
      const low = below ? Math.min(1, below.share[i]) : 0;
      const lowOver = below && below.share[i] > 1 ? 1 / below.share[i] : 1;
      const base = below ? [below.red[i], below.green[i], below.blue[i]] : [0, 0, 0];
      bytes[at] = this.red[i] * over + ground * (base[0] * lowOver + (1 - low) * paper[0]);
      bytes[at + 1] = this.green[i] * over + ground * (base[1] * lowOver + (1 - low) * paper[1]);
      bytes[at + 2] = this.blue[i] * over + ground * (base[2] * lowOver + (1 - low) * paper[2]);
      bytes[at + 3] = 255;
    }
    return image;
  }
}

/** Paints blocks by address. Yields between slices. @param {any} app @param {Axis} axis
 * @param {Raster} raster @param {Raster} ground @param {{low: number, high: number}} scale */
function* paintByAddress(app, axis, raster, ground, scale) {
  const { source, grouping, extents } = app;
  const y = (/** @type {number} */ address) =>
    raster.height * (1 - (extents.height(address) - scale.low) / (scale.high - scale.low));
  for (const span of source.spans) {
    ground.add(
      axis.pixel(Math.max(0, span.start)),
      y(span.address + span.size),
      axis.pixel(Math.min(source.count, span.end)),
      y(span.address),
      0,
    );
  }
  yield;
  for (let life = 0; life < source.lives; life++) {
    if (life % SLICE === SLICE - 1) yield;
    const start = source.lifeStart[life] === NEVER ? 0 : source.lifeStart[life];
    const end = source.lifeEnd[life] === NEVER ? source.count : source.lifeEnd[life];
    if (end <= axis.from || start >= axis.to) continue;
    const address = source.lifeAddress[life];
    raster.add(
      axis.pixel(start),
      y(address + roundedSize(source.size(life))),
      axis.pixel(end),
      y(address),
      grouping.group(life),
    );
  }
}

/** The blocks that stand on each other right after an entry, oldest first.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function pileAt(source, entry) {
  /** @type {number[]} */
  const old = [];
  /** @type {number[]} */
  const list = [];
  for (let life = 0; life < source.lives; life++) {
    if (source.isLive(life, entry)) (source.lifeStart[life] === NEVER ? old : list).push(life);
  }
  return old.concat(list);
}

/** Paints piled blocks. @param {any} app @param {Axis} axis @param {Raster} raster
 * @param {{low: number, high: number}} scale */
function* paintPile(app, axis, raster, scale) {
  const { source, grouping, curve } = app;
  const { first, end } = axis.ranges(raster.width);
  const times = raster.height / (scale.high - scale.low);
  let list = pileAt(source, first[0]);
  let at = first[0];
  for (let i = 0; i < raster.width; i++) {
    const entry = curve.most(first[i], end[i]).entry;
    for (at++; at <= entry; at++) {
      const kind = source.kind[at];
      if (kind === KIND.ALLOC || kind === KIND.ALLOC_AGAIN) list.push(source.ref[at]);
    }
    at = Math.max(at - 1, entry);
    let ground = 0;
    let kept = 0;
    for (const life of list) {
      if (source.lifeEnd[life] !== NEVER && source.lifeEnd[life] <= entry) continue;
      list[kept++] = life;
      const size = source.size(life);
      raster.add(
        i,
        raster.height - (ground + size - scale.low) * times,
        i + 1,
        raster.height - (ground - scale.low) * times,
        grouping.group(life),
      );
      ground += size;
    }
    list.length = kept;
    if (i % 16 === 15) yield;
  }
}

/** What the picture shows of the height: bytes of addresses, or in use. @param {any} app */
export function blocksScale(app) {
  const { state, extents, curve } = app;
  const top = state.mode === 'pile' ? Math.max(1, curve.peak.value) * 1.04 : extents.total;
  return { low: state.low * top, high: state.high * top, top };
}

/**
 * Everything that the picture depends on.
 * @param {any} app
 * @param {number} width
 * @param {number} height
 */
function pictureKey(app, width, height) {
  const { state, source, theme, grouping } = app;
  return [
    width,
    height,
    window.devicePixelRatio,
    state.from,
    state.to,
    state.axis,
    state.mode,
    state.low,
    state.high,
    source.number,
    theme.paper,
    app.groupingNumber,
    grouping.by,
  ].join();
}

/** Starts to paint; the picture is there when `ready` is called.
 * @param {any} app @param {number} width @param {number} height */
function startPicture(app, width, height) {
  const { source, state, theme, grouping } = app;
  const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
  const box = timelineBox(app, width, height);
  const wide = Math.max(1, Math.round(box.axis.width * ratio));
  const high = Math.max(1, Math.round((box.bottom - box.top) * ratio));
  const axis = new Axis(source, state.axis, state.from, state.to, wide);
  const colours = [];
  for (let group = 0; group < grouping.count; group++) {
    colours.push(colourBytes(groupColour(theme, group, grouping.count)));
  }
  const raster = new Raster(wide, high, colours);
  const ground = new Raster(wide, high, [colourBytes(theme.free)]);
  const scale = blocksScale(app);
  return {
    work:
      source.count === 0 && source.lives === 0
        ? [].values()
        : state.mode === 'pile'
          ? paintPile(app, axis, raster, scale)
          : paintByAddress(app, axis, raster, ground, scale),
    finish() {
      const canvas = document.createElement('canvas');
      canvas.width = wide;
      canvas.height = high;
      const context = /** @type {CanvasRenderingContext2D} */ (
        canvas.getContext('2d', { willReadFrequently: true })
      );
      const isPile = state.mode === 'pile';
      context.putImageData(
        raster.picture(isPile ? null : ground, colourBytes(theme.paper)),
        0,
        0,
      );
      return {
        canvas,
        painted: raster.painted,
        from: axis.from,
        to: axis.to,
        low: scale.low,
        high: scale.high,
        mode: state.mode,
      };
    },
  };
}

/** Paints all that is left to be painted. @param {any} app */
export function finishBlocks(app) {
  if (app.blocksJob) app.blocksJob.due = 0;
  while (app.blocksJob) paintSome(app, 1000);
}

/** Goes on painting for some milliseconds; true when the picture is new. @param {any} app */
export function paintSome(app, milliseconds = 12) {
  const job = app.blocksJob;
  if (!job) return false;
  if (performance.now() < job.due) return false;
  job.started ??= job.start();
  const until = performance.now() + milliseconds;
  while (performance.now() < until) {
    if (job.started.work.next().done) {
      app.blocksPicture = job.started.finish();
      app.blocksJob = null;
      return true;
    }
  }
  return false;
}

/**
 * @param {any} app
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function drawBlocks(app, canvas, width, height) {
  const { theme } = app;
  const key = pictureKey(app, width, height);
  if (app.blocksKey !== key) {
    app.blocksKey = key;
    // While one moves, the old picture is enough.
    const due = app.blocksPicture ? performance.now() + REST : 0;
    app.blocksJob = { due, started: null, start: () => startPicture(app, width, height) };
    paintSome(app, 8);
  }
  const { context } = openCanvas(canvas, width, height);
  const box = timelineBox(app, width, height);
  const scale = blocksScale(app);
  const y = (/** @type {number} */ at) =>
    box.bottom - ((at - scale.low) / (scale.high - scale.low)) * (box.bottom - box.top);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  const picture = app.blocksPicture;
  if (picture && picture.mode === app.state.mode) {
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.axis.width, box.bottom - box.top);
    context.clip();
    context.imageSmoothingEnabled = false;
    const x0 = box.left + box.axis.pixel(picture.from);
    const x1 = box.left + box.axis.pixel(picture.to);
    context.drawImage(
      picture.canvas,
      x0,
      y(picture.high),
      x1 - x0,
      y(picture.low) - y(picture.high),
    );
    drawSelected(app, context, box, y);
    context.restore();
  }
  drawHeightAxis(app, context, box, scale, y);
  drawPlaceAxis(app, context, box);
  drawLanes(app, context, box);
  drawCursors(app, context, box, height);
  app.picture = { box, scale, y };
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box
 * @param {(at: number) => number} y */
function drawSelected(app, context, box, y) {
  const { source, state, extents, theme } = app;
  if (state.life < 0 || state.mode === 'pile') return;
  const start = source.lifeStart[state.life] === NEVER ? 0 : source.lifeStart[state.life];
  const end = source.lifeEnd[state.life] === NEVER ? source.count : source.lifeEnd[state.life];
  const address = source.lifeAddress[state.life];
  const x0 = box.left + box.axis.pixel(start);
  const x1 = box.left + box.axis.pixel(end);
  const y0 = y(extents.height(address + roundedSize(source.size(state.life))));
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
      tickText(tick),
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
  if (py < box.top || py > box.bottom || source.count + source.lives === 0) return null;
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
    for (const life of pileAt(source, entry)) {
      if (height >= ground && height < ground + source.size(life)) found = life;
      ground += source.size(life);
    }
  } else {
    const address = extents.address(height);
    for (const life of livesAt(source, entry)) {
      const from = source.lifeAddress[life];
      if (address >= from && address < from + roundedSize(source.size(life))) found = life;
    }
  }
  const lines = [[placeName(source, entry), '']];
  if (found >= 0) lines.push(...lifeLines(app, found));
  else if (state.mode !== 'pile') {
    const address = extents.address(height);
    const span = source.spans.find(
      (/** @type {any} */ s) =>
        s.start <= entry && s.end > entry && address >= s.address && address < s.address + s.size,
    );
    lines.push([span ? 'reserved, not in use' : 'not reserved', source.hex(address)]);
  }
  return { entry, group: found >= 0 ? app.grouping.group(found) : -1, life: found, lines };
}

/** A block in few words. @param {any} app @param {number} life */
export function lifeLines(app, life) {
  const { source } = app;
  const start = source.lifeStart[life];
  const end = source.lifeEnd[life];
  const lines = [
    [source.names.stackText(source.lifeStack[life]), ''],
    ['asked for', sizeText(source.size(life))],
    ['address', source.hex(source.lifeAddress[life])],
  ];
  if (start === NEVER) lines.push(['from before the recording', '']);
  else if (end === NEVER) lines.push(['still in use at the end', '']);
  else {
    lines.push([
      'lasted',
      source.hasTime
        ? timeText(source.time[end] - source.time[start])
        : `${countText(end - start)} entries`,
    ]);
  }
  return lines;
}
