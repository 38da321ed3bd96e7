// SPDX-License-Identifier: MIT
// Groups as a table: what they hold and ask for. It says in words what the pictures show.
import { sinceText } from './begin.js';
import { countText, shareText, sizeText } from './format.js';
import { copyText } from './clipboard.js';
import { GROUPINGS, groupRows } from './group_keys.js';
import { chooseGroup } from './navigation.js';
import { element, groupColour, replaceContent, swatch } from './paint.js';
import { cursorText } from './describe.js';

const ROWS_SHOWN = 300;

/** @typedef {{id: string, head: string, hint: string, value: (row: any) => number,
 *   text: (row: any, sum: any) => string}} Column */

/** @type {Column[]} */
const COLUMNS = [
  {
    id: 'live',
    head: 'At cursor',
    hint: 'bytes requested for blocks allocated at the cursor',
    value: (row) => row.live,
    text: (row) => sizeText(row.live),
  },
  {
    id: 'share',
    head: 'Share',
    hint: 'of what is requested at the cursor',
    value: (row) => row.live,
    text: (row, sum) => shareText(row.live, sum.live),
  },
  {
    id: 'blocks',
    head: 'Blocks',
    hint: 'blocks allocated at the cursor',
    value: (row) => row.blocks,
    text: (row) => countText(row.blocks),
  },
  {
    id: 'peak',
    head: 'At peak',
    hint: 'bytes requested for blocks allocated at the peak',
    value: (row) => row.peak,
    text: (row) => sizeText(row.peak),
  },
  {
    id: 'allocated',
    head: 'Asked for',
    hint: 'bytes requested in the recording',
    value: (row) => row.allocated,
    text: (row) => sizeText(row.allocated),
  },
  {
    id: 'count',
    head: 'Times',
    hint: 'allocations in the recording',
    value: (row) => row.count,
    text: (row) => countText(row.count),
  },
  {
    id: 'lifetime',
    head: 'Mean lifetime',
    hint: 'trace events from allocation to free',
    value: (row) => (row.freed ? row.entries / row.freed : -1),
    text: (row) => (row.freed ? countText(Math.floor(row.entries / row.freed)) : '\u2013'),
  },
];

/** Sum of rows. @param {any[]} rows */
export function sumRows(rows) {
  const sum = {
    live: 0,
    blocks: 0,
    before: 0,
    peak: 0,
    end: 0,
    allocated: 0,
    count: 0,
    entries: 0,
    freed: 0,
  };
  for (const row of rows) {
    for (const name of Object.keys(sum)) /** @type {any} */ (sum)[name] += row[name];
  }
  return sum;
}

/** Rows in the order of the chosen column. @param {any} app */
export function tableRows(app) {
  const { grouping, curve, state } = app;
  const rows = groupRows(grouping, app.entryAtCursor(), curve.peak.entry);
  const column = COLUMNS.find((c) => c.id === state.sort);
  const value = (/** @type {any} */ row) => (column ? column.value(row) : 0);
  const sign = state.up ? -1 : 1;
  rows.sort((a, b) =>
    column
      ? sign * (value(b) - value(a)) || b.peak - a.peak || a.key - b.key
      : sign * (a.text < b.text ? -1 : a.text > b.text ? 1 : 0),
  );
  return rows;
}

/** @param {any} app @param {any} row @param {any} sum */
function tableRow(app, row, sum) {
  const { grouping, theme, state } = app;
  const group = grouping.groupOfKey[row.key];
  const isChosen = state.group === grouping.keys[row.key].key && state.group !== '';
  const name = element(
    'button',
    {
      class: 'link name',
      'aria-pressed': isChosen,
      onclick: () => chooseGroup(app, grouping.keys[row.key].key),
      title: row.text,
    },
    swatch(groupColour(theme, grouping, group)),
    row.text,
  );
  return element(
    'tr',
    { class: isChosen ? 'chosen' : '' },
    element('th', { scope: 'row' }, name),
    ...COLUMNS.map((column) =>
      element('td', { title: exactText(column, row) }, column.text(row, sum)),
    ),
  );
}

/** @param {Column} column @param {any} row */
function exactText(column, row) {
  const isBytes = ['live', 'peak', 'allocated'].includes(column.id);
  return isBytes ? `${countText(column.value(row))} bytes` : '';
}

