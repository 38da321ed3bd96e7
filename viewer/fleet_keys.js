// SPDX-License-Identifier: MIT
// The pointer and the keys on the heat map, and the box beside the pointer.
import { sizeText } from './format.js';
import { element } from './paint.js';

const PAGE = 10; // ranks
const EDGE = 12; // pixels between the pointer and its box

/** Rank, host, time and bytes.
 * @param {any} app @param {any} hit @returns {[string, string][]} */
export function hitLines(app, { rank, part, ranks }) {
  const { fleet, shade, colour } = app;
  const at = rank.index * fleet.points + part;
  /** @type {[string, string][]} */
  const lines = [
    [rank.name, rank.isOutlier ? 'stands out' : ''],
    [rank.labelText || rank.file, ''],
    ['time', fleet.partText(part)],
    ['requested, at most', sizeText(fleet.requested[at])],
    ['reserved, at most', sizeText(fleet.reserved[at])],
  ];
  if (colour === 'share') lines.push(['of the largest rank', shade.text(shade.values[at])]);
  if (ranks.length > 1) lines.push([`the largest of the ${ranks.length} ranks of this line`, '']);
  return lines;
}

/** @param {HTMLElement} tip @param {any} app @param {any} hit @param {number} x
 * @param {number} y */
function showHit(tip, app, hit, x, y) {
  tip.hidden = !hit;
  if (!hit) return;
  tip.replaceChildren(
    ...hitLines(app, hit).map(([name, value]) =>
      element('div', {}, element('span', {}, name), value ? element('span', {}, value) : null),
    ),
  );
  const stage = /** @type {HTMLElement} */ (tip.parentElement).getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const right = x + EDGE + width > stage.width;
  tip.style.left = `${Math.max(0, right ? x - width - EDGE : x + EDGE)}px`;
  tip.style.top = `${Math.max(0, Math.min(stage.height - height, y + EDGE))}px`;
}

/** @param {any} app @param {HTMLCanvasElement} canvas @param {HTMLElement} tip */
export function listenToPointer(app, canvas, tip) {
  const hitOf = (/** @type {PointerEvent | MouseEvent} */ event) =>
    app.map.hit(event.offsetX, event.offsetY);
  canvas.addEventListener('pointermove', (event) =>
    showHit(tip, app, hitOf(event), event.offsetX, event.offsetY),
  );
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  canvas.addEventListener('click', (event) => {
    const hit = hitOf(event);
    if (!hit) return;
    app.cursor = { rank: hit.rank.index, part: hit.part };
    app.toggle(hit.rank);
  });
}

/** Where a key takes the cursor: to another place in the order, to another part.
 * @param {string} key @param {number} last @returns {[(place: number) => number, number] | null} */
function moveOf(key, last) {
  switch (key) {
    case 'ArrowUp':
      return [(place) => place - 1, 0];
    case 'ArrowDown':
      return [(place) => place + 1, 0];
    case 'PageUp':
      return [(place) => place - PAGE, 0];
    case 'PageDown':
      return [(place) => place + PAGE, 0];
    case 'Home':
      return [() => 0, 0];
    case 'End':
      return [() => last, 0];
    case 'ArrowLeft':
      return [(place) => place, -1];
    case 'ArrowRight':
      return [(place) => place, 1];
  }
  return null;
}

/** @param {any} app @param {HTMLCanvasElement} canvas */
export function listenToKeys(app, canvas) {
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moveOf(event.key, app.shown.length - 1);
    if (move) app.moveCursor(move[0], move[1]);
    else if (event.key === 'Enter' || event.key === ' ') app.toggleCursor();
    else if (event.key === 'Escape') app.letGo();
    else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (
      event.key === 't' &&
      !event.ctrlKey &&
      !event.metaKey &&
      !/^(INPUT|SELECT)$/.test(target.tagName)
    )
      app.setTheme(!app.isDark);
  });
}
