// SPDX-License-Identifier: MIT
// One rank of a fleet: a row of the report, and what the page has beside it.
import { baseName, shownText } from './format.js';

const HOST_KEYS = ['host', 'hostname', 'node', 'nodename'];

/** Orders texts with their numbers as numbers: n2 before n10. */
const naturally = new Intl.Collator('en', { numeric: true }).compare;

export class Rank {
  /** @param {number} index @param {any} row of the report
   * @param {[Record<string, string>, number, number, string | null, string]} beside */
  constructor(index, row, [labels, group, events, page, distance]) {
    this.index = index;
    /** @type {string} */
    this.file = row.file;
    /** @type {number} */
    this.device = row.device;
    /** @type {number} */
    this.requestedBytes = row.requested_bytes;
    /** @type {number} */
    this.reservedBytes = row.reserved_peak_bytes;
    /** @type {boolean} */
    this.isOutlier = row.is_outlier;
    this.labels = labels;
    this.group = group;
    this.events = events;
    this.page = page;
    this.distance = distance;
    this.name = this.nameOf();
  }

  nameOf() {
    const number = this.labels.rank;
    const name = number === undefined ? baseName(this.file) : `rank ${number}`;
    return shownText(this.device === 0 ? name : `${name}, device ${this.device}`, 80);
  }

  get host() {
    const key = HOST_KEYS.find((name) => this.labels[name] !== undefined);
    return key ? `${key} ${shownText(this.labels[key], 80)}` : '';
  }

  /** All labels but those that the name has. */
  get labelText() {
    return Object.entries(this.labels)
      .filter(([key]) => key !== 'rank' && key !== 'device')
      .map(([key, value]) => `${key}=${shownText(value, 60)}`)
      .join(' ');
  }

  /** @param {string} text in lower case */
  matches(text) {
    const labels = Object.entries(this.labels).map(([key, value]) => `${key}=${value}`);
    return [this.file, this.name, ...labels].some((one) => one.toLowerCase().includes(text));
  }
}

/** By number where both have one, else by name. @param {Rank} a @param {Rank} b */
export function compareNumbers(a, b) {
  return (
    naturally(a.labels.rank ?? '', b.labels.rank ?? '') ||
    naturally(a.file, b.file) ||
    a.device - b.device ||
    a.index - b.index
  );
}

/** @param {Rank} a @param {Rank} b */
export function compareHosts(a, b) {
  return naturally(a.host, b.host) || compareNumbers(a, b);
}
