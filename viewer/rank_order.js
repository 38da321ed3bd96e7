// SPDX-License-Identifier: MIT
// The order of ranks from top to bottom, and lines of several ranks where there are more of them
// than pixels.
import { compareHosts, compareNumbers } from './rank.js';

/** @typedef {import('./rank.js').Rank} Rank */

/** @type {Record<string, {text: string, compare: (a: Rank, b: Rank) => number}>} */
export const ORDERS = {
  number: { text: 'by number', compare: compareNumbers },
  outliers: { text: 'those that stand out first', compare: (a, b) => a.index - b.index },
  group: {
    text: 'by group of like ranks',
    compare: (a, b) => a.group - b.group || compareNumbers(a, b),
  },
  peak: {
    text: 'by reserved peak',
    compare: (a, b) => b.reservedBytes - a.reservedBytes || compareNumbers(a, b),
  },
  host: { text: 'by host', compare: compareHosts },
};

/** @param {Rank[]} ranks @param {string} order @param {string} only */
export function orderRanks(ranks, order, only) {
  const text = only.trim().toLowerCase();
  const chosen = text === '' ? [...ranks] : ranks.filter((rank) => rank.matches(text));
  return chosen.sort(ORDERS[order].compare);
}

const ROW_MOST = 18; // CSS pixels of a rank's line
const HEIGHT_MOST = 560; // of all lines

/** Ranks in order, as lines of equal height.
 * @typedef {{ranks: Rank[], perLine: number, lines: number, height: number}} Lines
 * `height` of a line is in pixels of the device.
 * @param {Rank[]} ranks @param {number} ratio @returns {Lines} */
export function lineUp(ranks, ratio) {
  const room = Math.floor(HEIGHT_MOST * ratio);
  const perLine = Math.max(1, Math.ceil(ranks.length / room));
  const lines = Math.ceil(ranks.length / perLine);
  const most = Math.floor(ROW_MOST * ratio);
  const height = Math.max(1, Math.min(most, Math.floor(room / Math.max(1, lines))));
  return { ranks, perLine, lines, height };
}

/** @param {Lines} lines @param {number} line */
export function ranksOfLine({ ranks, perLine }, line) {
  return ranks.slice(line * perLine, (line + 1) * perLine);
}
