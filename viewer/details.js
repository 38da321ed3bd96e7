// SPDX-License-Identifier: MIT
// The panel at the side: the legend with its figures at the cursor, a range, and the card of the
// chosen block.
import { unitRounded } from './block_size.js';
import { countOf, countText, shownText, sizeText, timeText } from './format.js';
import { lifetimesAt } from './layout.js';
import { chooseLifetime, chooseLikeThis, moveCursor } from './navigation.js';
import { legendPart } from './legend.js';
import { element, replaceContent } from './paint.js';
import { NEVER } from './trace.js';

const FRAMES_SHOWN = 80;

/** What changed between the mark and the cursor. @param {any} app */
function rangePart(app) {
  const { state, curve, source } = app;
  if (state.mark < -1 || state.cursor < -1) return null;
  const [from, to] = [state.mark, state.cursor].sort((a, b) => a - b);
  const most =
    source.count > 0 ? curve.most(Math.max(0, from), Math.max(1, to + 1)) : { value: 0 };
  const change = curve.requested(to) - curve.requested(from);
  let allocs = 0;
  let bytes = 0;
  let kept = 0;
  let keptBytes = 0;
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const start = source.lifetimeStart[lifetime];
    if (start === NEVER || start <= from || start > to) continue;
    allocs++;
    bytes += source.size(lifetime);
    if (source.isLive(lifetime, to)) {
      kept++;
      keptBytes += source.size(lifetime);
    }
  }
  const took = source.hasTime ? timeText(source.timeAt(to) - source.timeAt(from)) : '';
  return element(
    'section',
    {},
    element('h2', {}, 'From mark to cursor'),
    element(
      'dl',
      { class: 'facts' },
      ...facts([
        ['events', `${countText(to - from)}${took ? ', ' + took : ''}`],
        ['requested', `${change >= 0 ? '+' : ''}${sizeText(change)}`],
        ['most in between', sizeText(most.value)],
        ['allocated', `${sizeText(bytes)} in ${countOf(allocs, 'block')}`],
        ['of these still there', `${sizeText(keptBytes)} in ${countOf(kept, 'block')}`],
      ]),
    ),
    element(
      'p',
      { class: 'bar' },
      element(
        'button',
        { onclick: () => app.set({ view: 'flame', flame: 'growth' }) },
        'Who grew',
      ),
      element('button', { onclick: () => app.set({ mark: -2 }) }, 'Clear the mark'),
    ),
  );
}

/** @param {[string, string | Node][]} pairs */
function facts(pairs) {
  return pairs.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]);
}

/** A stack, innermost frame first. @param {any} app @param {number} stack */
function stackList(app, stack) {
  const { names } = app.source;
  const frames = names.frames(stack);
  if (frames.length === 0) {
    return element(
      'p',
      { class: 'note' },
      stack === 0
        ? 'No stack was recorded: the block is from before ' +
            'the recording, or stacks were switched off.'
        : 'The stack has no frames: it was taken where neither Python nor C++ ' +
            'frames were recorded, as in the backward pass without stacks="all".',
    );
  }
  const items = frames.slice(0, FRAMES_SHOWN).map((/** @type {number} */ frame) => {
    const file = names.text(names.frameFile[frame]);
    const fx = names.frameFx[frame];
    return element(
      'li',
      { class: names.isLibrary(frame) ? 'library' : '', title: shownText(file, 500) },
      names.frameText(frame),
      fx.length > 0
        ? element(
            'div',
            { class: 'note' },
            `torch.fx: ${fx
              .map((/** @type {number} */ text) => shownText(names.text(text), 120))
              .filter(Boolean)
              .join(' ')}`,
          )
        : null,
    );
  });
  if (frames.length > FRAMES_SHOWN)
    items.push(element('li', {}, `${countOf(frames.length - FRAMES_SHOWN, 'frame')} more`));
  return element('ol', { class: 'stack' }, ...items);
}

/**
 * Blocks of the same stack and size, and what lies beside it.
 * @param {any} app
 * @param {number} lifetime
 */
