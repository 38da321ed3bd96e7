// SPDX-License-Identifier: MIT
// Decodes the sections of one source into its columns. The order of a record's numbers is that of
// src/page/record.c.
import { BadPage, Numbers, breathe, planeNumbers } from './payload.js';
import { KIND, NEVER } from './kind.js';
import { readPages } from './segment_pages.js';

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

const TRACE_COLUMNS = 11; // of a piece of the trace; src/page/record.h has their meaning

/** Fills a source. */
export class SourceReader {
  /** @param {import('./trace.js').Source} source */
  constructor(source) {
    this.source = source;
  }

  /** @param {{read: (name: string) => Promise<Uint8Array>}} sections
   * @param {Float64Array} sizes
   * @param {(share: number) => void} progress */
  async read(sections, sizes, progress) {
    this.source.sizes = sizes;
    if (sizes.some((size) => !(size < 2 ** 32)))
      this.source.lifetimeSize = new Float64Array(this.source.lifetimes);
    this.readBefore(await sections.read(`d${this.source.number}.before`));
    this.readSpans(await sections.read(`d${this.source.number}.spans`));
    if (this.source.info.pages > 0)
      readPages(await sections.read(`d${this.source.number}.pages`), this.source);
    this.readBlocks(await sections.read(`d${this.source.number}.blocks`));
    this.source.lifetimeHint = await sections.read(`d${this.source.number}.hints`);
    const state = this.start();
    for (let i = 0; i < this.source.info.chunks; i++) {
      this.readChunk(await sections.read(`d${this.source.number}.trace.${i}`), state);
      progress((i + 1) / this.source.info.chunks);
      await breathe();
    }
    if (
      state.entry !== this.source.count ||
      state.lifetime + this.source.info.survivors !== this.source.lifetimes ||
      this.source.lifetimeHint.length !== this.source.lifetimes
    ) {
      throw new BadPage('the trace has another length than it says');
    }
  }

  /** @param {Uint8Array} bytes */
  readBefore(bytes) {
    const numbers = new Numbers(bytes);
    const { carried, survivors } = this.source.info;
    let address = 0;
    for (let i = 0; i < carried + survivors; i++) {
      const lifetime = i < carried ? i : this.source.lifetimes - survivors + i - carried;
      address += numbers.step();
      this.source.lifetimeAddress[lifetime] = address * this.source.info.unit;
      this.source.lifetimeSize[lifetime] = this.source.sizes[numbers.varint()];
      this.source.lifetimePoolStream[lifetime] = numbers.varint();
      this.source.lifetimeStack[lifetime] = numbers.varint();
      this.source.lifetimeStart[lifetime] = NEVER;
      const extra = numbers.varint();
      const said = numbers.varint();
      if (this.source.lifetimeExtra) this.source.lifetimeExtra[lifetime] = extra;
      if (said > 0) this.source.lifetimeSaid.set(lifetime, said - 1);
      if (numbers.byte()) this.source.pendingAtStart.add(lifetime);
    }
    numbers.finish();
  }

