// SPDX-License-Identifier: MIT
// Pages that moved for the request at the cursor, beside the map, and the way to the next ones.
import { countOf, countText, sizeText } from './format.js';
import { moveCursor } from './navigation.js';
import { isMoving, moveAt, movesOf, nextMove } from './page_moves.js';
import { element } from './paint.js';

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

/** @param {any} app */
export function pagePart(app) {
  const { source, state } = app;
  const moves = movesOf(source);
  if (state.view !== 'map' || moves.length === 0) return null;
  const isOfLibtarn = isMoving(app);
  const move = moveAt(source, app.entryAtCursor());
  const bytes = moves.reduce((sum, one) => sum + one.fromBytes, 0);
  const word = isOfLibtarn ? 'moved' : 'unmapped and mapped again';
  return element(
    'section',
    {},
    element('h2', {}, 'Pages'),
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
  );
}
