// SPDX-License-Identifier: MIT
// A snapshot in memory: texts, stacks, and for each source (a device, or pinned memory) its
// entries, blocks and segments, in typed arrays.
import { BadPage, Numbers, breathe, planeNumbers } from './payload.js';
import { baseName, shownText } from './format.js';
import { settingsRounded, unitRounded } from './block_size.js';
import { LifetimeIndex } from './lifetime_index.js';
import { sourceName } from './source_name.js';

/** Kinds of entries; the numbers are those of src/page/record.h. */
export const KIND = {
  ALLOC: 0,
  FREE_REQUESTED: 1,
  FREE_COMPLETED: 2,
  FREE: 3,
  OLD_FREE_REQUESTED: 4,
  OLD_FREE_COMPLETED: 5,
  OLD_FREE: 6,
  LOST_FREE_REQUESTED: 7,
  LOST_FREE_COMPLETED: 8,
  SEGMENT_ALLOC: 9,
  SEGMENT_FREE: 10,
  SEGMENT_MAP: 11,
  SEGMENT_UNMAP: 12,
  SNAPSHOT: 13,
  OOM: 14,
  ANNOTATE: 15,
  USER_DEFINED: 16,
  OTHER: 17,
  ALLOC_AGAIN: 18,
};

/** Names of entries after decoding; kinds 3 to 6 are then gone. */
export const KIND_NAMES = [
  'alloc',
  'free requested',
  'free completed',
  '',
  '',
  '',
  '',
  'free of a free block',
  'free of a free block',
  'segment alloc',
  'segment free',
  'segment map',
  'segment unmap',
  'snapshot',
  'out of memory',
  'annotate',
  'user defined',
  'other',
  'alloc of an allocated block',
];

/** As a start: before the first entry. As an end: never. */
export const NEVER = 0xffffffff;

/** @param {number} count @param {number} below every number is */
function numbersBelow(count, below) {
  return below <= 256
    ? new Uint8Array(count)
    : below <= 65536
      ? new Uint16Array(count)
      : new Uint32Array(count);
}

/** @param {Uint8Array} bytes */
function allVarints(bytes) {
  const numbers = new Numbers(bytes);
  const list = [];
  while (!numbers.isAtEnd()) list.push(numbers.varint());
  numbers.finish();
  return list;
}

/** Texts, frames and stacks of the page. */
export class Names {
  constructor() {
    /** @type {string[]} */
    this.texts = [''];
    this.frameName = new Uint32Array(1);
    this.frameFile = new Uint32Array(1);
    this.frameLine = new Float64Array(1);
    this.frameOrigin = new Uint8Array(1); // 0: the user's code, 1: a library's, 2: PyTorch's
    /** @type {number[][]} */
    this.frameFx = [[]];
    this.nodeParent = new Uint32Array(1);
    this.nodeFrame = new Uint32Array(1);
    this.stackNode = new Uint32Array(1);
    this.stackCategory = new Uint32Array(1); // what the rules say of the stack; 0: nothing
    /**
     * @type {{metadata: string, compile: string, category: string, internal: string, action:
     * string}[]}
     */
    this.extras = [{ metadata: '', compile: '', category: '', internal: '', action: '' }];
    /** @type {string[]} */
    this.frameTexts = [];
  }

  /** @param {{read: (name: string) => Promise<Uint8Array>}} sections */
  async read(sections) {
    const sizes = allVarints(await sections.read('text.sizes'));
    const bytes = await sections.read('text.bytes');
    const decoder = new TextDecoder();
    let at = 0;
    for (const size of sizes) {
      this.texts.push(decoder.decode(bytes.subarray(at, at + size)));
      at += size;
    }
    if (at !== bytes.length) throw new BadPage('the texts have another length than they say');
    this.readFrames(await sections.read('frames'));
    this.readNodes(await sections.read('nodes'));
    this.readStacks(await sections.read('stacks'));
    const extra = allVarints(await sections.read('extras'));
    for (let i = 0; i + 4 < extra.length; i += 5) {
      this.extras.push({
        metadata: this.text(extra[i]),
        compile: this.text(extra[i + 1]),
        category: this.text(extra[i + 2]),
        internal: this.text(extra[i + 3]),
        action: this.text(extra[i + 4]),
      });
    }
  }

