// SPDX-License-Identifier: MIT
// Looking for words, for /regular expressions/ or for an address, in stacks and in what the program
// said. Blocks and events match when each of the words is somewhere in them.
import { KIND_NAMES, KIND } from './kind.js';

/** @typedef {{has: (text: string) => boolean, frames: Uint8Array, stacks: Uint8Array,
 *   extras: Uint8Array, address: number}} Term */

/** The words of a query; what is no regular expression is looked for as it stands.
 * @param {string} query @returns {string[]} */
export function queryWords(query) {
  return query.match(/\/(?:\\.|[^/\\])+\/(?=\s|$)|\S+/g) || [];
}

/** Whether a text has a word. @param {string} word @returns {(text: string) => boolean} */
export function wordTest(word) {
  const inside = /^\/(.+)\/$/.exec(word)?.[1];
  if (inside) {
    try {
      const expression = new RegExp(inside, 'iu');
      return (text) => expression.test(text);
    } catch {
      /* as it stands, then */
    }
  }
  const small = word.toLowerCase();
  return (text) => text.toLowerCase().includes(small);
}

/** Which frames have a word: in their function, their file, or both with the line between.
 * @param {import('./names.js').Names} names @param {(text: string) => boolean} has */
function matchingFrames(names, has) {
  const matches = new Uint8Array(names.frameName.length);
  /** @type {Map<number, boolean>} */
  const texts = new Map();
  const hasText = (/** @type {number} */ text) => {
    let found = texts.get(text);
    if (found === undefined) texts.set(text, (found = has(names.text(text))));
    return found;
  };
  for (let frame = 1; frame < matches.length; frame++) {
    const isMatch =
      hasText(names.frameName[frame]) ||
      hasText(names.frameFile[frame]) ||
      has(names.frameText(frame));
    matches[frame] = isMatch ? 1 : 0;
  }
  return matches;
}

/** @param {import('./trace.js').Source} source @param {string} word @returns {Term} */
function termOf(source, word) {
  const { names } = source;
  const has = wordTest(word);
  const frames = matchingFrames(names, has);
  const nodes = new Uint8Array(names.nodeParent.length);
  for (let node = 1; node < nodes.length; node++)
    nodes[node] = frames[names.nodeFrame[node]] || nodes[names.nodeParent[node]];
  const isAddress = /^0x[0-9a-f]+$/i.test(word);
  return {
    has,
    frames,
    stacks: Uint8Array.from(names.stackNode, (node) => nodes[node]),
    extras: Uint8Array.from(names.extras, ({ metadata, category }) =>
      has(`${metadata} ${category}`) ? 1 : 0,
    ),
    address: isAddress ? Number(BigInt(word) - source.base) : NaN,
  };
}

/** @param {import('./trace.js').Source} source @param {Term} term @param {number} lifetime */
function isInBlock(source, term, lifetime) {
  const { stacks, extras, address } = term;
  if (stacks[source.lifetimeStack[lifetime]]) return true;
  if (source.lifetimeExtra && extras[source.lifetimeExtra[lifetime]]) return true;
  if (extras[source.said(lifetime)]) return true;
  const start = source.lifetimeAddress[lifetime];
  return address >= start && address < start + Math.max(1, source.size(lifetime));
}

/** @param {import('./trace.js').Source} source @param {Term} term @param {number} entry */
function isInEvent(source, term, entry) {
  const event = source.events[source.ref[entry]];
  const { action } = source.names.extras[event.extra];
  return (
    Boolean(term.stacks[source.stack[entry]] || term.extras[event.extra]) ||
    term.has(action || KIND_NAMES[event.kind]) ||
    (event.address >= 0 &&
      term.address >= event.address &&
      term.address < event.address + Math.max(1, event.size))
  );
}

/** Whether an entry is of a block, and not something beside allocations. @param {number} kind */
export function isOfBlock(kind) {
  return kind <= KIND.FREE_COMPLETED || kind === KIND.ALLOC_AGAIN;
}

/** @param {import('./trace.js').Source} source @param {string} query */
export function findMatches(source, query) {
  const terms = queryWords(query).map((word) => termOf(source, word));
  let blocks = 0;
  let bytes = 0;
  /** @type {number[]} */
  const lifetimes = [];
  const has = new Uint8Array(source.lifetimes);
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    if (!terms.every((term) => isInBlock(source, term, lifetime))) continue;
    has[lifetime] = 1;
    blocks++;
    bytes += source.size(lifetime);
    lifetimes.push(lifetime);
  }
  const frames = new Uint8Array(source.names.frameName.length);
  for (const term of terms)
    term.frames.forEach((found, frame) => {
      if (found) frames[frame] = 1;
    });
  const hasEvent = (/** @type {number} */ entry) =>
    isOfBlock(source.kind[entry])
      ? has[source.ref[entry]] > 0 || terms.every((term) => term.stacks[source.stack[entry]])
      : terms.every((term) => isInEvent(source, term, entry));
  return { frames, has, blocks, bytes, lifetimes, hasEvent };
}
