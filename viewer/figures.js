// SPDX-License-Identifier: MIT
// For tests and for programs: the figures that the page shows, as numbers.
import { pileAt } from './blocks_paint.js';
import { answersOf } from './answers.js';
import { changesOf } from './compare.js';
import { flamePlan } from './flame_tree.js';
import { GroupKeys, groupRows } from './group_keys.js';
import { explainOom, layoutAt, layoutRows } from './layout.js';
import { mapPlan, mapRows } from './map.js';
import { movesOf } from './page_moves.js';
import { countPages, pageAt, pagesOf } from './segment_pages.js';
import { oomFacts, oomHolders } from './oom.js';
import { segmentsAt } from './segment_stack.js';
import { tableRows } from './table.js';
import { timelineColumns } from './timeline.js';
import { svgText } from './picture_file.js';
import { groupColour } from './paint.js';
import { CANVAS_VIEWS } from './views.js';

/** @param {any} app */
export function figuresOf(app) {
  return {
    app,
    get isReady() {
      return (
        Boolean(app.source) && !app.blocksJob && !document.body.classList.contains('loading')
      );
    },
    peak: () => ({ requested: app.curve.peak, reserved: app.curve.reservedPeak }),
    at: (/** @type {number} */ entry) => ({
      requested: app.curve.requested(entry),
      reserved: app.curve.reserved(entry),
    }),
    rows: () => tableRows(app),
    changes: () => changesOf(app),
    answers: () => answersOf(app),
    moves: () => movesOf(app.source),
    segments: (/** @type {number} */ entry) => layoutAt(app.source, entry),
    pageCounts: (/** @type {any[]} */ segments, /** @type {number} */ entry) =>
      countPages(app.source, segments, entry),
    pages: () => pagesOf(app.source),
    page: (/** @type {number} */ address, /** @type {number} */ entry) =>
      pageAt(app.source, address, entry),
    groups: (/** @type {string} */ by, /** @type {number} */ entry) =>
      groupRows(new GroupKeys(app.source, by, null), entry, app.curve.peak.entry)
        .filter((row) => row.blocks > 0)
        .map((row) => [row.text, row.live, row.blocks]),
    oom: (/** @type {number} */ entry) => ({
      facts: oomFacts(app, entry),
      holders: oomHolders(app, entry),
    }),
    layout: (/** @type {number} */ entry) =>
      layoutRows(app.source, layoutAt(app.source, entry).segments),
    columns: timelineColumns,
    mapHeight: (/** @type {number} */ width) => mapPlan(app, width).height,
    mapRows: (/** @type {number} */ width) => mapRows(app, width),
    hit: (/** @type {number} */ x, /** @type {number} */ y) =>
      CANVAS_VIEWS[app.state.view].hit(app, x, y),
    colour: (/** @type {number} */ group) => groupColour(app.theme, app.grouping, group),
    pile: pileAt,
    explain: explainOom,
    segmentsAt: (/** @type {number} */ entry) => segmentsAt(app.source, entry),
    svg: () => svgText(app),
    flame: () => flamePlan(app),
  };
}
