// SPDX-License-Identifier: MIT
// Blocks by what they have in common, and how much each group holds at any entry.
import { KIND, NEVER } from './trace.js';
import { baseName, shownText } from './format.js';

/** What blocks can be grouped by. */
export const GROUPINGS = [
  { id: 'line', text: 'allocating line', hint: 'the innermost frame' },
  { id: 'own', text: 'your code', hint: 'the innermost line that is not of a library' },
  { id: 'stack', text: 'stack', hint: 'the whole stack of the allocation' },
  { id: 'file', text: 'file', hint: 'the file of your code' },
  { id: 'module', text: 'module', hint: 'what the program said of the block: its metadata' },
  { id: 'category', text: 'category', hint: 'what the rules make of the stack' },
  { id: 'label', text: 'recorded category', hint: 'the category that the recording gives' },
  { id: 'compile', text: 'compile context', hint: 'the compiled function' },
  { id: 'pool_stream', text: 'pool and stream', hint: 'where the allocator keeps it' },
  { id: 'origin', text: 'recorded or before', hint: 'allocated in the recording or before it' },
];

/** What a detail of an allocation says, for groupings by it; '' is nothing.
 * @type {Record<string, {of: (extra: any) => string, none: string}>} */
const DETAILS = {
  module: { of: (extra) => extra.metadata, none: '(outside of all modules)' },
  label: { of: (extra) => extra.category, none: '(none)' },
  compile: { of: (extra) => extra.compile, none: '(not compiled)' },
};

/** Those that a recording has something for. @param {import('./trace.js').Names} names */
export function groupingsOf(names) {
  return GROUPINGS.filter(
    ({ id }) => !DETAILS[id] || names.extras.some((extra) => DETAILS[id].of(extra) !== ''),
  );
}

export const GROUPS_MAX = 12; // with a colour of their own
const CHECKPOINT = 128;

/** The key of a stack for a grouping, and the text of that key.
 * @param {import('./trace.js').Names} names @param {string} by @param {number} stack
 * @returns {[string, string]} */
function stackKey(names, by, stack) {
  if (by === 'stack') return [`s${stack}`, names.stackText(stack)];
  const frames = names.frames(stack);
  if (frames.length === 0) {
    const text = names.stackText(stack);
    return [text, text];
  }
  const own = frames.find((frame) => !names.isLibrary(frame)) ?? frames[0];
  if (by === 'file') {
    const file = names.text(names.frameFile[own]);
    return [`f${file}`, shownText(baseName(file) || '(no file)')];
  }
  const frame = by === 'line' ? frames[0] : own;
  return [`${names.frameText(frame)}|${names.frameFile[frame]}`, names.frameText(frame)];
}

/** A grouping of the blocks of a source. Group 0 is "others"; 1 ... are the largest. */
export class Grouping {
  /** @param {import('./trace.js').Source} source @param {string} by
   * @param {import('./curve.js').Curve} curve
   * @param {Uint8Array | null} matching by block: with a filter, which are wanted */
  constructor(source, by, curve, matching) {
    this.source = source;
    this.by = by;
    /** @type {{key: string, text: string, stack: number}[]} */
    this.keys = [];
    this.matching = matching;
    this.rest = -1; // key of what does not match
    this.recorded = 0;
    this.old = 0;
    this.others = 0; // keys without a group of their own
    this.count = 2; // groups
    /** @type {number[]} */
    this.shown = []; // keys with a group of their own
    /** @type {number[]} */
    this.order = [];
    this.keyOfStack = new Uint32Array(0);
    this.keyOfPoolStream = new Uint32Array(0);
    this.keyOfExtra = new Uint32Array(0);
    this.keyOfCategory = new Uint32Array(0);
    this.isByStack = ['line', 'own', 'stack', 'file'].includes(by);
    this.isLookUp = this.isByStack && !matching; // the key of a block is that of its stack
    this.groupOfKey = new Uint8Array(0);
    this.groupOfLifetime = new Uint8Array(0);
    this.sums = new Float64Array(0);
    this.now = new Float64Array(0); // of the groups, after the entry at
    this.at = -Infinity;
    this.makeKeys(matching);
    this.rank(curve.peak.entry);
    this.makeCheckpoints();
  }

  /**
   * @param {string} key
   * @param {string} text
   * @param {Map<string, number>} numbers
   * @param {number} stack
   */
  keyNumber(key, text, numbers, stack) {
    let number = numbers.get(key);
    if (number === undefined) {
      number = this.keys.length;
      numbers.set(key, number);
      this.keys.push({ key, text, stack });
    }
    return number;
  }

  /** Numbers every key, and finds that of each stack, pool and stream, or detail.
   * @param {Uint8Array | null} matching */
  makeKeys(matching) {
    /** @type {Map<string, number>} */
    const numbers = new Map();
    this.rest = matching ? this.keyNumber('', '(not matching the filter)', numbers, -1) : -1;
    const put = (/** @type {string} */ key, /** @type {string} */ text, stack = -1) =>
      this.keyNumber(key, text, numbers, stack);
    if (this.isByStack) this.makeStackKeys(put);
    else this.makeOtherKeys(put);
  }

