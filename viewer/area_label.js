// SPDX-License-Identifier: MIT
// Names of groups in the areas of the timeline, where they are large enough for a line of text.
import { fitText, groupColour, inkOn } from './paint.js';

const STEP = 8; // pixels between the columns that are looked at
const HIGH = 16; // pixels that a line of text needs
const WIDTHS = [240, 160, 90];
const AIR = 10; // pixels beside a text

/** @typedef {{group: number, x: number, y: number, width: number, text: string}} AreaLabel */

/** Lower and upper edges of a group in pixels, at columns STEP apart.
 * @param {any} app @param {any} box @param {any} data @param {(bytes: number) => number} y */
function areaEdges(app, box, data, y) {
  const { groups, sums, most } = data;
  const columns = most.length;
  const spots = Math.max(1, Math.floor(box.axis.width / STEP));
  const low = Array.from({ length: groups }, () => new Float32Array(spots));
  const high = Array.from({ length: groups }, () => new Float32Array(spots));
  for (let spot = 0; spot < spots; spot++) {
    const column = Math.min(columns - 1, Math.floor(((spot + 0.5) / spots) * columns));
    let sum = 0;
    for (const group of app.grouping.order) {
      low[group][spot] = Math.min(box.bottom, y(sum));
      sum += sums[column * groups + group];
      high[group][spot] = Math.max(box.top, y(sum));
    }
  }
  return { low, high, spots };
}

/** The run of spots in which an area is highest all along. @param {Float32Array} low
 * @param {Float32Array} high @param {number} length in spots */
function bestRun(low, high, length) {
  let best = { from: -1, high: HIGH, top: 0 };
  for (let from = 0; from + length <= low.length; from += 2) {
    let foot = Infinity;
    let top = -Infinity;
    for (let spot = from; spot < from + length && foot - top > best.high; spot++) {
      if (low[spot] < foot) foot = low[spot];
      if (high[spot] > top) top = high[spot];
    }
    if (foot - top > best.high) best = { from, high: foot - top, top };
  }
  return best;
}

/** Which areas have a label, and where.
 * @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {any} data
 * @param {(bytes: number) => number} y @returns {AreaLabel[]} */
export function areaLabels(app, context, box, data, y) {
  const { low, high, spots } = areaEdges(app, box, data, y);
  const labels = [];
  const wide = box.axis.width / spots;
  for (const group of app.grouping.order) {
    const name = app.grouping.text(group);
    const full = context.measureText(name).width + AIR;
    const widths = WIDTHS.filter((width) => width < full);
    for (const width of [Math.min(full, WIDTHS[0]), ...widths]) {
      const run = bestRun(low[group], high[group], Math.ceil(width / wide));
      if (run.from < 0) continue;
      const text = fitText(context, name, width - AIR);
      const x = box.left + run.from * wide + AIR / 2;
      if (text) labels.push({ group, x, y: run.top + run.high / 2, width: width - AIR, text });
      break;
    }
  }
  return labels;
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {AreaLabel[]} labels */
export function drawAreaLabels(app, context, labels) {
  const { theme, grouping, state } = app;
  for (const { group, x, y, text } of labels) {
    const isOther = state.group !== '' && app.groupOfSelection !== group;
    const colour = groupColour(theme, grouping, group);
    context.fillStyle = isOther ? theme.text : inkOn(colour);
    context.fillText(text, x, y);
  }
}
