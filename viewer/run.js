// SPDX-License-Identifier: MIT
// A recording of the page: its texts, and its sources as far as they have been read.
import { BadPage, Sections, breathe } from './payload.js';
import { readAnnotations } from './annotation.js';
import { Names } from './names.js';
import { SourceReader, readSizes } from './source_reader.js';
import { Source } from './trace.js';
import { Curve } from './curve.js';
import { Extents } from './extents.js';

const FORMAT = 4;
const SOURCES_MAX = 1000; // of a recording: ids of the next one begin behind them

/** @typedef {{source: Source, curve: Curve, extents: Extents}} Loaded */

/** How many recordings the page has had: each of their sources has an id of its own. */
let runsMade = 0;

export class Run {
  /** @param {number} number @param {{read: (name: string) => Promise<Uint8Array>}} sections
   * @param {any} head */
  constructor(number, sections, head) {
    this.number = number;
    this.firstId = SOURCES_MAX * runsMade++;
    this.sections = sections;
    this.head = head;
    this.names = new Names();
    this.sizes = new Float64Array(0);
    this.rawAnnotations = /** @type {any[]} */ ([]);
    /** @type {any} */
    this.answers = null;
    /** @type {Map<number, Loaded>} */
    this.loaded = new Map();
  }

  /** Reads the head alone. @param {number} number
   * @param {{read: (name: string) => Promise<Uint8Array>}} [sections] those of the page */
  static async begin(number, sections = new Sections(number > 0 ? 'after.' : '')) {
    const head = JSON.parse(new TextDecoder().decode(await sections.read('head')));
    if (head.format !== FORMAT || !Array.isArray(head.sources))
      throw new BadPage('it is of another version of the viewer');
    return new Run(number, sections, head);
  }

  /** What its sources share. */
  async readTables() {
    await this.names.read(this.sections);
    this.sizes = readSizes(await this.sections.read('sizes'));
    this.rawAnnotations = readAnnotations(await this.sections.read('annotations'), this.names);
    this.answers = JSON.parse(new TextDecoder().decode(await this.sections.read('answers')));
  }

  /** Reads a source, unless it has been read.
   * @param {number} number @param {(text: string) => void} say @returns {Promise<Loaded>} */
  async open(number, say) {
    const known = this.loaded.get(number);
    if (known) return known;
    const id = this.firstId + number;
    const source = new Source(this.head.sources[number], this.names, this.head, number, id);
    await new SourceReader(source).read(this.sections, this.sizes, (share) =>
      say(`reading ${source.name}: ${Math.round(share * 100)} %`),
    );
    await breathe();
    const curve = new Curve(source);
    await breathe();
    const loaded = { source, curve, extents: new Extents(source) };
    source.index();
    await breathe();
    this.loaded.set(number, loaded);
    return loaded;
  }

  /** The number of the source that is the same device, or pinned memory; -1: it has none.
   * @param {any} info of a source of another recording */
  sourceLike(info) {
    return this.head.sources.findIndex(
      (/** @type {any} */ one) => one.device === info.device && one.host === info.host,
    );
  }

  /** Events that the page leaves out. */
  get skipped() {
    return this.head.sources.reduce(
      (/** @type {number} */ sum, /** @type {any} */ source) => sum + source.skipped,
      0,
    );
  }
}
