// SPDX-License-Identifier: MIT
// The legend: what each group holds at the cursor, and of what the others are.
import { countOf, countText, shareText, sizeText } from './format.js';
import { cursorText } from './describe.js';
import { chooseGroup } from './navigation.js';
import { element, groupColour, swatch } from './paint.js';

const OTHERS_SHOWN = 40;

/** A line that can be chosen. @param {string} name @param {number} bytes @param {string} colour
 * @param {Record<string, any>} attributes of its button */
function legendButton(name, bytes, colour, { kind = '', ...attributes }) {
  return element(
    'button',
    {
      class: `link row${kind}${bytes > 0 ? '' : ' nil'}`,
      title: `${name}\n${countText(bytes)} bytes`,
      ...attributes,
    },
    swatch(colour),
    element('span', { class: 'label' }, name),
    element('span', { class: 'number' }, sizeText(bytes)),
  );
}

/** @param {string} name @param {number} bytes @param {string} colour '' for none */
function legendLine(name, bytes, colour, kind = '') {
  return element(
    'div',
    { class: `row ${kind}`, title: `${countText(bytes)} bytes` },
    colour ? swatch(colour) : null,
    element('span', { class: 'label' }, name),
    element('span', { class: 'number' }, sizeText(bytes)),
  );
}

/** What the others hold at the cursor, most first. @param {any} app
 * @returns {{key: number, bytes: number}[]} */
export function othersAt(app) {
  const { grouping, source } = app;
  const bytes = new Map();
  source.index().eachAt(source, app.entryAtCursor(), (/** @type {number} */ lifetime) => {
    if (grouping.group(lifetime) !== 0) return;
    const key = grouping.key(lifetime);
    bytes.set(key, (bytes.get(key) || 0) + source.size(lifetime));
  });
  return [...bytes]
    .map(([key, sum]) => ({ key, bytes: sum }))
    .sort((a, b) => b.bytes - a.bytes || a.key - b.key);
}

/** @param {any} app */
function othersList(app) {
  const { grouping, theme } = app;
  const all = othersAt(app);
  const items = all.slice(0, OTHERS_SHOWN).map(({ key, bytes }) => {
    const { key: id, text } = grouping.keys[key];
    const attributes = { 'data-key': `group ${id}`, onclick: () => chooseGroup(app, id) };
    return element('li', {}, legendButton(text, bytes, theme.others, attributes));
  });
  const rest = all.slice(OTHERS_SHOWN).reduce((sum, one) => sum + one.bytes, 0);
  if (rest > 0)
    items.push(
      element(
        'li',
        {},
        legendLine(`${countOf(all.length - OTHERS_SHOWN, 'smaller group')}`, rest, ''),
      ),
    );
  if (items.length === 0)
    items.push(element('li', { class: 'note' }, 'They hold nothing at the cursor.'));
  return element('ul', { class: 'legend inner' }, ...items);
}

/** @param {any} app @param {number} group @param {number} bytes */
function legendItem(app, group, bytes) {
  const { grouping, theme, state } = app;
  const key = grouping.keyOf(group);
  const isChosen = key !== '' && state.group === key;
  const isOthers = group === 0;
  const attributes = isOthers
    ? {
        'aria-expanded': state.others,
        'data-key': 'others',
        onclick: () => app.set({ others: !state.others }),
      }
    : {
        kind: isChosen ? ' chosen' : '',
        'aria-pressed': isChosen,
        'data-key': `group ${key}`,
        onclick: () => chooseGroup(app, key),
        disabled: key === '',
      };
  const name = isOthers
    ? `${state.others ? '\u25be' : '\u25b8'} ${grouping.text(group)}`
    : grouping.text(group);
  return element(
    'li',
    {},
    legendButton(name, bytes, groupColour(theme, grouping, group), attributes),
    isOthers && state.others ? othersList(app) : null,
  );
}

/** @param {any} app */
export function legendPart(app) {
  const { grouping, theme } = app;
  const entry = app.entryAtCursor();
  const sums = grouping.sumsAt(entry);
  const total = app.curve.requested(entry);
  const reserved = app.curve.reserved(entry);
  const unclassified = sums[grouping.unclassified()] || 0;
  const rows = [...grouping.order]
    .reverse()
    .filter((group) => group > 0 || grouping.others > 0)
    .filter((group) => group < grouping.count - 1 || grouping.rest >= 0);
  const share = total > 0 ? `, ${shareText(unclassified, total)}` : '';
  return element(
    'section',
    {},
    element('h2', {}, 'Requested ', cursorText(app)),
    element(
      'ul',
      { class: 'legend' },
      ...rows.map((group) => legendItem(app, group, sums[group])),
    ),
    legendLine('requested', total, '', 'total'),
    grouping.by === 'category'
      ? legendLine(`of it unclassified${share}`, unclassified, '')
      : null,
    reserved > 0
      ? legendLine('reserved, not requested', Math.max(0, reserved - total), theme.free)
      : null,
    reserved > 0 ? legendLine('reserved', reserved, '', 'total') : null,
  );
}
