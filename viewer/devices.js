// SPDX-License-Identifier: MIT
// All devices of a recording one above another, when there are several: what was requested and
// reserved over the events of each. A click shows one in full.
import { sinceText } from './begin.js';
import { sizeText } from './format.js';
import { sourceName } from './source_name.js';
import { byId, element, openCanvas } from './paint.js';

const STRIP_HIGH = 30;

/** The most of a number in the overview of a source. @param {any} info @param {0 | 1} column */
function mostOf(info, column) {
  return info.overview.reduce(
    (/** @type {number} */ most, /** @type {number[]} */ pair) => Math.max(most, pair[column]),
    0,
  );
}

/** @param {any} app @param {HTMLCanvasElement} canvas @param {any} info @param {number} top bytes
 * that are as high as the strip */
function drawStrip(app, canvas, info, top) {
  const { theme } = app;
  const width = Math.max(40, canvas.getBoundingClientRect().width);
  const { context } = openCanvas(canvas, width, STRIP_HIGH);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, STRIP_HIGH);
  const step = width / info.overview.length;
  info.overview.forEach(
    (/** @type {number[]} */ [requested, reserved], /** @type {number} */ i) => {
      const x = Math.floor(i * step);
      const wide = Math.ceil((i + 1) * step) - x;
      context.fillStyle = theme.free;
      context.fillRect(x, STRIP_HIGH * (1 - reserved / top), wide, STRIP_HIGH);
      context.fillStyle = theme.groups[0];
      context.fillRect(x, STRIP_HIGH * (1 - requested / top), wide, STRIP_HIGH);
    },
  );
}

/** @param {any} app @param {any} info @param {number} i */
function stripButton(app, info, i) {
  return element(
    'button',
    {
      class: 'strip',
      'data-key': `device ${i}`,
      'aria-pressed': i === app.state.source,
      onclick: () => app.set({ source: i }),
    },
    element('span', { class: 'label' }, sourceName(info)),
    element('canvas', { 'aria-hidden': 'true' }),
    element(
      'span',
      { class: 'number' },
      `peak ${sizeText(mostOf(info, 0))} of ${sizeText(mostOf(info, 1))}${sinceText({ info })}`,
    ),
  );
}

/** @param {any} app */
export function drawDevices(app) {
  const { sources } = app.head;
  const part = byId('devices');
  const isShown = sources.length > 1 && app.state.view === 'timeline';
  part.hidden = !isShown;
  if (!isShown) return;
  const width = part.getBoundingClientRect().width;
  if (!app.isStale('devices', width, app.state.source, app.theme.paper)) return;
  part.replaceChildren(
    ...sources.map((/** @type {any} */ info, /** @type {number} */ i) =>
      stripButton(app, info, i),
    ),
  );
  const top = Math.max(
    1,
    ...sources.map((/** @type {any} */ info) => Math.max(mostOf(info, 0), mostOf(info, 1))),
  );
  part.querySelectorAll('canvas').forEach((canvas, i) => drawStrip(app, canvas, sources[i], top));
}
