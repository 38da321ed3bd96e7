// SPDX-License-Identifier: MIT
// What is under the pointer, in a box beside it.
import { countOf, shownText } from './format.js';
import { byId, element } from './paint.js';

const FRAMES_MAX = 14; // as many as fit beside a picture

/** The frames of a stack from the innermost, as hovering shows them.
 * @param {{names: any, stack: number, isExample?: boolean}} of */
function framesOf({ names, stack, isExample }) {
  const frames = names.frames(stack);
  const shown = frames.slice(0, FRAMES_MAX);
  const more = frames.length - shown.length;
  return element(
    'div',
    { class: 'frames' },
    isExample ? element('p', {}, 'one of its stacks:') : null,
    ...shown.map((/** @type {number} */ frame) =>
      element(
        'p',
        { class: names.isLibrary(frame) ? 'library' : '' },
        shownText(names.frameText(frame), 160),
      ),
    ),
    more > 0 ? element('p', {}, `and ${countOf(more, 'more frame')}`) : null,
  );
}

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
    ...(hit.of && hit.of.names.frames(hit.of.stack).length > 0 ? [framesOf(hit.of)] : []),
  );
  tip.hidden = false;
  const stage = byId('stage').getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 16 + width > stage.width ? x - width - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(stage.height - height - 4, y + 14))}px`;
}
