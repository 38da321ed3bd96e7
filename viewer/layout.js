// SPDX-License-Identifier: MIT
// The segments and blocks right after an entry, and what is free in them, by the rules of
// src/analysis/layout.h, so that the figures are those of `tarn oom`.
import { unitRounded } from './block_size.js';

/** Numbers of the blocks in use, by address.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function lifetimesAt(source, entry) {
  /** @type {number[]} */
  const lifetimes = [];
  source.index().eachAt(source, entry, (lifetime) => lifetimes.push(lifetime));
  return lifetimes.sort((a, b) => source.lifetimeAddress[a] - source.lifetimeAddress[b] || a - b);
}

/**
 * @typedef {{from: number, to: number, kind: 'block' | 'slack' | 'free', lifetime: number}} Piece
 * @typedef {{address: number, end: number, poolStream: number, large: boolean, expandable: boolean,
 *   pieces: Piece[], used: number, bySettings: number, waiting: number, slack: number,
 *   free: number, freeRuns: number, largestFree: number}} Segment
 */

/** @param {Segment} segment @param {number} from @param {number} to */
function addGap(segment, from, to) {
  const size = to - from;
  if (size <= 0) return;
  segment.free += size;
  segment.freeRuns++;
  segment.largestFree = Math.max(segment.largestFree, size);
  segment.pieces.push({ from, to, kind: 'free', lifetime: -1 });
}

/** Bytes of [start, end) in [from, to).
 * @param {number} start @param {number} end @param {number} from @param {number} to */
function overlap(start, end, from, to) {
  return Math.max(0, Math.min(end, to) - Math.max(start, from));
}

/** @param {Segment} segment @param {import('./trace.js').Source} source @param {number} lifetime
 * @param {number} at @param {number} end @param {number} entry */
function addBlock(segment, source, lifetime, at, end, entry) {
  const address = source.lifetimeAddress[lifetime];
  const size = source.size(lifetime);
  const rounded = address + source.rounded(size);
  const used = overlap(address, rounded, at, end);
  segment.used += used;
  segment.bySettings += overlap(address + unitRounded(size), rounded, at, end);
  segment.slack += end - at - used;
  if (source.isPending(lifetime, entry)) segment.waiting += used;
  segment.pieces.push({ from: at, to: at + used, kind: 'block', lifetime });
  if (end > at + used) segment.pieces.push({ from: at + used, to: end, kind: 'slack', lifetime });
}

/** @param {Segment} segment @param {import('./trace.js').Source} source @param {number[]} lifetimes
 * @param {number} entry */
function fillSegment(segment, source, lifetimes, entry) {
  let at = segment.address;
  lifetimes.forEach((lifetime, i) => {
    const address = source.lifetimeAddress[lifetime];
    const next = source.lifetimeAddress[lifetimes[i + 1]];
    const limit = next > address ? next : segment.end;
    const end = Math.min(address + source.blockSize(lifetime), limit);
    if (address > at) {
      addGap(segment, at, address);
      at = address;
    }
    if (end > at) {
      addBlock(segment, source, lifetime, at, end, entry);
      at = end;
    }
  });
  addGap(segment, at, segment.end);
}

/** Segments right after an entry (-1: before the first), by address; touching pieces of an
 * expandable one are one. `outside`: bytes of blocks that lie in none.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function layoutAt(source, entry) {
  const spans = source.spans.filter((span) => span.start <= entry && span.end > entry);
  spans.sort((a, b) => a.address - b.address);
  /** @type {Segment[]} */
  const segments = [];
  for (const span of spans) {
    const last = segments[segments.length - 1];
    const end = span.address + span.size;
    if (
      last &&
      last.expandable &&
      span.expandable &&
      last.end === span.address &&
      source.head.pool_streams[last.poolStream]?.[0] ===
        source.head.pool_streams[span.poolStream]?.[0]
    ) {
      last.end = end;
    } else {
      segments.push({
        address: span.address,
        end,
        poolStream: span.poolStream,
        large: span.large,
        expandable: span.expandable,
        pieces: [],
        used: 0,
        bySettings: 0,
        waiting: 0,
        slack: 0,
        free: 0,
        freeRuns: 0,
        largestFree: 0,
      });
    }
  }
  const lifetimes = lifetimesAt(source, entry);
  let next = 0;
  let outside = 0;
  for (const segment of segments) {
    for (
      ;
      next < lifetimes.length && source.lifetimeAddress[lifetimes[next]] < segment.address;
      next++
    ) {
      outside += source.size(lifetimes[next]);
    }
    const first = next;
    while (next < lifetimes.length && source.lifetimeAddress[lifetimes[next]] < segment.end)
      next++;
    fillSegment(segment, source, lifetimes.slice(first, next), entry);
  }
  for (; next < lifetimes.length; next++) outside += source.size(lifetimes[next]);
  return { segments, outside };
}

