// SPDX-License-Identifier: MIT
// What the card of a block, an event, a segment or a stack says, before it is drawn or copied.
import { beforeText } from './begin.js';
import { unitRounded } from './block_size.js';
import { eventFacts } from './event_rows.js';
import { countOf, countText, shownText, sizeText, timeText } from './format.js';
import { KIND, NEVER } from './kind.js';
import { pagesText } from './page_strip.js';

/** A line of a card; with `entry` or `picked` it leads to an event or to another card.
 * @typedef {{name: string, text: string, entry?: number, picked?: string, isCode?: boolean}} Fact
 * @typedef {{title: string, facts: Fact[], lifetime: number, segment: number,
 *   stacks: {head: string, stack: number}[]}} Card */

/** @param {import('./trace.js').Source} source @param {number} entry */
function eventText(source, entry) {
  const time = source.hasTime ? `, ${timeText(source.time[entry])}` : '';
  return `event ${countText(entry + source.info.skipped)}${time}`;
}

/** @param {import('./trace.js').Source} source @param {string} name @param {number} entry
 * @param {string} otherwise @returns {Fact} */
function eventFact(source, name, entry, otherwise) {
  return entry >= 0 && entry < source.count
    ? { name, text: eventText(source, entry), entry }
    : { name, text: otherwise };
}

/** @param {number} bytes */
function bytesText(bytes) {
  return `${sizeText(bytes)} (${countText(bytes)} bytes)`;
}

/** Why a block has more bytes than were requested.
 * @param {import('./trace.js').Source} source @param {number} lifetime */
function roundingText(source, lifetime) {
  const size = source.size(lifetime);
  const rounded = source.rounded(size);
  const slack = source.blockSize(lifetime) - rounded;
  const word = rounded > unitRounded(size) ? 'by settings' : 'to 512 bytes';
  return `rounded up ${word}` + (slack > 0 ? `, with ${sizeText(slack)} not split off` : '');
}

/** The reserved range that an address is in right after an entry; -1: none.
 * @param {import('./trace.js').Source} source @param {number} address @param {number} entry */
export function segmentAt(source, address, entry) {
  return source.spans.findIndex(
    ({ address: from, size, start, end }) =>
      address >= from && address < from + size && start <= entry && end > entry,
  );
}

/** @param {import('./trace.js').Source} source @param {number} address @param {number} entry
 * @returns {Fact[]} */
function segmentFacts(source, address, entry) {
  const segment = segmentAt(source, address, entry);
  if (segment < 0) return [];
  const { address: from, size } = source.spans[segment];
  const text = `${sizeText(size)} at ${source.hex(from)}`;
  return [{ name: 'segment', text, picked: `s${segment}` }];
}

/** How long a block was there, and how long its free waited.
 * @param {import('./trace.js').Source} source @param {number} lifetime @returns {Fact[]} */
function durationFacts(source, lifetime) {
  const start = source.lifetimeStart[lifetime];
  const end = source.lifetimeEnd[lifetime];
  const asked = source.lifetimeAsked[lifetime];
  /** @type {Fact[]} */
  const facts = [];
  const events = (/** @type {number} */ count) => countOf(count, 'event', 'events');
  if (asked !== NEVER && end !== NEVER && end > asked + 1) {
    const waited = source.hasTime
      ? timeText(source.time[end] - source.time[asked])
      : events(end - asked);
    facts.push({ name: 'free waited', text: waited });
  }
  if (start !== NEVER && end !== NEVER) {
    const time = source.hasTime ? `, ${timeText(source.time[end] - source.time[start])}` : '';
    facts.push({ name: 'lasted', text: events(end - start) + time });
  }
  return facts;
}

/** What the program, the recording and the rules say of a block.
 * @param {import('./trace.js').Source} source @param {number} lifetime @returns {Fact[]} */
function saidFacts(source, lifetime) {
  const extra = source.extra(lifetime);
  const said = source.names.extras[source.said(lifetime)];
  return [
    ['metadata', said.metadata],
    ['category', source.head.categories[source.category(lifetime)]],
    ['compiled by', extra.compile === 'N/A' ? '' : extra.compile],
    ['recorded category', extra.category],
    ['internal', extra.internal],
  ]
    .filter(([, text]) => text)
    .map(([name, text]) => ({ name: String(name), text: shownText(text, 600) }));
}

/** The stack that a block was freed by; 0: not known, or that of its allocation.
 * @param {import('./trace.js').Source} source @param {number} lifetime */
function freeStackOf(source, lifetime) {
  const start = source.lifetimeStart[lifetime];
  const end = source.lifetimeEnd[lifetime];
  const asked = source.lifetimeAsked[lifetime];
  let entry = end !== NEVER && start !== NEVER ? end : NEVER;
  if (start === NEVER && asked !== NEVER) entry = asked;
  const stack = entry === NEVER ? 0 : source.stack[entry];
  return stack === source.lifetimeStack[lifetime] ? 0 : stack;
}

