// SPDX-License-Identifier: MIT
// Two recordings, group by group: what each held before, and holds after. Figures and names are
// those of `tarn diff`.
import { Grouping, commonPlaces } from './group.js';
import { commonName } from './group_keys.js';

/** @typedef {{run: any, source: any, curve: any, annotations: any, isShown: boolean,
 *   cursor: number, grouping: Grouping}} Side */

/** @typedef {{name: string, text: string, key: string, place: number, before: number,
 *   after: number, change: number, blocksBefore: number, blocksAfter: number}} Change */

/** The groupings of both recordings, and the order of all their names; made anew for another
 * grouping or device. @param {any} app
 * @returns {{groupings: (Grouping | null)[], places: Map<string, number>}} */
function pairOf(app) {
  const loaded = app.sides;
  const key = [app.state.by, ...loaded.map((/** @type {any} */ one) => one?.source.id)].join();
  if (app.pair?.key === key) return app.pair;
  const groupings = loaded.map((/** @type {any} */ one) =>
    one ? new Grouping(one.source, app.state.by, one.curve, null) : null,
  );
  const present = groupings.filter((/** @type {Grouping | null} */ grouping) => grouping);
  const places = commonPlaces(present);
  for (const grouping of present) grouping.showCommon(places);
  app.pair = { key, groupings, places };
  return app.pair;
}

/** The order of names in both recordings, by which groups have their colours; null with one.
 * @param {any} app */
export function placesOf(app) {
  return app.runs.length > 1 ? pairOf(app).places : null;
}

/** The recording before and the one after; null: it has nothing of the device.
 * @param {any} app @returns {(Side | null)[]} */
export function sidesOf(app) {
  const { groupings } = pairOf(app);
  const { sides } = app;
  return sides.map((/** @type {any} */ one, /** @type {number} */ i) => {
    if (!one) return null;
    const isShown = one.run === app.run;
    const wanted = isShown ? app.state.cursor : app.state.otherCursor;
    const { source, curve } = one;
    const peak = source.count > 0 ? curve.peak.entry : source.count - 1;
    const cursor = wanted >= -1 ? Math.min(wanted, source.count - 1) : peak;
    return { ...one, isShown, cursor, grouping: groupings[i] };
  });
}

/** @param {any} app @param {Map<string, Change>} rows @param {Side} side
 * @param {boolean} isAfter */
function addSide(app, rows, side, isAfter) {
  const { source, grouping, cursor } = side;
  const { places } = pairOf(app);
  const bytes = new Float64Array(grouping.keys.length);
  const blocks = new Float64Array(grouping.keys.length);
  source.index().eachAt(source, cursor, (/** @type {number} */ lifetime) => {
    const key = grouping.key(lifetime);
    bytes[key] += source.size(lifetime);
    blocks[key]++;
  });
  blocks.forEach((count, key) => {
    if (count === 0) return;
    const name = commonName(grouping, key);
    const { text } = grouping.keys[key];
    const row = rows.get(name) ?? {
      name,
      text,
      key: '',
      place: places.get(name) ?? Infinity,
      before: 0,
      after: 0,
      change: 0,
      blocksBefore: 0,
      blocksAfter: 0,
    };
    if (side.isShown) row.key = grouping.keys[key].key;
    row[isAfter ? 'after' : 'before'] += bytes[key];
    row[isAfter ? 'blocksAfter' : 'blocksBefore'] += count;
    row.change = row.after - row.before;
    rows.set(name, row);
  });
}

/** Every group that either holds, most change first. @param {any} app @returns {Change[]} */
export function changesOf(app) {
  /** @type {Map<string, Change>} */
  const rows = new Map();
  sidesOf(app).forEach((side, i) => {
    if (side) addSide(app, rows, side, i > 0);
  });
  return [...rows.values()].sort(
    (a, b) =>
      Math.abs(b.change) - Math.abs(a.change) ||
      b.after - a.after ||
      (a.text < b.text ? -1 : a.text > b.text ? 1 : 0),
  );
}

/** @param {Change[]} rows */
export function sumChanges(rows) {
  const sum = { before: 0, after: 0, change: 0, blocksBefore: 0, blocksAfter: 0 };
  for (const row of rows)
    for (const name of /** @type {(keyof typeof sum)[]} */ (Object.keys(sum)))
      sum[name] += row[name];
  return sum;
}
