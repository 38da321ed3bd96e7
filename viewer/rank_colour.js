// SPDX-License-Identifier: MIT
// What the colour of a rank at a part of its trace says, and the colours from the least to the
// most: lightness alone tells them apart, for any colour vision.
import { sizeText } from './format.js';
import { colourBytes } from './paint.js';

/** @typedef {import('./fleet_data.js').Fleet} Fleet */

const LIGHT_RAMP = ['#f1f5fa', '#b9d3f0', '#6fa5e3', '#2a6fcb', '#123f8f', '#1a0f45'];
const DARK_RAMP = ['#1d232b', '#173a66', '#1f62ad', '#4a94e0', '#9cc8f7', '#f2f8ff'];
const STEPS = 256;

/** Three bytes for each step from the least to the most. @param {boolean} isDark */
export function rampBytes(isDark) {
  const stops = (isDark ? DARK_RAMP : LIGHT_RAMP).map(colourBytes);
  const bytes = new Uint8Array(STEPS * 3);
  for (let i = 0; i < STEPS; i++) {
    const at = (i / (STEPS - 1)) * (stops.length - 1);
    const first = Math.min(stops.length - 2, Math.floor(at));
    for (let k = 0; k < 3; k++) {
      const [from, to] = [stops[first][k], stops[first + 1][k]];
      bytes[i * 3 + k] = Math.round(from + (to - from) * (at - first));
    }
  }
  return bytes;
}

export const COLOURS = {
  requested: 'requested',
  reserved: 'reserved',
  share: 'requested, of the largest rank at that time',
};

/** @param {Float64Array} values */
function largest(values) {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

/** The largest of all ranks, part by part. @param {Fleet} fleet */
function largestByPart({ requested, points }) {
  const most = new Float64Array(points);
  for (let i = 0; i < requested.length; i++)
    if (requested[i] > most[i % points]) most[i % points] = requested[i];
  return most;
}

/** Values between 0 and `most` by rank and part.
 * @typedef {{values: Float64Array, most: number, text: (value: number) => string}} Shade
 * @param {Fleet} fleet @param {string} colour @returns {Shade} */
export function shadeOf(fleet, colour) {
  if (colour === 'share') {
    const most = largestByPart(fleet);
    const values = fleet.requested.map((value, i) => {
      const whole = most[i % fleet.points];
      return whole > 0 ? value / whole : 0;
    });
    return { values, most: 1, text: (value) => `${(value * 100).toFixed(1)} %` };
  }
  const values = colour === 'reserved' ? fleet.reserved : fleet.requested;
  return { values, most: largest(values), text: sizeText };
}

/** @param {Shade} shade @param {number} value */
export function stepOf({ most }, value) {
  return most > 0 ? Math.round((value / most) * (STEPS - 1)) : 0;
}