  /** @param {(key: string, text: string, stack?: number) => number} put */
  makeStackKeys(put) {
    const { names } = this.source;
    this.keyOfStack = Uint32Array.from(names.stackNode, (_, stack) =>
      put(...stackKey(names, this.by, stack), stack),
    );
  }

  /** @param {(key: string, text: string, stack?: number) => number} put */
  makeOtherKeys(put) {
    const { source, by } = this;
    const { head, names } = source;
    const detail = DETAILS[by];
    if (by === 'pool_stream') {
      this.keyOfPoolStream = Uint32Array.from(head.pool_streams, (_, i) =>
        put(`p${i}`, source.poolStreamText(i)),
      );
    } else if (by === 'category') {
      this.keyOfCategory = Uint32Array.from(head.categories, (text) =>
        put(`c${text}`, shownText(text, 200)),
      );
    } else if (by === 'origin') {
      this.recorded = put('recorded', 'allocated in the recording');
      this.old = put('old', 'from before the recording');
    } else {
      this.keyOfExtra = Uint32Array.from(names.extras, (extra) => {
        const text = detail.of(extra);
        return put(`t${text}`, text === '' ? detail.none : shownText(text, 200));
      });
    }
  }

  /** The key of a block. @param {number} lifetime */
  key(lifetime) {
    const { source } = this;
    if (this.matching && !this.matching[lifetime]) return this.rest;
    switch (this.by) {
      case 'pool_stream':
        return this.keyOfPoolStream[source.lifetimePoolStream[lifetime]];
      case 'category':
        return this.keyOfCategory[source.category(lifetime)];
      case 'origin':
        return source.lifetimeStart[lifetime] === NEVER ? this.old : this.recorded;
      case 'module':
        return this.keyOfExtra[source.said(lifetime)];
      case 'label':
      case 'compile':
        return this.keyOfExtra[source.lifetimeExtra ? source.lifetimeExtra[lifetime] : 0];
      default:
        return this.keyOfStack[source.lifetimeStack[lifetime]];
    }
  }

