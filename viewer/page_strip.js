// SPDX-License-Identifier: MIT
// The pages of a segment as a strip below it on the map, a page's border being a gap, and what one
// of them is in words.
import { countOf, countText, sizeText } from './format.js';
import { moveAt } from './page_moves.js';
import { element, swatch } from './paint.js';
import { PAGE_KIND, countPages, pageAt, pageKind, pagesIn, pagesOf } from './segment_pages.js';

const STRIP = 3; // pixels of its height
const BORDER_FROM = 5; // pixels of a page that has a border
const PLACES_SHOWN = 4;

/** Colour of each kind. @param {import('./paint.js').Theme} theme */
function pageColours(theme) {
  return [theme.muted, theme.accent, theme.warn, theme.strong];
}

const KIND_TEXTS = [
  'first at their address',
  'another was there before',
  'at several addresses',
  'not known at the cursor',
];

/** Runs of pages of one kind, in pixels; where several pages share a pixel, the one that is most
 * worth seeing has it.
 * @param {{list: import('./segment_pages.js').PageList, first: number, last: number}} part
 * @param {number} entry @param {number} wide pixels of a page
 * @param {(run: {kind: number, from: number, to: number}) => void} each pages of it */
function eachRun({ list, first, last }, entry, wide, each) {
  const step = wide >= BORDER_FROM ? 1 : Math.max(1, Math.ceil(1 / wide));
  const worth = (/** @type {number} */ kind) => (kind === PAGE_KIND.UNKNOWN ? -1 : kind);
  /** @type {{kind: number, from: number, to: number} | null} */
  let run = null;
  for (let page = first; page <= last; page += step) {
    const to = Math.min(page + step, last + 1);
    let kind = pageKind(list, page, entry);
    for (let next = page + 1; next < to; next++) {
      const other = pageKind(list, next, entry);
      if (worth(other) > worth(kind)) kind = other;
    }
    if (run && run.kind === kind && wide < BORDER_FROM) run.to = to;
    else {
      if (run) each(run);
      run = { kind, from: page, to };
    }
  }
  if (run) each(run);
}

/** @param {any} app @param {CanvasRenderingContext2D} context
 * @param {{segment: {address: number, end: number}, x: number, width: number}} place
 * @param {number} y of its top edge */
export function drawPageStrip(app, context, { segment, x, width }, y) {
  const entry = app.entryAtCursor();
  const times = width / (segment.end - segment.address);
  const colours = pageColours(app.theme);
  for (const part of pagesIn(pagesOf(app.source), segment.address, segment.end)) {
    const { address, size } = part.list;
    const wide = size * times;
    const border = wide >= BORDER_FROM ? 1 : 0;
    const pixel = (/** @type {number} */ page) => {
      const at = x + (address + page * size - segment.address) * times;
      return Math.round(Math.max(x, Math.min(x + width, at)));
    };
    eachRun(part, entry, wide, ({ kind, from, to }) => {
      const left = pixel(from);
      context.fillStyle = colours[kind];
      context.fillRect(left, y, Math.max(1, pixel(to) - left - border), STRIP);
    });
  }
}

/** When a page came to its address, and whether it moved there.
 * @param {import('./trace.js').Source} source @param {number} since entry; -1: before the first
 * @returns {[string, string][]} */
function sinceLines(source, since) {
  if (since < 0) return [];
  const event = countText(since + source.info.skipped);
  const move = moveAt(source, since);
  if (!move || since > move.last) return [['mapped at event', event]];
  return move.fromBytes >= move.toBytes
    ? [['moved here at event', event]]
    : [['mapped at event', `${event}, with others: some moved, some are new`]];
}

/** What the page at an address is, as lines of a tip. @param {import('./trace.js').Source} source
 * @param {number} address @param {number} entry @returns {[string, string][]} */
export function pageLines(source, address, entry) {
  if (pagesOf(source).count === 0) return [];
  const page = pageAt(source, address, entry);
  if (!page) return [['page', 'not known at the cursor']];
  /** @type {[string, string][]} */
  const lines = [
    ['page', `${sizeText(page.size)} at ${source.hex(page.address)}`],
    ['its handle', String(page.handle)],
    ...sinceLines(source, page.since),
  ];
  if (page.times > 1) lines.push(['pages at this address so far', countText(page.times)]);
  if (page.others.length > 0) {
    const places = page.others.slice(0, PLACES_SHOWN).map((at) => source.hex(at));
    const more = page.others.length - places.length;
    lines.push(['mapped as well at', places.join(', ') + (more > 0 ? ` and ${more} more` : '')]);
  }
  return lines;
}

/** How many of a range are of each kind, in one line; '' without pages.
 * @param {import('./trace.js').Source} source @param {{address: number, end: number}} range
 * @param {number} entry */
export function pagesText(source, range, entry) {
  const { counts } = countPages(source, [range], entry);
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return '';
  const parts = KIND_TEXTS.map((text, kind) => ({ text, count: counts[kind] }))
    .filter(({ count }) => count > 0)
    .map(({ text, count }) => `${countText(count)} ${text}`);
  return `${countOf(all, 'page')}: ${parts.join(', ')}`;
}

/** The kinds that the segments at the cursor have. @param {any} app
 * @param {{address: number, end: number}[]} segments */
export function pageLegend(app, segments) {
  const { counts, bytes } = countPages(app.source, segments, app.entryAtCursor());
  const colours = pageColours(app.theme);
  const rows = KIND_TEXTS.map((text, kind) => ({ text, kind })).filter(
    ({ kind }) => counts[kind] > 0,
  );
  return element(
    'ul',
    { class: 'legend' },
    ...rows.map(({ text, kind }) =>
      element(
        'li',
        {},
        element(
          'div',
          { class: 'row', title: countOf(counts[kind], 'page') },
          swatch(colours[kind]),
          element('span', { class: 'label' }, text),
          element('span', { class: 'number' }, sizeText(bytes[kind])),
        ),
      ),
    ),
  );
}
