// SPDX-License-Identifier: MIT
// The field at the top: what is looked for, and how much was found.
import { sinceText } from './begin.js';
import { countOf, sizeText } from './format.js';
import { byId } from './paint.js';
import { findMatches } from './search.js';

const SEARCH_REST = 90; // milliseconds without a key

/** How much was found: blocks, or else events that are of none. @param {any} app */
function foundText(app) {
  const { blocks, bytes, hasEvent } = app.matches;
  if (blocks > 0)
    return `${countOf(blocks, 'block')}, ${sizeText(bytes)} in total${sinceText(app.source)}`;
  const events = app.source.events.filter((/** @type {any} */ event) => hasEvent(event.entry));
  return events.length > 0 ? countOf(events.length, 'event') : 'nothing matches';
}

/** @param {any} app @param {string} query */
export function searchFor(app, query) {
  const found = byId('found');
  byId('filter').hidden = query === '';
  if (query === '') {
    app.matches = null;
    app.matching = null;
    app.frameMatches = null;
    found.textContent = '';
    return;
  }
  app.matches = findMatches(app.source, query);
  app.matching = app.matches.has;
  app.frameMatches = app.matches.frames;
  found.textContent = foundText(app);
  found.title =
    `Blocks of the whole ${sinceText(app.source) ? 'page' : 'recording'}: ` +
    'they need not be there at once';
}

/** @param {any} app */
export function listenToSearch(app) {
  const field = /** @type {HTMLInputElement} */ (byId('search'));
  /** @type {number | undefined} */
  let timer = undefined;
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => app.set({ query: field.value.trim() }), SEARCH_REST);
  });
  byId('filter').addEventListener('click', () => app.set({ filter: !app.state.filter }));
}
