// SPDX-License-Identifier: MIT
// What the boxes of the flame stand for: stacks as a tree, from the outermost frame on, inverted,
// or around the function of a sandwich; and which box is as wide as the picture.
import { GroupKeys, groupingsOf } from './group_keys.js';
import { cutStack, throughText } from './sandwich.js';
import { NEVER } from './kind.js';

/** What the boxes can show. */
export const FLAMES = [
  { id: 'live', text: 'at the cursor' },
  { id: 'peak', text: 'at the peak' },
  { id: 'range', text: 'requested in window' },
  { id: 'growth', text: 'changed since the mark' },
];

/** What the outermost boxes stand for. */
export const BOXES = [
  { id: 'stack', text: 'stacks' },
  { id: 'module', text: 'modules, then stacks' },
  { id: 'category', text: 'categories, then stacks' },
];

/** Those that a recording has something for. @param {import('./names.js').Names} names */
export function boxesOf(names) {
  const groupings = groupingsOf(names);
  return BOXES.filter(({ id }) => id === 'stack' || groupings.some((g) => g.id === id));
}

/** How often a block counts: once or not at all; for growth -1 when it has gone.
 * @param {any} app @returns {(lifetime: number) => number} */
function timesOf(app) {
  const { source, state, curve } = app;
  const cursor = app.entryAtCursor();
  const mark = state.mark >= -1 ? state.mark : -1;
  const live = (/** @type {number} */ lifetime, /** @type {number} */ entry) =>
    source.isLive(lifetime, entry) ? 1 : 0;
  switch (state.flame) {
    case 'range':
      return (lifetime) => {
        const start = source.lifetimeStart[lifetime];
        return start !== NEVER && start >= state.from && start < state.to ? 1 : 0;
      };
    case 'growth':
      return (lifetime) => live(lifetime, cursor) - live(lifetime, mark);
    case 'peak':
      return (lifetime) => live(lifetime, curve.peak.entry);
    default:
      return (lifetime) => live(lifetime, cursor);
  }
}

/** @typedef {{outer: number, stack: number, bytes: number, blocks: number}} FlameCell */

/** Bytes and blocks of each stack; `outer` is a key of a grouping by the outermost boxes, 0 without
 * one.
 * @param {any} app @param {GroupKeys | null} grouping @returns {Iterable<FlameCell>} */
function flameCells(app, grouping) {
  const { source } = app;
  const times = timesOf(app);
  const stacks = source.names.stackNode.length;
  const wanted = app.state.filter ? app.matching : null;
  /** @type {Map<number, FlameCell>} */
  const cells = new Map();
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const count = times(lifetime);
    const stack = source.lifetimeStack[lifetime];
    if (count === 0 || (wanted && !wanted[lifetime])) continue;
    const outer = grouping ? grouping.key(lifetime) : 0;
    const number = outer * stacks + stack;
    let cell = cells.get(number);
    if (!cell) cells.set(number, (cell = { outer, stack, bytes: 0, blocks: 0 }));
    cell.bytes += count * source.size(lifetime);
    cell.blocks += count;
  }
  return cells.values();
}

/**
 * @typedef {{frame: number, text: string, bytes: number, blocks: number, own: number,
 *   depth: number, x: number, children: Map<string, FlameNode>, parent: FlameNode | null,
 *   library: boolean, key: string, name: string,
 *   sign: number}} FlameNode
 */

/**
 * @param {FlameNode | null} parent @param {number} frame @param {string} text
 * @param {boolean} library @param {string} [key] @returns {FlameNode}
 */
function flameNode(parent, frame, text, library, key = '') {
  return {
    key,
    name: '', // of boxName, once it is known
    sign: parent ? parent.sign : 1, // -1: of what shrank
    frame,
    text,
    bytes: 0,
    blocks: 0,
    own: 0,
    depth: parent ? parent.depth + 1 : 0,
    x: 0,
    children: new Map(),
    parent,
    library,
  };
}

/** @typedef {{frame: number, text: string, key: string}} FlameStep */

/** The frames of a stack that are shown. @param {any} app @param {number} stack
 * @returns {number[]} */
function shownFrames(app, stack) {
  const { names } = app.source;
  const frames = names.frames(stack);
  if (!app.state.own) return frames;
  const own = frames.filter((/** @type {number} */ frame) => !names.isLibrary(frame));
  return own.length > 0 ? own : frames;
}

/** @param {any} app @param {number[]} frames @returns {FlameStep[]} */
function frameSteps(app, frames) {
  const { names } = app.source;
  return frames.map((frame) => ({
    frame,
    text: names.frameText(frame),
    key: `${names.frameText(frame)}|${names.frameFile[frame]}`,
  }));
}

/** The boxes of a stack, from the outermost on. @param {any} app @param {number} stack
 * @returns {FlameStep[]} */
function stackSteps(app, stack) {
  const { names } = app.source;
  const frames = shownFrames(app, stack);
  if (frames.length === 0) {
    const text = names.stackText(stack);
    return [{ frame: 0, text, key: text }];
  }
  return frameSteps(app, app.state.inverted ? frames : frames.reverse());
}

/** The boxes around stacks: a category, or a module inside of those that have it.
 * @param {string} by @param {{key: string, text: string}} key @returns {FlameStep[]} */
function outerSteps(by, key) {
  const isPath = by === 'module' && key.text[0] !== '(';
  const parts = isPath ? key.text.split('.') : [key.text];
  return parts.map((text) => ({ frame: 0, text, key: `outer ${text}` }));
}

/** @param {FlameNode} root @param {FlameStep[]} steps @param {FlameCell} cell
 * @param {(frame: number) => boolean} isLibrary */
