// SPDX-License-Identifier: MIT
// Addresses without the gaps between what was reserved: what heights in Blocks mean.

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
