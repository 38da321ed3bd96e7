// SPDX-License-Identifier: MIT
// Bytes in use and reserved after every entry, and the most of any range of entries, exactly: sums
// at every 64th entry, and a pyramid of maxima above them.
import { KIND } from './kind.js';

const BASE = 64;
const UP = 16;

export class Curve {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    this.source = source;
    const buckets = Math.ceil(source.count / BASE);
    this.before = new Float64Array(buckets); // in use before the first entry of the bucket
    /** @type {{most: Float64Array, least: Float64Array, at: Uint32Array}[]} */
    this.levels = [];
    this.reservedAt = [-1];
    this.reservedValue = [source.info.reserved];
    this.reservedPeak = { value: source.info.reserved, entry: -1 };
    this.addLevel(buckets);
    this.fillBase();
    while (this.levels[this.levels.length - 1].most.length > UP) this.fillNext();
    this.makeReserved();
    this.peak =
      source.count > 0 ? this.most(0, source.count) : { value: source.info.requested, entry: -1 };
    if (!(this.peak.value > source.info.requested)) {
      this.peak = { value: source.info.requested, entry: -1 };
    }
  }

  /** @param {number} count */
  addLevel(count) {
    const level = {
      most: new Float64Array(count),
      least: new Float64Array(count),
      at: new Uint32Array(count),
    };
    this.levels.push(level);
    return level;
  }

  fillBase() {
    const { source, before } = this;
    const { kind, ref, lifetimeSize } = source;
    const level = this.levels[0];
    let now = source.info.requested;
    for (let bucket = 0; bucket < before.length; bucket++) {
      const first = bucket * BASE;
      const end = Math.min(first + BASE, source.count);
      let most = -Infinity;
      let least = Infinity;
      let at = first;
      before[bucket] = now;
      for (let entry = first; entry < end; entry++) {
        if (kind[entry] === KIND.ALLOC) now += lifetimeSize[ref[entry]];
        else if (kind[entry] === KIND.FREE_COMPLETED) now -= lifetimeSize[ref[entry]];
        else if (kind[entry] === KIND.ALLOC_AGAIN) now += source.delta(entry);
        if (now > most) {
          most = now;
          at = entry;
        }
        if (now < least) least = now;
      }
      level.most[bucket] = most;
      level.least[bucket] = least;
      level.at[bucket] = at;
    }
  }

  fillNext() {
    const below = this.levels[this.levels.length - 1];
    const level = this.addLevel(Math.ceil(below.most.length / UP));
    level.most.fill(-Infinity);
    level.least.fill(Infinity);
    for (let i = 0; i < below.most.length; i++) {
      const to = Math.floor(i / UP);
      if (below.most[i] > level.most[to]) {
        level.most[to] = below.most[i];
        level.at[to] = below.at[i];
      }
      if (below.least[i] < level.least[to]) level.least[to] = below.least[i];
    }
  }

  /** Reserved bytes change rarely: at which entries, and to what. */
  makeReserved() {
    const at = [-1];
    const value = [this.source.info.reserved];
    let now = value[0];
    let peak = now;
    let peakAt = -1;
    for (const event of this.source.events) {
      const grows = event.kind === KIND.SEGMENT_ALLOC || event.kind === KIND.SEGMENT_MAP;
      const shrinks = event.kind === KIND.SEGMENT_FREE || event.kind === KIND.SEGMENT_UNMAP;
      if (grows || shrinks) {
        now += grows ? event.size : -event.size;
        at.push(event.entry);
        value.push(now);
        if (now > peak) {
          peak = now;
          peakAt = event.entry;
        }
      }
    }
    this.reservedAt = at;
    this.reservedValue = value;
    this.reservedPeak = { value: peak, entry: peakAt };
  }

  /** Bytes in use right after an entry; -1: before the first. @param {number} entry */
  requested(entry) {
    if (entry < 0) return this.source.info.requested;
    const bucket = Math.floor(entry / BASE);
    let now = this.before[bucket];
    for (let i = bucket * BASE; i <= entry; i++) now += this.source.delta(i);
    return now;
  }

  /** @param {number} entry @returns {number} index of the step of reserved bytes */
  reservedStep(entry) {
    let low = 0;
    let high = this.reservedAt.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reservedAt[middle] <= entry) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** @param {number} entry */
  reserved(entry) {
    return this.reservedValue[this.reservedStep(entry)];
  }

  /** The most reserved after any of [first, end). @param {number} first @param {number} end */
  reservedMost(first, end) {
    let step = this.reservedStep(first);
    let most = this.reservedValue[step];
    for (step++; step < this.reservedAt.length && this.reservedAt[step] < end; step++) {
      most = Math.max(most, this.reservedValue[step]);
    }
    return most;
  }

  /** The most in use after any of [first, end), the first such entry, and the least.
   * @param {number} first @param {number} end */
  most(first, end) {
    const found = { value: -Infinity, entry: first, least: Infinity };
    this.look({ at: -1, now: 0 }, first, end, found);
    return found;
  }

  /** The same for ranges that follow each other, [first[i], end[i]); calls `put` with each. What
   * one range ends with the next begins with, so that no entry is added up twice.
   * @param {Uint32Array} first @param {Uint32Array} end
   * @param {(i: number, found: {value: number, entry: number, least: number}) => void} put */
  mostOfEach(first, end, put) {
    const found = { value: 0, entry: 0, least: 0 };
    const walk = { at: -1, now: 0 };
    for (let i = 0; i < first.length; i++) {
      found.value = -Infinity;
      found.entry = first[i];
      found.least = Infinity;
      this.look(walk, first[i], end[i], found);
      put(i, found);
    }
  }

  /** @param {{at: number, now: number}} walk @param {number} first @param {number} end
   * @param {{value: number, entry: number, least: number}} found */
  look(walk, first, end, found) {
    const bucket = Math.ceil(first / BASE);
    const last = Math.floor(end / BASE);
    if (bucket >= last) this.scan(walk, first, end, found);
    else {
      this.scan(walk, first, bucket * BASE, found);
      this.climb(bucket, last, found);
      this.scan(walk, last * BASE, end, found);
    }
  }

  /** Looks at the entries [first, end), from where `walk` is or from the start of their bucket.
   * @param {{at: number, now: number}} walk an entry, and what is in use before it
   * @param {number} first @param {number} end
   * @param {{value: number, entry: number, least: number}} found */
  scan(walk, first, end, found) {
    if (first >= end) return;
    const { source } = this;
    const { kind, ref, lifetimeSize } = source;
    const start = first - (first % BASE);
    let { at, now } = walk;
    if (at < start || at > first + BASE) {
      at = start;
      now = this.before[start / BASE];
    }
    while (at > first) now -= source.delta(--at);
    let { value, entry, least } = found;
    for (; at < end; at++) {
      const what = kind[at];
      if (what === KIND.ALLOC) now += lifetimeSize[ref[at]];
      else if (what === KIND.FREE_COMPLETED) now -= lifetimeSize[ref[at]];
      else if (what === KIND.ALLOC_AGAIN) now += source.delta(at);
      if (at < first) continue;
      if (now > value) {
        value = now;
        entry = at;
      }
      if (now < least) least = now;
    }
    Object.assign(walk, { at, now });
    Object.assign(found, { value, entry, least });
  }

  /** Whole buckets [from, to) of the lowest level.
   * @param {number} from @param {number} to
   * @param {{value: number, entry: number, least: number}} found */
  climb(from, to, found) {
    while (from < to) {
      let level = 0;
      let width = 1;
      while (
        level + 1 < this.levels.length &&
        from % (width * UP) === 0 &&
        from + width * UP <= to
      ) {
        width *= UP;
        level++;
      }
      const { most, least, at } = this.levels[level];
      const i = from / width;
      if (most[i] > found.value) {
        found.value = most[i];
        found.entry = at[i];
      }
      if (least[i] < found.least) found.least = least[i];
      from += width;
    }
  }
}
