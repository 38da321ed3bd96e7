// SPDX-License-Identifier: MIT
// A rank's timeline in small, on the scale of those beside it.
import { countOf, countText, sizeText } from './format.js';
import { element, openCanvas } from './paint.js';
import { wayTo } from './rank_link.js';

/** @typedef {import('./rank.js').Rank} Rank */

const HEIGHT = 64;
const CARDS_MOST = 48;

/** @param {any} app @param {HTMLCanvasElement} canvas @param {Rank} rank @param {number} most */
function drawCard(app, canvas, rank, most) {
  const { fleet, theme } = app;
  const width = canvas.clientWidth || 240;
  const { context } = openCanvas(canvas, width, HEIGHT);
  const part = width / fleet.points;
  const top = (/** @type {number} */ value) =>
    HEIGHT - 2 - (most > 0 ? (value / most) * (HEIGHT - 4) : 0);
  context.clearRect(0, 0, width, HEIGHT);
  for (let i = 0; i < fleet.points; i++) {
    const at = rank.index * fleet.points + i;
    context.fillStyle = theme.groups[0];
    const y = top(fleet.requested[at]);
    context.fillRect(i * part, y, part + 0.5, HEIGHT - 2 - y);
    context.fillStyle = theme.reserved;
    context.fillRect(i * part, top(fleet.reserved[at]) - 1, part + 0.5, 1.5);
  }
  context.fillStyle = theme.strong;
  context.fillRect(0, HEIGHT - 2, width, 1);
}

/** @param {number} ranks of its group */
const likeText = (ranks) =>
  ranks === 1 ? 'no rank is like it' : `1 of ${countText(ranks)} like ranks`;

/** @param {any} app @param {Rank} rank */
function cardOf(app, rank) {
  const canvas = element('canvas', {
    role: 'img',
    'aria-label': `Requested and reserved memory of ${rank.name} over time`,
  });
  const group = app.fleet.report.groups[rank.group];
  const card = element(
    'article',
    { class: rank.isOutlier ? 'card outlier' : 'card', 'data-rank': rank.index },
    element('h3', {}, rank.name, rank.isOutlier ? ' stands out' : ''),
    canvas,
    element(
      'p',
      {},
      element('b', {}, sizeText(rank.requestedBytes)),
      ' requested, ',
      element('b', {}, sizeText(rank.reservedBytes)),
      ' reserved at their peaks',
    ),
    element(
      'p',
      {},
      [rank.labelText, countOf(rank.events, 'event'), likeText(group.ranks)]
        .filter((text) => text !== '')
        .join(', '),
    ),
    element('p', {}, wayTo(rank)),
  );
  return { card, canvas: /** @type {HTMLCanvasElement} */ (canvas), rank };
}

export class Cards {
  /** @param {any} app @param {HTMLElement} list @param {HTMLElement} head
   * @param {HTMLElement} note */
  constructor(app, list, head, note) {
    this.app = app;
    this.list = list;
    this.head = head;
    this.note = note;
    /** @type {ReturnType<typeof cardOf>[]} */
    this.cards = [];
  }

  /** Those that are chosen, else one of each group. */
  show() {
    const { fleet, chosen } = this.app;
    const isChosen = chosen.size > 0;
    /** @type {Rank[]} */
    const ranks = isChosen
      ? [...chosen].map((index) => fleet.ranks[index])
      : fleet.representatives();
    this.head.textContent = isChosen ? 'Chosen ranks' : 'One rank of each group of like ranks';
    this.cards = ranks.slice(0, CARDS_MOST).map((rank) => cardOf(this.app, rank));
    this.list.replaceChildren(...this.cards.map(({ card }) => card));
    this.total = ranks.length;
    this.draw();
  }

  draw() {
    const { fleet } = this.app;
    let most = 0;
    for (const { rank } of this.cards)
      for (let i = 0; i < fleet.points; i++) {
        const at = rank.index * fleet.points + i;
        most = Math.max(most, fleet.reserved[at], fleet.requested[at]);
      }
    for (const { canvas, rank } of this.cards) drawCard(this.app, canvas, rank, most);
    const all = this.total ?? 0;
    const cut = all > CARDS_MOST ? ` The first ${CARDS_MOST} of ${countOf(all, 'rank')}.` : '';
    this.note.textContent =
      `Areas are requested memory, lines reserved memory; all on one scale, of which the top is ` +
      `${sizeText(most)}.${cut}`;
  }
}
