// SPDX-License-Identifier: MIT
// What is being looked at. All of it is in the fragment of the page's address, so that a link, or
// going back, shows the same picture.
import { BOXES, FLAMES } from './flame_tree.js';
import { EVENT_ACTIONS } from './event_rows.js';
import { GROUPINGS } from './group_keys.js';
import { isOfBlock } from './search.js';

/**
 * @typedef {{view: string, source: number, from: number, to: number, cursor: number, mark: number,
 *   by: string, axis: string, mode: string, flame: string, boxes: string,
 *   inverted: boolean, own: boolean, query: string, filter: boolean,
 *   lifetime: number, group: string, segments: boolean, low: number, high: number,
 *   sort: string, up: boolean, fit: boolean,
 *   others: boolean, events: boolean, picked: string, actions: string,
 *   focus: string, through: number,
 *   before: boolean, otherCursor: number, plain: boolean}} State
 */

export const VIEWS = [
  'timeline',
  'blocks',
  'map',
  'flame',
  'table',
  'oom',
  'info',
  'answers',
  'compare', // only where there are two recordings
];

const SHORT = /** @type {const} */ ({
  view: 'v',
  source: 'd',
  from: 'a',
  to: 'b',
  cursor: 'c',
  mark: 'm',
  by: 'g',
  axis: 'x',
  mode: 'y',
  flame: 'f',
  boxes: 'w',
  inverted: 'i',
  own: 'e',
  query: 'q',
  filter: 'o',
  lifetime: 'l',
  group: 'k',
  segments: 's',
  low: 'p',
  high: 'r',
  sort: 't',
  up: 'u',
  fit: 'h',
  others: 'n',
  events: 'z',
  picked: 'j',
  actions: 'ea',
  focus: 'fb',
  through: 'th',
  before: 'rb',
  otherCursor: 'oc',
  plain: 'pl',
});

/** @returns {State} */
export function initialState() {
  return {
    view: 'timeline',
    source: 0,
    from: 0,
    to: -1,
    cursor: -2,
    mark: -2,
    by: 'line',
    axis: 'event',
    mode: 'address',
    flame: 'live',
    boxes: 'stack',
    inverted: false,
    own: false,
    query: '',
    filter: false,
    lifetime: -1,
    group: '',
    segments: false,
    low: 0,
    high: 1,
    sort: 'live',
    up: false,
    fit: false,
    others: false,
    events: false,
    picked: '',
    actions: '',
    focus: '',
    through: -1,
    before: false,
    otherCursor: -2,
    plain: false, // the map without pages
  };
}

/** All that is not as the page opens by itself. @param {State} state
 * @param {State} [opening] what it opens with */
export function stateFragment(state, opening = initialState()) {
  const initial = /** @type {any} */ (opening);
  const parts = [];
  for (const [name, short] of Object.entries(SHORT)) {
    let value = /** @type {any} */ (state)[name];
    if (value === initial[name]) continue;
    if (typeof value === 'number') value = Number.isInteger(value) ? value : value.toFixed(3);
    if (typeof value === 'boolean') value = value ? 1 : 0;
    parts.push(`${short}=${encodeURIComponent(value)}`);
  }
  return parts.join('&');
}

/** What a fragment says; what it says wrongly is ignored.
 * @param {string} fragment @param {State} state */
export function readFragment(fragment, state) {
  const into = /** @type {any} */ (state);
  const initial = /** @type {any} */ (initialState());
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const equals = part.indexOf('=');
    const short = part.slice(0, equals);
    const name = Object.keys(SHORT).find((key) => /** @type {any} */ (SHORT)[key] === short);
    if (!name || equals < 0) continue;
    let text;
    try {
      text = decodeURIComponent(part.slice(equals + 1));
    } catch {
      continue;
    }
    if (typeof initial[name] === 'number') {
      if (text !== '' && isFinite(Number(text))) into[name] = Number(text);
    } else if (typeof initial[name] === 'boolean') {
      into[name] = text === '1';
    } else {
      into[name] = text.slice(0, 500);
    }
  }
  if (!VIEWS.includes(state.view)) state.view = 'timeline';
  if (!GROUPINGS.some((g) => g.id === state.by)) state.by = 'line';
  if (!FLAMES.some((f) => f.id === state.flame)) state.flame = 'live';
  if (!BOXES.some((b) => b.id === state.boxes)) state.boxes = 'stack';
  if (!EVENT_ACTIONS.some(({ id }) => id === state.actions)) state.actions = '';
  if (state.axis !== 'time') state.axis = 'event';
  if (state.mode !== 'pile') state.mode = 'address';
}

/** Whether a card can be shown: "e7" is of an event beside allocations, "s7" of a segment, "t7" of
 * a stack. @param {string} picked @param {import('./trace.js').Source} source */
function isPicked(picked, source) {
  const number = Number(picked.slice(1));
  if (!/^[est]\d+$/.test(picked)) return false;
  if (picked[0] === 'e') return number < source.count && !isOfBlock(source.kind[number]);
  return number < (picked[0] === 's' ? source.spans.length : source.names.stackNode.length);
}

/** Brings everything back to what there is. @param {State} state
 * @param {import('./trace.js').Source} source */
export function clampState(state, source) {
  const count = source.count;
  const least = Math.min(count, 4);
  if (!(state.to > state.from)) state.to = count;
  let span = Math.max(least, Math.min(count, state.to - state.from));
  if (!isFinite(span)) span = count;
  state.from = Math.max(0, Math.min(count - span, state.from));
  state.to = state.from + span;
  state.cursor = Math.max(-2, Math.min(count - 1, Math.floor(state.cursor)));
  state.mark = Math.max(-2, Math.min(count - 1, Math.floor(state.mark)));
  state.otherCursor = Math.max(-2, Math.floor(state.otherCursor));
  if (!(state.lifetime >= 0 && state.lifetime < source.lifetimes)) state.lifetime = -1;
  state.lifetime = Math.floor(state.lifetime);
  if (!(state.through > 0 && state.through < source.names.frameName.length)) state.through = -1;
  state.through = Math.floor(state.through);
  if (!isPicked(state.picked, source)) state.picked = '';
  state.high = Math.max(0.01, Math.min(1, state.high));
  state.low = Math.max(0, Math.min(state.high - 0.005, state.low));
}
