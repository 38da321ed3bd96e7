// SPDX-License-Identifier: MIT
// Going from one place to another: the cursor, the window, and from one thing to the next.
import { isOfBlock } from './search.js';
import { KIND, NEVER } from './kind.js';

/** @typedef {Partial<import('./state.js').State>} Changes */

/** @param {any} app @param {number} entry @param {boolean} [keepWindow] @param {Changes} [more] */
export function moveCursor(app, entry, keepWindow = false, more = {}) {
  const { state, source } = app;
  entry = Math.max(-1, Math.min(source.count - 1, Math.floor(entry)));
  /** @type {Changes} */
  const changes = { cursor: entry, ...more };
  const span = state.to - state.from;
  if (!keepWindow && (entry < state.from || entry >= state.to)) {
    changes.from = Math.max(0, entry - span / 2);
    changes.to = changes.from + span;
  }
  app.set(changes);
}

/** @param {any} app @param {number} entry @param {string} view */
export function jumpTo(app, entry, view) {
  app.state.view = view;
  moveCursor(app, entry);
  app.keepAddress(true);
  app.refresh();
}

/** @param {any} app @param {number} times @param {number} [around] place */
export function zoomWindow(app, times, around) {
  const { state, source } = app;
  const middle =
    around ??
    (state.cursor >= state.from && state.cursor <= state.to
      ? state.cursor
      : (state.from + state.to) / 2);
  const span = Math.max(
    Math.min(4, source.count),
    Math.min(source.count, (state.to - state.from) * times),
  );
  const share = (middle - state.from) / Math.max(1e-9, state.to - state.from);
  const from = Math.max(0, Math.min(source.count - span, middle - span * share));
  app.set({ from, to: from + span });
}

/** @param {any} app @param {number} share of the window */
export function panWindow(app, share) {
  const { state, source } = app;
  const span = state.to - state.from;
  const from = Math.max(0, Math.min(source.count - span, state.from + span * share));
  app.set({ from, to: from + span });
}

/** @param {any} app @param {string} key */
export function chooseGroup(app, key) {
  app.set({ group: app.state.group === key ? '' : key });
}

/** The entry that a block is first in use after. @param {any} app @param {number} lifetime */
function birthOf(app, lifetime) {
  const start = app.source.lifetimeStart[lifetime];
  return start === NEVER ? -1 : start;
}

/** @param {any} app @param {number} lifetime */
export function chooseLifetime(app, lifetime) {
  /** @type {Changes} */
  const changes = { lifetime, picked: '' };
  if (!app.source.isLive(lifetime, app.entryAtCursor())) changes.cursor = birthOf(app, lifetime);
  app.set(changes);
}

/** Opens the card of something that is no block: state.picked says of what.
 * @param {any} app @param {string} picked @param {Changes} [more] */
export function pick(app, picked, more = {}) {
  app.set({ lifetime: -1, picked, ...more });
}

/** Goes to an event and opens its card: that of its block, if it has one.
 * @param {any} app @param {number} entry */
export function chooseEvent(app, entry) {
  const { source } = app;
  const isBlock = isOfBlock(source.kind[entry]);
  const lifetime = isBlock ? source.ref[entry] : -1;
  moveCursor(app, entry, false, { lifetime, picked: isBlock ? '' : `e${entry}` });
}

/** All blocks of a stack. @param {any} app @param {number} stack */
export function chooseLikeThis(app, stack) {
  app.set({ by: 'stack', group: '' });
  app.set({ group: `s${stack}`, view: app.state.view === 'map' ? 'map' : 'timeline' });
}

/** @param {any} app @param {number} step */
export function nextMatch(app, step) {
  const lifetimes = app.matches?.lifetimes || [];
  if (lifetimes.length === 0) return;
  const at = app.state.lifetime;
  let i = lifetimes.findIndex((/** @type {number} */ lifetime) =>
    step > 0 ? lifetime > at : lifetime >= at,
  );
  if (step < 0) i = i < 0 ? lifetimes.length - 1 : i - 1;
  if (i < 0) i = step > 0 ? 0 : lifetimes.length - 1;
  const lifetime = lifetimes[(i + lifetimes.length) % lifetimes.length];
  app.state.lifetime = lifetime;
  moveCursor(app, birthOf(app, lifetime));
  app.say(`match ${(i % lifetimes.length) + 1} of ${lifetimes.length}`);
}

/** @param {any} app @param {number} step */
export function nextOom(app, step) {
  const at = app.entryAtCursor();
  const { ooms } = app.source;
  const next =
    step > 0
      ? (ooms.find((/** @type {number} */ entry) => entry > at) ?? ooms[0])
      : (ooms.findLast((/** @type {number} */ entry) => entry < at) ?? ooms[ooms.length - 1]);
  if (next !== undefined) moveCursor(app, next);
}

/** Annotations; in a recording without them, what the program noted. @param {any} app
 * @returns {number[]} */
function stepsOf(app) {
  const { spans } = app.annotations;
  return spans.length > 0
    ? spans.map((/** @type {any} */ span) => Math.floor(span.start))
    : app.source.events
        .filter((/** @type {any} */ event) => event.kind >= KIND.SNAPSHOT)
        .map((/** @type {any} */ event) => event.entry);
}

/** @param {any} app @param {number} step */
export function nextStep(app, step) {
  const at = app.entryAtCursor();
  const spots = stepsOf(app).sort((a, b) => a - b);
  const next = step > 0 ? spots.find((spot) => spot > at) : spots.findLast((spot) => spot < at);
  if (next !== undefined) moveCursor(app, next);
}
