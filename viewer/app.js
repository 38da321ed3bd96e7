// SPDX-License-Identifier: MIT
// Puts the page together, and draws the view that is looked at. All views share one
// cursor, one window and one selection.
import { breathe } from './payload.js';
import { EventList } from './event_list.js';
import { Grouping } from './group.js';
import { byId, themeOf } from './paint.js';
import { keepTheme } from './theme.js';
import { placesOf } from './compare.js';
import { drawOverview } from './overview.js';
import { isBlocksMoving, paintSome } from './blocks_picture.js';
import { limits } from './info.js';
import { fillPanel } from './details.js';
import { clampState, initialState } from './state.js';
import { Address } from './address.js';
import { Announcer, describePicture } from './announce.js';
import { Brush } from './brush.js';
import { showBroken } from './broken.js';
import { changesSource } from './open_source.js';
import { drawDevices } from './devices.js';
import { listenToKeys, showKeys } from './keys.js';
import { panWindow, zoomWindow } from './navigation.js';
import { drawNotices } from './notices.js';
import { Player } from './player.js';
import { Printer } from './print.js';
import { Pointer } from './pointer.js';
import { listenToSaving } from './saving.js';
import { listenToSearch, searchFor } from './searchbar.js';
import { drawStatus } from './statusbar.js';
import { drawToolbar } from './toolbar.js';
import { CANVAS_VIEWS, DOCUMENT_VIEWS, drawTabs, listenToTabs } from './views.js';

const FRAMES_KEPT = 600;
const RANK_REST = 180; // milliseconds in which the window stands still

export class App {
  /** @param {import('./run.js').Run[]} runs one, or the one before and the one after */
  constructor(runs) {
    this.runs = runs;
    this.state = initialState();
    this.canvas = /** @type {HTMLCanvasElement} */ (byId('canvas'));
    this.overview = /** @type {HTMLCanvasElement} */ (byId('overview'));
    /** The source that is shown, and its like, in the order of the recordings; null: it has none.
     * @type {any[]} */
    this.sides = [];
    /** @type {any} */
    this.pair = null; // groupings of both
    /** @type {any} */
    this.panels = null; // pictures of both
    this.address = new Address(this);
    this.announcer = new Announcer(this);
    this.player = new Player(this);
    this.printer = new Printer(this);
    this.eventList = new EventList(this);
    this.groupingNumber = 0;
    this.isDark = document.documentElement.classList.contains('dark');
    this.theme = themeOf(this.isDark);
    /** @type {any} */
    this.matches = null;
    /** @type {Uint8Array | null} by block */
    this.matching = null;
    /** @type {Uint8Array | null} by frame */
    this.frameMatches = null;
    this.annotations = { spans: /** @type {any[]} */ ([]), depth: 0 };
    this.isDrawing = false;
    this.isPainting = false;
    // What a view leaves for the next one: the picture drawn last, and how far it was scrolled.
    /** @type {any} */
    this.picture = null;
    /** @type {import('./pixels.js').Pixels | null} */
    this.areas = null;
    /** @type {any} */
    this.blocksJob = null;
    /** @type {any} */
    this.blocksPicture = null;
    /** @type {any} */
    this.blocksWhole = null;
    /** @type {any} */
    this.blocksWorkshop = null;
    /** @type {any} */
    this.blocksFrame = null;
    this.blocksMoved = -Infinity; // when the window was another one last
    /** Where the mouse is on the picture. @type {{x: number, y: number} | null} */
    this.hover = null;
    /** @type {any} */
    this.fileNumbers = null;
    /** @type {any} */
    this.hitMarks = null;
    /** @type {any} */
    this.flameFocus = null; // the box that is as wide as the picture
    this.mapScroll = 0;
    this.flameScroll = 0;
    /** What parts of the page depended on when they were made last. @type {Map<string, string>} */
    this.made = new Map();
    this.groupOfSelection = -1;
    /** @type {number | undefined} */
    this.rankTimer = undefined;
    this.capacity = 0;
    // Of the source that is shown; set before anything is drawn.
    /** @type {import('./trace.js').Source} */
    this.source = /** @type {any} */ (null);
    /** @type {import('./curve.js').Curve} */
    this.curve = /** @type {any} */ (null);
    /** @type {import('./extents.js').Extents} */
    this.extents = /** @type {any} */ (null);
    /** @type {Grouping} */
    this.grouping = /** @type {any} */ (null);
    this.frames = /** @type {number[]} */ ([]);
  }