/** @param {any} app @param {number} lifetime @returns {Card} */
function blockCard(app, lifetime) {
  const { source } = app;
  const size = source.size(lifetime);
  const start = source.lifetimeStart[lifetime];
  const end = source.lifetimeEnd[lifetime];
  const address = source.lifetimeAddress[lifetime];
  const entry = app.entryAtCursor();
  const seen = source.isLive(lifetime, entry) ? entry : start === NEVER ? -1 : start;
  const free = freeStackOf(source, lifetime);
  const stacks = [{ head: 'Allocated by', stack: source.lifetimeStack[lifetime] }];
  if (free > 0) stacks.push({ head: 'Freed by', stack: free });
  const before = beforeText(source, 'before the recording');
  const takes = `${sizeText(source.blockSize(lifetime))}, ${roundingText(source, lifetime)}`;
  return {
    title: `Block of ${sizeText(size)}`,
    facts: [
      { name: 'requested', text: bytesText(size) },
      { name: 'takes', text: takes },
      { name: 'address', text: source.hex(address), isCode: true },
      { name: 'where', text: source.poolStreamText(source.lifetimePoolStream[lifetime]) },
      ...segmentFacts(source, address, seen),
      eventFact(source, 'allocated', start === NEVER ? -1 : start, before),
      eventFact(source, 'freed', end === NEVER ? -1 : end, 'not in the recording'),
      ...durationFacts(source, lifetime),
      ...saidFacts(source, lifetime),
    ],
    lifetime,
    segment: -1,
    stacks,
  };
}

/** @param {any} app @param {number} entry @returns {Card} */
function eventCard(app, entry) {
  const { source } = app;
  const event = source.events[source.ref[entry]];
  const { action, size, address, poolStream, extra } = eventFacts(source, entry);
  const isOom = event.kind === KIND.OOM;
  const name = `${action[0].toUpperCase()}${action.slice(1)}`;
  /** @type {Fact[]} */
  const facts = [eventFact(source, 'event', entry, '')];
  if (size > 0) facts.push({ name: isOom ? 'requested' : 'size', text: bytesText(size) });
  if (isOom) facts.push({ name: 'free on the device', text: bytesText(event.free) });
  if (address >= 0) facts.push({ name: 'address', text: source.hex(address), isCode: true });
  if (poolStream >= 0) facts.push({ name: 'where', text: source.poolStreamText(poolStream) });
  const { metadata } = source.names.extras[extra];
  if (metadata) facts.push({ name: 'metadata', text: shownText(metadata, 600) });
  if (event.kind >= KIND.SEGMENT_ALLOC && event.kind <= KIND.SEGMENT_UNMAP) {
    const came = event.kind === KIND.SEGMENT_ALLOC || event.kind === KIND.SEGMENT_MAP;
    facts.push(...segmentFacts(source, address, came ? entry : entry - 1));
  }
  if (event.lifetime >= 0)
    facts.push({
      name: 'block',
      text: sizeText(source.size(event.lifetime)),
      picked: `b${event.lifetime}`,
    });
  return {
    title: size > 0 ? `${name}: ${sizeText(size)}` : name,
    facts,
    lifetime: -1,
    segment: -1,
    stacks: [{ head: 'Stack', stack: source.stack[entry] }],
  };
}

/** @param {any} app @param {number} number @returns {Card} */
function segmentCard(app, number) {
  const { source } = app;
  const span = source.spans[number];
  const { address, size, start, end, poolStream } = span;
  const entry = app.entryAtCursor();
  const isThere = start <= entry && end > entry;
  let used = 0;
  let blocks = 0;
  if (isThere)
    source.index().eachAt(source, entry, (/** @type {number} */ lifetime) => {
      const at = source.lifetimeAddress[lifetime];
      if (at < address || at >= address + size) return;
      blocks++;
      used += source.size(lifetime);
    });
  const pages = isThere ? pagesText(source, { address, end: address + size }, entry) : '';
  const held = isThere
    ? `${sizeText(used)} requested in ${countOf(blocks, 'block')}`
    : 'not reserved';
  return {
    title: `${span.expandable ? 'Mapped range' : 'Segment'} of ${sizeText(size)}`,
    facts: [
      { name: 'size', text: bytesText(size) },
      ...(pages ? [{ name: 'pages', text: pages }] : []),
      { name: 'address', text: source.hex(address), isCode: true },
      {
        name: 'where',
        text: `${span.large ? 'large' : 'small'} pool, ${source.poolStreamText(poolStream)}`,
      },
      eventFact(source, 'reserved', start, beforeText(source, 'before the recording')),
      eventFact(source, 'given back', isFinite(end) ? end : -1, 'not in the recording'),
      { name: 'at the cursor', text: held },
    ],
    lifetime: -1,
    segment: number,
    stacks: [{ head: 'Reserved by', stack: span.stack }],
  };
}

/** @param {any} app @param {number} stack @returns {Card} */
function stackCard(app, stack) {
  return { title: 'Stack', facts: [], lifetime: -1, segment: -1, stacks: [{ head: '', stack }] };
}

/** What is chosen; null: nothing. @param {any} app @returns {Card | null} */
export function cardOf(app) {
  const { state, source } = app;
  if (state.lifetime >= 0 && state.lifetime < source.lifetimes)
    return blockCard(app, state.lifetime);
  const number = Number(state.picked.slice(1));
  if (state.picked[0] === 'e') return eventCard(app, number);
  if (state.picked[0] === 's') return segmentCard(app, number);
  return state.picked[0] === 't' ? stackCard(app, number) : null;
}
