// SPDX-License-Identifier: MIT
// Why requests failed: what was requested, what was free where, and who held the memory.
import { sinceText } from './begin.js';
import { countOf, countText, shareText, sizeText } from './format.js';
import { GroupKeys, groupRows } from './group_keys.js';
import { explainOom } from './layout.js';
import { jumpTo, pick } from './navigation.js';
import { element, replaceContent } from './paint.js';
import { sumRows } from './table.js';

const HOLDERS = 10;
const OOMS_SHOWN = 20;

export const VERDICTS = /** @type {Record<string, string>} */ ({
  fragmented: 'Enough was free, but not in one piece.',
  'wrong pool or stream': 'Enough was free, but in another pool or of another stream.',
  'rounded by settings':
    'What roundup_power2_divisions adds to the blocks would have been enough.',
  'really full': 'Not enough was free anywhere: the memory was really allocated.',
});

/** @param {any} app @param {number} entry */
export function oomFacts(app, entry) {
  return explainOom(app.source, app.curve, entry);
}

/** Who held the memory, by stack, most first. @param {any} app @param {number} entry */
export function oomHolders(app, entry) {
  const grouping = new GroupKeys(app.source, 'stack', null);
  const rows = groupRows(grouping, entry, app.curve.peak.entry).filter((row) => row.blocks > 0);
  return rows.sort((a, b) => b.live - a.live || a.key - b.key);
}

/** @param {any} app @param {any} oom */
function poolsTable(app, oom) {
  const row = (/** @type {any} */ pool, /** @type {string} */ text, own = false) =>
    element(
      'tr',
      { class: own ? 'chosen' : '' },
      element('th', { scope: 'row' }, text + (own ? ' \u2190 the request\u2019s own' : '')),
      ...[pool.reserved, pool.used, pool.slack, pool.free, pool.largestFree].map((bytes) =>
        element('td', { title: `${countText(bytes)} bytes` }, sizeText(bytes)),
      ),
      element('td', {}, countText(pool.freeRuns)),
    );
  const heads = [
    'Pool and stream',
    'Reserved',
    'Used',
    'Lost to rounding',
    'Free',
    'Largest free',
    'Free pieces',
  ];
  return element(
    'table',
    { class: 'figures' },
    element('caption', {}, 'What was free, by pool and stream'),
    element(
      'thead',
      {},
      element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head))),
    ),
    element(
      'tbody',
      {},
      ...oom.rows.map((/** @type {any} */ pool) =>
        row(
          pool,
          `${pool.large ? 'large' : 'small'}, ${app.source.poolStreamText(pool.poolStream)}`,
          pool === oom.own,
        ),
      ),
    ),
    element('tfoot', {}, row(oom.total, 'total')),
  );
}

/** Opens the card of the stack that holds memory. @param {any} app @param {any} row */
function holderButton(app, row) {
  return element(
    'button',
    { class: 'link name', onclick: () => pick(app, `t${row.stack}`) },
    row.text,
  );
}

/** @param {any} app @param {number} entry */
function holdersTable(app, entry) {
  const rows = oomHolders(app, entry);
  const sum = sumRows(rows);
  const shown = rows.slice(0, HOLDERS);
  const rest = sumRows(rows.slice(HOLDERS));
  const line = (/** @type {any} */ row, /** @type {string | Node} */ text) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, text),
      element('td', { title: `${countText(row.live)} bytes` }, sizeText(row.live)),
      element('td', {}, shareText(row.live, sum.live)),
      element('td', {}, countText(row.blocks)),
    );
  const body = element('tbody', {}, ...shown.map((row) => line(row, holderButton(app, row))));
  if (rows.length > HOLDERS)
    body.append(line(rest, `others (${countOf(rows.length - HOLDERS, 'stack')})`));
  return element(
    'table',
    { class: 'figures' },
    element('caption', {}, 'Who held the memory'),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        ...['Allocated by', 'Bytes', 'Share', 'Blocks'].map((head) =>
          element('th', { scope: 'col' }, head),
        ),
      ),
    ),
    body,
    element('tfoot', {}, line(sum, 'total')),
  );
}

/** @param {any} app @param {number} entry @param {number} number */
function oomPart(app, entry, number) {
  const { source } = app;
  const oom = oomFacts(app, entry);
  const device = oom.isLimited
    ? `The device had ${sizeText(oom.free)} free, so a limit of the allocator refused.`
    : `The device had ${sizeText(oom.free)} left, less than the ` +
      `${sizeText(oom.segment)} that the allocator asks it for.`;
  const emptying =
    `Emptying the cache would ${oom.emptyingHelps ? 'have made room' : 'not have helped'}: ` +
    `${sizeText(oom.total.whole)} lay in entirely free segments.`;
  const stack = source.names.frames(source.stack[entry]);
  return element(
    'section',
    { class: 'oom' },
    element('h2', {}, `${number}. No memory for ${sizeText(oom.size)}`),
    element(
      'p',
      { class: 'verdict' },
      element('strong', {}, `${oom.verdict[0].toUpperCase()}${oom.verdict.slice(1)}. `),
      VERDICTS[oom.verdict],
    ),
    element(
      'p',
      {},
      `${countText(oom.size)} bytes (rounded), ` +
        `${oom.large ? 'large' : 'small'} pool, ${source.poolStreamText(oom.poolStream)}; `,
      `${sizeText(oom.reserved)} reserved, ` +
        `${sizeText(oom.requested)} of it requested. ${device} ${emptying}`,
    ),
    element(
      'p',
      {},
      'Asked for by ',
      element(
        'button',
        { class: 'link', onclick: () => pick(app, `e${entry}`) },
        element('code', {}, source.names.stackText(source.stack[entry])),
      ),
      stack.length > 0 ? null : '.',
    ),
    element(
      'p',
      { class: 'bar' },
      element('button', { onclick: () => jumpTo(app, entry, 'map') }, 'Show the map then'),
      element(
        'button',
        { onclick: () => jumpTo(app, entry, 'timeline') },
        'Show it on the timeline',
      ),
    ),
    poolsTable(app, oom),
    holdersTable(app, entry),
  );
}

/** @param {any} app @param {HTMLElement} into */
export function fillOom(app, into) {
  const { source } = app;
  const page = element('div', { class: 'page' });
  if (source.ooms.length === 0) {
    page.append(
      element('h2', {}, 'No request failed'),
      element(
        'p',
        {},
        source.count > 0
          ? `None of the ${countOf(source.count, 'trace event', 'trace events')}` +
              `${sinceText(source)} of ${source.name} is an out-of-memory error.`
          : 'The file has no trace of this device, so it does not say.',
      ),
    );
  }
  source.ooms
    .slice(0, OOMS_SHOWN)
    .forEach((/** @type {number} */ entry, /** @type {number} */ i) =>
      page.append(oomPart(app, entry, i + 1)),
    );
  if (source.ooms.length > OOMS_SHOWN) {
    page.append(
      element(
        'p',
        {},
        `${countOf(source.ooms.length - OOMS_SHOWN, 'later request')} ` +
          `failed as well; keys o and O go from one to the next.`,
      ),
    );
  } else if (source.ooms.length > 0) {
    page.append(
      element(
        'p',
        { class: 'note' },
        '\u201ctarn oom\u201d also says whether expandable ' +
          'segments would have helped: it replays the run for that.',
      ),
    );
  }
  replaceContent(into, page);
}
