// SPDX-License-Identifier: MIT
// What blocks have in common: each of them has one key of a grouping.
import { beforeText, sinceText } from './begin.js';
import { NEVER } from './kind.js';
import { baseName, shownText } from './format.js';

/** What blocks can be grouped by. */
export const GROUPINGS = [
  { id: 'line', text: 'allocating line', hint: 'the innermost frame' },
  { id: 'own', text: 'your code', hint: 'the innermost line that is not of a library' },
  { id: 'stack', text: 'stack', hint: 'the whole stack of the allocation' },
  {
    id: 'file',
    text: 'your file',
    hint: 'the file of the innermost line that is not of a library',
  },
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

/** Those that a recording has something for. @param {import('./names.js').Names} names */
export function groupingsOf(names) {
  return GROUPINGS.filter(
    ({ id }) => !DETAILS[id] || names.extras.some((extra) => DETAILS[id].of(extra) !== ''),
  );
}

/** The key of a stack for a grouping, and the text of that key.
 * @param {import('./names.js').Names} names @param {string} by @param {number} stack
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
  return [
    `${names.frameText(frame)}|${names.text(names.frameFile[frame])}`,
    names.frameText(frame),
  ];
}

/** The keys of a grouping, and which one a block has. */
export class GroupKeys {
  /** @param {import('./trace.js').Source} source @param {string} by
   * @param {Uint8Array | null} matching by block: with a filter, which are wanted */
  constructor(source, by, matching) {
    this.source = source;
    this.by = by;
    /** @type {{key: string, text: string, stack: number}[]} */
    this.keys = [];
    this.matching = matching;
    this.rest = -1; // key of what does not match
    this.recorded = 0;
    this.old = 0;
    this.keyOfStack = new Uint32Array(0);
    this.keyOfPoolStream = new Uint32Array(0);
    this.keyOfExtra = new Uint32Array(0);
    this.keyOfCategory = new Uint32Array(0);
    this.isByStack = ['line', 'own', 'stack', 'file'].includes(by);
    this.isLookUp = this.isByStack && !matching; // the key of a block is that of its stack
    this.makeKeys(matching);
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
        put(`p${head.pool_streams[i].join()}`, source.poolStreamText(i)),
      );
    } else if (by === 'category') {
      this.keyOfCategory = Uint32Array.from(head.categories, (text) =>
        put(`c${text}`, shownText(text, 200)),
      );
    } else if (by === 'origin') {
      this.recorded = put(
        'recorded',
        `allocated ${sinceText(source).trim() || 'in the recording'}`,
      );
      this.old = put('old', `from ${beforeText(source, 'before the recording')}`);
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
}

/** What a key is in every recording: only the keys of stacks are numbers of one.
 * @param {GroupKeys} grouping @param {number} i */
export function commonName({ by, keys, source: { names } }, i) {
  const { key, stack, text } = keys[i];
  if (by !== 'stack' || stack < 0) return key;
  const frames = names.frames(stack).map((frame) =>
    [names.frameName[frame], names.frameFile[frame]]
      .map((part) => names.text(part))
      .concat(String(names.frameLine[frame]))
      .join('\n'),
  );
  return frames.length > 0 ? frames.join('\n\n') : text;
}

/** Rows of the table: every key with what it holds and asked for. Columns as of `tarn top`.
 * @param {GroupKeys} grouping @param {number} cursor @param {number} peak */
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
