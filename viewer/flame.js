// SPDX-License-Identifier: MIT
// Stacks as an icicle: the width of a box is what its frame and those it called hold.
import { sinceText } from './begin.js';
import { LIBRARY_SHARE, fileColour, fileOfBox } from './flame_file.js';
import { boxName, flamePlan } from './flame_tree.js';
import { countOf, shareText, sizeText } from './format.js';
import { fitText, inkOn, openCanvas } from './paint.js';
import { throughText } from './sandwich.js';

/** @typedef {import('./flame_tree.js').FlameNode} FlameNode */

const FLAME_ROW = 20;

/** @param {any} app @param {FlameNode} node */
function flameColour(app, node) {
  if (!node.parent) return app.state.through > 0 ? app.theme.accent : app.theme.strong;
  if (node.frame === 0 && app.state.boxes === 'stack') return app.theme.others;
  return fileColour(app, fileOfBox(app, node));
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
  if (app.state.flame === 'peak')
    return `all ${sizeText(root.bytes)} at the peak${sinceText(app.source)}`;
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
