// SPDX-License-Identifier: MIT
// Entries, moments and what is in use then, in words.
import { beforeText, sinceText } from './begin.js';
import { countText, shareText, shownText, sizeText, timeText } from './format.js';
import { element } from './paint.js';
import { KIND, KIND_NAMES } from './kind.js';

/** @param {import('./trace.js').Source} source @param {number} entry */
export function placeName(source, entry) {
  if (entry < 0) return beforeText(source, 'before the first event');
  const time = source.hasTime ? `, ${timeText(source.time[entry])}` : '';
  return `event ${countText(entry + source.info.skipped)}${time}`;
}

/** What an entry is about, in few words.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function entryDetail(source, entry) {
  const kind = source.kind[entry];
  if (kind <= KIND.FREE_COMPLETED || kind === KIND.ALLOC_AGAIN) {
    const lifetime = source.ref[entry];
    return `${sizeText(source.size(lifetime))} at ${source.hex(source.lifetimeAddress[lifetime])}`;
  }
  const event = source.events[source.ref[entry]];
  return event.size > 0 ? sizeText(event.size) : '';
}

/** What happened beside allocations. @param {import('./trace.js').Source} source
 * @param {any} event */
export function eventLines(source, event) {
  const { metadata, action } = source.names.extras[event.extra];
  const lines = [
    [action ? shownText(action, 60) : KIND_NAMES[event.kind], ''],
    [placeName(source, event.entry), ''],
  ];
  if (metadata) lines.push([shownText(metadata, 200), '']);
  if (event.lifetime >= 0) lines.push(['of the block of', sizeText(source.size(event.lifetime))]);
  if (event.size > 0)
    lines.push([event.kind === KIND.OOM ? 'requested' : 'size', sizeText(event.size)]);
  if (event.kind === KIND.OOM) lines.push(['free on the device', sizeText(event.free)]);
  if (event.address >= 0) lines.push(['address', source.hex(event.address)]);
  return lines;
}

/** @param {any} app */
export function cursorText(app) {
  const { state, source } = app;
  if (source.count === 0) return 'when the snapshot was taken';
  const entry = app.entryAtCursor();
  const name =
    entry < 0
      ? beforeText(source, 'before the first event')
      : `at event ${countText(entry + source.info.skipped)}`;
  return state.cursor < -1 ? `at the peak${sinceText(source)}, ${name}` : name;
}

/** What is in use and reserved at the cursor. @param {any} app @returns {(string | Node)[]} */
export function figureText(app) {
  const entry = app.entryAtCursor();
  const requested = app.curve.requested(entry);
  const reserved = app.curve.reserved(entry);
  return [
    `${cursorText(app)}: `,
    element('b', {}, sizeText(requested)),
    ' requested of ',
    element('b', {}, sizeText(reserved)),
    element(
      'span',
      { class: 'more' },
      ` reserved${reserved > 0 ? ` (${shareText(requested, reserved)})` : ''}`,
    ),
  ];
}
