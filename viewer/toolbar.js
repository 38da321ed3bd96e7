// SPDX-License-Identifier: MIT
// The bar under the tabs: how the view is drawn, and what is in use at the cursor.
import { FLAMES, boxesOf } from './flame.js';
import { groupingsOf } from './group.js';
import { byId, element, replaceContent } from './paint.js';
import { CANVAS_VIEWS } from './views.js';
import { figureText } from './words.js';

/** @param {string} label @param {{id: string, text: string, hint?: string}[]} choices
 * @param {string} value @param {(id: string) => void} choose */
function makeChoice(label, choices, value, choose) {
  const select = element(
    'select',
    {
      'data-key': label,
      onchange: (/** @type {any} */ event) => choose(event.target.value),
    },
    ...choices.map((c) => element('option', { value: c.id, title: c.hint }, c.text)),
  );
  /** @type {HTMLSelectElement} */ (select).value = value;
  return element('label', {}, label, select);
}

/** @param {string} label @param {[string, string][]} choices @param {string} value
 * @param {(id: string) => void} choose */
function makeSwitch(label, choices, value, choose) {
  return element(
    'span',
    { class: 'switch', role: 'group', 'aria-label': label },
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
    '',
    head.sources.map((/** @type {any} */ info, /** @type {number} */ i) => ({
      id: String(i),
      text: info.host ? `pinned memory ${info.device}` : `device ${info.device}`,
    })),
    String(state.source),
    (id) => app.set({ source: Number(id) }),
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
  );
}

/** @param {any} app */
function groupingChoice(app) {
  const { state } = app;
  const isGrouped = ['timeline', 'blocks', 'map', 'table'].includes(state.view);
  if (!isGrouped || (state.segments && state.view === 'timeline')) return null;
  return makeChoice('Colour by', groupingsOf(app.names), state.by, (by) =>
    app.set({ by, group: '' }),
  );
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
  if (!CANVAS_VIEWS[app.state.view]?.isOverTime || !app.source.hasTime) return null;
  return makeSwitch(
    'Axis',
    [
      ['event', 'Entries'],
      ['time', 'Time'],
    ],
    app.state.axis,
    (axis) => app.set({ axis }),
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

/** @param {any} app */
function flameControls(app) {
  if (app.state.view !== 'flame') return [];
  return [
    makeChoice('Bytes', FLAMES, app.state.flame, (flame) => app.set({ flame })),
    makeChoice('Boxes', boxesOf(app.names), app.state.boxes, (boxes) => app.set({ boxes })),
    element(
      'button',
      {
        'aria-pressed': app.isInverted,
        class: 'tool',
        title: 'i',
        onclick: () => app.invert(),
      },
      'Inverted',
    ),
    element(
      'button',
      {
        'aria-pressed': app.ownOnly,
        class: 'tool',
        onclick: () => {
          app.ownOnly = !app.ownOnly;
          app.refresh();
        },
      },
      'Your code only',
    ),
  ];
}

/** Everything that the bar depends on but the figure. @param {any} app */
function toolbarKey(app) {
  const { state } = app;
  return JSON.stringify([
    state.view,
    state.by,
    state.axis,
    state.mode,
    state.flame,
    state.boxes,
    state.segments,
    state.source,
    app.isInverted,
    app.ownOnly,
    app.player.isPlaying,
    state.query !== '',
    state.filter,
  ]);
}

/** @param {any} app */
export function drawToolbar(app) {
  const { state } = app;
  const hasFigure = state.view !== 'info' && state.view !== 'oom';
  const figure = hasFigure ? figureText(app) : [];
  const key = toolbarKey(app);
  if (app.toolbarKey === key) {
    document.querySelector('#controls .figure')?.replaceChildren(...figure);
    return;
  }
  app.toolbarKey = key;
  const parts = [
    sourceChoice(app),
    contentSwitch(app),
    groupingChoice(app),
    modeSwitch(app),
    axisSwitch(app),
    playButton(app),
    ...flameControls(app),
    element('span', { class: 'figure' }, ...figure),
  ].filter((part) => part !== null);
  byId('filter').setAttribute('aria-pressed', String(state.filter));
  byId('filter').hidden = state.query === '';
  replaceContent(byId('controls'), .../** @type {Node[]} */ (parts));
  byId('controls').hidden = parts.length === 1 && figure.length === 0;
}