  /** @param {Uint8Array} bytes */
  readFrames(bytes) {
    const numbers = new Numbers(bytes);
    const name = [0];
    const file = [0];
    const line = [0];
    const origin = [0];
    while (!numbers.isAtEnd()) {
      name.push(numbers.varint());
      file.push(numbers.varint());
      line.push(numbers.step());
      origin.push(numbers.varint());
      const fx = [numbers.varint(), numbers.varint(), numbers.varint(), numbers.varint()];
      this.frameFx.push(fx.some((text) => text > 0) ? fx : []);
    }
    numbers.finish();
    this.frameName = Uint32Array.from(name);
    this.frameFile = Uint32Array.from(file);
    this.frameLine = Float64Array.from(line);
    this.frameOrigin = Uint8Array.from(origin);
  }

  /** @param {Uint8Array} bytes */
  readNodes(bytes) {
    const numbers = new Numbers(bytes);
    const parent = [0];
    const frame = [0];
    while (!numbers.isAtEnd()) {
      parent.push(parent.length - numbers.varint());
      frame.push(numbers.varint());
    }
    numbers.finish();
    this.nodeParent = Uint32Array.from(parent);
    this.nodeFrame = Uint32Array.from(frame);
    for (let i = 1; i < parent.length; i++) {
      if (!(parent[i] < i) || !(frame[i] < this.frameName.length)) {
        throw new BadPage('the stacks contradict themselves');
      }
    }
  }

  /** Node and category of each. @param {Uint8Array} bytes */
  readStacks(bytes) {
    const stacks = allVarints(bytes);
    this.stackNode = new Uint32Array(1 + stacks.length / 2);
    this.stackCategory = new Uint32Array(1 + stacks.length / 2);
    for (let i = 0; i + 1 < stacks.length; i += 2) {
      this.stackNode[1 + i / 2] = stacks[i];
      this.stackCategory[1 + i / 2] = stacks[i + 1];
    }
  }

  /** @param {number} text */
  text(text) {
    return this.texts[text] ?? '';
  }

  /** "activations.py:66 forward". @param {number} frame */
  frameText(frame) {
    let text = this.frameTexts[frame];
    if (text === undefined) {
      const file = baseName(this.text(this.frameFile[frame]));
      const line = this.frameLine[frame];
      const name = this.text(this.frameName[frame]);
      text = shownText(
        file ? `${file}${line ? ':' + line : ''} ${name}` : name || '(no name)',
        300,
      );
      this.frameTexts[frame] = text;
    }
    return text;
  }

  /** Code of libraries and of the interpreter. @param {number} frame */
  isLibrary(frame) {
    return this.frameOrigin[frame] > 0 || !this.frameFile[frame];
  }

  /** Frames of a stack, innermost first. @param {number} stack */
  frames(stack) {
    const list = [];
    for (let node = this.stackNode[stack]; node > 0; node = this.nodeParent[node]) {
      list.push(this.nodeFrame[node]);
    }
    return list;
  }

  /** The innermost frame and up to three more that say most: those not of PyTorch, and the
   * innermost one of the user's code. @param {number} stack */
  stackText(stack) {
    if (stack === 0) return '(not recorded)';
    const frames = this.frames(stack);
    if (frames.length === 0) return '(no frames)';
    const rest = frames.slice(1);
    const shown = rest.filter((frame) => this.frameOrigin[frame] < 2).slice(0, 2);
    const own = rest.find((frame) => !this.isLibrary(frame));
    if (own !== undefined && !shown.includes(own)) shown.push(own);
    return [frames[0], ...shown].map((frame) => this.frameText(frame)).join(' \u2190 ');
  }
}

/** Sizes of blocks, by number. @param {Uint8Array} bytes */
export function readSizes(bytes) {
  const numbers = new Numbers(bytes);
  const list = [];
  let size = 0;
  while (!numbers.isAtEnd()) list.push((size += numbers.step()));
  numbers.finish();
  return Float64Array.from(list);
}

