// SPDX-License-Identifier: MIT
// The segments and blocks right after an entry, and what is free in them, by the rules of
// src/analysis/layout.h, so that the figures are those of `tarn oom`.

const GRAIN = 512;
const LARGE_REST = 1 << 20;

/** Bytes that a block takes. @param {number} size */
export function roundedSize(size) {
  return Math.ceil(size / GRAIN) * GRAIN;
}

/** Numbers of the blocks in use, by address.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function livesAt(source, entry) {
  /** @type {number[]} */
  const lives = [];
  source.index().eachAt(source, entry, (life) => lives.push(life));
  return lives.sort((a, b) => source.lifeAddress[a] - source.lifeAddress[b] || a - b);
}

/**
 * @typedef {{from: number, to: number, kind: 'block' | 'slack' | 'free', life: number}} Piece
 * @typedef {{address: number, end: number, place: number, large: boolean, growing: boolean,
 *   pieces: Piece[], used: number, waiting: number, slack: number, free: number,
 *   freeRuns: number, largestFree: number, stack: number}} Segment
 */

/** @param {Segment} segment @param {import('./trace.js').Source} source @param {number} from
 * @param {number} to @param {number} last life before the gap, -1: none @param {number} split */
function addGap(segment, source, from, to, last, split) {
  const size = to - from;
  if (size <= 0) return;
  const isSplit = segment.large ? size > LARGE_REST : size >= GRAIN;
  if (last >= 0 && (!isSplit || roundedSize(source.size(last)) >= split)) {
    segment.slack += size;
    segment.pieces.push({ from, to, kind: 'slack', life: last });
    return;
  }
  segment.free += size;
  segment.freeRuns++;
  segment.largestFree = Math.max(segment.largestFree, size);
  segment.pieces.push({ from, to, kind: 'free', life: -1 });
}

/** @param {Segment} segment @param {import('./trace.js').Source} source @param {number[]} lives
 * @param {number} entry @param {number} split */
function fillSegment(segment, source, lives, entry, split) {
  let at = segment.address;
  let last = -1;
  for (const life of lives) {
    const address = source.lifeAddress[life];
    const end = Math.min(address + roundedSize(source.size(life)), segment.end);
    if (address > at) {
      addGap(segment, source, at, address, last, split);
      at = address;
    }
    if (end > at) {
      segment.used += end - at;
      if (source.isPending(life, entry)) segment.waiting += end - at;
      segment.pieces.push({ from: at, to: end, kind: 'block', life });
      at = end;
    }
    last = life;
  }
  addGap(segment, source, at, segment.end, last, split);
}

/** Segments right after an entry (-1: before the first), by address; touching pieces of a growing
 * one are one. `outside`: bytes of blocks that lie in none.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function layoutAt(source, entry) {
  const split = source.head.split > 0 ? source.head.split : Infinity;
  const spans = source.spans.filter((span) => span.start <= entry && span.end > entry);
  spans.sort((a, b) => a.address - b.address);
  /** @type {Segment[]} */
  const segments = [];
  for (const span of spans) {
    const last = segments[segments.length - 1];
    const end = span.address + span.size;
    if (
      last &&
      last.growing &&
      span.growing &&
      last.end === span.address &&
      source.head.places[last.place]?.[0] === source.head.places[span.place]?.[0]
    ) {
      last.end = end;
    } else {
      segments.push({
        address: span.address,
        end,
        place: span.place,
        large: span.large,
        growing: span.growing,
        pieces: [],
        used: 0,
        waiting: 0,
        slack: 0,
        free: 0,
        freeRuns: 0,
        largestFree: 0,
        stack: span.stack,
      });
    }
  }
  const lives = livesAt(source, entry);
  let next = 0;
  let outside = 0;
  for (const segment of segments) {
    for (; next < lives.length && source.lifeAddress[lives[next]] < segment.address; next++) {
      outside += source.size(lives[next]);
    }
    const first = next;
    while (next < lives.length && source.lifeAddress[lives[next]] < segment.end) next++;
    fillSegment(segment, source, lives.slice(first, next), entry, split);
  }
  for (; next < lives.length; next++) outside += source.size(lives[next]);
  return { segments, outside };
}

/** @typedef {{place: number, large: boolean, segments: number, reserved: number, used: number,
 *   waiting: number, slack: number, free: number, freeRuns: number, largestFree: number,
 *   whole: number}} Row */

/** @param {Row} row @param {Segment} segment */
function addToRow(row, segment) {
  const reserved = segment.end - segment.address;
  row.segments++;
  row.reserved += reserved;
  row.used += segment.used;
  row.waiting += segment.waiting;
  row.slack += segment.slack;
  row.free += segment.free;
  row.freeRuns += segment.freeRuns;
  row.largestFree = Math.max(row.largestFree, segment.largestFree);
  row.whole += segment.free === reserved ? reserved : 0;
}

/** @returns {Row} */
function emptyRow(place = -1, large = false) {
  return {
    place,
    large,
    segments: 0,
    reserved: 0,
    used: 0,
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
    const key = `${segment.place} ${segment.large}`;
    if (!rows.has(key)) rows.set(key, emptyRow(segment.place, segment.large));
    addToRow(/** @type {Row} */ (rows.get(key)), segment);
    addToRow(total, segment);
  }
  const order = (/** @type {Row} */ row) => {
    const [stream, a, b] = (source.head.places[row.place] || ['0', '0', '0']).map(BigInt);
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
  const own = rows.find((row) => row.place === event.place && row.large === large) || emptyRow();
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
          : 'really full';
  return {
    entry,
    size: event.size,
    free: event.free,
    place: event.place,
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
