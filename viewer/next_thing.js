// SPDX-License-Identifier: MIT
// Choosing without a mouse: from group to group, from block to block, from box to box.
import { boxName, flamePlan } from './flame_tree.js';
import { lifetimesAt } from './layout.js';
import { chooseLifetime } from './navigation.js';

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

/** @param {any} app @param {number} step */
export function nextThing(app, step) {
  const { view } = app.state;
  if (view === 'flame') nextBox(app, step);
  else if (view === 'blocks' || view === 'map') nextBlock(app, step);
  else nextGroup(app, step);
}
