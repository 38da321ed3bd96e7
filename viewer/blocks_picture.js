// SPDX-License-Identifier: MIT
// The pictures of Blocks, painted in slices between frames. Until one is there the one before is
// shown stretched, over the one of the whole recording where that does not reach.
import { Axis } from './axis.js';
import { blockTints, paintByAddress, paintPile } from './blocks_paint.js';
import { colourBytes } from './paint.js';
import { Pixels, Raster } from './pixels.js';
import { timelineBox } from './timeline.js';

const SLICE = 20000; // what is painted between looks at the clock, in pixels
const REST = 60; // milliseconds without a change after which all time is for painting
const SLICE_MS = 12; // then
const MOVING_MS = 4; // of a frame while one moves

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
export function paintForFrame(app, width, height) {
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
export function drawPictures(app, context, box, y) {
  const { blocksPicture: picture, blocksWhole: whole, state } = app;
  if (!isUsable(app, picture)) return;
  const covers = picture.frame.from <= state.from && picture.frame.to >= state.to;
  // Of other colours, too: they change while one zooms, and an empty place would be untrue.
  const hasMore = !covers && whole !== picture && isUsable(app, whole);
  context.imageSmoothingEnabled = false;
  for (const one of hasMore ? [whole, picture] : [picture]) {
    const x0 = box.left + box.axis.pixel(one.frame.from);
    const x1 = box.left + box.axis.pixel(one.frame.to);
    const top = y(one.scale.high);
    context.drawImage(one.canvas, x0, top, x1 - x0, y(one.scale.low) - top);
  }
}
