// SPDX-License-Identifier: MIT
// What is under the pointer, in a box beside it.
import { byId, element } from './paint.js';

/** @param {any} hit @param {number} x @param {number} y */
export function showTip(hit, x, y) {
  const tip = byId('tip');
  if (!hit || hit.lines.length === 0) {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(
    ...hit.lines.map((/** @type {string[]} */ [name, value]) =>
      element('div', {}, element('span', {}, name), value ? element('span', {}, value) : null),
    ),
  );
  tip.hidden = false;
  const stage = byId('stage').getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 16 + width > stage.width ? x - width - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(stage.height - height - 4, y + 14))}px`;
}
