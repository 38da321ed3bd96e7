// SPDX-License-Identifier: MIT
// The line at the foot: which part is shown, and the most of the whole.
import { countOf, countText, sizeText, timeText } from './format.js';
import { limits } from './info.js';
import { byId, element } from './paint.js';

/** Which part is shown. @param {any} app */
export function windowText(app) {
  const { state, source } = app;
  const time = source.hasTime
    ? `, ${timeText(source.timeAt(state.to) - source.timeAt(state.from))}`
    : '';
  const { skipped } = source.info;
  if (state.from <= 0 && state.to >= source.count) {
    const which = skipped > 0 ? 'the last' : 'all';
    const whole = skipped > 0 ? ` of ${countText(source.count + skipped)}` : '';
    return `${which} ${countOf(source.count, 'event', 'events')}${whole}${time}`;
  }
  return (
    `events ${countText(Math.floor(state.from) + skipped)} to ` +
    `${countText(Math.ceil(state.to) - 1 + skipped)}, ` +
    `${countText(state.to - state.from)} of ${countText(source.count + skipped)}${time}`
  );
}

/** @param {any} app */
export function drawStatus(app) {
  const { source, curve } = app;
  const which = app.runs.length > 1 ? `${app.state.before ? 'before' : 'after'}: ` : '';
  const text = source.count > 0 ? which + windowText(app) : '';
  if (!app.isStale('status', source.id, text)) return;
  if (source.count === 0) {
    byId('status').replaceChildren(element('span', {}, limits(app)[0]));
    return;
  }
  byId('status').replaceChildren(
    element('span', {}, text),
    element(
      'span',
      {},
      source.info.skipped > 0 ? 'of these, peak requested ' : 'peak requested ',
      element('b', {}, sizeText(curve.peak.value)),
      ', peak reserved ',
      element('b', {}, sizeText(curve.reservedPeak.value)),
    ),
  );
}
