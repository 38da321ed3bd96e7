// SPDX-License-Identifier: MIT
// Keys of blocks in groups that have a colour each, and how much each group holds at any entry.
import { GroupKeys, commonName } from './group_keys.js';
import { mostOfKeys, wholeRank } from './group_rank.js';
import { KIND, NEVER } from './kind.js';

export const GROUPS_MAX = 12; // with a colour of their own
const CHECKPOINT = 128;

/** @typedef {{from: number, to: number}} Window */

/** The names of several groupings in the order of the most bytes that each holds at once in any.
 * @param {Grouping[]} groupings @returns {Map<string, number>} */
export function commonPlaces(groupings) {
  /** @type {Map<string, number>} */
  const most = new Map();
  for (const grouping of groupings) {
    for (const key of grouping.whole.order) {
      const name = commonName(grouping, key);
      most.set(name, Math.max(most.get(name) ?? 0, grouping.whole.most[key]));
    }
  }
  const names = [...most].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return new Map(names.map(([name], i) => [name, i]));
}

/** A grouping of the blocks of a source. Group 0 is "others"; 1 ... are the largest of a window,
 * each in the colour that its key has in every window. */
export class Grouping extends GroupKeys {
  /** @param {import('./trace.js').Source} source @param {string} by
   * @param {import('./curve.js').Curve} curve
   * @param {Uint8Array | null} matching by block: with a filter, which are wanted
   * @param {Window} [window] of entries that the groups are ranked in; without one, all
   * @param {string} [chosen] a key that has a group wherever it ranks
   * @param {Map<string, number> | null} [places] of names, where two recordings are compared */
  constructor(
    source,
    by,
    curve,
    matching,
    window = { from: 0, to: Infinity },
    chosen = '',
    places = null,
  ) {
    super(source, by, matching);
    this.curve = curve;
    this.places = places;
    this.others = 0; // keys without a group of their own
    this.count = 2; // groups
    /** @type {number[]} */
    this.shown = []; // keys with a group of their own
    /** @type {number[]} */
    this.colours = []; // of those
    /** @type {number[]} */
    this.order = [];
    this.groupOfKey = new Uint8Array(0);
    this.groupOfLifetime = new Uint8Array(0);
    this.sums = new Float64Array(0);
    this.now = new Float64Array(0); // of the groups, after the entry at
    this.at = -Infinity;
    /** @type {Window & {most: Float64Array} | null} */
    this.windowMost = null;
    this.whole = wholeRank(this, curve.peak.entry);
    this.claims = this.claimsOf(matching);
    this.rankIn(window, chosen);
  }

  /** Gives groups to the keys that hold most in a window. False: all stays as it is.
   * @param {Window} window @param {string} chosen */
  rankIn(window, chosen) {
    const shown = this.keysOfWindow(window, chosen);
    if (this.groupOfKey.length > 0 && shown.join() === this.shown.join()) return false;
    this.show(shown);
    return true;
  }

  /** Gives groups to the names that hold most in two recordings.
   * @param {Map<string, number>} places */
  showCommon(places) {
    this.places = places;
    this.claims = this.claimsOf(null);
    this.show(this.whole.order.filter((key) => this.claims[key] < GROUPS_MAX));
  }

  /** @param {number[]} shown keys */
  show(shown) {
    this.shown = shown;
    this.colours = this.coloursOf(shown);
    this.others = this.whole.order.length - shown.length;
    this.groupOfKey = new Uint8Array(this.keys.length);
    shown.forEach((key, i) => {
      this.groupOfKey[key] = i + 1;
    });
    this.count = shown.length + 2; // others first, what does not match last
    if (this.rest >= 0) this.groupOfKey[this.rest] = this.count - 1;
    this.makeTables();
    this.makeOrder();
    this.makeCheckpoints();
  }

