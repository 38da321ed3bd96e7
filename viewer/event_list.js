// SPDX-License-Identifier: MIT
// All events in a list beside the picture. Only rows in sight are elements. Browsers end an element
// at some millions of pixels, so a long list scrolls in a shorter one, at another scale.
import { countOf, countText } from './format.js';
import { EVENT_ACTIONS, eventRows, eventWords } from './event_rows.js';
import { chooseEvent } from './navigation.js';
import { byId, element } from './paint.js';

const ROW_HIGH = 40; // as in style.css
const HIGH_MOST = 2e6; // pixels of an element
const SPARE = 4; // rows beyond those in sight
const PARTS = /** @type {const} */ (['number', 'action', 'size', 'where', 'address', 'frame']);

export class EventList {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    /** That the rows are of. @type {import('./trace.js').Source | null} */
    this.source = null;
    /** @type {Uint32Array | null} entries; null: all */
    this.rows = null;
    this.count = 0;
    this.top = 0; // row that is first in sight, with a fraction
    this.wantedTop = -1; // of the scroller, when the list has moved itself
    this.first = -1; // row of the first element
    /** @type {HTMLElement[]} */
    this.elements = [];
    this.shown = NaN; // cursor that was scrolled to
    this.choice = /** @type {HTMLSelectElement} */ (
      element(
        'select',
        {
          'aria-label': 'Which events',
          onchange: () => app.set({ actions: this.choice.value }),
        },
        ...EVENT_ACTIONS.map(({ id, text }) => element('option', { value: id }, text)),
      )
    );
    this.note = element('span', { class: 'number' });
    this.spacer = element('div', { class: 'spacer', role: 'presentation' });
    this.body = element('div', { class: 'rows', role: 'presentation' });
    this.scroller = element(
      'div',
      { class: 'scroller', role: 'listbox', tabindex: '0', 'aria-label': 'Events' },
      this.spacer,
      this.body,
    );
  }

  listen() {
    const close = {
      class: 'close',
      title: 'Close (e)',
      'aria-label': 'Close the list of events',
      onclick: () => this.app.set({ events: false }),
    };
    const head = element('div', { class: 'head' }, element('h2', {}, 'Events'));
    head.append(this.choice, this.note, element('button', close, '\u00d7'));
    byId('events').append(head, this.scroller);
    this.scroller.addEventListener('scroll', () => this.scrolled());
    this.scroller.addEventListener('wheel', (event) => this.turned(event), { passive: false });
    this.scroller.addEventListener('keydown', (event) => this.key(event));
    this.body.addEventListener('click', (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest('[data-row]');
      if (row) this.choose(Number(row.getAttribute('data-row')));
    });
    new ResizeObserver(() => this.place(this.top)).observe(this.scroller);
  }

  /** @param {number} row */
  entry(row) {
    return this.rows ? this.rows[row] : row;
  }

  /** The row of an entry, or of the first after it. @param {number} entry */
  rowOf(entry) {
    if (!this.rows) return Math.max(0, Math.min(this.count - 1, entry));
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < entry) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, this.count - 1);
  }

  /** Rows in sight. */
  sight() {
    return Math.max(1, this.scroller.clientHeight / ROW_HIGH);
  }

  high() {
    return Math.min(HIGH_MOST, this.count * ROW_HIGH);
  }

  isScaled() {
    return this.count * ROW_HIGH > HIGH_MOST;
  }

  /** Makes a row the first in sight. @param {number} top */
  place(top) {
    const most = Math.max(0, this.count - this.sight());
    this.top = Math.max(0, Math.min(most, top));
    const room = this.high() - this.scroller.clientHeight;
    const share = most > 0 ? this.top / most : 0;
    this.scroller.scrollTop = Math.max(0, share * room);
    this.wantedTop = this.scroller.scrollTop;
    this.fill();
  }

  scrolled() {
    if (Math.abs(this.scroller.scrollTop - this.wantedTop) < 1) return;
    this.wantedTop = -1;
    const room = this.high() - this.scroller.clientHeight;
    const most = Math.max(0, this.count - this.sight());
    this.top = room > 0 ? (this.scroller.scrollTop / room) * most : 0;
    this.fill();
  }

  /** In a scaled list a turn of the wheel would be thousands of rows. @param {WheelEvent} event */
  turned(event) {
    if (!this.isScaled()) return;
    event.preventDefault();
    const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    this.place(this.top + pixels / ROW_HIGH);
  }

  /** Puts words into the elements in sight. @param {boolean} [isNew] all of them */
  fill(isNew = false) {
    if (this.source !== this.app.source) return; // the next draw takes the rows of that one
    const first = Math.max(0, Math.floor(this.top) - SPARE);
    const count = Math.min(this.count - first, Math.ceil(this.sight()) + 2 * SPARE);
    const at = this.isScaled()
      ? this.scroller.scrollTop - (this.top - first) * ROW_HIGH
      : first * ROW_HIGH;
    this.body.style.transform = `translateY(${at}px)`;
    if (!isNew && first === this.first && this.elements.length === Math.max(0, count)) return;
    this.first = first;
    while (this.elements.length < count) this.elements.push(this.makeRow());
    for (const old of this.elements.splice(Math.max(0, count))) old.remove();
    this.elements.forEach((made, i) => this.fillRow(made, first + i));
  }

  makeRow() {
    const made = element('div', { class: 'event', role: 'option' });
    for (const part of PARTS) made.append(element('span', { class: part }));
    this.body.append(made);
    return made;
  }

  /** @param {HTMLElement} made @param {number} row */
  fillRow(made, row) {
    const { app } = this;
    const { source } = app;
    const entry = this.entry(row);
    const words = eventWords(source, entry);
    PARTS.forEach((part, i) => {
      made.children[i].textContent = words[part];
    });
    const isChosen = entry === app.state.cursor;
    made.id = `event-${row}`;
    made.title = source.names.stackText(source.stack[entry]);
    made.setAttribute('data-row', String(row));
    made.setAttribute('data-kind', String(source.kind[entry]));
    made.setAttribute('aria-selected', String(isChosen));
    made.setAttribute('aria-posinset', String(row + 1));
    made.setAttribute('aria-setsize', String(this.count));
    if (isChosen) this.scroller.setAttribute('aria-activedescendant', made.id);
  }

  /** @param {number} row */
  choose(row) {
    if (!(row >= 0 && row < this.count)) return;
    this.shown = this.entry(row); // it is in sight, or will be
    this.reveal(row);
    chooseEvent(this.app, this.entry(row));
  }

  /** Scrolls as little as shows a row. @param {number} row */
  reveal(row) {
    if (row < this.top) this.place(row);
    else if (row + 1 > this.top + this.sight()) this.place(row + 1 - this.sight());
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, Math.floor(this.sight()) - 1);
    const steps = /** @type {Record<string, number>} */ ({
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -page,
      PageDown: page,
      Home: -Infinity,
      End: Infinity,
    });
    const step = steps[event.key];
    if (step === undefined || this.count === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const now = this.rowOf(Math.max(0, this.app.entryAtCursor()));
    this.choose(Math.max(0, Math.min(this.count - 1, now + step)));
  }

  draw() {
    const { app } = this;
    const { state, source } = app;
    const isOpen = state.events && source.count > 0;
    byId('events').hidden = !isOpen;
    document.body.classList.toggle('events', isOpen);
    if (!isOpen) return;
    const isNew = app.isStale('event rows', source.id, state.query, state.actions);
    if (isNew) this.takeRows();
    const { cursor } = state;
    const isMoved = app.isStale('event cursor', cursor);
    if (isNew || (isMoved && cursor !== this.shown)) {
      this.shown = cursor;
      this.place(Math.floor(this.rowOf(Math.max(0, app.entryAtCursor())) - this.sight() / 3));
    }
    if (isNew || isMoved) this.fill(true);
  }

  takeRows() {
    const { app } = this;
    this.source = app.source;
    this.rows = eventRows(app);
    this.count = this.rows ? this.rows.length : app.source.count;
    this.choice.value = app.state.actions;
    this.spacer.style.height = `${this.high()}px`;
    this.note.textContent = this.rows
      ? `${countText(this.count)} of ${countOf(app.source.count, 'event')}`
      : countOf(this.count, 'event');
  }
}