/** What follows from the entries read so far.
 * @typedef {{entry: number, lifetime: number, address: number, time: number, latest: number,
 *   row: Uint32Array, rowIndex: Uint32Array, rowCount: number, ended: Uint32Array,
 *   endedCount: number}} Progress */

/** The numbers of a column, one after another. */
class Column {
  /** @param {Uint32Array | Float64Array} numbers */
  constructor(numbers) {
    this.numbers = numbers;
    this.at = 0;
  }

  next() {
    return this.numbers[this.at++];
  }

  /** A signed one. */
  step() {
    const number = this.next();
    return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
  }
}

const CATEGORIES_GUESSED = 3; // the last of the head's
const TRACE_COLUMNS = 11; // of a piece of the trace; src/page/record.h has their meaning

/** One device, or pinned memory. */
export class Source {
  /** @param {any} info @param {Names} names @param {any} head @param {number} number
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
    this.time = info.span < 2 ** 32 ? new Uint32Array(this.count) : new Float64Array(this.count);
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

  /** @param {{read: (name: string) => Promise<Uint8Array>}} sections
   * @param {Float64Array} sizes
   * @param {(share: number) => void} progress */
  async read(sections, sizes, progress) {
    this.sizes = sizes;
    if (sizes.some((size) => !(size < 2 ** 32)))
      this.lifetimeSize = new Float64Array(this.lifetimes);
    this.readBefore(await sections.read(`d${this.number}.before`));
    this.readSpans(await sections.read(`d${this.number}.spans`));
    this.readBlocks(await sections.read(`d${this.number}.blocks`));
    this.lifetimeHint = await sections.read(`d${this.number}.hints`);
    const state = this.start();
    for (let i = 0; i < this.info.chunks; i++) {
      this.readChunk(await sections.read(`d${this.number}.trace.${i}`), state);
      progress((i + 1) / this.info.chunks);
      await breathe();
    }
    if (
      state.entry !== this.count ||
      state.lifetime + this.info.survivors !== this.lifetimes ||
      this.lifetimeHint.length !== this.lifetimes
    ) {
      throw new BadPage('the trace has another length than it says');
    }
  }

  /** @param {Uint8Array} bytes */
  readBefore(bytes) {
    const numbers = new Numbers(bytes);
    const { carried, survivors } = this.info;
    let address = 0;
    for (let i = 0; i < carried + survivors; i++) {
      const lifetime = i < carried ? i : this.lifetimes - survivors + i - carried;
      address += numbers.step();
      this.lifetimeAddress[lifetime] = address * this.info.unit;
      this.lifetimeSize[lifetime] = this.sizes[numbers.varint()];
      this.lifetimePoolStream[lifetime] = numbers.varint();
      this.lifetimeStack[lifetime] = numbers.varint();
      this.lifetimeStart[lifetime] = NEVER;
      const extra = numbers.varint();
      const said = numbers.varint();
      if (this.lifetimeExtra) this.lifetimeExtra[lifetime] = extra;
      if (said > 0) this.lifetimeSaid.set(lifetime, said - 1);
      if (numbers.byte()) this.pendingAtStart.add(lifetime);
    }
    numbers.finish();
  }

  /** @param {Uint8Array} bytes */
  readBlocks(bytes) {
    const numbers = new Numbers(bytes);
    let lifetime = 0;
    while (!numbers.isAtEnd()) {
      lifetime += numbers.varint();
      this.blockSizes.set(lifetime, numbers.varint());
    }
    numbers.finish();
  }

  /** Bytes that a request takes of its block. @param {number} size */
  rounded(size) {
    return this.rounds ? settingsRounded(size, this.head.roundup) : unitRounded(size);
  }

  /** Bytes of a block. @param {number} lifetime */
  blockSize(lifetime) {
    return this.blockSizes.get(lifetime) ?? this.rounded(this.size(lifetime));
  }

