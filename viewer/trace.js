// SPDX-License-Identifier: MIT
// A snapshot in memory: for each source (a device, or pinned memory) its entries, blocks and
// segments, in typed arrays. source_reader.js fills them.
import { settingsRounded, unitRounded } from './block_size.js';
import { LifetimeIndex } from './lifetime_index.js';
import { KIND, NEVER } from './kind.js';
import { sourceName } from './source_name.js';

/** @param {number} count @param {number} below every number is */
function numbersBelow(count, below) {
  return below <= 256
    ? new Uint8Array(count)
    : below <= 65536
      ? new Uint16Array(count)
      : new Uint32Array(count);
}

const CATEGORIES_GUESSED = 3; // the last of the head's

/** One device, or pinned memory. */
export class Source {
  /** @param {any} info @param {import('./names.js').Names} names @param {any} head
   * @param {number} number
   * @param {number} [id] that no other source of the page has */
  constructor(info, names, head, number, id = number) {
    this.id = id;
    this.info = info;
    this.names = names;
    this.head = head;
    this.number = number;
    this.count = info.entries;
    this.lifetimes = info.lifetimes;
    this.base = BigInt(info.base);
    this.hasTime = info.time !== null;
    this.name = sourceName(info);
    this.kind = new Uint8Array(this.count);
    this.ref = new Uint32Array(this.count);
    this.stack = numbersBelow(this.count, names.stackNode.length);
    /** Microseconds of the recording before the page begins. @type {number} */
    this.timeBegun = info.since ?? 0;
    const lasts = this.timeBegun + info.span;
    this.time = lasts < 2 ** 32 ? new Uint32Array(this.count) : new Float64Array(this.count);
    this.lifetimeAddress = new Float64Array(this.lifetimes);
    /** Bytes asked for. @type {Uint32Array | Float64Array} */
    this.lifetimeSize = new Uint32Array(this.lifetimes);
    this.lifetimeStart = new Uint32Array(this.lifetimes);
    this.lifetimeAsked = new Uint32Array(this.lifetimes).fill(NEVER);
    this.lifetimeEnd = new Uint32Array(this.lifetimes).fill(NEVER);
    /** What the use says of the category, by src/page/record.h; 0: nothing.
     * @type {Uint8Array} */
    this.lifetimeHint = new Uint8Array(0);
    this.lifetimePoolStream = numbersBelow(this.lifetimes, head.pool_streams.length);
    this.lifetimeStack = numbersBelow(this.lifetimes, names.stackNode.length);
    this.lifetimeExtra =
      names.extras.length > 1 ? numbersBelow(this.lifetimes, names.extras.length) : null;
    /**
     * @type {{entry: number, kind: number, address: number, size: number, poolStream: number, free:
     * number, extra: number, lifetime: number}[]}
     */
    this.events = [];
    /** Spans of reserved memory.
     * @type {{address: number, size: number, start: number, end: number, poolStream: number, stack:
     * number, large: boolean, expandable: boolean}[]} */
    this.spans = [];
    /** @type {number[]} */
    this.ooms = [];
    /** @type {Float64Array} */
    this.sizes = new Float64Array(0);
    this.pendingAtStart = new Set();
    /** Of blocks that have not just their rounded request. @type {Map<number, number>} */
    this.blockSizes = new Map();
    this.rounds = !info.host && head.roundup.some((/** @type {number} */ n) => n > 1);
    /** @type {LifetimeIndex | null} */
    this.lifetimeIndex = null;
    /** What the program said of a block after its allocation: number of the extra, by lifetime.
     * @type {Map<number, number>} */
    this.lifetimeSaid = new Map();
    /** Lifetimes that an allocation of their address ends, by its entry.
     * @type {Map<number, number>} */
    this.ended = new Map();
  }

  /** Bytes that a request takes of its block. @param {number} size */
  rounded(size) {
    return this.rounds ? settingsRounded(size, this.head.roundup) : unitRounded(size);
  }

  /** Bytes of a block. @param {number} lifetime */
  blockSize(lifetime) {
    return this.blockSizes.get(lifetime) ?? this.rounded(this.size(lifetime));
  }

