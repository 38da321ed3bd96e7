// SPDX-License-Identifier: MIT
// From places between entries to pixels, by number of the entry or by time. Place p shows the state
// after entry floor(p).

export class Axis {
  /** @param {import('./trace.js').Source} source @param {string} kind @param {number} from
   * @param {number} to @param {number} width */
  constructor(source, kind, from, to, width) {
    this.source = source;
    this.isTime = kind === 'time' && source.hasTime && source.count > 1;
    this.from = from;
    this.to = to;
    this.width = width;
    this.low = this.isTime ? source.timeAt(from) : from;
    this.high = this.isTime ? source.timeAt(to) : to;
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  /** @param {number} place */
  pixel(place) {
    const value = this.isTime ? this.source.timeAt(place) : place;
    return ((value - this.low) / (this.high - this.low)) * this.width;
  }

  /** @param {number} pixel */
  place(pixel) {
    const value = this.low + (pixel / this.width) * (this.high - this.low);
    return this.isTime ? this.source.atTime(value) : value;
  }

  /** The entry whose state a pixel shows. @param {number} pixel */
  entry(pixel) {
    return Math.max(0, Math.min(this.source.count - 1, Math.floor(this.place(pixel))));
  }

  /** For each of `columns` columns the entries [first, end) whose states it shows.
   * @param {number} columns */
  ranges(columns) {
    const first = new Uint32Array(columns);
    const end = new Uint32Array(columns);
    const count = this.source.count;
    let place = this.place(0);
    for (let i = 0; i < columns; i++) {
      const next = this.place(((i + 1) / columns) * this.width);
      first[i] = Math.max(0, Math.min(count - 1, Math.floor(place)));
      end[i] = Math.max(first[i] + 1, Math.min(count, Math.ceil(next)));
      place = next;
    }
    return { first, end };
  }
}
