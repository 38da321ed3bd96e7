// SPDX-License-Identifier: MIT
// The page's address holds what is being looked at: kept after every change, read at the start and
// when somebody goes back.
import { byId } from './paint.js';
import { initialState, readFragment, stateFragment } from './state.js';

const ADDRESS_REST = 120; // milliseconds without a change

/** @param {string} fragment @param {boolean} isStep */
function putAddress(fragment, isStep) {
  try {
    if (isStep) history.pushState(null, '', fragment);
    else history.replaceState(null, '', fragment);
  } catch {
    /* some viewers of files allow no history: the page works without */
  }
}

/** Whether there is one moment only, which the map shows. @param {any} info */
function isWithoutHistory(info) {
  return info?.entries === 0 && info.skipped === 0 && info.lifetimes > 0;
}

/** The first device on which a request failed, or the first one. @param {any} head */
function firstSource(head) {
  const failed = head.sources.findIndex((/** @type {any} */ info) => info.ooms > 0);
  return Math.max(0, failed);
}

export class Address {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    /** @type {number | undefined} */
    this.timer = undefined;
  }

  /** @param {boolean} isStep whether going back should return here */
  keep(isStep) {
    clearTimeout(this.timer); // also when the address is right again before the change was put
    if (this.isRight()) return;
    const fragment = this.fragment();
    if (isStep) putAddress(fragment, true);
    else this.timer = setTimeout(() => putAddress(fragment, false), ADDRESS_REST);
  }

  /** Whether the address is that of what is looked at. */
  isRight() {
    const fragment = this.fragment();
    return fragment === location.hash || (fragment === '#' && location.hash === '');
  }

  /** The address of what is looked at. */
  fragment() {
    const { state } = this.app;
    return '#' + stateFragment(state, this.opening(state.before, state.source));
  }

  /** What the page opens with when its address says nothing else.
   * @param {boolean} before of two recordings, the first one @param {number} [source] */
  opening(before, source) {
    const { runs } = this.app;
    const [{ head: first }] = runs; // what the page was asked to open with is in each
    const { head } = runs[runs.length > 1 && !before ? 1 : 0];
    const state = initialState();
    state.source = firstSource(head);
    state.segments = first.view === 'segments';
    if (first.view !== 'timeline') state.view = state.segments ? 'timeline' : first.view;
    else if (runs.length > 1) state.view = 'compare';
    else if (isWithoutHistory(head.sources[source ?? state.source])) state.view = 'map';
    return state;
  }

  read() {
    const { runs } = this.app;
    const isPair = runs.length > 1;
    const said = initialState();
    readFragment(location.hash, said); // which recording and source: the rest depends on them
    const before = isPair && said.before;
    const { sources } = runs[isPair && !before ? 1 : 0].head;
    const isSaid = /[#&]d=/.test(location.hash) && said.source >= 0;
    const source = isSaid && said.source < sources.length ? Math.floor(said.source) : undefined;
    const state = this.opening(before, source);
    readFragment(location.hash, state);
    state.source = source ?? this.opening(before).source;
    if (!isPair) Object.assign(state, { before: false, otherCursor: -2 });
    if (!isPair && state.view === 'compare') state.view = 'timeline';
    return state;
  }

  /** The address changed: shows what it says. */
  follow() {
    const { app } = this;
    if (location.hash === this.fragment()) return;
    const before = { ...app.state };
    Object.assign(app.state, this.read());
    if (app.state.to < 0) app.state.to = app.source.count;
    /** @type {HTMLInputElement} */ (byId('search')).value = app.state.query;
    app.settle(before);
  }

  listen() {
    window.addEventListener('hashchange', () => this.follow());
    window.addEventListener('popstate', () => this.follow());
  }
}