  /** Bytes asked for. @param {number} lifetime */
  size(lifetime) {
    return this.lifetimeSize[lifetime];
  }

  /** What the file says of the allocation. @param {number} lifetime */
  extra(lifetime) {
    return this.names.extras[this.lifetimeExtra ? this.lifetimeExtra[lifetime] : 0];
  }

  /** Number of the extra with what the program said of the block last. @param {number} lifetime */
  said(lifetime) {
    return (
      this.lifetimeSaid.get(lifetime) ?? (this.lifetimeExtra ? this.lifetimeExtra[lifetime] : 0)
    );
  }

  /** The category of a block: what the rules say of its stack or, where they say nothing, what its
   * use hints at. @param {number} lifetime */
  category(lifetime) {
    const hint = this.lifetimeHint[lifetime];
    if (hint > 0) return this.head.categories.length - CATEGORIES_GUESSED - 1 + hint;
    return this.names.stackCategory[this.lifetimeStack[lifetime]];
  }

  /** Whether the block is in use right after an entry; -1: before the first.
   * @param {number} lifetime @param {number} entry */
  isLive(lifetime, entry) {
    const start = this.lifetimeStart[lifetime];
    const end = this.lifetimeEnd[lifetime];
    return (start === NEVER || start <= entry) && (end === NEVER || end > entry);
  }

  /**
   * Whether its free was asked for and is not complete.
   * @param {number} lifetime
   * @param {number} entry
   */
  isPending(lifetime, entry) {
    const asked = this.lifetimeAsked[lifetime];
    if (asked !== NEVER && asked <= entry) return true;
    return (
      this.pendingAtStart.has(lifetime) &&
      (lifetime < this.info.carried || entry >= this.count - 1)
    );
  }

  /** What the entry adds to the bytes in use. @param {number} entry */
  delta(entry) {
    const kind = this.kind[entry];
    if (kind === KIND.ALLOC) return this.lifetimeSize[this.ref[entry]];
    if (kind === KIND.FREE_COMPLETED) return -this.lifetimeSize[this.ref[entry]];
    if (kind === KIND.ALLOC_AGAIN) return this.size(this.ref[entry]) - this.endedSize(entry);
    return 0;
  }

  /** Blocks by when they are in use. */
  index() {
    this.lifetimeIndex ??= new LifetimeIndex(this);
    return this.lifetimeIndex;
  }

  /** Lifetimes that an allocation of their address ends, by its entry. */
  endedBy() {
    return this.ended;
  }

  /** @param {number} entry */
  endedSize(entry) {
    const lifetime = this.endedBy().get(entry);
    return lifetime === undefined ? 0 : this.size(lifetime);
  }

  /** @param {number} address of this source */
  hex(address) {
    return '0x' + (this.base + BigInt(Math.round(address))).toString(16);
  }

  /** Microseconds since the recording began, at a place between entries. @param {number} at */
  timeAt(at) {
    if (this.count === 0 || at <= 0) return this.timeBegun;
    const entry = Math.min(Math.floor(at), this.count - 1);
    const from = this.time[entry];
    const to = entry + 1 < this.count ? this.time[entry + 1] : from;
    return from + (to - from) * Math.min(1, at - entry);
  }

  /** The place between entries at a time. @param {number} us */
  atTime(us) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] <= us) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return 0;
    if (low >= this.count) return this.count;
    const from = this.time[low - 1];
    return low - 1 + (us - from) / Math.max(1e-9, this.time[low] - from);
  }

  /**
   * "large pool" is of segments; this is "stream 0" or "pool (0, 2), stream 1".
   * @param {number} poolStream
   */
  poolStreamText(poolStream) {
    const found = this.head.pool_streams[poolStream];
    if (!found) return 'unknown';
    const [stream, a, b] = found;
    const pool =
      a === '0' && b === '0'
        ? ''
        : a === '18446744073709551615'
          ? 'unknown pool, '
          : `private pool (${a}, ${b}), `;
    return `${pool}stream ${stream}`;
  }
}
