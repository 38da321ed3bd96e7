// SPDX-License-Identifier: MIT
// The recording before and the one after side by side, on one scale, and below what grew.
import { sinceText } from './begin.js';
import { changesOf, sidesOf, sumChanges } from './compare.js';
import { copyText } from './clipboard.js';
import { placeName } from './describe.js';
import { countOf, countText, shownText, sizeText } from './format.js';
import { GROUPS_MAX } from './group.js';
import { GROUPINGS, commonName } from './group_keys.js';
import { chooseGroup } from './navigation.js';
import { byId, element, replaceContent, swatch } from './paint.js';
import { drawTimeline, hitTimeline } from './timeline.js';
import { showTip } from './tip.js';
import { groupsTableText } from './table.js';

const CHANGES_SHOWN = 300;
const PANEL_HIGH = 250; // pixels of a picture
const PANEL_ROOM = 1.06; // above what is highest

const SIDE_WORDS = ['Before', 'After'];

/** The most of both recordings, for one scale. @param {any} app
 * @param {(import('./compare.js').Side | null)[]} sides */
function commonTop(app, sides) {
  const most = sides.map((side) => {
    if (!side) return 0;
    const { peak, reservedPeak } = side.curve;
    return app.state.fit ? peak.value : Math.max(peak.value, reservedPeak.value);
  });
  return Math.max(1, ...most) * PANEL_ROOM;
}

/** A recording as the timeline draws it: whole, with its own cursor.
 * @param {any} app @param {import('./compare.js').Side} side @param {number} top */
function panelOf(app, side, top) {
  const { grouping, source, curve, annotations } = side;
  const chosen =
    app.state.group === '' ? -1 : grouping.keys.findIndex(isChosenName(app, grouping));
  return {
    theme: app.theme,
    source,
    curve,
    grouping,
    annotations,
    top,
    capacity: 0,
    matches: null,
    matching: null,
    printer: app.printer,
    groupOfSelection: chosen >= 0 ? grouping.groupOfKey[chosen] : -1,
    state: {
      ...app.state,
      from: 0,
      to: Math.max(1, source.count),
      cursor: side.cursor,
      mark: -2,
      lifetime: -1,
      group: chosen >= 0 ? grouping.keys[chosen].key : '',
      segments: false,
      low: 0,
      high: 1,
    },
  };
}

/** Whether a key is the one that is chosen in the recording that the other views show.
 * @param {any} app @param {any} grouping */
function isChosenName(app, grouping) {
  const key = app.grouping.keys.findIndex((/** @type {any} */ k) => k.key === app.state.group);
  const name = key >= 0 ? commonName(app.grouping, key) : '';
  return (/** @type {any} */ _, /** @type {number} */ i) =>
    key >= 0 && commonName(grouping, i) === name;
}

/** @param {any} app @param {import('./compare.js').Side} side @param {number} entry */
function moveSide(app, side, entry) {
  app.set({ [side.isShown ? 'cursor' : 'otherCursor']: entry });
}

/** What the pointer is on. @param {any} app @param {number} i
 * @param {HTMLCanvasElement} canvas @param {PointerEvent} event */
function hitPanel(app, i, canvas, event) {
  const panel = app.panels?.[i];
  const box = canvas.getBoundingClientRect();
  return panel ? hitTimeline(panel, event.clientX - box.left, event.clientY - box.top) : null;
}

/** @param {any} app @param {number} i */
function panelCanvas(app, i) {
  const canvas = /** @type {HTMLCanvasElement} */ (
    element('canvas', { role: 'img', class: 'panel' })
  );
  canvas.addEventListener('pointermove', (event) => {
    const stage = byId('stage').getBoundingClientRect();
    const hit = hitPanel(app, i, canvas, event);
    showTip(hit, event.clientX - stage.left, event.clientY - stage.top);
  });
  canvas.addEventListener('pointerleave', () => showTip(null, 0, 0));
  canvas.addEventListener('click', (event) => {
    const hit = hitPanel(app, i, canvas, /** @type {PointerEvent} */ (event));
    const side = sidesOf(app)[i];
    showTip(null, 0, 0);
    if (hit && side) moveSide(app, side, hit.entry);
  });
  return canvas;
}

