// SPDX-License-Identifier: MIT
// The bar under the tabs: how the view is drawn, and what is in use at the cursor.
import { FLAMES, boxesOf, flamePlan, toggleSandwich } from './flame_tree.js';
import { groupingsOf } from './group_keys.js';
import { moveCursor } from './navigation.js';
import { byId, element, replaceContent } from './paint.js';
import { pagesOf } from './segment_pages.js';
import { sourceName } from './source_name.js';
import { CANVAS_VIEWS } from './views.js';
import { cursorText, figureText } from './describe.js';
import { offerPictures } from './saving.js';

const ZOOM_BUTTON = 0.5; // of the window

/** @param {string} label @param {{id: string, text: string, hint?: string}[]} choices
 * @param {string} value @param {(id: string) => void} choose @param {string} [kind] of a label that
 * the choices make superfluous: an "unlabelled" one is never seen, a "terse" one where there is
 * room */
function makeChoice(label, choices, value, choose, kind = '') {
  const select = element(
    'select',
    {
      'data-key': label,
      onchange: (/** @type {any} */ event) => choose(event.target.value),
    },
    ...choices.map((c) => element('option', { value: c.id, title: c.hint }, c.text)),
  );
  /** @type {HTMLSelectElement} */ (select).value = value;
  const isHidden = kind === 'unlabelled' ? 'hidden' : '';
  return element('label', { class: kind }, element('span', { class: isHidden }, label), select);
}

/** @param {string} label @param {[string, string][]} choices @param {string} value
 * @param {(id: string) => void} choose @param {string} [kind] */
function makeSwitch(label, choices, value, choose, kind = '') {
  return element(
    'span',
    { class: `switch ${kind}`, role: 'group', 'aria-label': label },
    ...choices.map(([id, text]) =>
      element('button', { 'aria-pressed': id === value, onclick: () => choose(id) }, text),
    ),
  );
}

/** A device, or pinned memory. @param {any} app */
function sourceChoice(app) {
  const { head, state } = app;
  if (head.sources.length < 2) return null;
  return makeChoice(
    'Device',
    head.sources.map((/** @type {any} */ info, /** @type {number} */ i) => ({
      id: String(i),
      text: sourceName(info),
    })),
    String(state.source),
    (id) => app.set({ source: Number(id) }),
    'unlabelled',
  );
}

/** Which of two recordings is shown. @param {any} app */
function runSwitch(app) {
  const { runs, state } = app;
  if (runs.length < 2 || state.view === 'compare') return null;
  return makeSwitch(
    'Recording (v)',
    [
      ['before', 'Before'],
      ['after', 'After'],
    ],
    state.before ? 'before' : 'after',
    (id) => app.set({ before: id === 'before' }),
  );
}

/** @param {any} app */
function contentSwitch(app) {
  const { state } = app;
  if (state.view !== 'timeline') return null;
  return makeSwitch(
    'What is drawn',
    [
      ['', 'Allocations'],
      ['s', 'Segments'],
    ],
    state.segments ? 's' : '',
    (id) => app.set({ segments: id === 's' }),
    'content',
  );
}

/** @param {any} app */
function groupingChoice(app) {
  const { state } = app;
  const isGrouped = ['timeline', 'blocks', 'map', 'table', 'compare'].includes(state.view);
  if (!isGrouped || (state.segments && state.view === 'timeline')) return null;
  const label = ['table', 'compare'].includes(state.view) ? 'Group by' : 'Colour by';
  return makeChoice(label, groupingsOf(app.names), state.by, (by) => app.set({ by, group: '' }));
}

/** @param {any} app */
function modeSwitch(app) {
  const { state } = app;
  if (state.view !== 'blocks') return null;
  return makeSwitch(
    'How blocks lie',
    [
      ['address', 'By address'],
      ['pile', 'Piled'],
    ],
    state.mode,
    (mode) => app.set({ mode, low: 0, high: 1 }),
  );
}

/** @param {any} app */
function axisSwitch(app) {
  const isOverTime = CANVAS_VIEWS[app.state.view]?.isOverTime || app.state.view === 'compare';
  if (!isOverTime || !app.source.hasTime) return null;
  return makeSwitch(
    'Axis',
    [
      ['event', 'Events'],
      ['time', 'Time'],
    ],
    app.state.axis,
    (axis) => app.set({ axis }),
  );
}

/** @param {any} app */
function fitButton(app) {
  const { state } = app;
  const isTimeline = state.view === 'timeline' && !state.segments;
  if (!isTimeline && state.view !== 'compare') return null;
  return element(
    'button',
    {
      'data-key': 'fit',
      onclick: () => app.set({ fit: !state.fit, low: 0, high: 1 }),
      'aria-pressed': state.fit,
      class: 'tool',
      title: 'As high as what is requested, without what is reserved (h)',
    },
    'Fit',
  );
}

/** Zoom for those who have no wheel. @param {any} app */
function zoomButtons(app) {
  if (!CANVAS_VIEWS[app.state.view]?.isOverTime || app.source.count === 0) return null;
  const all = () => app.set({ from: 0, to: app.source.count, low: 0, high: 1 });
  return element(
    'span',
    { class: 'switch zoom', role: 'group', 'aria-label': 'Zoom' },
    ...[
      ['\u2212', 'Zoom out (s)', () => app.zoom(1 / ZOOM_BUTTON)],
      ['+', 'Zoom in (w)', () => app.zoom(ZOOM_BUTTON)],
      ['All', 'Show all (0)', all],
    ].map(([text, title, onclick]) =>
      element('button', { title, 'aria-label': title, onclick }, /** @type {string} */ (text)),
    ),
  );
}

