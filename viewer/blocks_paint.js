// SPDX-License-Identifier: MIT
// Paints blocks into an array of pixels, by address or piled. What is smaller than a pixel adds its
// share of colour to it, so nothing is ever left out.
import { Axis } from './axis.js';
import { colourBytes, groupColour } from './paint.js';
import { Raster, addShares, mixed } from './pixels.js';
import { OTHERS_SHARE } from './timeline.js';
import { KIND, NEVER } from './kind.js';

const LIFE_COST = 6; // of a block, beside its pixels

/** Colours of the groups, then those of blocks that a search does not find. @param {any} app */
export function blockTints(app) {
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
export function* paintByAddress(app, axis, raster, ground, scale) {
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
export function* paintPile(app, axis, raster, scale) {
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