/** @param {any} app @param {number} i */
function panelSlider(app, i) {
  return element('input', {
    type: 'range',
    'data-key': `instant ${i}`,
    'aria-label': `${SIDE_WORDS[i]}: the event that is compared`,
    oninput: (/** @type {any} */ event) => {
      const side = sidesOf(app)[i];
      if (side) moveSide(app, side, Number(event.target.value));
    },
  });
}

/** @param {any} app @param {number} i */
function panelPart(app, i) {
  const { name } = app.runs[i].head;
  const has = Boolean(app.sides[i]);
  return element(
    'figure',
    { 'data-side': i },
    element(
      'h2',
      {},
      `${SIDE_WORDS[i]} `,
      element('span', { class: 'note' }, shownText(name, 200)),
    ),
    has
      ? panelCanvas(app, i)
      : element('p', { class: 'limit' }, 'It has nothing of this device.'),
    has ? panelSlider(app, i) : null,
    element('figcaption', {}),
  );
}

/** What is compared of a recording. @param {import('./compare.js').Side} side */
function captionText(side) {
  const { curve, cursor, source } = side;
  const peak = cursor === curve.peak.entry ? `at the peak${sinceText(source)}, ` : '';
  return (
    `${peak}${placeName(source, cursor)}: ${sizeText(curve.requested(cursor))} requested ` +
    `of ${sizeText(curve.reserved(cursor))} reserved`
  );
}

/** @param {any} app @param {HTMLElement} part @param {import('./compare.js').Side} side
 * @param {number} i @param {number} top */
function fillPanelPart(app, part, side, i, top) {
  const canvas = /** @type {HTMLCanvasElement} */ (part.querySelector('canvas'));
  const slider = /** @type {HTMLInputElement} */ (part.querySelector('input'));
  const panel = panelOf(app, side, top);
  const width = Math.max(200, canvas.getBoundingClientRect().width);
  app.panels[i] = panel;
  drawTimeline(panel, canvas, width, PANEL_HIGH);
  const text = captionText(side);
  canvas.setAttribute('aria-label', `${SIDE_WORDS[i]}: requested memory over events; ${text}`);
  slider.min = '-1';
  slider.max = String(side.source.count - 1);
  slider.value = String(side.cursor);
  slider.hidden = side.source.count === 0;
  slider.setAttribute('aria-valuetext', text);
  /** @type {HTMLElement} */ (part.querySelector('figcaption')).textContent = text;
}

/** "+1.50 MiB". @param {number} change */
export function changeText(change) {
  return `${change > 0 ? '+' : ''}${sizeText(change)}`;
}

/** A bar as long as the change is in parts of the greatest. @param {number} change
 * @param {number} most */
function changeBar(change, most) {
  const bar = element('span', {
    class: change > 0 ? 'growth grew' : 'growth shrank',
    'aria-hidden': 'true',
  });
  bar.style.width = `${most > 0 ? (Math.abs(change) / most) * 100 : 0}%`;
  return element('span', { class: 'growths' }, bar);
}

/** @param {any} row @param {Node | string} name @param {number} most @param {string} kind */
function changeRow(row, name, most, kind = '') {
  const cell = (/** @type {number} */ bytes, /** @type {string} */ text) =>
    element('td', { title: `${countText(bytes)} bytes` }, text);
  return element(
    'tr',
    { class: kind },
    element('th', { scope: 'row' }, name),
    cell(row.before, sizeText(row.before)),
    cell(row.after, sizeText(row.after)),
    cell(row.change, changeText(row.change)),
    element('td', { class: 'growthcell' }, changeBar(row.change, most)),
    element('td', {}, countText(row.blocksBefore)),
    element('td', {}, countText(row.blocksAfter)),
  );
}

/** @param {any} app @param {import('./compare.js').Change} row */
function nameButton(app, row) {
  const colour = row.place < GROUPS_MAX ? app.theme.groups[row.place] : app.theme.others;
  return element(
    'button',
    {
      class: 'link name',
      'data-key': `change ${row.name}`,
      disabled: row.key === '',
      'aria-pressed': row.key !== '' && row.key === app.state.group,
      title: row.text,
      onclick: () => chooseGroup(app, row.key),
    },
    swatch(colour),
    row.text,
  );
}

