// SPDX-License-Identifier: MIT
// A snapshot in memory: texts, stacks, and for each source (a device, or pinned memory) its
// entries,
// blocks and segments, in typed arrays.
import { BadPage, Numbers, breathe, readSection } from './payload.js';
import { baseName, shownText } from './format.js';

/** Kinds of entries; the numbers are those of src/viewer/record.h. */
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
  'alloc of a block in use',
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

  async read() {
    const sizes = allVarints(await readSection('text.sizes'));
    const bytes = await readSection('text.bytes');
    const decoder = new TextDecoder();
    let at = 0;
    for (const size of sizes) {
      this.texts.push(decoder.decode(bytes.subarray(at, at + size)));
      at += size;
    }
    if (at !== bytes.length) throw new BadPage('the texts have another length than they say');
    await this.readFrames();
    await this.readStacks();
    const extra = allVarints(await readSection('extras'));
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

  async readFrames() {
    const numbers = new Numbers(await readSection('frames'));
    const name = [0];
    const file = [0];
    const line = [0];
    while (!numbers.isAtEnd()) {
      name.push(numbers.varint());
      file.push(numbers.varint());
      line.push(numbers.step());
      const fx = [numbers.varint(), numbers.varint(), numbers.varint(), numbers.varint()];
      this.frameFx.push(fx.some((text) => text > 0) ? fx : []);
    }
    numbers.finish();
    this.frameName = Uint32Array.from(name);
    this.frameFile = Uint32Array.from(file);
    this.frameLine = Float64Array.from(line);
  }

  async readStacks() {
    const numbers = new Numbers(await readSection('nodes'));
    const parent = [0];
    const frame = [0];
    while (!numbers.isAtEnd()) {
      parent.push(parent.length - numbers.varint());
      frame.push(numbers.varint());
    }
    numbers.finish();
    this.nodeParent = Uint32Array.from(parent);
    this.nodeFrame = Uint32Array.from(frame);
    const stacks = allVarints(await readSection('stacks')); // node and category of each
    this.stackNode = new Uint32Array(1 + stacks.length / 2);
    this.stackCategory = new Uint32Array(1 + stacks.length / 2);
    for (let i = 0; i + 1 < stacks.length; i += 2) {
      this.stackNode[1 + i / 2] = stacks[i];
      this.stackCategory[1 + i / 2] = stacks[i + 1];
    }
    for (let i = 1; i < parent.length; i++) {
      if (!(parent[i] < i) || !(frame[i] < this.frameName.length)) {
        throw new BadPage('the stacks contradict themselves');
      }
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
    const file = this.text(this.frameFile[frame]);
    return /\/torch\/|<frozen|\/lib\/python|\.so|\.cpp|\.h/.test(file) || !file;
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
    const isTorch = (/** @type {number} */ frame) =>
      /\/torch\/|<frozen/.test(this.text(this.frameFile[frame]));
    const shown = rest.filter((frame) => !isTorch(frame)).slice(0, 2);
    const own = rest.find((frame) => !this.isLibrary(frame));
    if (own !== undefined && !shown.includes(own)) shown.push(own);
    return [frames[0], ...shown].map((frame) => this.frameText(frame)).join(' \u2190 ');
  }
}

/** Sizes of blocks, by number. @param {Uint8Array} bytes */
export function readSizes(bytes) {
  return Float64Array.from(allVarints(bytes));
}

/** One device, or pinned memory. */
export class Source {
  /** @param {any} info @param {Names} names @param {any} head @param {number} number */
  constructor(info, names, head, number) {
    this.info = info;
    this.names = names;
    this.head = head;
    this.number = number;
    this.count = info.entries;
    this.lives = info.lives;
    this.base = BigInt(info.base);
    this.hasTime = info.time !== null;
    this.name = info.host ? `pinned memory ${info.device}` : `device ${info.device}`;
    this.kind = new Uint8Array(this.count);
    this.ref = new Uint32Array(this.count);
    this.stack = numbersBelow(this.count, names.stackNode.length);
    this.time = info.span < 2 ** 32 ? new Uint32Array(this.count) : new Float64Array(this.count);
    this.lifeAddress = new Float64Array(this.lives);
    this.lifeSize = new Uint32Array(this.lives);
    this.lifeStart = new Uint32Array(this.lives);
    this.lifeAsked = new Uint32Array(this.lives).fill(NEVER);
    this.lifeEnd = new Uint32Array(this.lives).fill(NEVER);
    this.lifePlace = numbersBelow(this.lives, head.places.length);
    this.lifeStack = numbersBelow(this.lives, names.stackNode.length);
    this.lifeExtra =
      names.extras.length > 1 ? numbersBelow(this.lives, names.extras.length) : null;
    /**
     * @type {{entry: number, kind: number, address: number, size: number, place: number, free:
     * number, extra: number, life: number}[]}
     */
    this.events = [];
    /** Spans of reserved memory.
     * @type {{address: number, size: number, start: number, end: number, place: number, stack:
     * number, large: boolean, growing: boolean}[]} */
    this.spans = [];
    /** @type {number[]} */
    this.ooms = [];
    /** @type {Float64Array} */
    this.sizes = new Float64Array(0);
    this.pendingAtStart = new Set();
    /** What the program said of a block after its allocation: number of the extra, by life.
     * @type {Map<number, number>} */
    this.lifeSaid = new Map();
    /** How many entries before the page's first one a block came, by life.
     * @type {Map<number, number>} */
    this.lifeAge = new Map();
  }

  /** @param {Float64Array} sizes @param {(share: number) => void} progress */
  async read(sizes, progress) {
    this.sizes = sizes;
    this.readBefore(await readSection(`d${this.number}.before`));
    this.readSpans(await readSection(`d${this.number}.spans`));
    const state = { entry: 0, life: this.info.carried, address: 0, time: 0, latest: 0 };
    for (let i = 0; i < this.info.chunks; i++) {
      this.readChunk(await readSection(`d${this.number}.trace.${i}`), state);
      progress((i + 1) / this.info.chunks);
      await breathe();
    }
    if (state.entry !== this.count || state.life + this.info.survivors !== this.lives) {
      throw new BadPage('the trace has another length than it says');
    }
  }

  /** @param {Uint8Array} bytes */
  readBefore(bytes) {
    const numbers = new Numbers(bytes);
    const { carried, survivors } = this.info;
    let address = 0;
    for (let i = 0; i < carried + survivors; i++) {
      const life = i < carried ? i : this.lives - survivors + i - carried;
      address += numbers.step();
      this.lifeAddress[life] = address * this.info.unit;
      this.lifeSize[life] = numbers.varint();
      this.lifePlace[life] = numbers.varint();
      this.lifeStack[life] = numbers.varint();
      this.lifeStart[life] = NEVER;
      const extra = numbers.varint();
      const said = numbers.varint();
      const age = numbers.varint();
      if (this.lifeExtra) this.lifeExtra[life] = extra;
      if (said > 0) this.lifeSaid.set(life, said - 1);
      if (age > 0) this.lifeAge.set(life, age);
      if (numbers.byte()) this.pendingAtStart.add(life);
    }
    numbers.finish();
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
      const place = numbers.varint();
      const stack = numbers.varint();
      const flags = numbers.byte();
      this.spans.push({
        address: address * this.info.unit,
        size,
        place,
        stack,
        start: start === 0 ? -1 : start - 1,
        end: end === 0 ? Infinity : end - 1,
        large: (flags & 1) > 0,
        growing: (flags & 2) > 0,
      });
    }
    numbers.finish();
  }

  /** @param {Uint8Array} bytes
   * @param {{entry: number, life: number, address: number, time: number, latest: number}} state */
  readChunk(bytes, state) {
    const head = new Numbers(bytes);
    const count = head.varint();
    const lengths = [];
    for (let i = 0; i < 9; i++) lengths.push(head.varint());
    let at = head.at;
    const columns = lengths.map((length) => {
      at += length;
      return new Numbers(bytes, at - length, at);
    });
    if (at !== bytes.length || !(state.entry + count <= this.count)) {
      throw new BadPage('a piece of the trace has another length than it says');
    }
    const end = state.entry + count;
    while (state.entry < end && !columns[0].isAtEnd()) this.readRecord(columns, state);
    for (const column of columns) column.finish();
  }

  /** One entry, or the two of a free. The order is that of details_put in src/viewer/record.c.
   * @param {Numbers[]} columns
   * @param {{entry: number, life: number, address: number, time: number, latest: number}} state */
  readRecord(columns, state) {
    const [kinds, times, stacks, addresses, sizes, backs, places, extras, plains] = columns;
    let kind = kinds.byte();
    const entry = state.entry++;
    let stack = stacks.varint();
    state.time += times.step();
    if (state.time > state.latest) state.latest = state.time;
    this.time[entry] = state.latest;
    this.stack[entry] = stack;
    if (kind === KIND.FREE || kind === KIND.FREE_REQUESTED || kind === KIND.FREE_COMPLETED) {
      const life = state.life - backs.varint();
      stack = stack === 0 ? this.lifeStack[life] : stack - 1;
      this.stack[entry] = stack;
      if (kind !== KIND.FREE_COMPLETED) this.lifeAsked[life] = entry;
      if (kind === KIND.FREE_COMPLETED) this.lifeEnd[life] = entry;
      this.ref[entry] = life;
      if (kind === KIND.FREE) {
        this.readSecond(life, stack, times, state);
        kind = KIND.FREE_REQUESTED;
      }
    } else if (kind <= KIND.OLD_FREE || kind === KIND.ALLOC_AGAIN) {
      const isAlloc = kind === KIND.ALLOC || kind === KIND.ALLOC_AGAIN;
      const life =
        kind === KIND.ALLOC_AGAIN
          ? this.endOld(state.life - backs.varint(), entry, state)
          : state.life++;
      state.address += addresses.step();
      this.ref[entry] = life;
      this.lifeAddress[life] = state.address * this.info.unit;
      this.lifeSize[life] = sizes.varint();
      this.lifePlace[life] = places.varint();
      this.lifeStart[life] = isAlloc ? entry : NEVER;
      if (isAlloc) {
        const extra = extras.varint();
        this.lifeStack[life] = stack;
        if (extra > 0 && this.lifeExtra) this.lifeExtra[life] = extra;
      } else {
        if (kind !== KIND.OLD_FREE_COMPLETED) this.lifeAsked[life] = entry;
        if (kind === KIND.OLD_FREE_COMPLETED) this.lifeEnd[life] = entry;
        if (kind === KIND.OLD_FREE) this.readSecond(life, stack, times, state);
        kind = kind === KIND.OLD_FREE_COMPLETED ? KIND.FREE_COMPLETED : KIND.FREE_REQUESTED;
      }
    } else {
      this.readEvent(kind, entry, state, addresses, sizes, places, extras, plains);
    }
    this.kind[entry] = kind;
  }

  /** @param {number} old @param {number} entry @param {{life: number}} state */
  endOld(old, entry, state) {
    this.lifeEnd[old] = entry;
    return state.life++;
  }

  /** The entry that completes a free. @param {number} life @param {number} stack
   * @param {Numbers} times @param {{entry: number, time: number, latest: number}} state */
  readSecond(life, stack, times, state) {
    const entry = state.entry++;
    state.time += times.step();
    if (state.time > state.latest) state.latest = state.time;
    this.time[entry] = state.latest;
    this.stack[entry] = stack;
    this.kind[entry] = KIND.FREE_COMPLETED;
    this.ref[entry] = life;
    this.lifeEnd[life] = entry;
  }

  /** @param {number} kind @param {number} entry @param {{life: number, address: number}} state
   * @param {Numbers} addresses @param {Numbers} sizes @param {Numbers} places
   * @param {Numbers} extras @param {Numbers} plains */
  readEvent(kind, entry, state, addresses, sizes, places, extras, plains) {
    const event = { entry, kind, address: -1, size: 0, place: -1, free: 0, extra: 0, life: -1 };
    if (kind <= KIND.SEGMENT_UNMAP) {
      state.address += addresses.step();
      event.address = state.address * this.info.unit;
      event.size = this.sizes[sizes.varint()];
      event.place = places.varint();
    } else if (kind === KIND.OOM) {
      event.size = plains.varint();
      event.free = plains.varint();
      event.place = places.varint();
      this.ooms.push(entry);
    } else if (kind === KIND.SNAPSHOT) {
      event.size = plains.varint();
    } else if (kind === KIND.ANNOTATE) {
      const back = plains.varint();
      event.life = back === 0 ? -1 : state.life - back;
      event.extra = extras.varint();
      if (back > 0) this.lifeSaid.set(event.life, event.extra);
    } else {
      event.extra = extras.varint();
    }
    this.ref[entry] = this.events.length;
    this.events.push(event);
  }

  /** Bytes asked for. @param {number} life */
  size(life) {
    return this.sizes[this.lifeSize[life]];
  }

  /** What the file says of the allocation. @param {number} life */
  extra(life) {
    return this.names.extras[this.lifeExtra ? this.lifeExtra[life] : 0];
  }

  /** Number of the extra with what the program said of the block last. @param {number} life */
  said(life) {
    return this.lifeSaid.get(life) ?? (this.lifeExtra ? this.lifeExtra[life] : 0);
  }

  /** The category of a block: what the rules say of its stack, else a guess from how long it lived.
   * The rule is that of src/report/rules.h. @param {number} life */
  category(life) {
    const category = this.names.stackCategory[this.lifeStack[life]];
    if (category > 0) return category;
    const hints = this.head.categories.length - 2;
    const age = this.lifeAge.get(life);
    const start = age === undefined ? this.lifeStart[life] : -age;
    const end = this.lifeEnd[life];
    if (end === NEVER) {
      return start === NEVER || start + this.info.skipped <= this.info.step ? hints : 0;
    }
    return start !== NEVER && end - start <= this.head.temporary ? hints + 1 : 0;
  }

  /** Whether the block is in use right after an entry; -1: before the first.
   * @param {number} life @param {number} entry */
  isLive(life, entry) {
    const start = this.lifeStart[life];
    const end = this.lifeEnd[life];
    return (start === NEVER || start <= entry) && (end === NEVER || end > entry);
  }

  /**
   * Whether its free was asked for and is not complete.
   * @param {number} life
   * @param {number} entry
   */
  isPending(life, entry) {
    const asked = this.lifeAsked[life];
    if (asked !== NEVER && asked <= entry) return true;
    return this.pendingAtStart.has(life) && (life < this.info.carried || entry >= this.count - 1);
  }

  /** What the entry adds to the bytes in use. @param {number} entry */
  delta(entry) {
    const kind = this.kind[entry];
    if (kind === KIND.ALLOC) return this.sizes[this.lifeSize[this.ref[entry]]];
    if (kind === KIND.FREE_COMPLETED) return -this.sizes[this.lifeSize[this.ref[entry]]];
    if (kind === KIND.ALLOC_AGAIN) return this.size(this.ref[entry]) - this.endedSize(entry);
    return 0;
  }

  /** Lives that an allocation of their address ends, by its entry. */
  endedBy() {
    if (!this.endedLives) {
      this.endedLives = new Map();
      for (let life = 0; life < this.lives; life++) {
        const end = this.lifeEnd[life];
        if (end !== NEVER && this.kind[end] === KIND.ALLOC_AGAIN) this.endedLives.set(end, life);
      }
    }
    return this.endedLives;
  }

  /** @param {number} entry */
  endedSize(entry) {
    const life = this.endedBy().get(entry);
    return life === undefined ? 0 : this.size(life);
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
   * @param {number} place
   */
  placeText(place) {
    const found = this.head.places[place];
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

/** START and END of ranges as spans with a depth.
 * @param {Uint8Array} bytes @param {Names} names */
export function readAnnotations(bytes, names) {
  const numbers = new Numbers(bytes);
  /** @type {{name: string, device: number, from: number, to: number, depth: number}[]} */
  const spans = [];
  /** @type {Map<string, number[]>} */
  const open = new Map();
  let time = 0;
  let depth = 0;
  while (!numbers.isAtEnd()) {
    const isEnd = numbers.byte() > 0;
    const name = names.text(numbers.varint());
    const device = numbers.step();
    time += numbers.step();
    const key = `${device} ${name}`;
    if (!isEnd) {
      if (!open.has(key)) open.set(key, []);
      /** @type {number[]} */ (open.get(key)).push(spans.length);
      spans.push({ name, device, from: time, to: Infinity, depth });
      depth++;
    } else {
      const begun = open.get(key)?.pop();
      depth = Math.max(0, depth - 1);
      if (begun !== undefined) spans[begun].to = time;
      else spans.push({ name, device, from: -Infinity, to: time, depth });
    }
  }
  numbers.finish();
  return spans;
}
