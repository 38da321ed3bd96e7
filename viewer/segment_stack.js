// SPDX-License-Identifier: MIT
// Segments one by one over time: each range of reserved memory stands on those that came before it,
// in the colour of its pool and stream.
import { sizeText, timeText } from './format.js';
import { colourBytes, swatch, element } from './paint.js';
import { mixed, shareOfColour } from './pixels.js';

const PICKED_SHARE = 0.6; // of the colour of text, over the segment that is chosen
const PALE_SHARE = 0.22; // of paper, over every second one

/** @typedef {{address: number, size: number, start: number, end: number, poolStream: number,
 *   stack: number, large: boolean, expandable: boolean}} Span */

/** What segments are told apart by. @param {Span} span */
function kindOf(span) {
  return `${span.poolStream} ${span.large}`;
}

/** @param {import('./trace.js').Source} source @param {Span} span */
export function segmentKindText(source, span) {
  return `${span.large ? 'large' : 'small'} pool, ${source.poolStreamText(span.poolStream)}`;
}

/** The kinds of segments of a source in the order in which they come, each with one of its
 * segments.
 * @param {import('./trace.js').Source} source @returns {Map<string, Span>} */
function segmentKinds(source) {
  const kinds = new Map();
  for (const span of source.spans) if (!kinds.has(kindOf(span))) kinds.set(kindOf(span), span);
  return kinds;
}

/** Numbers of the segments that are there right after an entry, from the ground up.
 * @param {import('./trace.js').Source} source @param {number} entry */
export function segmentsAt(source, entry) {
  /** @type {number[]} */
  const list = [];
  source.spans.forEach(({ start, end }, i) => {
    if (start <= entry && end > entry) list.push(i);
  });
  return list;
}

/** A colour for each kind, of its upper edge, of the segment that is chosen, and of every second
 * one: neighbours are told apart where there is no room for an edge. @param {any} app */
export function segmentColours(app) {
  const { theme, source, state } = app;
  const kinds = [...segmentKinds(source).keys()];
  const [gap, share] = shareOfColour(theme.edge);
  const plain = kinds.map((_, i) => colourBytes(theme.groups[i % theme.groups.length]));
  const chosen = colourBytes(theme.text);
  const edges = plain.map((colour) => mixed(colour, gap, share));
  const dark = plain.map((colour) => mixed(colour, chosen, PICKED_SHARE));
  const pale = plain.map((colour) => mixed(colour, gap, PALE_SHARE));
  const number = new Map(kinds.map((kind, i) => [kind, i]));
  const ofSpan = Uint32Array.from(
    source.spans,
    (/** @type {Span} */ span) => /** @type {number} */ (number.get(kindOf(span))),
  );
  const picked = state.picked[0] === 's' ? Number(state.picked.slice(1)) : -1;
  return { colours: [...plain, ...edges, ...dark, ...pale], kinds: kinds.length, ofSpan, picked };
}

/** Stacks the segments of each column. Columns go forward in time, so that segments come from the
 * list of all and go for good.
 * @param {any} app @param {{moment: Float64Array}} data
 * @param {import('./pixels.js').Stacker} stacker
 * @param {ReturnType<typeof segmentColours>} look @param {(bytes: number) => number} high in pixels
 * @param {number} edge in pixels */
export function stackSegments(app, data, stacker, look, high, edge) {
  const { spans } = app.source;
  const { moment } = data;
  /** @type {number[]} */
  let there = [];
  let next = 0;
  for (let i = 0; i < moment.length; i++) {
    while (next < spans.length && spans[next].start <= moment[i]) there.push(next++);
    there = there.filter((number) => spans[number].end > moment[i]);
    let sum = 0;
    stacker.begin(i);
    for (const number of there) {
      const from = high(sum);
      sum += spans[number].size;
      const top = high(sum);
      const colour = look.ofSpan[number];
      const end = top - from > 4 * edge ? top - edge : top;
      const tone = number === look.picked ? 2 : number % 2 > 0 ? 3 : 0;
      stacker.fill(end, tone * look.kinds + colour);
      if (end < top) stacker.fill(top, look.kinds + colour);
    }
    stacker.end();
  }
}

/** The segment at a height of a column. @param {any} app @param {number} entry
 * @param {number} bytes */
export function hitSegment(app, entry, bytes) {
  const { source } = app;
  let sum = 0;
  for (const number of segmentsAt(source, entry)) {
    sum += source.spans[number].size;
    if (bytes < sum) return number;
  }
  return -1;
}

/** A segment in few words. @param {any} app @param {number} number @returns {string[][]} */
export function segmentLines(app, number) {
  const { source } = app;
  const span = source.spans[number];
  const lines = [
    [span.expandable ? 'mapped range' : 'segment', sizeText(span.size)],
    [segmentKindText(source, span), ''],
    ['address', source.hex(span.address)],
  ];
  if (span.start >= 0 && isFinite(span.end) && source.hasTime)
    lines.push(['lasted', timeText(source.time[span.end] - source.time[span.start])]);
  return lines;
}

/** What each kind of segment reserves at the cursor. @param {any} app */
export function segmentLegend(app) {
  const { source, theme } = app;
  const bytes = new Map();
  for (const number of segmentsAt(source, app.entryAtCursor())) {
    const kind = kindOf(source.spans[number]);
    bytes.set(kind, (bytes.get(kind) || 0) + source.spans[number].size);
  }
  const rows = [...segmentKinds(source)].map(([kind, span], i) =>
    element(
      'li',
      {},
      element(
        'div',
        { class: 'row' },
        swatch(theme.groups[i % theme.groups.length]),
        element('span', { class: 'label' }, segmentKindText(source, span)),
        element('span', { class: 'number' }, sizeText(bytes.get(kind) || 0)),
      ),
    ),
  );
  return element(
    'section',
    {},
    element('h2', {}, 'Reserved, by pool and stream'),
    element('ul', { class: 'legend' }, ...rows.reverse()),
  );
}