  // ---- data ----

  /** The recording that is shown. */
  get run() {
    return this.runs[this.runs.length > 1 && !this.state.before ? 1 : 0];
  }

  get head() {
    return this.run.head;
  }

  get names() {
    return this.run.names;
  }

  group() {
    this.grouping = new Grouping(
      this.source,
      this.state.by,
      this.curve,
      this.state.filter ? this.matching : null,
      this.state,
      this.state.group,
      placesOf(this),
    );
    this.groupingNumber++;
    this.findGroupOfSelection();
  }

  findGroupOfSelection() {
    const { grouping, state } = this;
    const key = grouping.keys.findIndex((k) => k.key === state.group);
    this.groupOfSelection = key >= 0 ? grouping.groupOfKey[key] : -1;
    if (key < 0) state.group = '';
  }

  /** Gives colours to the groups that hold most of what is seen. */
  rank() {
    if (this.grouping.rankIn(this.state, this.state.group)) this.groupingNumber++;
    this.findGroupOfSelection();
  }

  /** The same, when the window stands still. */
  rankSoon() {
    clearTimeout(this.rankTimer);
    this.rankTimer = setTimeout(() => {
      this.rankTimer = undefined;
      this.rank();
      this.refresh();
    }, RANK_REST);
  }

  // ---- state ----

  /** Changes what is looked at. @param {Partial<import('./state.js').State>} changes */
  set(changes) {
    const before = { ...this.state };
    Object.assign(this.state, changes);
    this.settle(before);
  }

  /** Follows a change of the state. @param {import('./state.js').State} before */
  settle(before) {
    const { state } = this;
    if (changesSource(this, before)) return;
    if (state.lifetime !== before.lifetime && state.lifetime >= 0) state.picked = '';
    else if (state.picked !== before.picked && state.picked !== '') state.lifetime = -1;
    clampState(state, this.source);
    if (state.query !== before.query) searchFor(this, state.query);
    if (
      state.by !== before.by ||
      state.filter !== before.filter ||
      (state.filter && state.query !== before.query)
    )
      this.group();
    else if (state.group !== before.group) this.rank();
    if (state.from !== before.from || state.to !== before.to) this.rankSoon();
    if (state.view !== before.view) {
      this.player.stop();
      this.blocksWorkshop = null;
      this.blocksJob = null;
    }
    if (
      state.cursor !== before.cursor ||
      state.lifetime !== before.lifetime ||
      state.view !== before.view
    )
      this.say();
    this.keepAddress(state.view !== before.view);
    this.refresh();
  }

  /** The entry that is shown where one moment is: without a cursor, the peak. */
  entryAtCursor() {
    const { state, source, curve } = this;
    if (state.cursor >= -1) return state.cursor;
    return source.count > 0 ? curve.peak.entry : source.count - 1;
  }

  // ---- what views and inputs ask for ----

  /** @param {boolean} isStep whether going back should return here */
  keepAddress(isStep) {
    this.address.keep(isStep);
  }

  /** Tells screen readers. @param {string} [text] */
  say(text) {
    this.announcer.say(text);
  }

  /** @param {number} times @param {number} [around] place */
  zoom(times, around) {
    zoomWindow(this, times, around);
  }

  /** @param {number} share of the window */
  pan(share) {
    panWindow(this, share);
  }

  /** @param {boolean} isDark */
  setTheme(isDark) {
    this.isDark = isDark;
    this.theme = themeOf(isDark);
    document.documentElement.classList.toggle('dark', isDark);
    this.refresh();
  }

  /** The other theme, also when the page is loaded again. */
  chooseTheme() {
    this.setTheme(!this.isDark);
    keepTheme(this.isDark);
  }

  // ---- what is shown ----