  /** @param {Uint8Array} bytes */
  readSpans(bytes) {
    const numbers = new Numbers(bytes);
    const count = numbers.varint();
    let address = 0;
    for (let i = 0; i < count && !numbers.isAtEnd(); i++) {
      address += numbers.step();
      const size = numbers.varint();
      const start = numbers.varint();
      const end = numbers.varint();
      const poolStream = numbers.varint();
      const stack = numbers.varint();
      const flags = numbers.byte();
      this.spans.push({
        address: address * this.info.unit,
        size,
        poolStream,
        stack,
        start: start === 0 ? -1 : start - 1,
        end: end === 0 ? Infinity : end - 1,
        large: (flags & 1) > 0,
        expandable: (flags & 2) > 0,
      });
    }
    numbers.finish();
  }

  /** @returns {Progress} */
  start() {
    const { carried } = this.info;
    const row = new Uint32Array(this.lifetimes + 1);
    for (let lifetime = 0; lifetime < carried; lifetime++) row[lifetime] = lifetime;
    return {
      entry: 0,
      lifetime: carried,
      address: 0,
      time: 0,
      latest: 0,
      row,
      rowIndex: row.slice(),
      rowCount: carried,
      ended: new Uint32Array(this.lifetimes + 1),
      endedCount: 0,
    };
  }

  /** @param {Uint8Array} bytes @param {Progress} state */
  readChunk(bytes, state) {
    const head = new Numbers(bytes);
    const count = head.varint();
    /** @type {{count: number, width: number}[]} */
    const shapes = [];
    for (let i = 0; i < TRACE_COLUMNS; i++)
      shapes.push({ count: head.varint(), width: head.byte() });
    let at = head.at;
    const size = shapes.reduce((sum, shape) => sum + shape.count * shape.width, at);
    const [kinds, times] = shapes;
    if (
      size !== bytes.length ||
      times.count !== count ||
      !(kinds.count <= count) ||
      !(state.entry + count <= this.count)
    ) {
      throw new BadPage('a piece of the trace has another length than it says');
    }
    const columns = shapes.map((shape) => {
      at += shape.count * shape.width;
      return new Column(
        planeNumbers(bytes, at - shape.count * shape.width, shape.count, shape.width),
      );
    });
    const end = state.entry + count;
    this.readTimes(columns[1], state);
    this.readRecords(columns, state);
    const isRead = columns.every((column, i) => column.at === shapes[i].count);
    if (state.entry !== end || !isRead) {
      throw new BadPage('a column of the data does not end where it should');
    }
  }

  /** @param {Column} times @param {Progress} state */
  readTimes(times, state) {
    const { time } = this;
    const count = times.numbers.length;
    for (let i = 0; i < count; i++) {
      state.time += times.step();
      if (state.time > state.latest) state.latest = state.time;
      time[state.entry + i] = state.latest;
    }
  }

