// SPDX-License-Identifier: MIT
// Tables of the report's rows.
import { element } from './paint.js';

const ROWS_FIRST = 12;

/** @typedef {{head: string, cell: (row: any) => Node | string, kind?: string}} Column */

/** The first column names the row. @param {Column[]} columns @param {any} row */
function rowOf(columns, row) {
  return element(
    'tr',
    {},
    ...columns.map(({ cell, kind }, i) =>
      element(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, class: kind }, cell(row)),
    ),
  );
}

/** Long tables show their first rows, and a button for all.
 * @param {string} caption @param {Column[]} columns @param {any[]} rows */
export function tableOf(caption, columns, rows) {
  const body = element(
    'tbody',
    {},
    ...rows.slice(0, ROWS_FIRST).map((row) => rowOf(columns, row)),
  );
  const table = element(
    'table',
    { class: 'figures' },
    caption === '' ? null : element('caption', {}, caption),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        ...columns.map(({ head, kind }) => element('th', { scope: 'col', class: kind }, head)),
      ),
    ),
    body,
  );
  const box = element('div', { class: 'scroll', tabindex: 0, role: 'group' }, table);
  box.setAttribute('aria-label', caption === '' ? 'Ranks that stand out' : caption);
  if (rows.length <= ROWS_FIRST) return element('div', {}, box);
  const more = element(
    'button',
    {
      onclick: () => {
        body.append(...rows.slice(ROWS_FIRST).map((row) => rowOf(columns, row)));
        more.remove();
        box.focus();
      },
    },
    `Show all ${rows.length}`,
  );
  return element('div', {}, box, more);
}
