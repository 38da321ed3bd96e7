// SPDX-License-Identifier: MIT
// What the program said of its phases, at places between the entries of a source. Each lies in the
// first row that is free then: what begins within another phase lies below it.
import { shownText } from './format.js';

/** @typedef {{name: string, from: number, to: number, depth: number, colour: number,
 *   start: number, end: number}} Span */

/** @param {import('./trace.js').Source} source @param {any[]} raw of readAnnotations
 * @returns {{spans: Span[], depth: number}} */
export function placeAnnotations(source, raw) {
  const zero = source.info.time ?? 0;
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
