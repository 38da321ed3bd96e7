// SPDX-License-Identifier: MIT
// Stacks as an icicle: the width of a box is what its frame and those it called hold. From the
// outermost frame on, or inverted, from the line that allocates.
import { LIBRARY_SHARE, fileColour, fileOfBox } from './flame_file.js';
import { countOf, shareText, sizeText } from './format.js';
import { GroupKeys, groupingsOf } from './group_keys.js';
import { fitText, inkOn, openCanvas } from './paint.js';
import { cutStack, throughText } from './sandwich.js';
import { NEVER } from './trace.js';

const FLAME_ROW = 20;

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

/** Those that a recording has something for. @param {import('./trace.js').Names} names */
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

/** @param {any} app @param {FlameNode} node */
function flameColour(app, node) {
  if (!node.parent) return app.state.through > 0 ? app.theme.accent : app.theme.strong;
  if (node.frame === 0 && app.state.boxes === 'stack') return app.theme.others;
  return fileColour(app, fileOfBox(app, node));
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

/** A box and those in it, side by side, the largest first.
 * @param {FlameNode} top @param {number} width
 * @returns {{x: number, width: number, node: FlameNode}[]} */
function placeBoxes(top, width) {
  const boxes = [];
  const stack = [{ node: top, x: 8, width }];
  for (let box = stack.pop(); box; box = stack.pop()) {
    boxes.push(box);
    let at = box.x;
    const children = [...box.node.children.values()];
    children.sort((a, b) => b.bytes - a.bytes);
    for (const child of children) {
      const wide = (child.bytes / box.node.bytes) * box.width;
      if (wide >= 0.4) stack.push({ node: child, x: at, width: wide });
      at += wide;
    }
  }
  return boxes;
}

/**
 * @param {any} app
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function drawFlame(app, canvas, width, height) {
  const { theme } = app;
  const { context } = openCanvas(canvas, width, height);
  const { root } = flamePlan(app);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  /** @type {{x: number, y: number, width: number, node: FlameNode}[]} */
  const boxes = [];
  app.picture = { boxes };
  if (!(root.bytes > 0)) {
    context.fillStyle = theme.muted;
    context.textAlign = 'center';
    context.fillText(
      app.state.flame === 'growth' && app.state.mark < -1
        ? 'Press m to set a mark, then move the cursor: this shows what grew in between.'
        : 'Nothing is requested here.',
      width / 2,
      height / 2,
    );
    context.textAlign = 'left';
    return;
  }
  const focus = app.flameFocus || root;
  app.flameScroll = Math.max(0, app.flameScroll || 0);
  const { callers } = app.flame;
  const above = callers && focus === root ? placeBoxes(callers, width - 16) : [];
  const high = above.reduce(
    (/** @type {number} */ most, box) => Math.max(most, box.node.depth),
    0,
  );
  for (const box of above)
    if (box.node !== callers) boxes.push({ ...box, y: (high - box.node.depth) * FLAME_ROW });
  const path = [];
  for (let node = focus.parent; node; node = node.parent) path.unshift(node);
  path.forEach((node, i) => boxes.push({ x: 8, y: i * FLAME_ROW, width: width - 16, node }));
  for (const box of placeBoxes(focus, width - 16))
    boxes.push({ ...box, y: (high + box.node.depth) * FLAME_ROW });
  const deepest = boxes.reduce((most, box) => Math.max(most, box.y), 0) + FLAME_ROW + 16;
  app.picture.height = deepest;
  app.picture.breaks = Array.from({ length: deepest / FLAME_ROW }, (_, i) => 8 + i * FLAME_ROW);
  app.flameScroll = Math.min(app.flameScroll, Math.max(0, deepest - height));
  for (const box of boxes) drawFlameBox(app, context, box, height, focus);
}

/** What the outermost box says. @param {any} app */
function rootText(app) {
  const { root, shrunk } = app.flame;
  if (app.state.through > 0) return `${root.text}: ${sizeText(root.bytes)}`;
  if (app.state.flame !== 'growth') return `all ${sizeText(root.bytes)}`;
  const grown = root.bytes - shrunk;
  const less =
    shrunk > 0 ? `, ${sizeText(shrunk)} less elsewhere: ${signedText(grown - shrunk)}` : '';
  return `grown by ${sizeText(grown)}${less}`;
}

/** "+3.00 MiB". @param {number} bytes */
function signedText(bytes) {
  return `${bytes > 0 ? '+' : ''}${sizeText(bytes)}`;
}

/** What a box says. @param {any} app @param {FlameNode} node */
function boxText(app, node) {
  if (!node.parent) return rootText(app);
  if (node.key === 'grown' || node.key === 'less')
    return `${node.text}: ${signedText(node.sign * node.bytes)}`;
  return node.sign < 0 ? `\u2212 ${node.text}` : node.text;
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box @param {number}
 * height
 * @param {FlameNode} focus */
function drawFlameBox(app, context, box, height, focus) {
  const y = box.y - app.flameScroll + 8;
  if (y + FLAME_ROW < 0 || y > height) return;
  const colour = flameColour(app, box.node);
  const isAbove = box.node.depth < focus.depth;
  const isMatch = app.frameMatches && app.frameMatches[box.node.frame];
  context.globalAlpha = isAbove ? 0.45 : box.node.library && box.node.parent ? LIBRARY_SHARE : 1;
  if (app.frameMatches && !isMatch) context.globalAlpha *= 0.4;
  context.fillStyle = colour;
  context.fillRect(box.x, y, Math.max(0.6, box.width - 0.8), FLAME_ROW - 1);
  const isFaint = context.globalAlpha < 0.9;
  context.globalAlpha = 1;
  if (box.node.sign < 0 && box.width > 4) {
    context.fillStyle = app.theme.warn;
    context.fillRect(box.x, y, 2, FLAME_ROW - 1);
  }
  const text = box.width > 24 ? fitText(context, boxText(app, box.node), box.width - 8) : '';
  if (text) {
    context.fillStyle = isFaint ? app.theme.text : inkOn(colour);
    context.fillText(text, box.x + 4, y + FLAME_ROW / 2);
  }
}

/** @param {any} app @param {number} px @param {number} py */
export function hitFlame(app, px, py) {
  const { picture, flame } = app;
  if (!picture || !picture.boxes) return null;
  const y = py - 8 + (app.flameScroll || 0);
  const box = picture.boxes.findLast(
    (/** @type {any} */ b) => px >= b.x && px < b.x + b.width && y >= b.y && y < b.y + FLAME_ROW,
  );
  if (!box) return null;
  const { node } = box;
  const { names } = app.source;
  const lines = [
    [boxText(app, node), ''],
    [sizeText(node.sign * node.bytes), `${shareText(node.bytes, flame.root.bytes)} of all`],
    [countOf(node.blocks, 'block'), node.own > 0 ? `${sizeText(node.own)} of its own` : ''],
  ];
  const file = node.frame > 0 ? names.text(names.frameFile[node.frame]) : '';
  if (file) lines.push([file.slice(-90), '']);
  return { entry: -2, group: -1, lifetime: -1, lines, node };
}