/** @param {any} app */
function playButton(app) {
  const { player } = app;
  if (app.state.view !== 'map') return null;
  return element(
    'button',
    {
      'data-key': 'play',
      onclick: () => player.toggle(),
      'aria-pressed': player.isPlaying,
      title: 'Space',
    },
    player.isPlaying ? 'Pause' : 'Play',
  );
}

/** The pages of segments. @param {any} app */
function pagesButton(app) {
  const { state, source } = app;
  if (state.view !== 'map' || pagesOf(source).count === 0) return null;
  return element(
    'button',
    {
      'data-key': 'pages',
      onclick: () => app.set({ plain: !state.plain }),
      'aria-pressed': !state.plain,
      class: 'tool',
      title: 'A strip below each segment: its pages',
    },
    'Pages',
  );
}

/** The cursor as a slider over the window. @param {any} app */
function cursorSlider(app) {
  if (!['map', 'flame'].includes(app.state.view) || app.source.count === 0) return null;
  const slider = element('input', {
    type: 'range',
    id: 'scrub',
    'data-key': 'scrub',
    'aria-label': 'Cursor, an event of the window',
    oninput: (/** @type {any} */ event) => moveCursor(app, Number(event.target.value), true),
  });
  placeSlider(app, /** @type {HTMLInputElement} */ (slider));
  return slider;
}

/** @param {any} app @param {HTMLInputElement | null} slider */
function placeSlider(app, slider) {
  if (!slider) return;
  slider.min = String(Math.floor(app.state.from) - (app.state.from <= 0 ? 1 : 0));
  slider.max = String(Math.ceil(app.state.to) - 1);
  slider.value = String(app.entryAtCursor());
  slider.setAttribute('aria-valuetext', cursorText(app));
}

/** @param {any} app */
function sandwichButton(app) {
  flamePlan(app); // finds the chosen box
  const isOn = app.state.through > 0;
  return element(
    'button',
    {
      'data-key': 'sandwich',
      'aria-pressed': isOn,
      class: 'tool',
      title: 'Callers and callees of the chosen box (c)',
      disabled: !isOn && !(app.flameFocus?.frame > 0),
      onclick: () => toggleSandwich(app),
    },
    'Sandwich',
  );
}

/** @param {any} app */
function flameControls(app) {
  if (app.state.view !== 'flame') return [];
  return [
    makeChoice('Bytes', FLAMES, app.state.flame, (flame) => app.set({ flame }), 'terse'),
    makeChoice(
      'Boxes',
      boxesOf(app.names),
      app.state.boxes,
      (boxes) => app.set({ boxes }),
      'terse',
    ),
    element(
      'button',
      {
        'aria-pressed': app.state.inverted,
        class: 'tool',
        title: 'i',
        onclick: () => app.set({ inverted: !app.state.inverted }),
      },
      'Inverted',
    ),
    element(
      'button',
      {
        'aria-pressed': app.state.own,
        class: 'tool',
        onclick: () => app.set({ own: !app.state.own }),
      },
      'Your code',
    ),
    sandwichButton(app),
  ];
}

/** Everything that the bar depends on but the figure. @param {any} app */
function toolbarKey(app) {
  const { state } = app;
  return [
    state.view,
    app.run.number,
    state.by,
    state.axis,
    state.mode,
    state.flame,
    state.boxes,
    state.segments,
    state.source,
    app.state.inverted,
    app.state.own,
    state.through,
    state.focus,
    state.fit,
    state.events,
    state.plain,
    app.player.isPlaying,
    state.query !== '',
    state.filter,
    app.source.count,
  ];
}

/** @param {any} app */
export function drawToolbar(app) {
  const { state } = app;
  const hasFigure = !['info', 'oom', 'answers', 'compare'].includes(state.view);
  const isSame = !app.isStale('toolbar', ...toolbarKey(app));
  const isFigureSame = !app.isStale('figure', ...app.cursorKey());
  const figure = hasFigure && !(isSame && isFigureSame) ? figureText(app) : [];
  if (isSame) {
    if (!isFigureSame) document.querySelector('#controls .figure')?.replaceChildren(...figure);
    placeSlider(app, document.querySelector('#scrub'));
    return;
  }
  const parts = [
    runSwitch(app),
    sourceChoice(app),
    contentSwitch(app),
    groupingChoice(app),
    modeSwitch(app),
    axisSwitch(app),
    fitButton(app),
    zoomButtons(app),
    playButton(app),
    pagesButton(app),
    cursorSlider(app),
    ...flameControls(app),
    element('span', { class: 'figure' }, ...figure),
  ].filter((part) => part !== null);
  byId('list').setAttribute('aria-pressed', String(state.events));
  byId('list').hidden = app.source.count === 0;
  offerPictures(app);
  byId('filter').setAttribute('aria-pressed', String(state.filter));
  byId('filter').hidden = state.query === '';
  replaceContent(byId('controls'), .../** @type {Node[]} */ (parts));
  byId('controls').hidden = parts.length === 1 && figure.length === 0;
}
