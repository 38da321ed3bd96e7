// SPDX-License-Identifier: MIT
// Numbers and texts as people read them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** Two decimals; what lies in the middle goes to the even one, as in C. @param {number} value */
function hundredthsText(value) {
  const hundredths = value * 100;
  const rounded = Math.round(hundredths);
  const isOdd = hundredths % 1 === 0.5 && rounded % 2 === 1;
  return ((rounded - (isOdd ? 1 : 0)) / 100).toFixed(2);
}

/** 10444095488 as "9.73 GiB": as the program, by src/base/size_text.c. @param {number} bytes */
export function sizeText(bytes) {
  const sign = bytes < 0 ? '-' : '';
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${sign}${unit === 0 ? Math.round(value) : hundredthsText(value)} ${UNITS[unit]}`;
}

/** The same for a label of an axis: labels that are `step` apart differ.
 * @param {number} bytes @param {number} step */
export function sizeTickText(bytes, step) {
  let unit = 1;
  while (bytes / unit >= 1024) unit *= 1024;
  const places = Math.ceil(Math.log10(unit / step));
  const [, name] = sizeText(bytes).split(' ');
  return places > 2 ? `${(bytes / unit).toFixed(places)} ${name}` : sizeText(bytes);
}

/** 35860 as "35,860". @param {number} number */
export function countText(number) {
  return Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** @param {number} number @param {string} one @param {string} [more] */
export function countOf(number, one, more) {
  return `${countText(number)} ${number === 1 ? one : more || one + 's'}`;
}

/** Microseconds as "1.234 s".
 * @param {number} us @param {number} [step] times that are so far apart differ in their texts */
export function timeText(us, step = Infinity) {
  const value = Math.abs(us);
  const places = (/** @type {number} */ unit, /** @type {number} */ usual) =>
    Math.max(usual, Math.ceil(Math.log10(unit / step)));
  if (value < 1000) return `${Math.round(us)} \u00b5s`;
  if (value < 1e6) return `${(us / 1e3).toFixed(places(1e3, value < 1e4 ? 2 : 1))} ms`;
  if (value < 120e6 || step < 1e6)
    return `${(us / 1e6).toFixed(places(1e6, value < 1e7 ? 3 : 2))} s`;
  const seconds = Math.round(us / 1e6);
  const pad = (/** @type {number} */ n) => String(n).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const minutes = pad(Math.floor(seconds / 60) % 60);
  return `${hours > 0 ? hours + ':' : ''}${minutes}:${pad(seconds % 60)}`;
}

/** @param {number} part @param {number} whole */
export function shareText(part, whole) {
  return whole > 0 ? `${((part / whole) * 100).toFixed(1)} %` : '';
}

/** Text of the file, with what does not show, or would reorder what is around it, as escapes.
 * @param {string} text @param {number} [limit] */
export function shownText(text, limit = 4000) {
  const cut = text.length > limit ? text.slice(0, limit) + '\u2026' : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, (c) => {
    const code = /** @type {number} */ (c.codePointAt(0));
    return code < 256
      ? '\\x' + code.toString(16).padStart(2, '0')
      : '\\u{' + code.toString(16) + '}';
  });
}

/** The end of a path. @param {string} path */
export function baseName(path) {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** Round numbers of bytes for an axis from 0 to `top`: powers of two times 1, 2 or 4.
 * @param {number} top @param {number} count */
export function sizeTicks(top, count) {
  let step = 1;
  while (top / step > count) step *= 2;
  const ticks = [];
  for (let at = 0; at <= top * 1.0001; at += step) ticks.push(at);
  return ticks;
}

/** Round numbers between two, about `count` of them, at least `least` apart.
 * @param {number} low @param {number} high @param {number} count @param {number} [least] */
export function roundTicks(low, high, count, least = 0) {
  const rough = Math.max(least, (high - low) / Math.max(1, count));
  if (!(rough > 0) || !isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const times = [1, 2, 5, 10].find((n) => n * power >= rough) || 10;
  const step = times * power;
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  return ticks;
}