function relatives(app, lifetime) {
  const { source } = app;
  const stack = source.lifetimeStack[lifetime];
  const entry = app.entryAtCursor();
  let siblings = 0;
  let siblingBytes = 0;
  let live = 0;
  for (let other = 0; other < source.lifetimes; other++) {
    if (source.lifetimeStack[other] !== stack || stack === 0) continue;
    siblings++;
    siblingBytes += source.size(other);
    if (source.isLive(other, entry)) live++;
  }
  const start = source.lifetimeStart[lifetime] === NEVER ? -1 : source.lifetimeStart[lifetime];
  const around = lifetimesAt(source, source.isLive(lifetime, entry) ? entry : start);
  const at = around.indexOf(lifetime);
  const neighbour = (/** @type {number} */ other, /** @type {string} */ word) =>
    other === undefined
      ? null
      : element(
          'button',
          { class: 'link', onclick: () => chooseLifetime(app, other) },
          `${word}: ${sizeText(source.size(other))}, ` +
            `${source.names.stackText(source.lifetimeStack[other])}`,
        );
  return element(
    'div',
    {},
    siblings > 1
      ? element(
          'p',
          {},
          `${countOf(siblings, 'block')} of ${sizeText(siblingBytes)} ` +
            `came from this stack, ${countText(live)} allocated at the cursor. `,
          element(
            'button',
            { class: 'link', onclick: () => chooseLikeThis(app, lifetime) },
            'Show all like this',
          ),
        )
      : null,
    element(
      'div',
      { class: 'neighbours' },
      neighbour(around[at + 1], 'above'),
      at > 0 ? neighbour(around[at - 1], 'below') : null,
    ),
  );
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

/** @param {any} app */
function lifetimePart(app) {
  const { source, state } = app;
  const lifetime = state.lifetime;
  if (!(lifetime >= 0 && lifetime < source.lifetimes)) return null;
  const size = source.size(lifetime);
  const start = source.lifetimeStart[lifetime];
  const end = source.lifetimeEnd[lifetime];
  const asked = source.lifetimeAsked[lifetime];
  const stack = source.lifetimeStack[lifetime];
  const extra = source.extra(lifetime);
  const said = source.names.extras[source.said(lifetime)];
  /** @type {[string, string | Node][]} */
  const list = [
    ['requested', `${sizeText(size)} (${countText(size)} bytes)`],
    ['takes', `${sizeText(source.blockSize(lifetime))}, ${roundingText(source, lifetime)}`],
    ['address', element('code', {}, source.hex(source.lifetimeAddress[lifetime]))],
    ['where', source.poolStreamText(source.lifetimePoolStream[lifetime])],
    ['allocated', start === NEVER ? 'before the recording' : jumpButton(app, start)],
    ['freed', end === NEVER ? 'not in the recording' : jumpButton(app, end)],
  ];
  if (asked !== NEVER && end !== NEVER && end > asked + 1) {
    list.push([
      'free waited',
      source.hasTime
        ? timeText(source.time[end] - source.time[asked])
        : countOf(end - asked, 'event', 'events'),
    ]);
  }
  if (start !== NEVER && end !== NEVER) {
    list.push([
      'lasted',
      countOf(end - start, 'event', 'events') +
        (source.hasTime ? ', ' + timeText(source.time[end] - source.time[start]) : ''),
    ]);
  }
  for (const [name, text] of [
    ['metadata', said.metadata],
    ['category', source.head.categories[source.category(lifetime)]],
    ['compiled by', extra.compile === 'N/A' ? '' : extra.compile],
    ['recorded category', extra.category],
    ['internal', extra.internal],
  ]) {
    if (text) list.push([String(name), shownText(text, 600)]);
  }
  const freeStack =
    end !== NEVER && start !== NEVER
      ? source.stack[end]
      : start === NEVER && asked !== NEVER
        ? source.stack[asked]
        : 0;
  return element(
    'section',
    { class: 'card' },
    element(
      'h2',
      {},
      `Block of ${sizeText(size)}`,
      element(
        'button',
        {
          class: 'close',
          title: 'Close (Esc)',
          'aria-label': 'Close the card',
          onclick: () => app.set({ lifetime: -1 }),
        },
        '\u00d7',
      ),
    ),
    element('dl', { class: 'facts' }, ...facts(list)),
    relatives(app, lifetime),
    element('h3', {}, 'Allocated by'),
    stackList(app, stack),
    freeStack > 0 && freeStack !== stack ? element('h3', {}, 'Freed by') : null,
    freeStack > 0 && freeStack !== stack ? stackList(app, freeStack) : null,
  );
}

/** @param {any} app @param {number} entry */
function jumpButton(app, entry) {
  const { source } = app;
  const time = source.hasTime ? `, ${timeText(source.time[entry])}` : '';
  return element(
    'button',
    { class: 'link', onclick: () => moveCursor(app, entry) },
    `event ${countText(entry + source.info.skipped)}${time}`,
  );
}

/** The chosen group, when it is of one stack. @param {any} app */
function groupPart(app) {
  const { state, grouping } = app;
  const key = grouping.keys.find(
    (/** @type {any} */ k) => k.key === state.group && state.group !== '',
  );
  if (!key || key.stack < 0) return null;
  return element(
    'section',
    {},
    element('h3', {}, grouping.by === 'stack' ? 'Stack of the group' : 'A stack of the group'),
    stackList(app, key.stack),
  );
}

/** @param {any} app @param {HTMLElement} into */
export function fillPanel(app, into) {
  const parts = [
    lifetimePart(app),
    rangePart(app),
    legendPart(app),
    groupPart(app),
  ];
  replaceContent(into, .../** @type {Node[]} */ (parts.filter(Boolean)));
}
