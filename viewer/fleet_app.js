// SPDX-License-Identifier: MIT
// The page of a fleet: what is being looked at, and drawing it.
import { hitLines, listenToKeys, listenToPointer } from './fleet_keys.js';
import { outlierTable, reportTables } from './fleet_tables.js';
import { countOf, sizeText } from './format.js';
import { HeatMap } from './heat_map.js';
import { byId, element, replaceContent, themeOf } from './paint.js';
import { Cards } from './rank_card.js';
import { COLOURS, rampBytes, shadeOf } from './rank_colour.js';
import { ORDERS, orderRanks } from './rank_order.js';
import { keepTheme } from './theme.js';

/** @typedef {import('./rank.js').Rank} Rank */

export class FleetApp {
  /** @param {import('./fleet_data.js').Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
    this.isDark = document.documentElement.classList.contains('dark');
    this.theme = themeOf(this.isDark);
    this.colour = 'requested';
    this.order = 'number';
    this.only = '';
    this.cursor = { rank: -1, part: 0 };
    /** Indices of ranks. @type {Set<number>} */
    this.chosen = new Set();
    this.shade = shadeOf(fleet, this.colour);
    /** @type {Rank[]} */
    this.shown = orderRanks(fleet.ranks, this.order, this.only);
    this.map = new HeatMap(this, byId('canvas'));
    this.cards = new Cards(this, byId('card-list'), byId('cards-head'), byId('cards-note'));
  }

  listen() {
    this.fillSelect('colour', Object.entries(COLOURS));
    this.fillSelect(
      'order',
      Object.entries(ORDERS).map(([key, { text }]) => [key, text]),
    );
    byId('only').addEventListener('input', (event) => {
      this.only = /** @type {HTMLInputElement} */ (event.target).value;
      this.change();
    });
    byId('theme').addEventListener('click', () => this.setTheme(!this.isDark));
    listenToPointer(this, byId('canvas'), byId('tip'));
    listenToKeys(this, byId('canvas'));
    addEventListener('resize', () => this.draw());
  }

  /** @param {'colour' | 'order'} name @param {string[][]} options */
  fillSelect(name, options) {
    const select = byId(name);
    select.replaceChildren(...options.map(([value, text]) => element('option', { value }, text)));
    select.addEventListener('change', () => {
      this[name] = /** @type {any} */ (select).value;
      this.change();
    });
  }

  /** After a change of the order, of the colour, or of which ranks are shown. */
  change() {
    this.shade = shadeOf(this.fleet, this.colour);
    this.shown = orderRanks(this.fleet.ranks, this.order, this.only);
    this.draw();
  }

  /** @param {boolean} isDark */
  setTheme(isDark) {
    this.isDark = isDark;
    this.theme = themeOf(isDark);
    document.documentElement.classList.toggle('dark', isDark);
    keepTheme(isDark);
    this.draw();
  }

  // ---- choosing ----

  /** A rank of a list: chosen, and its row in sight. @param {Rank} rank */
  choose(rank) {
    if (!this.chosen.has(rank.index)) this.cursor.rank = rank.index;
    if (!this.shown.includes(rank)) {
      this.only = '';
      /** @type {any} */ (byId('only')).value = '';
      this.change();
    }
    this.toggle(rank);
  }

  /** @param {Rank} rank */
  toggle(rank) {
    if (!this.chosen.delete(rank.index)) this.chosen.add(rank.index);
    this.showLists();
    this.cards.show();
    this.map.draw(this.shown);
    this.say();
  }

  toggleCursor() {
    const rank = this.fleet.ranks[this.cursor.rank];
    if (rank) this.toggle(rank);
  }

  letGo() {
    this.chosen.clear();
    this.showLists();
    this.cards.show();
    this.map.draw(this.shown);
  }

  /** @param {(place: number) => number} place @param {number} parts */
  moveCursor(place, parts) {
    if (this.shown.length === 0) return;
    const now = this.shown.findIndex((rank) => rank.index === this.cursor.rank);
    const next = Math.max(0, Math.min(this.shown.length - 1, now < 0 ? 0 : place(now)));
    const part = Math.max(0, Math.min(this.fleet.points - 1, this.cursor.part + parts));
    this.cursor = { rank: this.shown[next].index, part };
    this.map.draw(this.shown);
    this.say();
  }

  /** What the cursor is on, for those who see it and those who hear it. */
  say() {
    const rank = this.fleet.ranks[this.cursor.rank];
    const lines = rank
      ? hitLines(this, { rank, part: this.cursor.part, ranks: [rank] })
      : [['', '']];
    const chosen = rank && this.chosen.has(rank.index) ? 'chosen' : '';
    const text = [...lines.map(([name, value]) => `${name} ${value}`.trim()), chosen]
      .filter((part) => part !== '')
      .join('; ');
    byId('cursor').textContent = text;
    byId('live').textContent = text;
  }

  // ---- drawing ----

  showFacts() {
    const { ranks, report } = this.fleet;
    const outliers = ranks.filter((rank) => rank.isOutlier).length;
    const { least, median, most } = report.requested_bytes;
    byId('facts').textContent =
      `${countOf(ranks.length, 'rank')}, ${countOf(outliers, 'outlier')}; requested ` +
      `${sizeText(least)} to ${sizeText(most)}, median ${sizeText(median)}; reserved ` +
      `${sizeText(report.reserved_peak_bytes.least)} to ` +
      `${sizeText(report.reserved_peak_bytes.most)}`;
  }

  showLists() {
    replaceContent(byId('outlier-list'), outlierTable(this));
    replaceContent(byId('tables'), ...reportTables(this));
  }

  showScale() {
    byId('scale-least').textContent = this.shade.text(0);
    byId('scale-most').textContent = this.shade.text(this.shade.most);
    const ramp = rampBytes(this.isDark);
    const canvas = /** @type {HTMLCanvasElement} */ (byId('ramp'));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    for (let x = 0; x < canvas.width; x++) {
      const step = Math.round((x / (canvas.width - 1)) * 255) * 3;
      context.fillStyle = `rgb(${ramp[step]},${ramp[step + 1]},${ramp[step + 2]})`;
      context.fillRect(x, 0, 1, canvas.height);
    }
  }

  /** How many ranks a line stands for. */
  showMerged() {
    const { perLine } = this.map.drawn().lines;
    const all = this.fleet.ranks.length;
    const some =
      this.shown.length < all ? `${this.shown.length} of ${countOf(all, 'rank')}. ` : '';
    byId('merged').textContent =
      some +
      (perLine > 1
        ? `There are more ranks than lines: each line shows the largest of ${perLine} ranks.`
        : 'Each line is a rank, each column the largest value in a 64th of its trace.'.replace(
            '64th',
            `${this.fleet.points}th`,
          ));
  }

  draw() {
    const isEmpty = this.shown.length === 0;
    byId('stage').hidden = isEmpty;
    byId('empty').hidden = !isEmpty;
    byId('empty').textContent = 'No rank has this in its file name or labels.';
    if (!isEmpty) this.map.draw(this.shown);
    if (!isEmpty) this.showMerged();
    this.showScale();
    this.cards.draw();
  }

  show() {
    this.showFacts();
    this.showLists();
    this.cards.show();
    this.draw();
  }
}