  /** In the order of the whole recording, so that a key keeps its group while it can.
   * @param {Window} window @param {string} chosen */
  keysOfWindow(window, chosen) {
    const { order, place } = this.whole;
    if (order.length <= GROUPS_MAX) return order;
    const isWhole = window.from <= 0 && window.to >= this.source.count;
    const most = isWhole ? this.whole.most : this.mostIn(window);
    const ranked = [...order].sort((a, b) => most[b] - most[a] || place[a] - place[b]);
    const kept = ranked.slice(0, GROUPS_MAX);
    const forced = this.forced(chosen);
    for (const key of forced) {
      if (kept.includes(key)) continue;
      kept.splice(
        kept.findLastIndex((one) => !forced.includes(one)),
        1,
        key,
      );
    }
    return kept.sort((a, b) => place[a] - place[b]);
  }

  /** The most bytes that each key holds at once in a window. @param {Window} window */
  mostIn({ from, to }) {
    if (this.windowMost?.from !== from || this.windowMost.to !== to)
      this.windowMost = { from, to, most: mostOfKeys(this, from, to) };
    return this.windowMost.most;
  }

  /** Keys that are never among the others: what the rules say nothing of, and what is chosen.
   * @param {string} chosen */
  forced(chosen) {
    const keys = chosen !== '' ? [this.keys.findIndex((k) => k.key === chosen)] : [];
    if (this.by === 'category') keys.push(this.keyOfCategory[0]);
    return keys.filter((key) => this.whole.place[key] >= 0);
  }

  /** By key, its place in the whole recording, which does not depend on a filter.
   * @param {Uint8Array | null} matching */
  claimsOf(matching) {
    const common = this.places;
    if (common) return Int32Array.from(this.keys, (_, i) => common.get(commonName(this, i)) ?? 0);
    if (!matching) return this.whole.place;
    const plain = new GroupKeys(this.source, this.by, null);
    const { place } = wholeRank(plain, this.curve.peak.entry);
    const places = new Map(plain.keys.map(({ key }, i) => [key, place[i]]));
    return Int32Array.from(this.keys, ({ key }) => places.get(key) ?? 0);
  }

  /** Each key has the colour of its place; where two want one, the later takes the next that is
   * free. @param {number[]} shown */
  coloursOf(shown) {
    const { claims } = this;
    const colours = new Array(shown.length).fill(0);
    const taken = new Set();
    const order = [...shown.keys()].sort((a, b) => claims[shown[a]] - claims[shown[b]]);
    for (const i of order) {
      let colour = claims[shown[i]] % GROUPS_MAX;
      while (taken.has(colour)) colour = (colour + 1) % GROUPS_MAX;
      taken.add(colour);
      colours[i] = colour;
    }
    return colours;
  }

  /** Number of the colour of a group, of those in a theme; -1: others, -2: what does not match.
   * @param {number} group */
  colour(group) {
    if (group === 0) return -1;
    return group === this.count - 1 ? -2 : this.colours[group - 1];
  }

  /** The group of each lifetime, so that finding one is a look-up. */
  makeTables() {
    const { source, groupOfKey, keyOfStack, isLookUp } = this;
    const { lifetimeStack } = source;
    const groupOfStack = Uint8Array.from(keyOfStack, (key) => groupOfKey[key]);
    const groups = new Uint8Array(source.lifetimes);
    for (let lifetime = 0; lifetime < groups.length; lifetime++) {
      groups[lifetime] = isLookUp
        ? groupOfStack[lifetimeStack[lifetime]]
        : groupOfKey[this.key(lifetime)];
    }
    this.groupOfLifetime = groups;
  }

