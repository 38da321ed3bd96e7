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

/** Without a history there is one moment only, which the map shows. @param {any} info */
function firstView(info) {
  return info?.entries === 0 && info.skipped === 0 && info.lifetimes > 0 ? 'map' : 'timeline';
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
    const fragment = '#' + stateFragment(this.app.state);
    if (fragment === location.hash || (fragment === '#' && location.hash === '')) return;
    clearTimeout(this.timer);
    if (isStep) putAddress(fragment, true);
    else this.timer = setTimeout(() => putAddress(fragment, false), ADDRESS_REST);
  }

  read() {
    const { runs } = this.app;
    const isPair = runs.length > 1;
    const [{ head: first }] = runs; // what the page was asked to open with is in each
    const state = initialState();
    state.view = first.view === 'segments' ? 'timeline' : first.view;
    if (isPair && first.view === 'timeline') state.view = 'compare';
    state.segments = first.view === 'segments';
    readFragment(location.hash, state);
    if (!isPair) Object.assign(state, { before: false, otherCursor: -2 });
    if (!isPair && state.view === 'compare') state.view = 'timeline';
    const { head } = runs[isPair && !state.before ? 1 : 0];
    if (!(state.source >= 0 && state.source < head.sources.length)) state.source = 0;
    state.source = Math.floor(state.source);
    if (!/[#&]v=/.test(location.hash) && state.view === 'timeline' && !state.segments)
      state.view = firstView(head.sources[state.source]);
    return state;
  }

  /** The address changed: shows what it says. */
  follow() {
    const { app } = this;
    if (location.hash === '#' + stateFragment(app.state)) return;
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
