// SPDX-License-Identifier: MIT
// The field at the top: what is looked for, and how much was found.
import { countOf, sizeText } from './format.js';
import { byId } from './paint.js';
import { findMatches } from './search.js';

const SEARCH_REST = 90; // milliseconds without a key

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
  found.textContent =
    app.matches.blocks > 0
      ? `${countOf(app.matches.blocks, 'block')}, ${sizeText(app.matches.bytes)}`
      : 'nothing matches';
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
