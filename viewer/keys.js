// SPDX-License-Identifier: MIT
// The keyboard, and the list of its keys.
import { toggleSandwich } from './flame_tree.js';
import { groupingsOf } from './group_keys.js';
import { moveCursor, nextMatch, nextOom, nextStep, panWindow, zoomWindow } from './navigation.js';
import { nextBeside, nextThing } from './next_thing.js';
import { byId, element } from './paint.js';
import { VIEWS } from './state.js';
import { showTip } from './tip.js';
import { VIEW_HELP } from './view_help.js';
import { CANVAS_VIEWS, viewsOf } from './views.js';

const KEYS = [
  ['1 \u2026 9', 'views'],
  ['\u2190 \u2192', 'move the cursor an event; with Shift, a tenth of the window'],
  ['[ ]', 'previous, next event'],
  [', .', 'previous, next step or annotation'],
  ['a d', 'move the window'],
  ['w s  + -', 'zoom in, out, at the pointer'],
  ['j k', 'next, previous group, row, block or segment; in the flame, into a box and out'],
  ['J K', 'in the flame, next, previous box beside the chosen one'],
  ['0', 'show all'],
  ['Home End', 'cursor to the start, the end'],
  ['p', 'cursor to the peak; P: of reserved'],
  ['o O', 'next, previous failed request'],
  ['m', 'set or clear the mark at the cursor'],
  ['z', 'zoom to mark and cursor'],
  ['/', 'search'],
  ['n N', 'next, previous match'],
  ['f', 'only what matches'],
  ['e', 'the list of all events'],
  ['x', 'events or time on the axis'],
  ['h', 'height of all that is reserved, or of what is requested'],
  ['g', 'next grouping'],
  ['b', 'blocks by address or piled'],
  ['i', 'invert the flame'],
  ['c', 'callers and callees of the chosen box of the flame'],
  ['space', 'play the map'],
  ['v', 'of two recordings, show the other'],
  ['t', 'light or dark'],
  ['Esc', 'clear the selection'],
  ['?', 'this list'],
  ['wheel', 'zoom at the pointer; Shift: move; Alt: height'],
  ['drag', 'move; Shift: choose a range'],
  ['click', 'set the cursor, choose'],
  ['double click', 'zoom in here'],
  ['one finger', 'drag: move; tap: set the cursor, choose; twice: zoom in'],
  ['finger rests', 'what is there, and the card of a block'],
  ['two fingers', 'zoom and move'],
];

const CURSOR_KEYS = ['ArrowLeft', 'ArrowRight'];
const SLIDER_KEYS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'];
const ZOOM_IN = 0.6;
const PAN = 0.2; // of the window

/** @param {string} view */
export function showKeys(view) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('keys'));
  dialog.replaceChildren(
    element('h2', {}, 'What am I seeing?'),
    ...VIEW_HELP[view].map((text) => element('p', {}, text)),
    element('h2', {}, 'Keys, mouse and touch'),
    element(
      'div',
      { class: 'keys' },
      ...KEYS.map(([key, text]) =>
        element('div', {}, element('kbd', {}, key), element('span', {}, text)),
      ),
    ),
    element(
      'p',
      { class: 'note' },
      'The address of the page holds what you see: send it, or the file, ' +
        'to a colleague. Nothing is ever sent anywhere by the page itself.',
    ),
    element('form', { method: 'dialog' }, element('button', { autofocus: true }, 'Close')),
  );
  dialog.showModal();
}

/** @param {any} app @param {number} by */
function moveBy(app, by) {
  moveCursor(app, app.entryAtCursor() + by);
}

/** @param {any} app */
function tenth(app) {
  return Math.max(1, Math.round((app.state.to - app.state.from) / 10));
}

/** Around what the mouse points at; without one around the cursor.
 * @param {any} app @param {number} times */
function zoomAtPointer(app, times) {
  const box = app.picture?.box;
  const isOver = app.hover && box && CANVAS_VIEWS[app.state.view]?.isOverTime;
  const x = isOver ? Math.max(0, Math.min(box.axis.width, app.hover.x - box.left)) : 0;
  zoomWindow(app, times, isOver ? box.axis.place(x) : undefined);
}

/** @param {any} app */
function toggleMark(app) {
  const entry = app.entryAtCursor();
  app.set({ mark: app.state.mark >= -1 && app.state.mark === entry ? -2 : entry });
}

/** @param {any} app */
function zoomToRange(app) {
  if (app.state.mark < -1) return;
  const [from, to] = [app.state.mark, app.entryAtCursor()].sort((x, y) => x - y);
  app.set({ from: Math.max(0, from), to: to + 1 });
}

/** @param {any} app */
function nextGrouping(app) {
  const all = groupingsOf(app.names);
  const at = all.findIndex((c) => c.id === app.state.by);
  app.set({ by: all[(at + 1) % all.length].id, group: '' });
}

