// SPDX-License-Identifier: MIT
// Which events the list shows, and the words of each.
import { countText, shownText, sizeText } from './format.js';
import { isOfBlock } from './search.js';
import { KIND, KIND_NAMES } from './kind.js';

/** What the list can be narrowed to. */
export const EVENT_ACTIONS = [
  { id: '', text: 'all events' },
  { id: 'alloc', text: 'allocations' },
  { id: 'free', text: 'frees' },
  { id: 'segment', text: 'segments' },
  { id: 'oom', text: 'out of memory' },
  { id: 'other', text: 'notes, snapshots' },
];

/** By kind, the number in EVENT_ACTIONS of what it belongs to. */
const ACTION_OF = Uint8Array.from(KIND_NAMES, (_, kind) => {
  if (kind === KIND.ALLOC || kind === KIND.ALLOC_AGAIN) return 1;
  if (kind <= KIND.LOST_FREE_COMPLETED) return 2;
  if (kind <= KIND.SEGMENT_UNMAP) return 3;
  return kind === KIND.OOM ? 4 : 5;
});

/** The entries of the list in order; null: all of them. @param {any} app
 * @returns {Uint32Array | null} */
export function eventRows(app) {
  const { source, state, matches } = app;
  const wanted = EVENT_ACTIONS.findIndex(({ id }) => id === state.actions);
  if (wanted <= 0 && !matches) return null;
  const rows = new Uint32Array(source.count);
  let count = 0;
  for (let entry = 0; entry < source.count; entry++) {
    if (wanted > 0 && ACTION_OF[source.kind[entry]] !== wanted) continue;
    if (matches && !matches.hasEvent(entry)) continue;
    rows[count++] = entry;
  }
  return rows.slice(0, count);
}

/** What an event is about. @param {import('./trace.js').Source} source @param {number} entry
 * @returns {{action: string, size: number, address: number, poolStream: number, extra: number}} */
export function eventFacts(source, entry) {
  const kind = source.kind[entry];
  if (isOfBlock(kind)) {
    const lifetime = source.ref[entry];
    return {
      action: KIND_NAMES[kind],
      size: source.size(lifetime),
      address: source.lifetimeAddress[lifetime],
      poolStream: source.lifetimePoolStream[lifetime],
      extra: 0,
    };
  }
  const { size, address, poolStream, extra } = source.events[source.ref[entry]];
  const { action } = source.names.extras[extra];
  const name = action ? shownText(action, 60) : KIND_NAMES[kind];
  return { action: name, size, address, poolStream, extra };
}

/** The innermost frame of a stack and, where that is of a library, the innermost one of the user's
 * code. @param {import('./names.js').Names} names @param {number} stack */
export function topFrames(names, stack) {
  let first = 0;
  for (let node = names.stackNode[stack]; node > 0; node = names.nodeParent[node]) {
    const frame = names.nodeFrame[node];
    if (first === 0) first = frame;
    if (names.isLibrary(frame)) continue;
    const own = names.frameText(frame);
    return frame === first ? own : `${names.frameText(first)} \u2190 ${own}`;
  }
  return first > 0 ? names.frameText(first) : '';
}

/** @param {import('./trace.js').Source} source @param {number} entry */
export function eventWords(source, entry) {
  const { action, size, address, poolStream, extra } = eventFacts(source, entry);
  const { metadata } = source.names.extras[extra];
  return {
    number: countText(entry + source.info.skipped),
    action,
    size: size > 0 ? sizeText(size) : '',
    where: poolStream >= 0 ? source.poolStreamText(poolStream).replace('private ', '') : '',
    address: address >= 0 ? source.hex(address) : '',
    frame: metadata ? shownText(metadata, 200) : topFrames(source.names, source.stack[entry]),
  };
}