  /** The groups that get a colour: those that hold most at the peak, then those that ask for most.
   * @param {number} peak */
  rank(peak) {
    const { source } = this;
    const { lifetimeSize, lifetimeStart, lifetimeEnd, lifetimeStack } = source;
    const { isLookUp, keyOfStack } = this;
    const atPeak = new Float64Array(this.keys.length);
    const total = new Float64Array(this.keys.length);
    const stay = new Float64Array(this.keys.length); // bytes times entries
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      const key = isLookUp ? keyOfStack[lifetimeStack[lifetime]] : this.key(lifetime);
      const size = lifetimeSize[lifetime];
      const start = lifetimeStart[lifetime] === NEVER ? -1 : lifetimeStart[lifetime];
      const end = lifetimeEnd[lifetime];
      total[key] += size;
      if (start <= peak && end > peak) atPeak[key] += size; // NEVER is above all entries
      stay[key] += size * (Math.min(end, source.count) - Math.max(0, start));
    }
    const order = [...this.keys.keys()].filter((key) => total[key] > 0 && key !== this.rest);
    order.sort((a, b) => atPeak[b] - atPeak[a] || total[b] - total[a] || a - b);
    this.shown = order.slice(0, GROUPS_MAX);
    this.showUnclassified(order);
    this.others = order.length - this.shown.length;
    this.groupOfKey = new Uint8Array(this.keys.length);
    this.shown.forEach((key, i) => {
      this.groupOfKey[key] = i + 1;
    });
    this.count = this.shown.length + 2; // others first, what does not match last
    if (this.rest >= 0) this.groupOfKey[this.rest] = this.count - 1;
    this.makeTables();
    this.makeOrder(total, stay);
  }

  /** What the rules say nothing of is never among the others. @param {number[]} order */
  showUnclassified(order) {
    const key = this.by === 'category' ? this.keyOfCategory[0] : -1;
    if (order.includes(key) && !this.shown.includes(key)) this.shown[GROUPS_MAX - 1] = key;
  }

  /** The group of each lifetime, so that finding one is a look-up. */
  makeTables() {
    const { source, groupOfKey, keyOfStack, isLookUp } = this;
    const { lifetimeStack } = source;
    const groupOfStack = Uint8Array.from(keyOfStack, (key) => groupOfKey[key]);
    const groups = new Uint8Array(source.lifetimes);
    for (let lifetime = 0; lifetime < groups.length; lifetime++) {
      groups[lifetime] = isLookUp
        ? groupOfStack[lifetimeStack[lifetime]]
        : groupOfKey[this.key(lifetime)];
    }
    this.groupOfLifetime = groups;
  }

  /** The order in which groups are stacked, from the ground: those whose bytes stay longest
   * first, so that what comes and goes does so on top of what is always there.
   * @param {Float64Array} total @param {Float64Array} stays by key */
  makeOrder(total, stays) {
    const { count } = this;
    const bytes = new Float64Array(count);
    const stay = new Float64Array(count);
    this.groupOfKey.forEach((group, key) => {
      bytes[group] += total[key];
      stay[group] += stays[key];
    });
    const length = (/** @type {number} */ group) =>
      bytes[group] > 0 ? stay[group] / bytes[group] : 0;
    const order = [...bytes.keys()].filter((group) => group > 0 && group < count - 1);
    order.sort((a, b) => length(b) - length(a) || a - b);
    this.order = [...order, 0, count - 1];
  }

  /** @param {number} lifetime */
  group(lifetime) {
    return this.groupOfLifetime[lifetime];
  }

  /** The group of what the rules say nothing of; -1 without one. */
  unclassified() {
    return this.by === 'category' ? this.groupOfKey[this.keyOfCategory[0]] || -1 : -1;
  }

  /** Name of a group. @param {number} group */
  text(group) {
    if (group === 0) return `others (${this.others})`;
    if (group === this.count - 1) return '(not matching the filter)';
    return this.keys[this.shown[group - 1]].text;
  }

  makeCheckpoints() {
    const { source, count } = this;
    const points = Math.ceil(source.count / CHECKPOINT) + 1;
    const sums = new Float64Array(points * count);
    const now = new Float64Array(count);
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      if (source.lifetimeStart[lifetime] === NEVER)
        now[this.group(lifetime)] += source.size(lifetime);
    }
    for (let point = 0; point * CHECKPOINT < source.count; point++) {
      sums.set(now, point * count);
      const first = point * CHECKPOINT;
      this.apply(now, first, Math.min(source.count, first + CHECKPOINT));
    }
    this.sums = sums;
    this.now = source.count > 0 ? new Float64Array(count) : now;
    this.at = source.count > 0 ? -Infinity : -1; // nowhere yet
  }

  /** Adds what entries [first, end) change, or takes it back. @param {Float64Array} sums
   * @param {number} first @param {number} end @param {1 | -1} sign */
  apply(sums, first, end, sign = 1) {
    const { source, groupOfLifetime } = this;
    const { kind, ref, lifetimeSize } = source;
    for (let entry = first; entry < end; entry++) {
      const what = kind[entry];
      if (what === KIND.FREE_COMPLETED) {
        const lifetime = ref[entry];
        sums[groupOfLifetime[lifetime]] -= sign * lifetimeSize[lifetime];
      } else if (what === KIND.ALLOC || what === KIND.ALLOC_AGAIN) {
        const lifetime = ref[entry];
        sums[groupOfLifetime[lifetime]] += sign * lifetimeSize[lifetime];
        const ended = what === KIND.ALLOC ? undefined : source.endedBy().get(entry);
        if (ended !== undefined) sums[groupOfLifetime[ended]] -= sign * lifetimeSize[ended];
      }
    }
  }

  /** Bytes of each group right after an entry. Borrowed until the next call.
   * @param {number} entry @returns {Float64Array} */
  sumsAt(entry) {
    const now = this.now;
    if (this.source.count === 0) return now;
    // From the nearest of the checkpoints on both sides and where it was last.
    const near = Math.floor((Math.max(0, entry) + CHECKPOINT / 2) / CHECKPOINT);
    const point = Math.min(near, Math.floor((this.source.count - 1) / CHECKPOINT));
    let at = this.at;
    if (Math.abs(at - entry) > Math.abs(point * CHECKPOINT - 1 - entry)) {
      const from = point * this.count;
      now.set(this.sums.subarray(from, from + this.count));
      at = point * CHECKPOINT - 1;
    }
    if (at <= entry) this.apply(now, at + 1, entry + 1);
    else this.apply(now, Math.max(-1, entry) + 1, at + 1, -1);
    this.at = Math.max(-1, entry);
    return now;
  }
}

/** Rows of the table: every key with what it holds and asked for. Columns as of `tarn top`.
 * @param {Grouping} grouping @param {number} cursor @param {number} peak */
export function groupRows(grouping, cursor, peak) {
  const { source } = grouping;
  const rows = grouping.keys.map((key, i) => ({
    key: i,
    text: key.text,
    stack: key.stack,
    live: 0,
    blocks: 0,
    before: 0,
    peak: 0,
    end: 0,
    allocated: 0,
    count: 0,
    entries: 0,
    freed: 0,
  }));
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const row = rows[grouping.key(lifetime)];
    const size = source.size(lifetime);
    const start = source.lifetimeStart[lifetime];
    const end = source.lifetimeEnd[lifetime];
    if (source.isLive(lifetime, cursor)) {
      row.live += size;
      row.blocks++;
      if (start === NEVER) row.before += size;
    }
    if (source.isLive(lifetime, peak)) row.peak += size;
    if (end === NEVER) row.end += size;
    if (start !== NEVER) {
      row.allocated += size;
      row.count++;
      if (end !== NEVER) {
        row.entries += end - start;
        row.freed++;
      }
    }
  }
  return rows.filter(
    (row) => row.live || row.peak || row.end || row.allocated || row.count || row.blocks,
  );
}
