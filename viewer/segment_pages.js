// SPDX-License-Identifier: MIT
// The pages that segments have at the end of the recording, as src/page/segment_pages.h writes
// them, and what is known of them at an earlier entry: an address has the same page as long as it
// has been mapped without a break.
import { BadPage, Numbers } from './payload.js';

/** Of one page: the first one at its address, one where another was before, one that is mapped at
 * several addresses. UNKNOWN: the address was mapped anew later, or has no page at the end. */
export const PAGE_KIND = { FIRST: 0, LATER: 1, SHARED: 2, UNKNOWN: 3 };

/** Pages of one segment, in address order. Handles are numbers of 64 bits.
 * @typedef {{address: number, end: number, size: number, handles: bigint[], times: number[],
 *   kinds: Uint8Array, since: Float64Array}} PageList */

/** All pages of a source, and where each handle is mapped.
 * @typedef {{lists: PageList[], count: number, places: Map<bigint, number[]>}} PageTable */

/** @type {WeakMap<object, PageTable>} */
const tableOfSource = new WeakMap();

/** A number of 64 bits. @param {Numbers} numbers */
function bigVarint(numbers) {
  let number = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = numbers.byte();
    number |= BigInt(byte & 127) << shift;
    if (!(byte >= 128)) return number;
  }
}

/** @param {Numbers} numbers @param {number} count @returns {bigint[]} */
function readHandles(numbers, count) {
  const handles = [];
  let last = 0n;
  for (let i = 0; i < count; i++) {
    const step = bigVarint(numbers);
    last = BigInt.asUintN(64, last + (step & 1n ? -((step + 1n) >> 1n) : step >> 1n));
    handles.push(last);
  }
  return handles;
}

/** @param {Numbers} numbers @param {number} address @param {number} most @returns {PageList} */
function readList(numbers, address, most) {
  const count = numbers.varint();
  if (!(count <= most)) throw new BadPage('a segment has more pages than there are');
  const size = numbers.varint();
  const handles = readHandles(numbers, count);
  const times = handles.map(() => numbers.varint());
  const kinds = new Uint8Array(count);
  const since = new Float64Array(count).fill(Infinity);
  return { address, end: address + count * size, size, handles, times, kinds, since };
}

/** Which entry mapped each page last; -1: before the first.
 * @param {import('./trace.js').Source} source @param {PageList[]} lists */
function findSince(source, lists) {
  const spans = source.spans.filter((span) => span.end === Infinity);
  spans.sort((a, b) => a.address - b.address);
  let next = 0;
  for (const { address, size, handles, since } of lists) {
    for (let i = 0; i < handles.length; i++) {
      const at = address + i * size;
      while (next < spans.length && spans[next].address + spans[next].size <= at) next++;
      if (next < spans.length && spans[next].address <= at) since[i] = spans[next].start;
    }
  }
}

/** @param {Uint8Array} bytes @param {import('./trace.js').Source} source */
export function readPages(bytes, source) {
  const numbers = new Numbers(bytes);
  /** @type {PageTable} */
  const table = { lists: [], count: 0, places: new Map() };
  let address = 0;
  while (!numbers.isAtEnd()) {
    address += numbers.step();
    const most = source.info.pages - table.count;
    const list = readList(numbers, address * source.info.unit, most);
    table.lists.push(list);
    table.count += list.handles.length;
    list.handles.forEach((handle, i) => {
      const places = table.places.get(handle);
      const at = list.address + i * list.size;
      if (places) places.push(at);
      else table.places.set(handle, [at]);
    });
  }
  numbers.finish();
  table.lists.sort((a, b) => a.address - b.address);
  for (const { handles, times, kinds } of table.lists)
    handles.forEach((handle, i) => {
      const isShared = /** @type {number[]} */ (table.places.get(handle)).length > 1;
      kinds[i] = isShared ? PAGE_KIND.SHARED : times[i] > 1 ? PAGE_KIND.LATER : PAGE_KIND.FIRST;
    });
  findSince(source, table.lists);
  tableOfSource.set(source, table);
}

/** @type {PageTable} */
const NO_PAGES = { lists: [], count: 0, places: new Map() };

/** @param {import('./trace.js').Source} source */
export function pagesOf(source) {
  return tableOfSource.get(source) ?? NO_PAGES;
}

/** Pages of addresses that have none at the end. @param {number} from @param {number} to
 * @param {number} size @returns {PageList} */
function lostPages(from, to, size) {
  const count = Math.ceil((to - from) / size);
  const kinds = new Uint8Array(count);
  const since = new Float64Array(count).fill(Infinity);
  return { address: from, end: to, size, handles: [], times: [], kinds, since };
}

/** The pages of a segment, part by part: a list, and the first and last of its pages.
 * @param {PageTable} table @param {number} from @param {number} to */
export function pagesIn(table, from, to) {
  const parts = [];
  let at = from;
  const passOver = (/** @type {number} */ end) => {
    if (end <= at) return;
    const list = lostPages(at, end, table.lists[0].size);
    parts.push({ list, first: 0, last: list.kinds.length - 1 });
  };
  for (const list of table.lists) {
    if (list.end <= at || list.address >= to) continue;
    passOver(list.address);
    const first = Math.max(0, Math.floor((at - list.address) / list.size));
    const last = Math.min(list.kinds.length, Math.ceil((to - list.address) / list.size)) - 1;
    parts.push({ list, first, last });
    at = list.end;
  }
  if (table.count > 0) passOver(to);
  return parts;
}

/** @param {PageList} list @param {number} page @param {number} entry */
export function pageKind(list, page, entry) {
  return list.since[page] <= entry ? list.kinds[page] : PAGE_KIND.UNKNOWN;
}

/** How many pages are of each kind, and their bytes, in the segments at an entry.
 * @param {import('./trace.js').Source} source
 * @param {{address: number, end: number}[]} segments @param {number} entry */
export function countPages(source, segments, entry) {
  const counts = [0, 0, 0, 0];
  const bytes = [0, 0, 0, 0];
  const table = pagesOf(source);
  for (const { address, end } of segments)
    for (const { list, first, last } of pagesIn(table, address, end))
      for (let page = first; page <= last; page++) {
        const kind = pageKind(list, page, entry);
        counts[kind]++;
        bytes[kind] += list.size;
      }
  return { counts, bytes };
}

/** The page at an address of a segment; null: it is not known which.
 * @param {import('./trace.js').Source} source @param {number} address @param {number} entry */
export function pageAt(source, address, entry) {
  const table = pagesOf(source);
  const list = table.lists.find((one) => one.address <= address && one.end > address);
  const page = list ? Math.floor((address - list.address) / list.size) : 0;
  if (!list || pageKind(list, page, entry) === PAGE_KIND.UNKNOWN) return null;
  const handle = list.handles[page];
  const places = /** @type {number[]} */ (table.places.get(handle));
  const at = list.address + page * list.size;
  return {
    address: at,
    size: list.size,
    handle,
    times: list.times[page],
    since: list.since[page],
    others: places.filter((place) => place !== at),
  };
}
