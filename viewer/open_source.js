// SPDX-License-Identifier: MIT
// Which source the views show: a device, or pinned memory, of one of the recordings. It is read
// when it is wanted first, and with it its like in the other recording.
import { placeAnnotations } from './annotation.js';
import { showBroken } from './broken.js';
import { drawTitle } from './page_title.js';
import { byId } from './paint.js';
import { searchFor } from './searchbar.js';
import { clampState } from './state.js';

/** What could be reserved when a request failed on a full device.
 * @param {{source: any, curve: any}} app */
function capacityAtOom({ source, curve }) {
  let most = 0;
  for (const entry of source.ooms) {
    const event = source.events[source.ref[entry]];
    most = Math.max(most, curve.reserved(entry) + event.free);
  }
  return most < curve.reservedPeak.value * 1.5 ? most : 0;
}

/** @param {any} run @param {number} number of a source; -1: none */
async function sideOf(run, number) {
  if (number < 0) return null;
  const loaded = await run.open(number, (/** @type {string} */ text) => {
    byId('status').textContent = text;
  });
  return { run, ...loaded, annotations: placeAnnotations(loaded.source, run.rawAnnotations) };
}

/** Makes a source of the recording that is shown the one that is shown.
 * @param {any} app @param {number} number */
export async function openSource(app, number) {
  const info = app.head.sources[number];
  /** @type {any[]} */
  const sides = [];
  for (const run of app.runs)
    sides.push(await sideOf(run, run === app.run ? number : run.sourceLike(info)));
  const shown = sides[app.runs.indexOf(app.run)];
  const { source, curve, extents, annotations } = shown;
  if (app.state.to < 0) app.state.to = source.count;
  Object.assign(app, { sides, source, curve, extents, annotations });
  app.capacity = capacityAtOom(app);
  app.group();
}

/** Shows other recordings in place of those that the page has.
 * @param {any} app @param {any[]} runs */
export async function replaceRuns(app, runs) {
  document.body.classList.add('loading');
  app.player.stop();
  for (const run of runs) await run.readTables();
  Object.assign(app, { runs, blocksJob: null, blocksPicture: null, blocksWorkshop: null });
  app.made.clear();
  byId('tabs').replaceChildren();
  byId('notices').replaceChildren();
  /** @type {HTMLInputElement} */ (byId('search')).value = '';
  Object.assign(app.state, app.address.opening(false));
  drawTitle(runs);
  await openSource(app, app.state.source);
  clampState(app.state, app.source);
  searchFor(app, '');
  app.group();
  app.keepAddress(true);
  document.body.classList.remove('loading');
  app.refresh();
}

/** @param {any} app @param {number} cursor -2: the peak */
async function changeSource(app, cursor) {
  const { state } = app;
  document.body.classList.add('loading');
  try {
    await openSource(app, state.source);
    Object.assign(state, { from: 0, to: app.source.count, mark: -2, lifetime: -1, picked: '' });
    state.cursor = cursor >= -1 ? cursor : app.curve.peak.entry;
    searchFor(app, state.query);
    app.group();
    clampState(state, app.source);
    app.keepAddress(true);
  } catch (error) {
    showBroken(error);
  }
  document.body.classList.remove('loading');
  app.refresh();
}

/** Follows a change of the state that wants another source; false: it does not.
 * @param {any} app @param {import('./state.js').State} before */
export function changesSource(app, before) {
  const { state } = app;
  if (state.before !== before.before) {
    const isLink = state.cursor !== before.cursor || state.otherCursor !== before.otherCursor;
    state.source = Math.max(0, app.run.sourceLike(app.source.info));
    if (!isLink) [state.cursor, state.otherCursor] = [state.otherCursor, state.cursor];
    changeSource(app, state.cursor);
    return true;
  }
  if (state.source === before.source) return false;
  state.otherCursor = -2;
  changeSource(app, -2);
  return true;
}
