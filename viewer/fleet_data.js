// SPDX-License-Identifier: MIT
// The data of a page of ranks: the report as `tarn ranks --json` prints it, and the sketches of the
// timelines. What src/page/ranks_page.c writes.
import { BadPage, Numbers, readSection } from './payload.js';
import { Rank } from './rank.js';

const FORMAT = 1;

/** @param {string} name */
async function readJson(name) {
  const bytes = await readSection(name);
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new BadPage(`section \u201c${name}\u201d is damaged`);
  }
}

/** A sketch of every rank, each number a step from the same part of the rank before.
 * @param {string} name @param {number} ranks @param {number} points */
async function readSketches(name, ranks, points) {
  const numbers = new Numbers(await readSection(name));
  const values = new Float64Array(ranks * points);
  for (let i = 0; i < values.length; i++)
    values[i] = (i < points ? 0 : values[i - points]) + numbers.step();
  numbers.finish();
  return values;
}

/** Two snapshots whose pages would have one name have none: which one it is nobody knows.
 * @param {Rank[]} ranks */
function dropSharedPages(ranks) {
  const files = new Map();
  for (const rank of ranks) {
    if (rank.page === null) continue;
    files.set(rank.page, (files.get(rank.page) ?? new Set()).add(rank.file));
  }
  for (const rank of ranks)
    if (rank.page !== null && files.get(rank.page).size > 1) rank.page = null;
}

/** @param {{file: string, device: number}} row */
const placeOf = ({ file, device }) => `${device} ${file}`;

export class Fleet {
  /** @param {any} head @param {any} report @param {Float64Array} requested
   * @param {Float64Array} reserved */
  constructor(head, report, requested, reserved) {
    this.title = head.title;
    /** @type {number} */
    this.points = head.points;
    this.report = report;
    /** @type {Rank[]} */
    this.ranks = report.ranks.map(
      (/** @type {any} */ row, /** @type {number} */ i) => new Rank(i, row, head.ranks[i]),
    );
    dropSharedPages(this.ranks);
    /** @type {Map<string, Rank>} */
    this.places = new Map();
    for (const rank of this.ranks)
      if (!this.places.has(placeOf(rank))) this.places.set(placeOf(rank), rank);
    this.requested = requested;
    this.reserved = reserved;
  }

  static async read() {
    const head = await readJson('head');
    if (head.format !== FORMAT) throw new BadPage(`it has the format ${head.format}`);
    const { data } = await readJson('report');
    if (data.ranks.length !== head.ranks.length) throw new BadPage('its ranks do not fit');
    const count = head.ranks.length;
    const requested = await readSketches('requested', count, head.points);
    return new Fleet(head, data, requested, await readSketches('reserved', count, head.points));
  }

  /** The rank of a row of the report; of equal ones the first. @param {any} row */
  find(row) {
    return this.places.get(placeOf(row));
  }

  /** The part of a trace in words. @param {number} part */
  partText(part) {
    const share = (/** @type {number} */ at) => ((at / this.points) * 100).toFixed(1);
    return `${share(part)} to ${share(part + 1)} % of its events`;
  }

  /** One rank per group, that which the report names. */
  representatives() {
    const found = [];
    for (const [number, row] of this.report.groups.entries()) {
      const rank =
        this.ranks.find((one) => one.group === number && one.file === row.file) ??
        this.ranks.find((one) => one.group === number);
      if (rank) found.push(rank);
    }
    return found;
  }
}