/** Lets go of one thing after another. @param {any} app */
function letGo(app) {
  if (app.state.view === 'flame' && app.state.focus !== '') app.set({ focus: '' });
  else if (app.state.view === 'flame' && app.state.through > 0) app.set({ through: -1 });
  else if (app.state.lifetime >= 0 || app.state.picked !== '')
    app.set({ lifetime: -1, picked: '' });
  else if (app.state.group !== '') app.set({ group: '' });
  else app.set({ mark: -2 });
}

/** @type {Record<string, (app: any, event: KeyboardEvent) => void>} */
const ACTIONS = {
  ArrowLeft: (app, event) => moveBy(app, event.shiftKey ? -tenth(app) : -1),
  ArrowRight: (app, event) => moveBy(app, event.shiftKey ? tenth(app) : 1),
  '[': (app) => moveBy(app, -1),
  ']': (app) => moveBy(app, 1),
  ',': (app) => nextStep(app, -1),
  '.': (app) => nextStep(app, 1),
  a: (app) => panWindow(app, -PAN),
  d: (app) => panWindow(app, PAN),
  w: (app) => zoomAtPointer(app, ZOOM_IN),
  s: (app) => zoomAtPointer(app, 1 / ZOOM_IN),
  '+': (app) => zoomAtPointer(app, ZOOM_IN),
  '=': (app) => zoomAtPointer(app, ZOOM_IN),
  '-': (app) => zoomAtPointer(app, 1 / ZOOM_IN),
  j: (app) => nextThing(app, 1),
  k: (app) => nextThing(app, -1),
  J: (app) => nextBeside(app, 1),
  K: (app) => nextBeside(app, -1),
  0: (app) => app.set({ from: 0, to: app.source.count, low: 0, high: 1 }),
  Home: (app) => moveCursor(app, -1),
  End: (app) => moveCursor(app, app.source.count - 1),
  p: (app) => moveCursor(app, app.curve.peak.entry),
  P: (app) => moveCursor(app, app.curve.reservedPeak.entry),
  o: (app) => nextOom(app, 1),
  O: (app) => nextOom(app, -1),
  m: toggleMark,
  z: zoomToRange,
  '/': () => byId('search').focus(),
  n: (app) => nextMatch(app, 1),
  N: (app) => nextMatch(app, -1),
  f: (app) => {
    if (app.state.query !== '') app.set({ filter: !app.state.filter });
  },
  e: (app) => app.set({ events: !app.state.events }),
  x: (app) => app.set({ axis: app.state.axis === 'time' ? 'event' : 'time' }),
  h: (app) => app.set({ fit: !app.state.fit, low: 0, high: 1 }),
  g: nextGrouping,
  b: (app) => app.set({ mode: app.state.mode === 'pile' ? 'address' : 'pile', low: 0, high: 1 }),
  c: (app) => {
    if (app.state.view === 'flame') toggleSandwich(app);
  },
  i: (app) => app.set({ inverted: !app.state.inverted }),
  ' ': (app) => app.player.toggle(),
  v: (app) => {
    if (app.runs.length > 1) app.set({ before: !app.state.before });
  },
  t: (app) => app.chooseTheme(),
  '?': (app) => showKeys(app.state.view),
  Escape: letGo,
};

/** In the search field. @param {any} app @param {KeyboardEvent} event */
function searchKey(app, event) {
  if (event.key !== 'Escape' && event.key !== 'Enter') return;
  /** @type {HTMLElement} */ (event.target).blur();
  if (event.key === 'Enter') nextMatch(app, event.shiftKey ? -1 : 1);
}

/** Whether a list has a use for a key. @param {string} key */
function isOfList(key) {
  return key.length > 1 || key === ' ';
}

/** Whether the key means something to what has the focus.
 * @param {any} app @param {KeyboardEvent} event */
function isTaken(app, event) {
  const { tagName } = /** @type {HTMLElement} */ (event.target);
  if (/** @type {HTMLDialogElement} */ (byId('keys')).open) return true;
  // A list keeps the focus after a choice: letters, and arrows it does not need, are shortcuts.
  if (tagName === 'SELECT') return !CURSOR_KEYS.includes(event.key) && isOfList(event.key);
  if (tagName === 'INPUT' && SLIDER_KEYS.includes(event.key)) return true;
  if (tagName === 'BUTTON' && (event.key === ' ' || event.key === 'Enter')) return true;
  return !CANVAS_VIEWS[app.state.view] && ['Home', 'End', ' '].includes(event.key);
}

/** @param {any} app */
export function listenToKeys(app) {
  window.addEventListener('pointerdown', () => document.body.classList.remove('tabbing'));
  window.addEventListener('keydown', (event) => {
    if (event.key === 'Tab') document.body.classList.add('tabbing');
    if (event.ctrlKey || event.metaKey || event.altKey || !app.source) return;
    if (/** @type {HTMLElement} */ (event.target).id === 'search') {
      searchKey(app, event);
      return;
    }
    if (isTaken(app, event)) return;
    const view = VIEWS[Number(event.key) - 1];
    const act = viewsOf(app).includes(view) ? () => app.set({ view }) : ACTIONS[event.key];
    if (!act) return;
    event.preventDefault();
    showTip(null, 0, 0); // what it says may not be there any more
    act(app, event);
  });
}
