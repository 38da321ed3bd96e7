// SPDX-License-Identifier: MIT
// Which blocks are in use in a range of entries, without a look at every block: for each 64 of them
// in their order when the first of them came and the last went. Blocks are in the order of their
// birth, so few of these 64 are looked at in vain.

const CHUNK = 64;

export class LifetimeIndex {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    const { lifetimes, lifetimeStart, lifetimeEnd } = source;
    this.lifetimes = lifetimes;
    this.chunks = Math.ceil(lifetimes / CHUNK);
    this.born = new Int32Array(this.chunks); // -1: before the first entry
    this.gone = new Uint32Array(this.chunks); // NEVER is above all entries
    for (let chunk = 0; chunk < this.chunks; chunk++) {
      let born = Infinity;
      let gone = 0;
      const end = Math.min(lifetimes, (chunk + 1) * CHUNK);
      for (let lifetime = chunk * CHUNK; lifetime < end; lifetime++) {
        const start = lifetimeStart[lifetime] | 0; // NEVER becomes -1
        if (start < born) born = start;
        if (lifetimeEnd[lifetime] > gone) gone = lifetimeEnd[lifetime];
      }
      this.born[chunk] = born;
      this.gone[chunk] = gone;
    }
  }

  /** The first chunk from `chunk` on that may have blocks which are in use right after one of the
   * entries [from, to); `chunks` when there is none. @param {number} chunk @param {number} from
   * @param {number} to */
  next(chunk, from, to) {
    const { born, gone, chunks } = this;
    while (chunk < chunks && !(born[chunk] < to && gone[chunk] > from)) chunk++;
    return chunk;
  }

  /** @param {number} chunk */
  first(chunk) {
    return chunk * CHUNK;
  }

  /** @param {number} chunk */
  end(chunk) {
    return Math.min(this.lifetimes, (chunk + 1) * CHUNK);
  }

  /** Calls `visit` for each block that is in use right after an entry; -1: before the first.
   * @param {import('./trace.js').Source} source @param {number} entry
   * @param {(lifetime: number) => void} visit */
  eachAt(source, entry, visit) {
    for (let chunk = this.next(0, entry, entry + 1); chunk < this.chunks; ) {
      const end = this.end(chunk);
      for (let lifetime = this.first(chunk); lifetime < end; lifetime++)
        if (source.isLive(lifetime, entry)) visit(lifetime);
      chunk = this.next(chunk + 1, entry, entry + 1);
    }
  }
}
