// SPDX-License-Identifier: MIT
// What people hear who do not see the pictures.
import { sizeText } from './format.js';
import { byId } from './paint.js';
import { VIEW_TEXTS } from './views.js';
import { cursorText, placeName } from './describe.js';

const SPEAK_REST = 250; // milliseconds without a change

/** The picture in words. @param {any} app */
export function describePicture(app) {
  const { state, source, curve, grouping } = app;
  const entry = app.entryAtCursor();
  const sums = grouping.sumsAt(entry);
  const largest = grouping.order
    .filter((/** @type {number} */ g) => sums[g] > 0)
    .sort((/** @type {number} */ a, /** @type {number} */ b) => sums[b] - sums[a])
    .slice(0, 3)
    .map((/** @type {number} */ g) => `${grouping.text(g)} ${sizeText(sums[g])}`)
    .join('; ');
  return (
    `${VIEW_TEXTS[state.view]} of ${source.name}. ` +
    `${cursorText(app)}: ${sizeText(curve.requested(entry))} requested ` +
    `of ${sizeText(curve.reserved(entry))} reserved. Largest: ` +
    `${largest || 'nothing'}. The view Table has all figures.`
  );
}

/** Where the cursor is, and what is chosen. @param {any} app */
function describeCursor(app) {
  const { state, source, curve } = app;
  const entry = app.entryAtCursor();
  const words =
    `${placeName(source, entry)}: ${sizeText(curve.requested(entry))} ` +
    `requested, ${sizeText(curve.reserved(entry))} reserved`;
  return state.lifetime >= 0
    ? `${words}. Block of ${sizeText(source.size(state.lifetime))} chosen`
    : words;
}

export class Announcer {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    /** @type {number | undefined} */
    this.timer = undefined;
  }

  /** @param {string} [text] */
  say(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      byId('live').textContent = text || describeCursor(this.app);
    }, SPEAK_REST);
  }
}
