// SPDX-License-Identifier: MIT
// Pages that moved for the request at the cursor, beside the map, and the way to the next ones.
import { countOf, countText, sizeText } from './format.js';
import { layoutAt } from './layout.js';
import { moveCursor } from './navigation.js';
import { isMoving, moveAt, movesOf, nextMove } from './page_moves.js';
import { pageLegend } from './page_strip.js';
import { element } from './paint.js';
import { pagesOf } from './segment_pages.js';

const RANGES_SHOWN = 12;

/** @param {any} app @param {import('./page_moves.js').Range[]} ranges @param {string} text */
function rangeLines(app, ranges, text) {
  const { source } = app;
  const shown = ranges.slice(0, RANGES_SHOWN);
  const more = ranges.length - shown.length;
  return [
    element('h3', {}, text),
    element(
      'ul',
      { class: 'ranges' },
      ...shown.map(({ from, to }) =>
        element('li', {}, `${sizeText(to - from)} at ${source.hex(from)}`),
      ),
      more > 0 ? element('li', {}, `and ${countOf(more, 'more range')}`) : null,
    ),
  ];
}

/** @param {any} app @param {number} step @param {string} text */
function moveButton(app, step, text) {
  const move = nextMove(app.source, app.entryAtCursor(), step);
  return element(
    'button',
    {
      'data-key': `move ${step}`,
      disabled: !move,
      onclick: () => move && moveCursor(app, move.last),
    },
    text,
  );
}

/** The pages that segments have, which the map shows below them. @param {any} app */
function kindsPart(app) {
  const { source, state } = app;
  if (state.plain || pagesOf(source).count === 0) return [];
  const { segments } = layoutAt(source, app.entryAtCursor());
  const { size } = pagesOf(source).lists[0];
  return [
    element('p', {}, `Below each segment its pages of ${sizeText(size)}`),
    pageLegend(app, segments),
  ];
}

/** @param {any} app */
export function pagePart(app) {
  const { source, state } = app;
  const isShown = movesOf(source).length > 0 || pagesOf(source).count > 0;
  if (state.view !== 'map' || !isShown) return null;
  return element(
    'section',
    {},
    element('h2', {}, 'Pages'),
    ...kindsPart(app),
    ...(movesOf(source).length > 0 ? movesPart(app) : []),
  );
}

/** @param {any} app */
function movesPart(app) {
  const { source } = app;
  const moves = movesOf(source);
  const isOfLibtarn = isMoving(app);
  const move = moveAt(source, app.entryAtCursor());
  const bytes = moves.reduce((sum, one) => sum + one.fromBytes, 0);
  const word = isOfLibtarn ? 'moved' : 'unmapped and mapped again';
  return [
    element(
      'p',
      {},
      `${sizeText(bytes)} ${word} for ${countOf(moves.length, 'request')} of the recording`,
    ),
    element('p', { class: 'bar' }, moveButton(app, -1, 'Previous'), moveButton(app, 1, 'Next')),
    ...(move
      ? [
          ...rangeLines(
            app,
            move.from,
            `From, at event ${countText(move.first + source.info.skipped)}: ` +
              sizeText(move.fromBytes),
          ),
          ...rangeLines(app, move.to, `To: ${sizeText(move.toBytes)}`),
          move.toBytes > move.fromBytes
            ? element('p', {}, `${sizeText(move.toBytes - move.fromBytes)} of it are new`)
            : null,
        ]
      : []),
  ];
}
