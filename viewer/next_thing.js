// SPDX-License-Identifier: MIT
// Choosing without a mouse: from group to group, row to row, block to block, segment to segment,
// box to box.
import { boxName, flamePlan } from './flame_tree.js';
import { lifetimesAt } from './layout.js';
import { chooseLifetime, pick } from './navigation.js';
import { segmentsAt } from './segment_stack.js';
import { tableRows } from './table.js';

/** @param {any[]} list @param {any} now @param {number} step */
function nextOf(list, now, step) {
  const at = list.indexOf(now);
  if (at < 0) return step > 0 ? list[0] : list[list.length - 1];
  return list[(at + step + list.length) % list.length];
}

/** In the order of the legend. @param {any} app @param {number} step */
function nextGroup(app, step) {
  const { grouping, state } = app;
  const keys = [...grouping.order].reverse().map((group) => grouping.keyOf(group));
  const named = keys.filter((key) => key !== '');
  if (named.length > 0) app.set({ group: nextOf(named, state.group, step) });
}

/** By address, of those that are there at the cursor. @param {any} app @param {number} step */
function nextBlock(app, step) {
  const list = lifetimesAt(app.source, app.entryAtCursor());
  if (list.length > 0) chooseLifetime(app, nextOf(list, app.state.lifetime, step));
}

/** Into the largest box, or out again. @param {any} app @param {number} step */
function nextBox(app, step) {
  const { root } = flamePlan(app);
  const now = app.flameFocus ?? root;
  const children = [...now.children.values()].sort((a, b) => b.bytes - a.bytes);
  const next = step > 0 ? children[0] : now.parent;
  if (next) app.set({ focus: boxName(next) });
}

/** Of the boxes beside the chosen one, the largest first. @param {any} app @param {number} step */
export function nextBeside(app, step) {
  if (app.state.view !== 'flame') return;
  const { root } = flamePlan(app);
  const now = app.flameFocus;
  const beside = [...(now?.parent ?? root).children.values()].sort((a, b) => b.bytes - a.bytes);
  if (beside.length > 0) app.set({ focus: boxName(nextOf(beside, now, step)) });
}

/** From the ground up, of those that are there at the cursor.
 * @param {any} app @param {number} step */
function nextSegment(app, step) {
  const list = segmentsAt(app.source, app.entryAtCursor()).map((number) => `s${number}`);
  if (list.length > 0) pick(app, nextOf(list, app.state.picked, step));
}

/** From the top of the table down. @param {any} app @param {number} step */
function nextRow(app, step) {
  const keys = tableRows(app).map((row) => app.grouping.keys[row.key].key);
  const named = keys.filter((key) => key !== '');
  if (named.length === 0) return;
  app.set({ group: nextOf(named, app.state.group, step) });
  app.draw();
  document.querySelector('#document tr.chosen')?.scrollIntoView({ block: 'nearest' });
}

/** @param {any} app @param {number} step */
export function nextThing(app, step) {
  const { view, segments } = app.state;
  if (view === 'flame') nextBox(app, step);
  else if (view === 'blocks' || view === 'map') nextBlock(app, step);
  else if (view === 'table') nextRow(app, step);
  else if (view === 'timeline' && segments) nextSegment(app, step);
  else nextGroup(app, step);
}