function addToFlame(root, steps, cell, isLibrary) {
  let node = root;
  root.bytes += cell.bytes;
  root.blocks += cell.blocks;
  for (const { frame, text, key } of steps) {
    let child = node.children.get(key);
    if (!child) {
      child = flameNode(node, frame, text, frame > 0 && isLibrary(frame), key);
      node.children.set(key, child);
    }
    child.bytes += cell.bytes;
    child.blocks += cell.blocks;
    node = child;
  }
  node.own += cell.bytes;
}

/** A tree for each direction: what grew, and what shrank, as positive bytes. They have one root
 * where something shrank; otherwise the tree of what grew is all.
 * @param {boolean} hasLess @returns {{root: FlameNode, grown: FlameNode, less: FlameNode}} */
function flameRoots(hasLess) {
  const root = flameNode(null, 0, 'all', true);
  if (!hasLess) return { root, grown: root, less: root };
  const grown = flameNode(root, 0, 'grown', true, 'grown');
  const less = flameNode(root, 0, 'less', true, 'less');
  less.sign = -1;
  root.children.set('grown', grown);
  root.children.set('less', less);
  return { root, grown, less };
}

/** The stacks through one function: what it called is below it, what called it above.
 * @param {any} app
 * @returns {{root: FlameNode, callers: FlameNode, shrunk: number, stacks: number}} */
function sandwichTree(app) {
  const { source, state } = app;
  const { names } = source;
  const isLibrary = (/** @type {number} */ frame) => names.isLibrary(frame);
  const root = flameNode(null, state.through, throughText(app), false);
  const callers = flameNode(null, state.through, root.text, false);
  let stacks = 0;
  for (const cell of flameCells(app, null)) {
    const parts = cutStack(names, shownFrames(app, cell.stack), state.through);
    if (!parts || !(cell.bytes > 0)) continue;
    stacks++;
    addToFlame(root, frameSteps(app, parts.callees), cell, isLibrary);
    addToFlame(callers, frameSteps(app, parts.callers), cell, isLibrary);
  }
  return { root, callers, shrunk: 0, stacks };
}

/** The tree of what the cells hold; for growth also of what stacks have less, beside it.
 * @param {any} app @returns {{root: FlameNode, shrunk: number, stacks: number}} */
export function flameTree(app) {
  const { source, state } = app;
  const grouping = state.boxes === 'stack' ? null : new GroupKeys(source, state.boxes, null);
  const isLibrary = (/** @type {number} */ frame) => source.names.isLibrary(frame);
  const cells = [...flameCells(app, grouping)].filter((cell) => cell.bytes !== 0);
  const { root, grown, less } = flameRoots(cells.some((cell) => cell.bytes < 0));
  for (const cell of cells) {
    const outer = grouping ? outerSteps(state.boxes, grouping.keys[cell.outer]) : [];
    const steps = [...outer, ...stackSteps(app, cell.stack)];
    const isLess = cell.bytes < 0;
    const part = isLess ? { ...cell, bytes: -cell.bytes, blocks: -cell.blocks } : cell;
    addToFlame(isLess ? less : grown, steps, part, isLibrary);
  }
  if (grown !== root) {
    root.bytes = grown.bytes + less.bytes;
    root.blocks = grown.blocks + less.blocks;
  }
  return { root, shrunk: less === root ? 0 : less.bytes, stacks: cells.length };
}

/** A box as states and links have it: a hash of all keys from the root to it; '' is the root.
 * @param {FlameNode} node */
export function boxName(node) {
  if (!node.parent) return '';
  if (node.name !== '') return node.name;
  const text = `${boxName(node.parent)}\n${node.key}`;
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  node.name = (hash >>> 0).toString(16);
  return node.name;
}

/** The function of the chosen box between its callers and callees, or all stacks again.
 * @param {any} app */
export function toggleSandwich(app) {
  const { through } = app.state;
  const frame = app.flameFocus?.frame ?? 0;
  if (through > 0) app.set({ through: -1, focus: '' });
  else if (frame > 0) app.set({ through: frame, focus: '', flame: signless(app.state.flame) });
}

/** Growth has two directions, a sandwich none. @param {string} flame */
function signless(flame) {
  return flame === 'growth' ? 'live' : flame;
}

/** What a click on a box changes: it is as wide as the picture or, among the callers of a sandwich,
 * in its middle. @param {any} app @param {FlameNode} node */
export function chosenBox(app, node) {
  let top = node;
  while (top.parent) top = top.parent;
  return top === app.flame.callers
    ? { through: node.frame, focus: '' }
    : { focus: boxName(node) };
}

/** The box of a name; null when nothing is there now, as when its stacks hold nothing.
 * @param {FlameNode} root @param {string} name @returns {FlameNode | null} */
function findBox(root, name) {
  const list = name === '' ? [] : [...root.children.values()];
  for (let node = list.pop(); node; node = list.pop()) {
    if (boxName(node) === name) return node;
    list.push(...node.children.values());
  }
  return null;
}

/** @param {any} app */
export function flamePlan(app) {
  const { source, state } = app;
  const key = [
    source.id,
    app.entryAtCursor(),
    state.flame,
    state.boxes,
    state.mark,
    app.state.inverted,
    app.state.own,
    state.through,
    state.flame === 'range' ? state.from + '-' + state.to : '',
    state.filter ? state.query : '',
  ].join();
  if (app.flameKey !== key) {
    app.flameKey = key;
    app.flame = state.through > 0 ? sandwichTree(app) : flameTree(app);
    app.flameFocus = findBox(app.flame.root, state.focus);
  } else if ((app.flameFocus ? boxName(app.flameFocus) : '') !== state.focus) {
    app.flameFocus = findBox(app.flame.root, state.focus);
  }
  return app.flame;
}