  /** Entries; those of most are read here, the others by readRare. The order of a record's
   * numbers is that of details_put in src/page/record.c.
   * @param {Column[]} columns @param {Progress} state */
  readRecords(columns, state) {
    const {
      kind: kinds,
      ref,
      stack: stacks,
      lifetimeAddress,
      lifetimeSize,
      lifetimeStart,
      lifetimeAsked,
    } = this;
    const { lifetimeEnd, lifetimePoolStream, lifetimeStack, lifetimeExtra } = this;
    const { row, rowIndex, ended } = state;
    const bytes = this.sizes;
    const { unit } = this.info;
    const [kindColumn, , stackColumn, freeStacks, reuses, addresses] = columns;
    const [sizes, behinds, poolStreams, extras] = columns.slice(6);
    const records = kindColumn.numbers;
    let { entry, lifetime, rowCount, endedCount } = state;
    for (let i = 0; i < records.length; i++) {
      const kind = records[i];
      if (kind === KIND.ALLOC) {
        const stack = stackColumn.next();
        const reuse = reuses.next();
        let address = 0;
        if (reuse > 0) {
          const spot = endedCount - reuse;
          address = lifetimeAddress[ended[spot]];
          ended[spot] = ended[--endedCount];
        } else {
          state.address += addresses.step();
          address = state.address * unit;
        }
        kinds[entry] = kind;
        ref[entry] = lifetime;
        stacks[entry] = stack;
        lifetimeAddress[lifetime] = address;
        lifetimeSize[lifetime] = bytes[sizes.next()];
        lifetimePoolStream[lifetime] = poolStreams.next();
        lifetimeStart[lifetime] = entry;
        lifetimeStack[lifetime] = stack;
        const extra = extras.next();
        if (extra > 0 && lifetimeExtra) lifetimeExtra[lifetime] = extra;
        rowIndex[lifetime] = rowCount;
        row[rowCount++] = lifetime++;
        entry++;
      } else if (kind === KIND.FREE) {
        const spot = rowCount - 1 - behinds.next();
        const freed = row[spot];
        const free = freeStacks.next();
        const stack = free === 0 ? lifetimeStack[freed] : free - 1;
        const last = row[--rowCount];
        row[spot] = last;
        rowIndex[last] = spot;
        ended[endedCount++] = freed;
        lifetimeAsked[freed] = entry;
        lifetimeEnd[freed] = entry + 1;
        kinds[entry] = KIND.FREE_REQUESTED;
        kinds[entry + 1] = KIND.FREE_COMPLETED;
        ref[entry] = ref[entry + 1] = freed;
        stacks[entry] = stacks[entry + 1] = stack;
        entry += 2;
      } else {
        Object.assign(state, { entry, lifetime, rowCount, endedCount });
        this.readRare(kind, columns, state);
        ({ entry, lifetime, rowCount, endedCount } = state);
      }
    }
    kindColumn.at = records.length;
    Object.assign(state, { entry, lifetime, rowCount, endedCount });
  }

  /** @param {number} kind @param {Column[]} columns @param {Progress} state */
  readRare(kind, columns, state) {
    const [, , stacks, freeStacks, , addresses, sizes, behinds, poolStreams, extras, plains] =
      columns;
    const entry = state.entry++;
    const isFree = kind === KIND.FREE_REQUESTED || kind === KIND.FREE_COMPLETED;
    const number = isFree ? freeStacks.next() : stacks.next();
    if (isFree) {
      const lifetime = state.row[state.rowCount - 1 - behinds.next()];
      this.putFree(
        lifetime,
        kind,
        entry,
        number === 0 ? this.lifetimeStack[lifetime] : number - 1,
      );
      if (kind === KIND.FREE_COMPLETED) this.endLifetime(lifetime, state, true);
    } else if (kind <= KIND.OLD_FREE) {
      const lifetime = this.beginLifetime(state);
      state.address += addresses.step();
      this.lifetimeAddress[lifetime] = state.address * this.info.unit;
      this.lifetimeSize[lifetime] = this.sizes[sizes.next()];
      this.lifetimePoolStream[lifetime] = poolStreams.next();
      this.lifetimeStart[lifetime] = NEVER;
      const isDone = kind === KIND.OLD_FREE_COMPLETED;
      this.putFree(lifetime, isDone ? KIND.FREE_COMPLETED : KIND.FREE_REQUESTED, entry, number);
      if (kind === KIND.OLD_FREE) {
        this.putFree(lifetime, KIND.FREE_COMPLETED, state.entry++, number);
      }
      if (kind !== KIND.OLD_FREE_REQUESTED) this.endLifetime(lifetime, state, true);
    } else if (kind === KIND.ALLOC_AGAIN) {
      const old = state.row[state.rowCount - 1 - behinds.next()];
      this.endLifetime(old, state, false);
      this.lifetimeEnd[old] = entry;
      this.ended.set(entry, old);
      const lifetime = this.beginLifetime(state);
      this.lifetimeAddress[lifetime] = this.lifetimeAddress[old];
      this.lifetimeSize[lifetime] = this.sizes[sizes.next()];
      this.lifetimePoolStream[lifetime] = poolStreams.next();
      this.lifetimeStart[lifetime] = entry;
      this.lifetimeStack[lifetime] = number;
      const extra = extras.next();
      if (extra > 0 && this.lifetimeExtra) this.lifetimeExtra[lifetime] = extra;
      this.kind[entry] = kind;
      this.ref[entry] = lifetime;
      this.stack[entry] = number;
    } else {
      this.kind[entry] = kind;
      this.stack[entry] = number;
      this.readEvent(kind, entry, state, addresses, sizes, poolStreams, extras, plains);
    }
  }