const CHANGE_HEADS = ['Group', 'Before', 'After', 'Change', '', 'Blocks before', 'Blocks after'];

/** @param {any} app @param {import('./compare.js').Change[]} rows */
function changesTable(app, rows) {
  const shown = rows.slice(0, CHANGES_SHOWN);
  const rest = rows.slice(CHANGES_SHOWN);
  const most = Math.abs(rows[0]?.change ?? 0);
  const lines = shown.map((row) =>
    changeRow(
      row,
      nameButton(app, row),
      most,
      row.key && row.key === app.state.group ? 'chosen' : '',
    ),
  );
  if (rest.length > 0)
    lines.push(changeRow(sumChanges(rest), `others (${countText(rest.length)})`, most));
  const sum = sumChanges(rows);
  const by = GROUPINGS.find((grouping) => grouping.id === app.state.by)?.text;
  return element(
    'table',
    { class: 'figures changes' },
    element('caption', {}, `What changed between the two events, by ${by}`),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        ...CHANGE_HEADS.map((head) =>
          head ? element('th', { scope: 'col' }, head) : element('td', { 'aria-hidden': true }),
        ),
      ),
    ),
    element('tbody', {}, ...lines),
    element('tfoot', {}, changeRow(sum, 'total', 0)),
  );
}

/** All rows as text for other programs; bytes are exact. @param {any} app
 * @param {'csv' | 'markdown'} form */
export function changesText(app, form) {
  return groupsTableText(
    ['group', 'bytes before', 'bytes after', 'change', 'blocks before', 'blocks after'],
    changesOf(app).map((row) => [
      row.text,
      row.before,
      row.after,
      row.change,
      row.blocksBefore,
      row.blocksAfter,
    ]),
    form,
  );
}

/** @param {any} app @param {'csv' | 'markdown'} form */
function copyChanges(app, form) {
  const copy = async () => {
    await copyText(changesText(app, form));
    app.say('copied');
  };
  return element('button', { onclick: copy }, `Copy as ${form === 'csv' ? 'CSV' : 'Markdown'}`);
}

/** What stays while cursors move. @param {any} app @param {HTMLElement} into */
function makeFrame(app, into) {
  replaceContent(
    into,
    element(
      'div',
      { class: 'page wide', id: 'compare' },
      element('div', { class: 'pair' }, panelPart(app, 0), panelPart(app, 1)),
      element(
        'div',
        { class: 'bar' },
        copyChanges(app, 'csv'),
        copyChanges(app, 'markdown'),
        element('span', { class: 'note', 'data-part': 'sum' }),
      ),
      element('div', { 'data-part': 'changes' }),
    ),
  );
}

/** @param {any} app @param {HTMLElement} into */
export function fillCompare(app, into) {
  const sides = sidesOf(app);
  const ids = sides.map((side) => side?.source.id);
  if (app.isStale('compare', ...ids) || !into.querySelector('#compare')) makeFrame(app, into);
  const top = commonTop(app, sides);
  app.panels = [null, null];
  sides.forEach((side, i) => {
    const part = /** @type {HTMLElement} */ (into.querySelector(`[data-side="${i}"]`));
    if (side) fillPanelPart(app, part, side, i, top);
  });
  const key = [ids, app.state.by, app.state.group, app.theme.paper, sides.map((s) => s?.cursor)];
  const table = /** @type {HTMLElement} */ (into.querySelector('[data-part="changes"]'));
  if (!app.isStale('changes', ...key) && table.firstChild) return;
  const rows = changesOf(app);
  const grew = rows.filter((row) => row.change > 0).length;
  const shrank = rows.filter((row) => row.change < 0).length;
  /** @type {HTMLElement} */ (into.querySelector('[data-part="sum"]')).textContent =
    `${countOf(grew, 'group')} grew, ${countText(shrank)} shrank; in all ` +
    changeText(sumChanges(rows).change);
  replaceContent(table, changesTable(app, rows));
}