/** @typedef {{poolStream: number, large: boolean, segments: number, reserved: number, used: number,
 *   bySettings: number, waiting: number, slack: number, free: number, freeRuns: number,
 *   largestFree: number, whole: number}} Row */

/** @param {Row} row @param {Segment} segment */
function addToRow(row, segment) {
  const reserved = segment.end - segment.address;
  row.segments++;
  row.reserved += reserved;
  row.used += segment.used;
  row.bySettings += segment.bySettings;
  row.waiting += segment.waiting;
  row.slack += segment.slack;
  row.free += segment.free;
  row.freeRuns += segment.freeRuns;
  row.largestFree = Math.max(row.largestFree, segment.largestFree);
  row.whole += segment.free === reserved ? reserved : 0;
}

/** @returns {Row} */
function emptyRow(poolStream = -1, large = false) {
  return {
    poolStream,
    large,
    segments: 0,
    reserved: 0,
    used: 0,
    bySettings: 0,
    waiting: 0,
    slack: 0,
    free: 0,
    freeRuns: 0,
    largestFree: 0,
    whole: 0,
  };
}

/** Rows by pool, stream and size class, in that order, and their total.
 * @param {import('./trace.js').Source} source @param {Segment[]} segments */
export function layoutRows(source, segments) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  const total = emptyRow();
  for (const segment of segments) {
    const key = `${segment.poolStream} ${segment.large}`;
    if (!rows.has(key)) rows.set(key, emptyRow(segment.poolStream, segment.large));
    addToRow(/** @type {Row} */ (rows.get(key)), segment);
    addToRow(total, segment);
  }
  const order = (/** @type {Row} */ row) => {
    const [stream, a, b] = (source.head.pool_streams[row.poolStream] || ['0', '0', '0']).map(
      BigInt,
    );
    return [a, b, stream, BigInt(row.large)];
  };
  const list = [...rows.values()].sort((left, right) => {
    const a = order(left);
    const b = order(right);
    const i = a.findIndex((value, k) => value !== b[k]);
    return i < 0 ? 0 : a[i] < b[i] ? -1 : 1;
  });
  return { rows: list, total };
}

const MIB = 2 ** 20;

/** What the device is asked for, for a rounded request. @param {number} request */
function segmentSize(request) {
  if (request <= MIB) return 2 * MIB;
  if (request < 10 * MIB) return 20 * MIB;
  return Math.ceil(request / (2 * MIB)) * 2 * MIB;
}

/** Why a request failed; verdicts are those of `tarn oom`.
 * @param {import('./trace.js').Source} source @param {import('./curve.js').Curve} curve
 * @param {number} entry */
export function explainOom(source, curve, entry) {
  const event = source.events[source.ref[entry]];
  const layout = layoutAt(source, entry);
  const { rows, total } = layoutRows(source, layout.segments);
  const large = event.size > MIB;
  const own =
    rows.find((row) => row.poolStream === event.poolStream && row.large === large) || emptyRow();
  const segment = segmentSize(event.size);
  const isLimited = event.free >= segment;
  const reserved = curve.reserved(entry);
  const room = isLimited ? curve.reservedMost(-1, entry + 1) - reserved : event.free;
  const verdict =
    own.free >= event.size
      ? 'fragmented'
      : total.free >= event.size
        ? 'wrong pool or stream'
        : total.free + room >= event.size
          ? 'fragmented'
          : total.bySettings >= event.size - total.free - room
            ? 'rounded by settings'
            : 'really full';
  return {
    entry,
    size: event.size,
    free: event.free,
    poolStream: event.poolStream,
    segment,
    isLimited,
    reserved,
    requested: curve.requested(entry),
    rows,
    total,
    own,
    large,
    room,
    verdict,
    emptyingHelps: total.whole + room >= segment,
  };
}
