// SPDX-License-Identifier: MIT
// The card of whatever was clicked: what it is, where it lived, its whole stack, and what else that
// stack holds. It can be copied as text.
import { sinceText } from './begin.js';
import { cardOf } from './card_facts.js';
import { copyText } from './clipboard.js';
import { countOf, sizeText } from './format.js';
import { lifetimesAt } from './layout.js';
import { chooseLifetime, chooseLikeThis, moveCursor, pick } from './navigation.js';
import { element } from './paint.js';
import { stackLines, stackList } from './stack_list.js';
import { NEVER } from './kind.js';

/** What the blocks of a stack hold, in the recording and at the cursor.
 * @param {any} app @param {number} stack */
export function stackSums(app, stack) {
  const { source } = app;
  const entry = app.entryAtCursor();
  const sums = { blocks: 0, bytes: 0, live: 0, liveBytes: 0 };
  if (stack === 0) return sums;
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    if (source.lifetimeStack[lifetime] !== stack) continue;
    sums.blocks++;
    sums.bytes += source.size(lifetime);
    if (!source.isLive(lifetime, entry)) continue;
    sums.live++;
    sums.liveBytes += source.size(lifetime);
  }
  return sums;
}

/** @param {any} app @param {number} stack */
function stackSentence(app, stack) {
  const { blocks, bytes, live, liveBytes } = stackSums(app, stack);
  if (blocks === 0) return '';
  const since = sinceText(app.source);
  const whole =
    `${countOf(blocks, 'block')}, ${sizeText(bytes)} in total${since}, ` +
    'came from this stack; ';
  const now = live > 0 ? `${sizeText(liveBytes)} in ${countOf(live, 'block')}` : 'nothing';
  return `${whole}${now} at the cursor.`;
}

/** @param {any} app @param {import('./card_facts.js').Fact} fact */
function factNode(app, { text, entry, picked, isCode }) {
  if (entry !== undefined)
    return element('button', { class: 'link', onclick: () => moveCursor(app, entry) }, text);
  if (picked?.[0] === 'b')
    return element(
      'button',
      { class: 'link', onclick: () => chooseLifetime(app, Number(picked.slice(1))) },
      text,
    );
  if (picked) return element('button', { class: 'link', onclick: () => pick(app, picked) }, text);
  return isCode ? element('code', {}, text) : text;
}

/** The blocks beside a block, at the cursor or when it was allocated.
 * @param {any} app @param {number} lifetime @returns {[string, number][]} */
function neighboursOf(app, lifetime) {
  const { source } = app;
  const entry = app.entryAtCursor();
  const start = source.lifetimeStart[lifetime] === NEVER ? -1 : source.lifetimeStart[lifetime];
  const around = lifetimesAt(source, source.isLive(lifetime, entry) ? entry : start);
  const at = around.indexOf(lifetime);
  return /** @type {[string, number][]} */ ([
    ['above', around[at + 1]],
    ['below', at > 0 ? around[at - 1] : undefined],
  ]).filter(([, other]) => other !== undefined);
}

/** @param {any} app @param {number} lifetime */
function neighboursPart(app, lifetime) {
  const { source } = app;
  return element(
    'div',
    { class: 'neighbours' },
    ...neighboursOf(app, lifetime).map(([word, other]) =>
      element(
        'button',
        { class: 'link', onclick: () => chooseLifetime(app, other) },
        `${word}: ${sizeText(source.size(other))}, ` +
          source.names.stackText(source.lifetimeStack[other]),
      ),
    ),
  );
}

/** All of a card as text. @param {any} app @param {import('./card_facts.js').Card} card */
export function cardText(app, card) {
  const { names } = app.source;
  const lines = [card.title, ...card.facts.map(({ name, text }) => `${name}: ${text}`)];
  const sentence = stackSentence(app, card.stacks[0].stack);
  if (sentence) lines.push(sentence);
  for (const { head, stack } of card.stacks) lines.push('', head, stackLines(names, stack));
  return lines.join('\n') + '\n';
}

/** @param {any} app @param {string} label @param {() => string} text */
function copyButton(app, label, text) {
  const copy = async () => {
    await copyText(text());
    app.say('copied');
  };
  return element('button', { onclick: copy, 'data-key': label }, label);
}

/** @param {any} app @param {import('./card_facts.js').Card} card */
function cardButtons(app, card) {
  const { names } = app.source;
  const { stack } = card.stacks[0];
  const likeThis = stack > 0 && stackSums(app, stack).blocks > 0;
  return element(
    'p',
    { class: 'bar' },
    copyButton(app, 'Copy stack', () => stackLines(names, stack) + '\n'),
    copyButton(app, 'Copy as text', () => cardText(app, card)),
    likeThis
      ? element('button', { onclick: () => chooseLikeThis(app, stack) }, 'Show all like this')
      : null,
  );
}

/** @param {any} app */
export function cardPart(app) {
  const card = cardOf(app);
  if (!card) return null;
  const sentence = stackSentence(app, card.stacks[0].stack);
  const close = {
    class: 'close',
    title: 'Close (Esc)',
    'aria-label': 'Close the card',
    onclick: () => app.set({ lifetime: -1, picked: '' }),
  };
  return element(
    'section',
    { class: 'card' },
    element('h2', {}, card.title, element('button', close, '\u00d7')),
    element(
      'dl',
      { class: 'facts' },
      ...card.facts.flatMap((fact) => [
        element('dt', {}, fact.name),
        element('dd', {}, factNode(app, fact)),
      ]),
    ),
    sentence ? element('p', {}, sentence) : null,
    card.lifetime >= 0 ? neighboursPart(app, card.lifetime) : null,
    cardButtons(app, card),
    ...card.stacks.flatMap(({ head, stack }) => [
      head ? element('h3', {}, head) : null,
      stackList(app, stack),
    ]),
  );
}