  /** @param {Uint8Array} bytes */
  readBlocks(bytes) {
    const numbers = new Numbers(bytes);
    let lifetime = 0;
    while (!numbers.isAtEnd()) {
      lifetime += numbers.varint();
      this.source.blockSizes.set(lifetime, numbers.varint());
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
      const poolStream = numbers.varint();
      const stack = numbers.varint();
      const flags = numbers.byte();
      this.source.spans.push({
        address: address * this.source.info.unit,
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
    const { carried } = this.source.info;
    const row = new Uint32Array(this.source.lifetimes + 1);
    for (let lifetime = 0; lifetime < carried; lifetime++) row[lifetime] = lifetime;
    return {
      entry: 0,
      lifetime: carried,
      address: 0,
      time: this.source.timeBegun,
      latest: this.source.timeBegun,
      row,
      rowIndex: row.slice(),
      rowCount: carried,
      ended: new Uint32Array(this.source.lifetimes + 1),
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
      !(state.entry + count <= this.source.count)
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
    const { time } = this.source;
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
    } = this.source;
    const { lifetimeEnd, lifetimePoolStream, lifetimeStack, lifetimeExtra } = this.source;
    const { row, rowIndex, ended } = state;
    const bytes = this.source.sizes;
    const { unit } = this.source.info;
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
        number === 0 ? this.source.lifetimeStack[lifetime] : number - 1,
      );
      if (kind === KIND.FREE_COMPLETED) this.endLifetime(lifetime, state, true);
    } else if (kind <= KIND.OLD_FREE) {
      const lifetime = this.beginLifetime(state);
      state.address += addresses.step();
      this.source.lifetimeAddress[lifetime] = state.address * this.source.info.unit;
      this.source.lifetimeSize[lifetime] = this.source.sizes[sizes.next()];
      this.source.lifetimePoolStream[lifetime] = poolStreams.next();
      this.source.lifetimeStart[lifetime] = NEVER;
      const isDone = kind === KIND.OLD_FREE_COMPLETED;
      this.putFree(lifetime, isDone ? KIND.FREE_COMPLETED : KIND.FREE_REQUESTED, entry, number);
      if (kind === KIND.OLD_FREE) {
        this.putFree(lifetime, KIND.FREE_COMPLETED, state.entry++, number);
      }
      if (kind !== KIND.OLD_FREE_REQUESTED) this.endLifetime(lifetime, state, true);
    } else if (kind === KIND.ALLOC_AGAIN) {
      const old = state.row[state.rowCount - 1 - behinds.next()];
      this.endLifetime(old, state, false);
      this.source.lifetimeEnd[old] = entry;
      this.source.ended.set(entry, old);
      const lifetime = this.beginLifetime(state);
      this.source.lifetimeAddress[lifetime] = this.source.lifetimeAddress[old];
      this.source.lifetimeSize[lifetime] = this.source.sizes[sizes.next()];
      this.source.lifetimePoolStream[lifetime] = poolStreams.next();
      this.source.lifetimeStart[lifetime] = entry;
      this.source.lifetimeStack[lifetime] = number;
      const extra = extras.next();
      if (extra > 0 && this.source.lifetimeExtra) this.source.lifetimeExtra[lifetime] = extra;
      this.source.kind[entry] = kind;
      this.source.ref[entry] = lifetime;
      this.source.stack[entry] = number;
    } else {
      this.source.kind[entry] = kind;
      this.source.stack[entry] = number;
      this.readEvent(kind, entry, state, addresses, sizes, poolStreams, extras, plains);
    }
  }

  /** @param {number} lifetime @param {number} kind @param {number} entry @param {number} stack */
  putFree(lifetime, kind, entry, stack) {
    this.source.kind[entry] = kind;
    this.source.ref[entry] = lifetime;
    this.source.stack[entry] = stack;
    if (kind === KIND.FREE_REQUESTED) this.source.lifetimeAsked[lifetime] = entry;
    else this.source.lifetimeEnd[lifetime] = entry;
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
      event.address = state.address * this.source.info.unit;
      event.size = this.source.sizes[sizes.next()];
      event.poolStream = poolStreams.next();
    } else if (kind === KIND.OOM) {
      event.size = plains.next();
      event.free = plains.next();
      event.poolStream = poolStreams.next();
      this.source.ooms.push(entry);
    } else if (kind === KIND.SNAPSHOT) {
      event.size = plains.next();
    } else if (kind === KIND.ANNOTATE) {
      const back = plains.next();
      event.lifetime = back === 0 ? -1 : state.row[state.rowCount - back];
      event.extra = extras.next();
      if (back > 0) this.source.lifetimeSaid.set(event.lifetime, event.extra);
    } else {
      event.extra = extras.next();
    }
    this.source.ref[entry] = this.source.events.length;
    this.source.events.push(event);
  }
}
