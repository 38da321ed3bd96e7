// SPDX-License-Identifier: MIT
// Pages that moved: what one request unmaps and maps, and the ranges of expandable segments that
// have no pages at an entry.
import { KIND } from './kind.js';

/** @typedef {{from: number, to: number}} Range of addresses
 * @typedef {{first: number, last: number, from: Range[], to: Range[], fromBytes: number,
 *   toBytes: number}} PageMove entries [first, last] */

/** @type {WeakMap<object, PageMove[]>} */
const movesOfSource = new WeakMap();
/** @type {WeakMap<object, Map<string, Range[]>>} */
const rangesOfSource = new WeakMap();

/** @param {any} event @returns {Range} */
function rangeOf({ address, size }) {
  return { from: address, to: address + size };
}

/** Runs of entries, without another between them, that unmap and then map.
 * @param {import('./trace.js').Source} source @returns {PageMove[]} */
function findMoves(source) {
  /** @type {PageMove[]} */
  const moves = [];
  /** @type {PageMove | null} */
  let run = null;
  const end = () => {
    if (run && run.to.length > 0) moves.push(run);
    run = null;
  };
  for (const event of source.events) {
    const isMap = event.kind === KIND.SEGMENT_MAP;
    if (!isMap && event.kind !== KIND.SEGMENT_UNMAP) continue;
    if (run && (event.entry !== run.last + 1 || (!isMap && run.to.length > 0))) end();
    if (!run && isMap) continue;
    run ??= { first: event.entry, last: 0, from: [], to: [], fromBytes: 0, toBytes: 0 };
    run.last = event.entry;
    run[isMap ? 'to' : 'from'].push(rangeOf(event));
    run[isMap ? 'toBytes' : 'fromBytes'] += event.size;
  }
  end();
  return moves;
}

/** All of a source, in order. @param {import('./trace.js').Source} source */
export function movesOf(source) {
  let moves = movesOfSource.get(source);
  if (!moves) movesOfSource.set(source, (moves = findMoves(source)));
  return moves;
}

/** The move that the request at an entry caused: its own entries, and the one after them.
 * @param {import('./trace.js').Source} source @param {number} entry @returns {PageMove | null} */
export function moveAt(source, entry) {
  const moves = movesOf(source);
  let low = 0;
  let high = moves.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moves[middle].first <= entry) low = middle + 1;
    else high = middle;
  }
  const move = moves[low - 1];
  return move && entry <= move.last + 1 ? move : null;
}

/** The next or previous one. @param {import('./trace.js').Source} source @param {number} entry
 * @param {number} step */
export function nextMove(source, entry, step) {
  const moves = movesOf(source);
  const own = moveAt(source, entry);
  return step > 0
    ? moves.find((move) => move.first > (own?.last ?? entry))
    : moves.findLast((move) => move.last < (own?.first ?? entry));
}

/** Whether what was unmapped and mapped are the same pages: only libtarn moves them. PyTorch's
 * allocator gives pages back, and takes new ones. @param {any} app */
export function isMoving(app) {
  return app.head.settings.some(
    (/** @type {string[]} */ [name, value]) =>
      name === 'PYTORCH_CUDA_ALLOC_CONF' && /\bpolicy:compact\b/.test(String(value)),
  );
}

/** What keeps ranges apart. @param {{poolStream: number, large: boolean}} of */
function kindKey({ poolStream, large }) {
  return `${poolStream} ${large}`;
}

/** Ranges that had pages at any time, by pool and stream, in order and without touching ones.
 * @param {import('./trace.js').Source} source */
function everMapped(source) {
  const known = rangesOfSource.get(source);
  if (known) return known;
  /** @type {Map<string, Range[]>} */
  const ranges = new Map();
  const spans = source.spans.filter((span) => span.expandable);
  spans.sort((a, b) => a.address - b.address);
  for (const span of spans) {
    const list = ranges.get(kindKey(span)) ?? [];
    const last = list[list.length - 1];
    const end = span.address + span.size;
    if (last && span.address <= last.to) last.to = Math.max(last.to, end);
    else list.push({ from: span.address, to: end });
    ranges.set(kindKey(span), list);
  }
  rangesOfSource.set(source, ranges);
  return ranges;
}

/** What of a range lies in no segment: one of another pool may touch it, and then they are drawn as
 * one. @param {Range} range @param {import('./layout.js').Segment[]} all */
function withoutSegments(range, all) {
  let left = [range];
  for (const { address, end } of all) {
    left = left.flatMap(({ from, to }) =>
      end <= from || address >= to
        ? [{ from, to }]
        : [
            { from, to: Math.max(from, address) },
            { from: Math.min(to, end), to },
          ].filter((part) => part.to > part.from),
    );
  }
  return left;
}

/** What lies in ranges that have pages at some time: segments, and holes where there are none now,
 * by address. @param {import('./trace.js').Source} source
 * @param {import('./layout.js').Segment[]} segments of one pool and stream, by address
 * @param {import('./layout.js').Segment[]} all
 * @returns {(import('./layout.js').Segment | Range)[]} */
export function segmentsAndHoles(source, segments, all) {
  const list = [];
  const rest = [...segments];
  const putHole = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (to > from) list.push(...withoutSegments({ from, to }, all));
  };
  for (const range of everMapped(source).get(kindKey(segments[0])) ?? []) {
    let at = range.from;
    while (rest.length > 0 && rest[0].address < range.to) {
      const segment = /** @type {import('./layout.js').Segment} */ (rest.shift());
      putHole(at, segment.address);
      list.push(segment);
      at = segment.end;
    }
    putHole(at, range.to);
  }
  return [...list, ...rest];
}

/** When a range lost its pages last, before an entry; -1: never.
 * @param {import('./trace.js').Source} source @param {Range} range @param {number} entry */
export function unmappedAt(source, range, entry) {
  let last = -1;
  for (const span of source.spans) {
    const isIn = span.address < range.to && span.address + span.size > range.from;
    if (isIn && span.end <= entry) last = Math.max(last, span.end);
  }
  return last;
}
