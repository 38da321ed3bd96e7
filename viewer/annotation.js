// SPDX-License-Identifier: MIT
// What the program said of its phases, at places between the entries of a source. Each lies in the
// first row that is free then: what begins within another phase lies below it.
import { shownText } from './format.js';
import { Numbers } from './payload.js';

/** @typedef {{name: string, from: number, to: number, depth: number, colour: number,
 *   start: number, end: number}} Span */

/** @param {import('./trace.js').Source} source @param {any[]} raw of readAnnotations
 * @returns {{spans: Span[], depth: number}} */
export function placeAnnotations(source, raw) {
  const zero = (source.info.time ?? 0) - source.timeBegun; // when the recording began
  const mine =
    source.hasTime && !source.info.host
      ? raw.filter((span) => span.device < 0 || span.device === source.info.device)
      : [];
  const colours = new Map();
  /** @type {number[]} when the last span of each row ends */
  const rows = [];
  const spans = mine
    .sort((a, b) => a.from - b.from || b.to - a.to)
    .map((span) => {
      const text = span.name.replace(/\d+/g, '#');
      if (!colours.has(text)) colours.set(text, colours.size);
      const free = rows.findIndex((end) => end <= span.from);
      const depth = free < 0 ? rows.length : free;
      rows[depth] = span.to;
      return {
        name: shownText(span.name, 200),
        from: span.from,
        to: span.to,
        depth,
        colour: colours.get(text),
        start: source.atTime(span.from - zero),
        end: isFinite(span.to) ? source.atTime(span.to - zero) : source.count,
      };
    });
  return { spans, depth: rows.length };
}

/** START and END of ranges as spans.
 * @param {Uint8Array} bytes @param {import('./names.js').Names} names */
export function readAnnotations(bytes, names) {
  const numbers = new Numbers(bytes);
  /** @type {{name: string, device: number, from: number, to: number}[]} */
  const spans = [];
  /** @type {Map<string, number[]>} */
  const open = new Map();
  let time = 0;
  while (!numbers.isAtEnd()) {
    const isEnd = numbers.byte() > 0;
    const name = names.text(numbers.varint());
    const device = numbers.step();
    time += numbers.step();
    const key = `${device} ${name}`;
    if (!isEnd) {
      if (!open.has(key)) open.set(key, []);
      /** @type {number[]} */ (open.get(key)).push(spans.length);
      spans.push({ name, device, from: time, to: Infinity });
    } else {
      const begun = open.get(key)?.pop();
      if (begun !== undefined) spans[begun].to = time;
      else spans.push({ name, device, from: -Infinity, to: time });
    }
  }
  numbers.finish();
  return spans;
}