  /** The order in which groups are stacked, from the ground: those whose bytes stay longest
   * first, so that what comes and goes does so on top of what is always there. */
  makeOrder() {
    const { count } = this;
    const bytes = new Float64Array(count);
    const stay = new Float64Array(count);
    this.groupOfKey.forEach((group, key) => {
      bytes[group] += this.whole.total[key];
      stay[group] += this.whole.stay[key];
    });
    const length = (/** @type {number} */ group) =>
      bytes[group] > 0 ? stay[group] / bytes[group] : 0;
    const order = [...bytes.keys()].filter((group) => group > 0 && group < count - 1);
    order.sort((a, b) => length(b) - length(a) || a - b);
    this.order = [...order, 0, count - 1];
  }

  /** @param {number} lifetime */
  group(lifetime) {
    return this.groupOfLifetime[lifetime];
  }

  /** The group of what the rules say nothing of; -1 without one. */
  unclassified() {
    return this.by === 'category' ? this.groupOfKey[this.keyOfCategory[0]] || -1 : -1;
  }

  /** The key of a group as states and links have it; '' for others and what does not match.
   * @param {number} group */
  keyOf(group) {
    return group > 0 && group < this.count - 1 ? this.keys[this.shown[group - 1]].key : '';
  }

  /** Name of a group. @param {number} group */
  text(group) {
    if (group === 0) return `others (${this.others})`;
    if (group === this.count - 1) return '(not matching the filter)';
    return this.keys[this.shown[group - 1]].text;
  }

  makeCheckpoints() {
    const { source, count } = this;
    const points = Math.ceil(source.count / CHECKPOINT) + 1;
    const sums = new Float64Array(points * count);
    const now = new Float64Array(count);
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      if (source.lifetimeStart[lifetime] === NEVER)
        now[this.group(lifetime)] += source.size(lifetime);
    }
    for (let point = 0; point * CHECKPOINT < source.count; point++) {
      sums.set(now, point * count);
      const first = point * CHECKPOINT;
      this.apply(now, first, Math.min(source.count, first + CHECKPOINT));
    }
    this.sums = sums;
    this.now = source.count > 0 ? new Float64Array(count) : now;
    this.at = source.count > 0 ? -Infinity : -1; // nowhere yet
  }

  /** Adds what entries [first, end) change, or takes it back. @param {Float64Array} sums
   * @param {number} first @param {number} end @param {1 | -1} sign */
  apply(sums, first, end, sign = 1) {
    const { source, groupOfLifetime } = this;
    const { kind, ref, lifetimeSize } = source;
    for (let entry = first; entry < end; entry++) {
      const what = kind[entry];
      if (what === KIND.FREE_COMPLETED) {
        const lifetime = ref[entry];
        sums[groupOfLifetime[lifetime]] -= sign * lifetimeSize[lifetime];
      } else if (what === KIND.ALLOC || what === KIND.ALLOC_AGAIN) {
        const lifetime = ref[entry];
        sums[groupOfLifetime[lifetime]] += sign * lifetimeSize[lifetime];
        const ended = what === KIND.ALLOC ? undefined : source.endedBy().get(entry);
        if (ended !== undefined) sums[groupOfLifetime[ended]] -= sign * lifetimeSize[ended];
      }
    }
  }

  /** Bytes of each group right after an entry. Borrowed until the next call.
   * @param {number} entry @returns {Float64Array} */
  sumsAt(entry) {
    const now = this.now;
    if (this.source.count === 0) return now;
    // From the nearest of the checkpoints on both sides and where it was last.
    const near = Math.floor((Math.max(0, entry) + CHECKPOINT / 2) / CHECKPOINT);
    const point = Math.min(near, Math.floor((this.source.count - 1) / CHECKPOINT));
    let at = this.at;
    if (Math.abs(at - entry) > Math.abs(point * CHECKPOINT - 1 - entry)) {
      const from = point * this.count;
      now.set(this.sums.subarray(from, from + this.count));
      at = point * CHECKPOINT - 1;
    }
    if (at <= entry) this.apply(now, at + 1, entry + 1);
    else this.apply(now, Math.max(-1, entry) + 1, at + 1, -1);
    this.at = Math.max(-1, entry);
    return now;
  }
}