  refresh() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      try {
        this.draw();
      } catch (error) {
        showBroken(error);
      }
    });
  }

  /** Whether a part of the page has to be made anew, because it depends on other things than when
   * it was made last. What stays as it is costs a browser nothing: each new element makes it lay
   * out the page again.
   * @param {string} part @param {any[]} on */
  isStale(part, ...on) {
    const key = JSON.stringify(on);
    if (this.made.get(part) === key) return false;
    this.made.set(part, key);
    return true;
  }

  /** What everything that tells figures at the cursor depends on. */
  cursorKey() {
    const { state, source, theme } = this;
    return [
      source.id,
      this.groupingNumber,
      theme.paper,
      state.view,
      state.cursor,
      state.mark,
      state.lifetime,
      state.group,
      state.picked,
      state.others,
    ];
  }

  /** What the panel depends on beside the cursor: a search marks frames, and the flame has a legend
   * of its own. */
  panelKey() {
    const { query, view, flame, boxes, inverted, own, through, filter, from, to } = this.state;
    const window = view === 'flame' && flame === 'range' ? [from, to] : [];
    return [
      ...this.cursorKey(),
      query,
      this.state.segments,
      this.state.plain,
      view === 'flame' ? [flame, boxes, inverted, own, through, filter] : 0,
    ].concat(window);
  }

  draw() {
    if (!this.source) return;
    const begun = performance.now();
    const { view } = this.state;
    drawTabs(this);
    drawNotices(this);
    drawToolbar(this);
    drawDevices(this);
    this.drawView();
    if (this.hasSide() && this.isStale('panel', ...this.panelKey()))
      fillPanel(this, byId('panel'));
    this.eventList.draw();
    drawOverview(this, this.overview);
    drawStatus(this);
    if (view === 'blocks' && this.blocksJob) this.paintOn();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > FRAMES_KEPT) this.frames.shift();
  }

  drawView() {
    const { view } = this.state;
    const canvasView = CANVAS_VIEWS[view];
    const isEmpty = this.isEmptyView();
    this.canvas.hidden = !canvasView || isEmpty;
    byId('document').hidden = Boolean(canvasView);
    byId('empty').hidden = !isEmpty;
    document.body.classList.toggle('wide', !this.hasSide());
    document.body.classList.toggle('document', !canvasView);
    if (isEmpty) {
      byId('empty').textContent = limits(this)[0] || 'There is nothing to draw.';
    } else if (canvasView) {
      const { width, height } = byId('stage').getBoundingClientRect();
      canvasView.draw(this, this.canvas, Math.max(200, width), Math.max(120, height));
      if (this.isStale('words', ...this.cursorKey()))
        this.canvas.setAttribute('aria-label', describePicture(this));
    } else {
      const { sort, up } = this.state;
      const isNew = this.isStale('document', ...this.cursorKey(), sort, up);
      if (isNew || view !== 'table') DOCUMENT_VIEWS[view](this, byId('document'));
    }
  }

  /** Whether there is something beside the view: always beside a picture, beside a document what
   * was asked for. */
  hasSide() {
    const { view, events, picked, lifetime } = this.state;
    return Boolean(CANVAS_VIEWS[view]) || events || picked !== '' || lifetime >= 0;
  }

  isEmptyView() {
    const { state, source } = this;
    if (state.view === 'timeline' || state.view === 'blocks') return source.count === 0;
    if (state.view === 'map') return source.spans.length === 0;
    return false;
  }

  /** Goes on with the picture of blocks between frames. */
  paintOn() {
    if (this.isPainting) return;
    this.isPainting = true;
    const step = async () => {
      while (this.blocksJob && this.state.view === 'blocks') {
        if (!isBlocksMoving(this) && paintSome(this)) this.refresh();
        if (this.blocksJob && isBlocksMoving(this)) {
          await new Promise((done) => setTimeout(done, 10));
        } else await breathe();
      }
      this.isPainting = false;
    };
    step();
  }

  listen() {
    new Pointer(this).listen();
    new Brush(this).listen();
    this.eventList.listen();
    listenToKeys(this);
    listenToSearch(this);
    listenToTabs(this);
    this.address.listen();
    new ResizeObserver(() => this.refresh()).observe(byId('stage'));
    byId('list').addEventListener('click', () => this.set({ events: !this.state.events }));
    byId('theme').addEventListener('click', () => this.chooseTheme());
    byId('help').addEventListener('click', () => showKeys(this.state.view));
    this.printer.listen();
    listenToSaving(this);
  }
}
