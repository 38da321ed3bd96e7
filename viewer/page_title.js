// SPDX-License-Identifier: MIT
// The title of the page, and how much of the recordings was left out.
import { countOf, shownText } from './format.js';
import { byId, element } from './paint.js';

/** @param {import('./run.js').Run[]} runs */
export function drawTitle(runs) {
  const title = byId('title');
  title.textContent = shownText(runs[0].head.title, 200);
  title.parentElement?.querySelector('.cut')?.remove();
  const skipped = runs.reduce((sum, run) => sum + run.skipped, 0);
  if (skipped === 0) return;
  const text = `without the first ${countOf(skipped, 'event')}`;
  const why = 'left out to keep the page small (--max-size): figures are those of the rest';
  title.after(element('span', { class: 'cut', title: why }, text));
}
