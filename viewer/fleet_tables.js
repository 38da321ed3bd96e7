// SPDX-License-Identifier: MIT
// What `tarn ranks` says, as tables: the figures are those of its report.
import { baseName, countOf, countText, shownText, sizeText } from './format.js';
import { element } from './paint.js';
import { wayTo } from './rank_link.js';
import { tableOf } from './rank_table.js';

const LEAST_RANKS = 3; // with fewer none is an outlier

/** @param {number} bytes */
const changeText = (bytes) => (bytes > 0 ? `+${sizeText(bytes)}` : sizeText(bytes));

/** The innermost frame first, files without their folders. @param {string} path */
function stackText(path) {
  const frames = path.split(';').reverse();
  return shownText(frames.map(baseName).join(' < '), 400);
}

/** A button that chooses the rank of a row. @param {any} app @param {any} row */
function rankButton(app, row) {
  const rank = app.fleet.find(row);
  if (!rank) return shownText(baseName(row.file), 80);
  return element(
    'button',
    {
      class: 'link',
      'data-key': `rank ${rank.index}`,
      title: shownText(rank.file, 200),
      'aria-pressed': String(app.chosen.has(rank.index)),
      onclick: () => app.choose(rank),
    },
    rank.name,
  );
}

/** @param {any} app @param {any} row */
const labelsOf = (app, row) => app.fleet.find(row)?.labelText ?? '';

/** @param {any} app */
export function outlierTable(app) {
  const { report, ranks } = app.fleet;
  const rows = report.ranks.filter((/** @type {any} */ row) => row.is_outlier);
  if (ranks.length < LEAST_RANKS)
    return element(
      'p',
      {},
      `Too few ranks to tell which stands out: at least ${LEAST_RANKS} are needed.`,
    );
  if (rows.length === 0) return element('p', {}, 'No rank stands out.');
  return tableOf(
    '',
    [
      { head: 'Rank', cell: (row) => rankButton(app, row) },
      { head: 'Requested', cell: (row) => sizeText(row.requested_bytes) },
      { head: 'Reserved', cell: (row) => sizeText(row.reserved_peak_bytes) },
      { head: 'Distance', kind: 'spare', cell: (row) => app.fleet.find(row)?.distance ?? '' },
      { head: 'Labels', kind: 'words', cell: (row) => labelsOf(app, row) },
      {
        head: 'Its own page',
        kind: 'words spare',
        cell: (row) => {
          const rank = app.fleet.find(row);
          return rank ? wayTo(rank) : '';
        },
      },
    ],
    rows,
  );
}

/** What one holds that the typical rank does not. @param {any} app @param {any} outlier */
function changesOf(app, outlier) {
  const name = app.fleet.find(outlier)?.name ?? shownText(outlier.file, 80);
  const typical = app.fleet.find(app.fleet.report.typical)?.name ?? '';
  return tableOf(
    `What ${name} holds at its peak, and ${typical}, which is typical, does not`,
    [
      { head: 'Stack', kind: 'words', cell: (row) => stackText(row.path) },
      { head: 'Change', cell: (row) => changeText(row.change_bytes) },
      { head: 'Typical', kind: 'spare', cell: (row) => sizeText(row.before_bytes) },
      { head: 'This one', kind: 'spare', cell: (row) => sizeText(row.after_bytes) },
      { head: 'Kind', kind: 'spare', cell: (row) => row.kind ?? '' },
    ],
    outlier.changes ?? [],
  );
}

/** @param {any} report */
function labelTable(report) {
  return tableOf(
    'Labels of those that stand out',
    [
      { head: 'Label', cell: (row) => shownText(`${row.key}=${row.value}`, 200) },
      { head: 'Outliers', cell: (row) => countText(row.outliers) },
      { head: 'of ranks', cell: (row) => countText(row.ranks) },
      { head: 'elsewhere', cell: (row) => countText(row.other_outliers) },
      { head: 'of ranks', cell: (row) => countText(row.other_ranks) },
    ],
    report.labels,
  );
}

/** @param {any} report */
function groupTable(report) {
  return tableOf(
    'Groups of like ranks, by requested memory',
    [
      {
        head: 'Group',
        cell: (row) =>
          row.labels !== ''
            ? shownText(row.labels, 200)
            : shownText(baseName(row.file), 80) + (row.ranks > 1 ? ' ...' : ''),
      },
      { head: 'Ranks', cell: (row) => countText(row.ranks) },
      { head: 'Outliers', cell: (row) => countText(row.outliers) },
      { head: 'Least', cell: (row) => sizeText(row.least_bytes) },
      { head: 'Most', cell: (row) => sizeText(row.most_bytes) },
    ],
    report.groups,
  );
}

/** @param {any} app */
function growthTable(app) {
  return tableOf(
    'Ranks that grow',
    [
      { head: 'Rank', cell: (row) => rankButton(app, row) },
      { head: 'per step', cell: (row) => changeText(row.per_step_bytes) },
      { head: 'in all', cell: (row) => changeText(row.change_bytes) },
      { head: 'since step', cell: (row) => countText(row.since_step) },
      { head: 'most by', kind: 'words spare', cell: (row) => shownText(row.stack, 400) },
    ],
    app.fleet.report.growth,
  );
}

/** @param {any} app */
function headroomTable(app) {
  return tableOf(
    'Ranks that fail first',
    [
      { head: 'Rank', cell: (row) => rankButton(app, row) },
      { head: 'Headroom', cell: (row) => sizeText(row.headroom_bytes) },
      { head: 'per step', cell: (row) => changeText(row.per_step_bytes) },
      {
        head: 'steps left',
        cell: (row) => (row.steps_left === null ? '-' : countText(row.steps_left)),
      },
    ],
    app.fleet.report.headroom,
  );
}

/** The first of the ranks whose snapshots were cut off. @param {any} report */
function partialOf(report) {
  const shown = report.partial
    .slice(0, 10)
    .map((/** @type {any} */ one) => `${shownText(one.file, 80)}, device ${one.device}`)
    .join('; ');
  const rest = report.partial_ranks - Math.min(report.partial.length, 10);
  return rest > 0 ? `${shown} and ${countText(rest)} more` : shown;
}

/** @param {any} report */
function notesOf(report) {
  const { missing, missing_count: count } = report;
  const rest = count - missing.length;
  const notes = [
    count > 0
      ? `Missing ranks: ${missing.join(', ')}${rest > 0 ? ` and ${countText(rest)} more` : ''}.`
      : '',
    report.ranks_with_ooms > 0
      ? `${countOf(report.ranks_with_ooms, 'rank')} with failed requests: tarn oom says why.`
      : '',
    report.partial_ranks > 0
      ? `${countOf(report.partial_ranks, 'rank')} of snapshots that were cut off: ` +
        `${partialOf(report)}.`
      : '',
    report.doubled_ranks > 0
      ? `${countOf(report.doubled_ranks, 'rank')} counted again: the same summary is there more ` +
        'than once.'
      : '',
  ];
  return notes.filter((text) => text !== '').map((text) => element('p', {}, text));
}

/** Everything but the outliers themselves. @param {any} app @returns {Node[]} */
export function reportTables(app) {
  const { report } = app.fleet;
  const tables = report.outliers.map((/** @type {any} */ one) => changesOf(app, one));
  if (report.labels.length > 0) tables.push(labelTable(report));
  tables.push(groupTable(report));
  if (report.growth.length > 0) tables.push(growthTable(app));
  if (report.headroom.length > 0) tables.push(headroomTable(app));
  return [...notesOf(report), ...tables];
}