  /** @param {number} lifetime @param {number} kind @param {number} entry @param {number} stack */
  putFree(lifetime, kind, entry, stack) {
    this.kind[entry] = kind;
    this.ref[entry] = lifetime;
    this.stack[entry] = stack;
    if (kind === KIND.FREE_REQUESTED) this.lifetimeAsked[lifetime] = entry;
    else this.lifetimeEnd[lifetime] = entry;
  }

  /** A lifetime that is in use from now on. @param {Progress} state */
  beginLifetime(state) {
    state.rowIndex[state.lifetime] = state.rowCount;
    state.row[state.rowCount++] = state.lifetime;
    return state.lifetime++;
  }

  /** @param {number} lifetime @param {Progress} state @param {boolean} isFree its address */
  endLifetime(lifetime, state, isFree) {
    const spot = state.rowIndex[lifetime];
    const last = state.row[--state.rowCount];
    state.row[spot] = last;
    state.rowIndex[last] = spot;
    if (isFree) state.ended[state.endedCount++] = lifetime;
  }

  /** @param {number} kind @param {number} entry @param {Progress} state
   * @param {Column} addresses @param {Column} sizes @param {Column} poolStreams
   * @param {Column} extras @param {Column} plains */
  readEvent(kind, entry, state, addresses, sizes, poolStreams, extras, plains) {
    const event = {
      entry,
      kind,
      address: -1,
      size: 0,
      poolStream: -1,
      free: 0,
      extra: 0,
      lifetime: -1,
    };
    if (kind <= KIND.SEGMENT_UNMAP) {
      state.address += addresses.step();
      event.address = state.address * this.info.unit;
      event.size = this.sizes[sizes.next()];
      event.poolStream = poolStreams.next();
    } else if (kind === KIND.OOM) {
      event.size = plains.next();
      event.free = plains.next();
      event.poolStream = poolStreams.next();
      this.ooms.push(entry);
    } else if (kind === KIND.SNAPSHOT) {
      event.size = plains.next();
    } else if (kind === KIND.ANNOTATE) {
      const back = plains.next();
      event.lifetime = back === 0 ? -1 : state.row[state.rowCount - back];
      event.extra = extras.next();
      if (back > 0) this.lifetimeSaid.set(event.lifetime, event.extra);
    } else {
      event.extra = extras.next();
    }
    this.ref[entry] = this.events.length;
    this.events.push(event);
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

  /** Microseconds since the first entry, at a place between entries. @param {number} at */
  timeAt(at) {
    if (this.count === 0 || at <= 0) return 0;
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

/** START and END of ranges as spans.
 * @param {Uint8Array} bytes @param {Names} names */
export function readAnnotations(bytes, names) {
  const numbers = new Numbers(bytes);
  /** @type {{name: string, device: number, from: number, to: number}[]} */
  const spans = [];
  /** @type {Map<string, number[]>} */
  const open = new Map();
  let time = 0;
  while (!numbers.isAtEnd()) {
    const isEnd = numbers.byte() > 0;
    const name = names.text(numbers.varint());
    const device = numbers.step();
    time += numbers.step();
    const key = `${device} ${name}`;
    if (!isEnd) {
      if (!open.has(key)) open.set(key, []);
      /** @type {number[]} */ (open.get(key)).push(spans.length);
      spans.push({ name, device, from: time, to: Infinity });
    } else {
      const begun = open.get(key)?.pop();
      if (begun !== undefined) spans[begun].to = time;
      else spans.push({ name, device, from: -Infinity, to: time });
    }
  }
  numbers.finish();
  return spans;
}
