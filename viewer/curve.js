// SPDX-License-Identifier: MIT
// Bytes in use and reserved after every entry, and the most of any range of entries, exactly: sums
// at every 64th entry, and a pyramid of maxima above them.
import { KIND } from './trace.js';

const BASE = 64;
const UP = 16;

export class Curve {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    this.source = source;
    const buckets = Math.ceil(source.count / BASE);
    this.before = new Float64Array(buckets); // in use before the bucket's first entry
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
    const { kind, ref, lifeSize } = source;
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
        if (kind[entry] === KIND.ALLOC) now += lifeSize[ref[entry]];
        else if (kind[entry] === KIND.FREE_COMPLETED) now -= lifeSize[ref[entry]];
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
    const bucket = Math.ceil(first / BASE);
    const last = Math.floor(end / BASE);
    if (bucket >= last) {
      this.scan(first, end, found);
      return found;
    }
    this.scan(first, bucket * BASE, found);
    this.climb(bucket, last, found);
    this.scan(last * BASE, end, found);
    return found;
  }

  /** @param {number} first @param {number} end
   * @param {{value: number, entry: number, least: number}} found */
  scan(first, end, found) {
    if (first >= end) return;
    const bucket = Math.floor(first / BASE);
    let now = this.before[bucket];
    for (let i = bucket * BASE; i < end; i++) {
      if (i % BASE === 0) now = this.before[i / BASE];
      now += this.source.delta(i);
      if (i >= first) {
        if (now > found.value) {
          found.value = now;
          found.entry = i;
        }
        if (now < found.least) found.least = now;
      }
    }
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
