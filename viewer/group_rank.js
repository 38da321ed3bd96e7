// SPDX-License-Identifier: MIT
// Which keys of a grouping hold most: in the whole recording, and in a window of it.
import { KIND, NEVER } from './kind.js';

/** @typedef {import('./group_keys.js').GroupKeys} GroupKeys */

/** Keys in the order of the most bytes that they hold at once, then at the peak, then of what they
 * ask for; by key the place in that order (-1: none), bytes requested, these times the entries that
 * they stay, and the most bytes at once. @param {GroupKeys} keys @param {number} peak */
export function wholeRank(keys, peak) {
  const { source, isLookUp, keyOfStack, rest } = keys;
  const { lifetimeSize, lifetimeStart, lifetimeEnd, lifetimeStack } = source;
  const count = keys.keys.length;
  const atPeak = new Float64Array(count);
  const total = new Float64Array(count);
  const stay = new Float64Array(count);
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const key = isLookUp ? keyOfStack[lifetimeStack[lifetime]] : keys.key(lifetime);
    const size = lifetimeSize[lifetime];
    const start = lifetimeStart[lifetime] === NEVER ? -1 : lifetimeStart[lifetime];
    const end = lifetimeEnd[lifetime];
    total[key] += size;
    if (start <= peak && end > peak) atPeak[key] += size; // NEVER is above all entries
    stay[key] += size * (Math.min(end, source.count) - Math.max(0, start));
  }
  const order = [...keys.keys.keys()].filter((key) => total[key] > 0 && key !== rest);
  const most = mostOfKeys(keys, 0, source.count);
  order.sort(
    (a, b) => most[b] - most[a] || atPeak[b] - atPeak[a] || total[b] - total[a] || a - b,
  );
  const place = new Int32Array(count).fill(-1);
  order.forEach((key, i) => {
    place[key] = i;
  });
  return { order, place, total, stay, most };
}

/** The most bytes that each key holds at once in a window of entries.
 * @param {GroupKeys} keys @param {number} from @param {number} to */
export function mostOfKeys(keys, from, to) {
  const { source, isLookUp, keyOfStack } = keys;
  const { kind, ref, lifetimeSize, lifetimeStack } = source;
  const now = new Float64Array(keys.keys.length);
  const first = Math.max(0, Math.floor(from));
  const end = Math.min(source.count, Math.ceil(to));
  const keyOf = (/** @type {number} */ lifetime) =>
    isLookUp ? keyOfStack[lifetimeStack[lifetime]] : keys.key(lifetime);
  source.index().eachAt(source, first - 1, (lifetime) => {
    now[keyOf(lifetime)] += lifetimeSize[lifetime];
  });
  const most = now.slice();
  for (let entry = first; entry < end; entry++) {
    const what = kind[entry];
    if (what === KIND.ALLOC) {
      const lifetime = ref[entry];
      const key = keyOf(lifetime);
      const sum = (now[key] += lifetimeSize[lifetime]);
      if (sum > most[key]) most[key] = sum;
    } else if (what === KIND.FREE_COMPLETED) {
      const lifetime = ref[entry];
      now[keyOf(lifetime)] -= lifetimeSize[lifetime];
    } else if (what === KIND.ALLOC_AGAIN) {
      const ended = source.endedBy().get(entry);
      if (ended !== undefined) now[keyOf(ended)] -= lifetimeSize[ended];
      const key = keyOf(ref[entry]);
      now[key] += lifetimeSize[ref[entry]];
      most[key] = Math.max(most[key], now[key]);
    }
  }
  return most;
}
