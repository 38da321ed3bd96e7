// SPDX-License-Identifier: MIT
// Ranks by time: a line per rank, or per so many ranks of which it shows the largest, and a column
// per part of the trace.
import { FONT, fitText, openCanvas } from './paint.js';
import { lineUp, ranksOfLine } from './rank_order.js';
import { rampBytes, stepOf } from './rank_colour.js';

/** @typedef {import('./rank.js').Rank} Rank */

const AXIS = 22; // pixels below the lines
const TEXT_LEAST = 11; // height of a line that has room for a name
const TEXT_APART = 36; // of names beside lower ones
const NAME_EDGE = 18; // between a name and the first column
const GUTTER_SHARE = 0.24;
const GUTTER_MOST = 170;

/** The largest value of a line's ranks in each part.
 * @param {any} app @param {import('./rank_order.js').Lines} lines */
function lineValues(app, lines) {
  const { points } = app.fleet;
  const { values } = app.shade;
  const most = new Float64Array(lines.lines * points);
  for (const [place, rank] of lines.ranks.entries()) {
    const line = Math.floor(place / lines.perLine) * points;
    const from = rank.index * points;
    for (let part = 0; part < points; part++)
      if (values[from + part] > most[line + part]) most[line + part] = values[from + part];
  }
  return most;
}

/** @param {any} app @param {import('./rank_order.js').Lines} lines */
function cellsOf(app, lines) {
  const { points } = app.fleet;
  const canvas = document.createElement('canvas');
  canvas.width = points;
  canvas.height = Math.max(1, lines.lines);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const image = context.createImageData(canvas.width, canvas.height);
  const ramp = rampBytes(app.isDark);
  for (const [i, value] of lineValues(app, lines).entries()) {
    const step = stepOf(app.shade, value) * 3;
    image.data.set([ramp[step], ramp[step + 1], ramp[step + 2], 255], i * 4);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

export class HeatMap {
  /** @param {any} app @param {HTMLCanvasElement} canvas */
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
  }

  /** The room of everything, in CSS pixels. @param {Rank[]} ranks */
  layOut(ranks) {
    const width = this.canvas.parentElement?.clientWidth ?? 300;
    const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
    this.lines = lineUp(ranks, ratio);
    this.left = Math.min(GUTTER_MOST, Math.floor(width * GUTTER_SHARE), this.nameWidth(ranks));
    this.width = Math.max(10, width - this.left);
    this.line = this.lines.height / ratio;
    this.bottom = this.line * this.lines.lines;
    this.canvas.style.height = `${this.bottom + AXIS}px`;
    const opened = openCanvas(this.canvas, width, this.bottom + AXIS);
    this.context = opened.context;
    this.context.clearRect(0, 0, width, this.bottom + AXIS);
  }

  /** Room for the names and the marks beside them. @param {Rank[]} ranks */
  nameWidth(ranks) {
    const context = /** @type {CanvasRenderingContext2D} */ (
      this.canvas.getContext('2d', { willReadFrequently: true })
    );
    const longest = ranks.reduce(
      (most, { name }) => (name.length > most.length ? name : most),
      '',
    );
    context.font = FONT;
    return Math.ceil(context.measureText(longest).width) + NAME_EDGE;
  }

  /** @param {Rank[]} ranks */
  draw(ranks) {
    this.layOut(ranks);
    const { context, left, width, lines } = this.drawn();
    context.imageSmoothingEnabled = false;
    context.drawImage(cellsOf(this.app, lines), left, 0, width, this.bottom ?? 0);
    this.drawNames();
    this.drawAxis();
    this.drawMarks();
  }

  /** What `layOut` has set. */
  drawn() {
    return {
      context: /** @type {CanvasRenderingContext2D} */ (this.context),
      lines: /** @type {import('./rank_order.js').Lines} */ (this.lines),
      left: this.left ?? 0,
      width: this.width ?? 0,
      line: this.line ?? 1,
      bottom: this.bottom ?? 0,
    };
  }

  drawNames() {
    const { context, lines, left, line } = this.drawn();
    const { theme } = this.app;
    const every = line >= TEXT_LEAST ? 1 : Math.ceil(TEXT_APART / line);
    for (let i = 0; i < lines.lines; i++) {
      const ranks = ranksOfLine(lines, i);
      const isOutlier = ranks.some((rank) => rank.isOutlier);
      if (isOutlier) {
        context.fillStyle = theme.warn;
        context.fillRect(left - 7, i * line, 5, Math.max(2, line - (line > 6 ? 2 : 0)));
      }
      if (i % every !== 0) continue;
      context.fillStyle = line >= TEXT_LEAST && isOutlier ? theme.warn : theme.muted;
      const y = Math.max(7, (i + 0.5) * line);
      context.fillText(fitText(context, ranks[0].name, left - 12), 0, y);
    }
  }

  drawAxis() {
    const { context, left, width, bottom } = this.drawn();
    context.fillStyle = this.app.theme.muted;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const x = left + width * share;
      context.fillRect(Math.min(x, left + width - 1), bottom, 1, 4);
      context.textAlign = share === 0 ? 'left' : share === 1 ? 'right' : 'center';
      const text = share === 0 ? '0 % of the events' : `${share * 100} %`;
      if (share !== 0.25 || width > 500) context.fillText(text, x, bottom + 13);
    }
    context.textAlign = 'left';
  }

  /** Chosen ranks, and the place of the cursor. */
  drawMarks() {
    const { context, lines, left, width, line } = this.drawn();
    const { theme, chosen, cursor, fleet } = this.app;
    for (const [place, rank] of lines.ranks.entries()) {
      if (!chosen.has(rank.index)) continue;
      const y = Math.floor(place / lines.perLine) * line;
      context.strokeStyle = theme.mark;
      context.lineWidth = 2;
      context.strokeRect(1, y, left + width - 2, Math.max(2, line));
    }
    const place = lines.ranks.findIndex((rank) => rank.index === cursor.rank);
    if (place < 0) return;
    const y = Math.floor(place / lines.perLine) * line;
    const part = width / fleet.points;
    context.lineWidth = 2;
    for (const [colour, more] of [
      [theme.paper, 2],
      [theme.text, 0],
    ]) {
      context.strokeStyle = String(colour);
      const out = Number(more);
      context.strokeRect(
        left + cursor.part * part - out,
        y - out,
        part + 2 * out,
        Math.max(3, line) + 2 * out,
      );
    }
  }

  /** What is at a place of the canvas: of a line with several ranks that with the largest value.
   * @param {number} x @param {number} y */
  hit(x, y) {
    const { lines, left, width, line } = this.drawn();
    const at = Math.floor(y / line);
    if (!(at >= 0 && at < lines.lines) || x > left + width) return null;
    const { points } = this.app.fleet;
    const part = Math.max(0, Math.min(points - 1, Math.floor(((x - left) / width) * points)));
    const ranks = ranksOfLine(lines, at);
    const value = (/** @type {Rank} */ rank) => this.app.shade.values[rank.index * points + part];
    const rank = ranks.reduce((best, one) => (value(one) > value(best) ? one : best));
    return { rank, part, ranks };
  }
}