/** @param {string} text */
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replace(/"/g, '""')}"`;
}

/** What no rule knows, also when nothing is. @param {any} app @param {any[]} rows */
function unclassifiedRow(app, rows) {
  const key = app.grouping.keyOfCategory[0];
  return sumRows(rows.filter((row) => row.key === key));
}

/** @param {any} app */
function groupingText(app) {
  return GROUPINGS.find((g) => g.id === app.state.by)?.text || '';
}

/** The whole table as text for other programs; bytes are exact.
 * @param {any} app @param {'csv' | 'markdown'} form */
export function tableText(app, form) {
  const rows = tableRows(app);
  const heads = [
    'group',
    'bytes at cursor',
    'blocks at cursor',
    'bytes at peak',
    'bytes requested',
    'times',
    'mean lifetime in events',
  ];
  const cells = rows.map((row) => [
    row.text,
    row.live,
    row.blocks,
    row.peak,
    row.allocated,
    row.count,
    row.freed ? Math.floor(row.entries / row.freed) : '',
  ]);
  return groupsTableText(heads, cells, form);
}

/** @param {string[]} heads @param {(string | number)[][]} cells a name and numbers
 * @param {'csv' | 'markdown'} form */
export function groupsTableText(heads, cells, form) {
  if (form === 'csv') {
    return (
      [
        heads.join(','),
        ...cells.map((line) =>
          line.map((cell, i) => (i === 0 ? csvCell(String(cell)) : cell)).join(','),
        ),
      ].join('\n') + '\n'
    );
  }
  const line = (/** @type {any[]} */ list) =>
    `| ${list.map((cell) => String(cell).replace(/\|/g, '\\|')).join(' | ')} |`;
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...cells.map(line)].join('\n') + '\n';
}

/** The groups, the largest of them by themselves. @param {any} app @param {number} most */
export function figuresTable(app, most) {
  const { state } = app;
  const rows = tableRows(app);
  const sum = sumRows(rows);
  const sortBy = (/** @type {string} */ id) => () =>
    app.set({ sort: id, up: state.sort === id ? !state.up : false });
  const head = (
    /** @type {string} */ id,
    /** @type {string} */ text,
    /** @type {string} */ hint,
  ) => {
    const isSorted = state.sort === id;
    return element(
      'th',
      {
        scope: 'col',
        title: hint,
        'aria-sort': isSorted ? (state.up ? 'ascending' : 'descending') : 'none',
      },
      element(
        'button',
        { class: 'link', 'data-key': `sort ${id}`, onclick: sortBy(id) },
        text,
        isSorted ? (state.up ? ' \u25b4' : ' \u25be') : '',
      ),
    );
  };
  const shown = rows.slice(0, most);
  const rest = rows.slice(most);
  const body = element('tbody', {}, ...shown.map((row) => tableRow(app, row, sum)));
  if (rest.length > 0) {
    const others = sumRows(rest);
    body.append(
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, `others (${countText(rest.length)})`),
        ...COLUMNS.map((column) => element('td', {}, column.text(others, sum))),
      ),
    );
  }
  const sumLine = (/** @type {string} */ text, /** @type {any} */ part) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, text),
      ...COLUMNS.map((column) =>
        element('td', { title: exactText(column, part) }, column.text(part, sum)),
      ),
    );
  const foot = element('tfoot', {}, sumLine('total', sum));
  if (state.by === 'category')
    foot.append(sumLine('of it unclassified', unclassifiedRow(app, rows)));
  return element(
    'table',
    { class: 'figures' },
    element(
      'caption',
      {},
      `What each group holds ${cursorText(app)}, held at the peak, and requested in total` +
        sinceText(app.source),
    ),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        head('name', groupingText(app), 'what blocks are grouped by'),
        ...COLUMNS.map((column) => head(column.id, column.head, column.hint)),
      ),
    ),
    body,
    foot,
  );
}

/** @param {any} app @param {HTMLElement} into */
export function fillTable(app, into) {
  const copy = (/** @type {'csv' | 'markdown'} */ form) => async () => {
    await copyText(tableText(app, form));
    app.say('copied');
  };
  replaceContent(
    into,
    element(
      'div',
      { class: 'page wide' },
      element(
        'div',
        { class: 'bar' },
        element('button', { onclick: copy('csv') }, 'Copy as CSV'),
        element('button', { onclick: copy('markdown') }, 'Copy as Markdown'),
      ),
      figuresTable(app, ROWS_SHOWN),
    ),
  );
}
