// SPDX-License-Identifier: MIT
// Puts the page together: reads the data, draws the view that is looked at, and answers the mouse,
// touch and keys. All views share one cursor, one window and one selection.
import { BadPage, breathe, readSection } from './payload.js';
import { KIND, KIND_NAMES, Names, NEVER, Source, readAnnotations, readSizes } from './trace.js';
import { Curve } from './curve.js';
import { GROUPINGS, Grouping } from './group.js';
import { Axis } from './axis.js';
import { VIEWS, initialState, readFragment, stateFragment } from './state.js';
import { countOf, countText, shareText, shownText, sizeText, timeText } from './format.js';
import { element, themeOf } from './paint.js';
import { drawFirstPicture, drawOverview } from './overview.js';
import { drawTimeline, hitTimeline, timelineColumns } from './timeline.js';
import { Extents, drawBlocks, hitBlocks, paintSome, pileAt } from './blocks.js';
import { drawMap, hitMap } from './map.js';
import { FLAMES, drawFlame, flamePlan, hitFlame } from './flame.js';
import { fillTable, tableRows } from './table.js';
import { fillOom, oomFacts, oomHolders } from './oom.js';
import { fillInfo, limits } from './info.js';
import { fillPanel } from './card.js';
import { findMatches } from './search.js';
import { explainOom, layoutAt, layoutRows } from './layout.js';

const VIEW_TEXTS = /** @type {Record<string, string>} */ ({
  timeline: 'Timeline',
  blocks: 'Blocks',
  map: 'Map',
  flame: 'Flame',
  table: 'Table',
  oom: 'OOM',
  info: 'Info',
});
const CANVAS_VIEWS =
  /** @type {Record<string, {draw: Function, hit: Function, isOverTime: boolean}>} */ ({
    timeline: { draw: drawTimeline, hit: hitTimeline, isOverTime: true },
    blocks: { draw: drawBlocks, hit: hitBlocks, isOverTime: true },
    map: { draw: drawMap, hit: hitMap, isOverTime: false },
    flame: { draw: drawFlame, hit: hitFlame, isOverTime: false },
  });
const DOCUMENT_VIEWS = /** @type {Record<string, Function>} */ ({
  table: fillTable,
  oom: fillOom,
  info: fillInfo,
});

const KEYS = [
  ['1 \u2026 7', 'views'],
  ['\u2190 \u2192', 'move the cursor an entry; with Shift, a tenth of the window'],
  ['[ ]', 'previous, next entry'],
  [', .', 'previous, next step or annotation'],
  ['a d', 'move the window'],
  ['w s  + -', 'zoom in, out'],
  ['0', 'show all'],
  ['Home End', 'cursor to the start, the end'],
  ['p', 'cursor to the peak; P: of reserved'],
  ['o O', 'next, previous failed request'],
  ['m', 'set or clear the mark at the cursor'],
  ['z', 'zoom to mark and cursor'],
  ['/', 'search'],
  ['n N', 'next, previous match'],
  ['f', 'only what matches'],
  ['x', 'entries or time on the axis'],
  ['g', 'next grouping'],
  ['b', 'blocks by address or piled'],
  ['i', 'invert the flame'],
  ['space', 'play the map'],
  ['t', 'light or dark'],
  ['Esc', 'clear the selection'],
  ['?', 'this list'],
  ['wheel', 'zoom at the pointer; Shift: move; Ctrl: height'],
  ['drag', 'move; Shift: choose a range'],
  ['click', 'set the cursor, choose'],
  ['double click', 'zoom in here'],
];

/** @template {HTMLElement} T @param {string} id @returns {T} */
function byId(id) {
  return /** @type {T} */ (document.getElementById(id));
}

class App {
  /** @param {any} head @param {Names} names */
  constructor(head, names) {
    this.head = head;
    this.names = names;
    this.state = initialState();
    this.canvas = /** @type {HTMLCanvasElement} */ (byId('canvas'));
    this.overview = /** @type {HTMLCanvasElement} */ (byId('overview'));
    /** @type {Map<number, any>} */
    this.loaded = new Map();
    this.groupingNumber = 0;
    this.isDark = document.documentElement.classList.contains('dark');
    this.theme = themeOf(this.isDark);
    this.ownOnly = false;
    this.isInverted = false;
    this.isPlaying = false;
    /** @type {any} */
    this.matches = null;
    this.matching = null;
    this.frameMatches = null;
    this.annotations = { spans: /** @type {any[]} */ ([]), depth: 0 };
    this.rawAnnotations = /** @type {any[]} */ ([]);
    this.isDrawing = false;
    this.isPainting = false;
    // What a view leaves for the next one: the picture drawn last, and how far it was scrolled.
    /** @type {any} */
    this.picture = null;
    /** @type {any} */
    this.blocksJob = null;
    /** @type {any} */
    this.flameFocus = null;
    this.mapScroll = 0;
    this.flameScroll = 0;
    this.controlsKey = '';
    this.overviewKey = '';
    this.sizes = new Float64Array(0);
    this.groupOfSelection = -1;
    this.capacity = 0;
    /** @type {number | undefined} */
    this.addressTimer = undefined;
    /** @type {number | undefined} */
    this.sayTimer = undefined;
    /** @type {number | undefined} */
    this.searchTimer = undefined;
    // Of the source that is shown; set before anything is drawn.
    /** @type {Source} */
    this.source = /** @type {any} */ (null);
    /** @type {Curve} */
    this.curve = /** @type {any} */ (null);
    /** @type {Extents} */
    this.extents = /** @type {any} */ (null);
    /** @type {Grouping} */
    this.grouping = /** @type {any} */ (null);
    this.frames = /** @type {number[]} */ ([]);
  }

  // ---- data ----

  /** Reads a source, unless it has been read, and makes it the one that is shown.
   * @param {number} number */
  async open(number) {
    let loaded = this.loaded.get(number);
    if (!loaded) {
      const source = new Source(this.head.sources[number], this.names, this.head, number);
      await source.read(this.sizes, (share) => {
        byId('status').textContent = `reading ${source.name}: ${Math.round(share * 100)} %`;
      });
      await breathe();
      loaded = { source, curve: new Curve(source) };
      await breathe();
      loaded.extents = new Extents(source);
      this.loaded.set(number, loaded);
    }
    this.source = loaded.source;
    this.curve = loaded.curve;
    this.extents = loaded.extents;
    this.placeAnnotations();
    this.capacity = this.capacityAtOom();
    this.overviewKey = '';
    this.group();
  }

  /** What could be reserved when a request failed on a full device. */
  capacityAtOom() {
    const { source, curve } = this;
    let most = 0;
    for (const entry of source.ooms) {
      const event = source.events[source.ref[entry]];
      most = Math.max(most, curve.reserved(entry) + event.free);
    }
    return most < curve.reservedPeak.value * 1.5 ? most : 0;
  }

  /** Annotations of this source, at places between entries. */
  placeAnnotations() {
    const { source } = this;
    const zero = source.info.time ?? 0;
    const mine =
      source.hasTime && !source.info.host
        ? this.rawAnnotations.filter(
            (span) => span.device < 0 || span.device === source.info.device,
          )
        : [];
    const colours = new Map();
    let depth = 0;
    const spans = mine.map((span) => {
      const text = span.name.replace(/\d+/g, '#');
      if (!colours.has(text)) colours.set(text, colours.size);
      depth = Math.max(depth, span.depth + 1);
      return {
        name: shownText(span.name, 200),
        from: span.from,
        to: span.to,
        depth: span.depth,
        colour: colours.get(text),
        start: source.atTime(span.from - zero),
        end: isFinite(span.to) ? source.atTime(span.to - zero) : source.count,
      };
    });
    this.annotations = { spans, depth };
  }

  group() {
    this.grouping = new Grouping(
      this.source,
      this.state.by,
      this.curve,
      this.state.filter ? this.matching : null,
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

  /** @param {string} query */
  search(query) {
    const found = byId('found');
    byId('filter').hidden = query === '';
    if (query === '') {
      this.matches = null;
      this.matching = null;
      this.frameMatches = null;
      found.textContent = '';
      return;
    }
    this.matches = findMatches(this.source, query);
    this.matching = this.matches.stacks;
    this.frameMatches = this.matches.frames;
    found.textContent =
      this.matches.blocks > 0
        ? `${countOf(this.matches.blocks, 'block')}, ${sizeText(this.matches.bytes)}`
        : 'nothing matches';
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
    if (state.source !== before.source) {
      this.changeSource();
      return;
    }
    this.clampState();
    if (state.query !== before.query) this.search(state.query);
    if (
      state.by !== before.by ||
      state.filter !== before.filter ||
      (state.filter && state.query !== before.query)
    )
      this.group();
    if (state.group !== before.group) this.findGroupOfSelection();
    if (state.view !== before.view) this.stop();
    if (
      state.cursor !== before.cursor ||
      state.life !== before.life ||
      state.view !== before.view
    )
      this.say();
    this.keepAddress(state.view !== before.view);
    this.refresh();
  }

  async changeSource() {
    const wanted = this.state.source;
    document.body.classList.add('loading');
    try {
      await this.open(wanted);
      this.state.from = 0;
      this.state.to = this.source.count;
      this.state.cursor = this.curve.peak.entry;
      this.state.mark = -2;
      this.state.life = -1;
      this.search(this.state.query);
      this.group();
      this.clampState();
      this.keepAddress(true);
    } catch (error) {
      showBroken(error);
    }
    document.body.classList.remove('loading');
    this.refresh();
  }

  clampState() {
    const { state, source } = this;
    const count = source.count;
    const least = Math.min(count, 4);
    if (!(state.to > state.from)) state.to = count;
    let span = Math.max(least, Math.min(count, state.to - state.from));
    if (!isFinite(span)) span = count;
    state.from = Math.max(0, Math.min(count - span, state.from));
    state.to = state.from + span;
    state.cursor = Math.max(-2, Math.min(count - 1, Math.floor(state.cursor)));
    state.mark = Math.max(-2, Math.min(count - 1, Math.floor(state.mark)));
    if (!(state.life >= 0 && state.life < source.lives)) state.life = -1;
    state.life = Math.floor(state.life);
    state.high = Math.max(0.01, Math.min(1, state.high));
    state.low = Math.max(0, Math.min(state.high - 0.005, state.low));
    if (!GROUPINGS.some((g) => g.id === state.by)) state.by = 'line';
    if (!FLAMES.some((f) => f.id === state.flame)) state.flame = 'live';
    if (state.axis !== 'time') state.axis = 'event';
    if (state.mode !== 'pile') state.mode = 'address';
  }

  /** @param {boolean} isStep whether going back should return here */
  keepAddress(isStep) {
    const fragment = '#' + stateFragment(this.state);
    if (fragment === location.hash || (fragment === '#' && location.hash === '')) return;
    clearTimeout(this.addressTimer);
    const put = () => {
      try {
        if (isStep) history.pushState(null, '', fragment);
        else history.replaceState(null, '', fragment);
      } catch {
        /* some viewers of files allow no history: the page works without */
      }
    };
    if (isStep) put();
    else this.addressTimer = setTimeout(put, 120);
  }

  readAddress() {
    const state = initialState();
    state.view = this.head.view === 'segments' ? 'timeline' : this.head.view;
    state.segments = this.head.view === 'segments';
    readFragment(location.hash, state);
    if (!(state.source >= 0 && state.source < this.head.sources.length)) state.source = 0;
    state.source = Math.floor(state.source);
    return state;
  }

  /** The entry that is shown where one moment is: without a cursor, the peak. */
  entryAtCursor() {
    const { state, source, curve } = this;
    if (state.cursor >= -1) return state.cursor;
    return source.count > 0 ? curve.peak.entry : source.count - 1;
  }

  cursorText() {
    const { state, source } = this;
    if (source.count === 0) return 'when the snapshot was taken';
    const entry = this.entryAtCursor();
    const name =
      entry < 0 ? 'before the first entry' : `at entry ${countText(entry + source.info.skipped)}`;
    return state.cursor < -1 ? `at the peak, ${name}` : name;
  }

  groupingText() {
    return GROUPINGS.find((g) => g.id === this.state.by)?.text || '';
  }

  /** @param {number} entry */
  placeName(entry) {
    const { source } = this;
    if (entry < 0) return 'before the first entry';
    const time = source.hasTime ? `, ${timeText(source.time[entry])}` : '';
    return `entry ${countText(entry + source.info.skipped)}${time}`;
  }

  /** What an entry is about, in few words. @param {number} entry */
  entryDetail(entry) {
    const { source } = this;
    const kind = source.kind[entry];
    if (kind <= KIND.FREE_COMPLETED || kind === KIND.ALLOC_AGAIN) {
      const life = source.ref[entry];
      return `${sizeText(source.size(life))} at ${source.hex(source.lifeAddress[life])}`;
    }
    const event = source.events[source.ref[entry]];
    return event.size > 0 ? sizeText(event.size) : '';
  }

  /** @param {any} event */
  eventLines(event) {
    const lines = [
      [KIND_NAMES[event.kind], ''],
      [this.placeName(event.entry), ''],
    ];
    if (event.size > 0)
      lines.push([event.kind === KIND.OOM ? 'asked for' : 'size', sizeText(event.size)]);
    if (event.kind === KIND.OOM) lines.push(['free on the device', sizeText(event.free)]);
    if (event.address >= 0) lines.push(['address', this.source.hex(event.address)]);
    return lines;
  }

  // ---- moving ----

  /** @param {number} entry @param {boolean} [keepWindow] */
  moveCursor(entry, keepWindow = false) {
    const { state, source } = this;
    entry = Math.max(-1, Math.min(source.count - 1, Math.floor(entry)));
    /** @type {Partial<import('./state.js').State>} */
    const changes = { cursor: entry };
    const span = state.to - state.from;
    if (!keepWindow && (entry < state.from || entry >= state.to)) {
      changes.from = Math.max(0, entry - span / 2);
      changes.to = changes.from + span;
    }
    this.set(changes);
  }

  /** @param {number} entry @param {string} view */
  jump(entry, view) {
    this.state.view = view;
    this.moveCursor(entry);
    this.keepAddress(true);
    this.refresh();
  }

  /** @param {number} times @param {number} [around] place */
  zoom(times, around) {
    const { state, source } = this;
    const middle =
      around ??
      (state.cursor >= state.from && state.cursor <= state.to
        ? state.cursor
        : (state.from + state.to) / 2);
    const span = Math.max(
      Math.min(4, source.count),
      Math.min(source.count, (state.to - state.from) * times),
    );
    const share = (middle - state.from) / Math.max(1e-9, state.to - state.from);
    const from = middle - span * share;
    this.set({
      from: Math.max(0, Math.min(source.count - span, from)),
      to: Math.max(0, Math.min(source.count - span, from)) + span,
    });
  }

  /** @param {number} share of the window */
  pan(share) {
    const { state, source } = this;
    const span = state.to - state.from;
    const from = Math.max(0, Math.min(source.count - span, state.from + span * share));
    this.set({ from, to: from + span });
  }

  /** @param {string} key */
  selectGroup(key) {
    this.set({ group: this.state.group === key ? '' : key });
  }

  /** @param {number} life */
  selectLife(life) {
    const { source } = this;
    const entry = this.entryAtCursor();
    /** @type {Partial<import('./state.js').State>} */
    const changes = { life };
    if (!source.isLive(life, entry)) {
      changes.cursor = source.lifeStart[life] === NEVER ? -1 : source.lifeStart[life];
    }
    this.set(changes);
  }

  /** @param {number} life */
  likeThis(life) {
    const key = `s${this.source.lifeStack[life]}`;
    this.set({ by: 'stack', group: '' });
    this.set({ group: key, view: this.state.view === 'map' ? 'map' : 'timeline' });
  }

  /** @param {number} step */
  nextMatch(step) {
    const lives = this.matches?.lives || [];
    if (lives.length === 0) return;
    const { source } = this;
    const at = this.state.life;
    let i = lives.findIndex((/** @type {number} */ life) => (step > 0 ? life > at : life >= at));
    if (step < 0) i = i < 0 ? lives.length - 1 : i - 1;
    if (i < 0) i = step > 0 ? 0 : lives.length - 1;
    const life = lives[(i + lives.length) % lives.length];
    this.state.life = life;
    this.moveCursor(source.lifeStart[life] === NEVER ? -1 : source.lifeStart[life]);
    this.say(`match ${(i % lives.length) + 1} of ${lives.length}`);
  }

  /** @param {number} step */
  nextOom(step) {
    const at = this.entryAtCursor();
    const ooms = this.source.ooms;
    const next =
      step > 0
        ? (ooms.find((entry) => entry > at) ?? ooms[0])
        : (ooms.findLast((entry) => entry < at) ?? ooms[ooms.length - 1]);
    if (next !== undefined) this.moveCursor(next);
  }

  /** @param {number} step */
  nextStep(step) {
    const at = this.entryAtCursor();
    const all = this.annotations.spans.map((span) => Math.floor(span.start));
    const spots =
      all.length > 0
        ? all
        : this.source.events
            .filter((event) => event.kind >= KIND.SNAPSHOT)
            .map((event) => event.entry);
    spots.sort((a, b) => a - b);
    const next = step > 0 ? spots.find((spot) => spot > at) : spots.findLast((spot) => spot < at);
    if (next !== undefined) this.moveCursor(next);
  }

  play() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.state.view !== 'map') this.set({ view: 'map' });
    const step = () => {
      if (!this.isPlaying) return;
      const { state, source } = this;
      const next = this.entryAtCursor() + Math.max(1, Math.round((state.to - state.from) / 400));
      if (next >= Math.min(source.count - 1, state.to)) this.isPlaying = false;
      this.moveCursor(next, true);
      setTimeout(
        () => requestAnimationFrame(step),
        matchMedia('(prefers-reduced-motion: reduce)').matches ? 400 : 30,
      );
    };
    if (this.isPlaying) requestAnimationFrame(step);
    this.refresh();
  }

  stop() {
    this.isPlaying = false;
  }

  /** @param {string} text */
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element('textarea', { class: 'hidden', 'aria-hidden': 'true' });
      /** @type {HTMLTextAreaElement} */ (area).value = text;
      document.body.append(area);
      /** @type {HTMLTextAreaElement} */ (area).select();
      document.execCommand('copy');
      area.remove();
    }
    this.say('copied');
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

  draw() {
    if (!this.source) return;
    const begun = performance.now();
    const { state } = this;
    const canvasView = CANVAS_VIEWS[state.view];
    const isEmpty = this.isEmptyView();
    this.canvas.hidden = !canvasView || isEmpty;
    byId('document').hidden = Boolean(canvasView);
    byId('empty').hidden = !isEmpty;
    document.body.classList.toggle('wide', !canvasView);
    document.body.classList.toggle('document', !canvasView);
    this.drawTabs();
    this.drawControls();
    if (isEmpty) {
      byId('empty').textContent = limits(this)[0] || 'There is nothing to draw.';
    } else if (canvasView) {
      const { width, height } = byId('stage').getBoundingClientRect();
      canvasView.draw(this, this.canvas, Math.max(200, width), Math.max(120, height));
      this.canvas.setAttribute('aria-label', this.description());
    } else {
      DOCUMENT_VIEWS[state.view](this, byId('document'));
    }
    if (canvasView) fillPanel(this, byId('panel'));
    drawOverview(this, this.overview);
    this.drawStatus();
    if (state.view === 'blocks' && this.blocksJob) this.paintOn();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 600) this.frames.shift();
  }

  /** Goes on with the picture of blocks between frames. */
  paintOn() {
    if (this.isPainting) return;
    this.isPainting = true;
    const step = async () => {
      while (this.blocksJob && this.state.view === 'blocks') {
        if (paintSome(this)) this.refresh();
        if (this.blocksJob && performance.now() < this.blocksJob.due) {
          await new Promise((done) => setTimeout(done, 10));
        } else await breathe();
      }
      this.isPainting = false;
    };
    step();
  }

  isEmptyView() {
    const { state, source } = this;
    if (state.view === 'timeline' || state.view === 'blocks') return source.count === 0;
    if (state.view === 'map') return source.spans.length === 0;
    return false;
  }

  drawTabs() {
    const tabs = byId('tabs');
    if (!tabs.firstChild) {
      VIEWS.forEach((view, i) => {
        const tab = element(
          'button',
          {
            role: 'tab',
            id: `tab-${view}`,
            'aria-controls': 'stage',
            title: `${VIEW_TEXTS[view]} (${i + 1})`,
            onclick: () => this.set({ view }),
          },
          VIEW_TEXTS[view],
        );
        tabs.append(tab);
      });
    }
    VIEWS.forEach((view) => {
      const tab = byId(`tab-${view}`);
      tab.setAttribute('aria-selected', String(view === this.state.view));
      tab.tabIndex = view === this.state.view ? 0 : -1;
      if (view === 'oom') {
        const count = this.source.ooms.length;
        tab.replaceChildren(
          VIEW_TEXTS.oom,
          ...(count > 0 ? [element('span', { class: 'badge' }, countText(count))] : []),
        );
      }
    });
    byId('stage').setAttribute('aria-labelledby', `tab-${this.state.view}`);
  }

  /** @param {string} label @param {{id: string, text: string, hint?: string}[]} choices
   * @param {string} value @param {(id: string) => void} choose */
  choice(label, choices, value, choose) {
    const select = element(
      'select',
      { onchange: (/** @type {any} */ event) => choose(event.target.value) },
      ...choices.map((c) => element('option', { value: c.id, title: c.hint }, c.text)),
    );
    /** @type {HTMLSelectElement} */ (select).value = value;
    return element('label', {}, label, select);
  }

  /** @param {string} label @param {[string, string][]} choices @param {string} value
   * @param {(id: string) => void} choose */
  switch(label, choices, value, choose) {
    return element(
      'span',
      { class: 'switch', role: 'group', 'aria-label': label },
      ...choices.map(([id, text]) =>
        element('button', { 'aria-pressed': id === value, onclick: () => choose(id) }, text),
      ),
    );
  }

  drawControls() {
    const { state, source, head } = this;
    const key = JSON.stringify([
      state.view,
      state.by,
      state.axis,
      state.mode,
      state.flame,
      state.segments,
      state.source,
      this.isInverted,
      this.ownOnly,
      this.isPlaying,
      state.query !== '',
      state.filter,
    ]);
    const figure = this.figureText();
    if (this.controlsKey === key) {
      document.querySelector('#controls .figure')?.replaceChildren(...figure);
      return;
    }
    this.controlsKey = key;
    const parts = [];
    if (head.sources.length > 1) {
      parts.push(
        this.choice(
          '',
          head.sources.map((/** @type {any} */ info, /** @type {number} */ i) => ({
            id: String(i),
            text: info.host ? `pinned memory ${info.device}` : `device ${info.device}`,
          })),
          String(state.source),
          (id) => this.set({ source: Number(id) }),
        ),
      );
    }
    const isOverTime = CANVAS_VIEWS[state.view]?.isOverTime;
    if (state.view === 'timeline') {
      parts.push(
        this.switch(
          'What is drawn',
          [
            ['', 'Allocations'],
            ['s', 'Segments'],
          ],
          state.segments ? 's' : '',
          (id) => this.set({ segments: id === 's' }),
        ),
      );
    }
    if (
      ['timeline', 'blocks', 'map', 'table'].includes(state.view) &&
      !(state.segments && state.view === 'timeline')
    ) {
      const hasCategory = this.names.extras.length > 1;
      parts.push(
        this.choice(
          'Colour by',
          GROUPINGS.filter((g) => g.id !== 'category' || hasCategory),
          state.by,
          (by) => this.set({ by, group: '' }),
        ),
      );
    }
    if (state.view === 'blocks') {
      parts.push(
        this.switch(
          'How blocks lie',
          [
            ['address', 'By address'],
            ['pile', 'Piled'],
          ],
          state.mode,
          (mode) => this.set({ mode, low: 0, high: 1 }),
        ),
      );
    }
    if (isOverTime && source.hasTime) {
      parts.push(
        this.switch(
          'Axis',
          [
            ['event', 'Entries'],
            ['time', 'Time'],
          ],
          state.axis,
          (axis) => this.set({ axis }),
        ),
      );
    }
    if (state.view === 'map') {
      parts.push(
        element(
          'button',
          { onclick: () => this.play(), 'aria-pressed': this.isPlaying, title: 'Space' },
          this.isPlaying ? 'Pause' : 'Play',
        ),
      );
    }
    if (state.view === 'flame') {
      parts.push(
        this.choice('Bytes', FLAMES, state.flame, (flame) => this.set({ flame })),
        element(
          'button',
          {
            'aria-pressed': this.isInverted,
            class: 'tool',
            title: 'i',
            onclick: () => this.invert(),
          },
          'Inverted',
        ),
        element(
          'button',
          {
            'aria-pressed': this.ownOnly,
            class: 'tool',
            onclick: () => {
              this.ownOnly = !this.ownOnly;
              this.refresh();
            },
          },
          'Your code only',
        ),
      );
    }
    byId('filter').setAttribute('aria-pressed', String(state.filter));
    byId('filter').hidden = state.query === '';
    parts.push(element('span', { class: 'figure' }, ...figure));
    byId('controls').replaceChildren(...parts);
    byId('controls').hidden = parts.length === 1 && figure.length === 0;
  }

  invert() {
    this.isInverted = !this.isInverted;
    this.refresh();
  }

  /** What is in use and reserved at the cursor. @returns {(string | Node)[]} */
  figureText() {
    const { curve } = this;
    if (this.state.view === 'info' || this.state.view === 'oom') return [];
    const entry = this.entryAtCursor();
    const requested = curve.requested(entry);
    const reserved = curve.reserved(entry);
    return [
      `${this.cursorText()}: `,
      element('b', {}, sizeText(requested)),
      ' in use of ',
      element('b', {}, sizeText(reserved)),
      ` reserved${reserved > 0 ? ` (${shareText(requested, reserved)})` : ''}`,
    ];
  }

  drawStatus() {
    const { state, source, curve } = this;
    if (source.count === 0) {
      byId('status').replaceChildren(element('span', {}, limits(this)[0]));
      return;
    }
    const time = source.hasTime
      ? `, ${timeText(source.timeAt(state.to) - source.timeAt(state.from))}`
      : '';
    const first = Math.floor(state.from) + source.info.skipped;
    const all = state.from <= 0 && state.to >= source.count;
    byId('status').replaceChildren(
      element(
        'span',
        {},
        all
          ? `all ${countOf(source.count, 'entry', 'entries')}${time}`
          : `entries ${countText(first)} to ` +
              `${countText(Math.ceil(state.to) - 1 + source.info.skipped)}, ` +
              `${countText(state.to - state.from)} of ${countText(source.count)}${time}`,
      ),
      element(
        'span',
        {},
        'most in use ',
        element('b', {}, sizeText(curve.peak.value)),
        ', most reserved ',
        element('b', {}, sizeText(curve.reservedPeak.value)),
      ),
    );
  }

  /** The picture in words. */
  description() {
    const { state, source, curve, grouping } = this;
    const entry = this.entryAtCursor();
    const sums = grouping.sumsAt(entry);
    const largest = grouping.order
      .filter((g) => sums[g] > 0)
      .sort((a, b) => sums[b] - sums[a])
      .slice(0, 3)
      .map((g) => `${grouping.text(g)} ${sizeText(sums[g])}`)
      .join('; ');
    return (
      `${VIEW_TEXTS[state.view]} of ${source.name}. ` +
      `${this.cursorText()}: ${sizeText(curve.requested(entry))} in use ` +
      `of ${sizeText(curve.reserved(entry))} reserved. Largest: ` +
      `${largest || 'nothing'}. The view Table has all figures.`
    );
  }

  /** Tells screen readers. @param {string} [text] */
  say(text) {
    clearTimeout(this.sayTimer);
    this.sayTimer = setTimeout(() => {
      const { state, source, curve } = this;
      const entry = this.entryAtCursor();
      let words =
        text ||
        `${this.placeName(entry)}: ${sizeText(curve.requested(entry))} ` +
          `in use, ${sizeText(curve.reserved(entry))} reserved`;
      if (!text && state.life >= 0)
        words += `. Block of ${sizeText(source.size(state.life))} chosen`;
      byId('live').textContent = words;
    }, 250);
  }

  /** @param {boolean} isDark */
  setTheme(isDark) {
    this.isDark = isDark;
    this.theme = themeOf(isDark);
    document.documentElement.classList.toggle('dark', isDark);
    this.overviewKey = '';
    this.refresh();
  }

  showKeys() {
    const dialog = /** @type {HTMLDialogElement} */ (byId('keys'));
    dialog.replaceChildren(
      element('h2', {}, 'Keys, mouse and touch'),
      element(
        'div',
        { class: 'keys' },
        ...KEYS.map(([key, text]) =>
          element('div', {}, element('kbd', {}, key), element('span', {}, text)),
        ),
      ),
      element(
        'p',
        { class: 'note' },
        'The address of the page holds what you see: send it, or the file, ' +
          'to a colleague. Nothing is ever sent anywhere by the page itself.',
      ),
      element('form', { method: 'dialog' }, element('button', { autofocus: true }, 'Close')),
    );
    dialog.showModal();
  }

  // ---- mouse, touch, keys ----

  listen() {
    listenToPointer(this);
    listenToOverview(this);
    listenToKeys(this);
    new ResizeObserver(() => this.refresh()).observe(byId('stage'));
    window.addEventListener('hashchange', () => this.follow());
    window.addEventListener('popstate', () => this.follow());
    const search = /** @type {HTMLInputElement} */ (byId('search'));
    search.addEventListener('input', () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(() => this.set({ query: search.value.trim() }), 90);
    });
    byId('filter').addEventListener('click', () => this.set({ filter: !this.state.filter }));
    byId('theme').addEventListener('click', () => this.setTheme(!this.isDark));
    byId('help').addEventListener('click', () => this.showKeys());
    window.addEventListener('beforeprint', () => this.draw());
    byId('tabs').addEventListener('keydown', (event) => {
      const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
      if (step === 0) return;
      event.preventDefault();
      event.stopPropagation();
      const next = VIEWS[(VIEWS.indexOf(this.state.view) + step + VIEWS.length) % VIEWS.length];
      this.set({ view: next });
      this.draw();
      byId(`tab-${next}`).focus();
    });
  }

  /** The address changed: shows what it says. */
  follow() {
    if (location.hash === '#' + stateFragment(this.state)) return;
    const before = { ...this.state };
    Object.assign(this.state, this.readAddress());
    if (this.state.to < 0) this.state.to = this.source.count;
    /** @type {HTMLInputElement} */ (byId('search')).value = this.state.query;
    this.settle(before);
  }

  /** @param {any} hit @param {number} x @param {number} y */
  showTip(hit, x, y) {
    const tip = byId('tip');
    if (!hit || hit.lines.length === 0) {
      tip.hidden = true;
      return;
    }
    tip.replaceChildren(
      ...hit.lines.map((/** @type {string[]} */ [name, value]) =>
        element('div', {}, element('span', {}, name), value ? element('span', {}, value) : null),
      ),
    );
    tip.hidden = false;
    const stage = byId('stage').getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, x + 16 + width > stage.width ? x - width - 12 : x + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(stage.height - height - 4, y + 14))}px`;
  }
}

/** @param {App} app */
function listenToPointer(app) {
  const { canvas } = app;
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let start = /** @type {any} */ (null);
  const at = (/** @type {MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const view = () => CANVAS_VIEWS[app.state.view];
  const placeOf = (/** @type {number} */ x) => {
    const { box } = app.picture;
    return box.axis.place(Math.max(0, Math.min(box.axis.width, x - box.left)));
  };
  canvas.addEventListener('pointerdown', (event) => {
    const point = at(event);
    down.set(event.pointerId, point);
    canvas.setPointerCapture(event.pointerId);
    start = {
      ...point,
      from: app.state.from,
      to: app.state.to,
      scroll: app.mapScroll || 0,
      flameScroll: app.flameScroll || 0,
      moved: false,
      shift: event.shiftKey,
      low: app.state.low,
      high: app.state.high,
    };
    if (down.size === 2) start.pinch = pinchOf(down);
  });
  canvas.addEventListener('pointermove', (event) => {
    const point = at(event);
    if (down.has(event.pointerId)) down.set(event.pointerId, point);
    if (!start || down.size === 0) {
      app.showTip(app.picture ? view()?.hit(app, point.x, point.y) : null, point.x, point.y);
      return;
    }
    if (Math.abs(point.x - start.x) + Math.abs(point.y - start.y) > 4) start.moved = true;
    if (!start.moved) return;
    app.showTip(null, 0, 0);
    dragTo(app, start, point, down, placeOf);
  });
  const end = (/** @type {PointerEvent} */ event) => {
    const point = at(event);
    if (start && !start.moved && event.type === 'pointerup' && down.size === 1)
      clickAt(app, point, event.shiftKey);
    down.delete(event.pointerId);
    if (down.size === 0) start = null;
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', () => app.showTip(null, 0, 0));
  canvas.addEventListener('dblclick', (event) => {
    if (view()?.isOverTime && app.picture?.box) app.zoom(0.25, placeOf(at(event).x));
  });
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const point = at(event);
      const lines = event.deltaMode === 1 ? 32 : 1;
      const amount = (event.deltaY || event.deltaX) * lines;
      if (!view()?.isOverTime) {
        if (app.state.view === 'map') app.mapScroll = (app.mapScroll || 0) + amount;
        else app.flameScroll = (app.flameScroll || 0) + amount;
        app.refresh();
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        app.pan((event.deltaX || event.deltaY) * lines * 0.0008);
      } else if (event.ctrlKey) {
        zoomHeight(app, point, amount);
      } else if (app.picture?.box) {
        app.zoom(Math.exp(Math.max(-200, Math.min(200, amount)) * 0.0022), placeOf(point.x));
      }
    },
    { passive: false },
  );
}

/** @param {Map<number, {x: number, y: number}>} down */
function pinchOf(down) {
  const [a, b] = [...down.values()];
  return { away: Math.max(20, Math.abs(a.x - b.x)), x: (a.x + b.x) / 2 };
}

/** @param {App} app @param {any} start @param {{x: number, y: number}} point
 * @param {Map<number, any>} down @param {(x: number) => number} placeOf */
function dragTo(app, start, point, down, placeOf) {
  const { state } = app;
  if (!CANVAS_VIEWS[state.view]?.isOverTime) {
    if (state.view === 'map') app.mapScroll = start.scroll + start.y - point.y;
    else app.flameScroll = start.flameScroll + start.y - point.y;
    app.refresh();
    return;
  }
  if (!app.picture?.box) return;
  const { axis } = app.picture.box;
  if (down.size === 2 && start.pinch) {
    const now = pinchOf(down);
    const times = start.pinch.away / now.away;
    start.pinch = now;
    app.zoom(times, placeOf(now.x));
    return;
  }
  if (start.shift) {
    app.set({ mark: Math.floor(placeOf(start.x)), cursor: Math.floor(placeOf(point.x)) });
    return;
  }
  const moved = new Axis(app.source, state.axis, start.from, start.to, axis.width);
  const by = moved.place(start.x - point.x) - moved.place(0);
  const height = app.picture.box.bottom - app.picture.box.top;
  const up = ((point.y - start.y) / Math.max(1, height)) * (start.high - start.low);
  const span = start.to - start.from;
  const from = Math.max(0, Math.min(app.source.count - span, start.from + by));
  const low = Math.max(0, Math.min(1 - (start.high - start.low), start.low + up));
  app.set({ from, to: from + span, low, high: low + start.high - start.low });
}

/** @param {App} app @param {{x: number, y: number}} point @param {number} amount */
function zoomHeight(app, point, amount) {
  const box = app.picture?.box;
  if (!box) return;
  const { low, high } = app.state;
  const share = Math.max(0, Math.min(1, (box.bottom - point.y) / (box.bottom - box.top)));
  const span = Math.max(0.01, Math.min(1, (high - low) * Math.exp(amount * 0.0022)));
  const at = low + share * (high - low);
  const from = Math.max(0, Math.min(1 - span, at - span * share));
  app.set({ low: from, high: from + span });
}

/** @param {App} app @param {{x: number, y: number}} point @param {boolean} isShift */
function clickAt(app, point, isShift) {
  const { state, grouping } = app;
  const hit = CANVAS_VIEWS[state.view]?.hit(app, point.x, point.y);
  if (!hit) {
    app.set({ life: -1 });
    return;
  }
  if (hit.node) {
    app.flameFocus = hit.node.parent ? hit.node : null;
    app.refresh();
    return;
  }
  /** @type {Partial<import('./state.js').State>} */
  const changes = {};
  if (hit.entry >= -1) changes[isShift ? 'mark' : 'cursor'] = hit.entry;
  if (state.view !== 'timeline') changes.life = hit.life;
  else if (hit.group > 0 && hit.group < grouping.count - 1) {
    const key = grouping.keys[grouping.shown[hit.group - 1]].key;
    changes.group = state.group === key && state.cursor === hit.entry ? '' : key;
  } else changes.group = '';
  app.set(changes);
}

/** @param {App} app */
function listenToOverview(app) {
  const { overview } = app;
  let drag = /** @type {any} */ (null);
  const place = (/** @type {PointerEvent} */ event) => {
    const box = overview.getBoundingClientRect();
    const axis = new Axis(
      app.source,
      app.state.axis,
      0,
      Math.max(1, app.source.count),
      box.width,
    );
    return {
      place: axis.place(Math.max(0, Math.min(box.width, event.clientX - box.left))),
      axis,
      x: event.clientX - box.left,
    };
  };
  overview.addEventListener('pointerdown', (event) => {
    if (!app.source || app.source.count === 0) return;
    const spot = place(event);
    const { state } = app;
    const from = spot.axis.pixel(state.from);
    const to = spot.axis.pixel(state.to);
    const isAll = state.from <= 0 && state.to >= app.source.count;
    const edge = isAll
      ? ''
      : Math.abs(spot.x - from) < 7
        ? 'from'
        : Math.abs(spot.x - to) < 7
          ? 'to'
          : '';
    const isInside = spot.x > from && spot.x < to && !isAll;
    drag = {
      kind: edge || (isInside ? 'move' : 'new'),
      place: spot.place,
      from: state.from,
      to: state.to,
      moved: false,
      x: spot.x,
    };
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener('pointermove', (event) => {
    if (!drag) return;
    const spot = place(event);
    if (Math.abs(spot.x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    const by = spot.place - drag.place;
    if (drag.kind === 'from') app.set({ from: Math.min(spot.place, drag.to - 4), to: drag.to });
    else if (drag.kind === 'to')
      app.set({ from: drag.from, to: Math.max(spot.place, drag.from + 4) });
    else if (drag.kind === 'move') {
      const from = Math.max(
        0,
        Math.min(app.source.count - (drag.to - drag.from), drag.from + by),
      );
      app.set({ from, to: from + drag.to - drag.from });
    } else
      app.set({ from: Math.min(spot.place, drag.place), to: Math.max(spot.place, drag.place) });
  });
  overview.addEventListener('pointerup', () => {
    if (drag && !drag.moved) app.moveCursor(drag.place);
    drag = null;
  });
  overview.addEventListener('dblclick', () => app.set({ from: 0, to: app.source.count }));
}

/** @param {App} app */
function listenToKeys(app) {
  const moveBy = (/** @type {number} */ by) => app.moveCursor(app.entryAtCursor() + by);
  const tenth = () => Math.max(1, Math.round((app.state.to - app.state.from) / 10));
  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const keys = {
    ArrowLeft: (event) => moveBy(event.shiftKey ? -tenth() : -1),
    ArrowRight: (event) => moveBy(event.shiftKey ? tenth() : 1),
    '[': () => moveBy(-1),
    ']': () => moveBy(1),
    ',': () => app.nextStep(-1),
    '.': () => app.nextStep(1),
    a: () => app.pan(-0.2),
    d: () => app.pan(0.2),
    w: () => app.zoom(0.6),
    s: () => app.zoom(1 / 0.6),
    '+': () => app.zoom(0.6),
    '=': () => app.zoom(0.6),
    '-': () => app.zoom(1 / 0.6),
    0: () => app.set({ from: 0, to: app.source.count, low: 0, high: 1 }),
    Home: () => app.moveCursor(-1),
    End: () => app.moveCursor(app.source.count - 1),
    p: () => app.moveCursor(app.curve.peak.entry),
    P: () => app.moveCursor(app.curve.reservedPeak.entry),
    o: () => app.nextOom(1),
    O: () => app.nextOom(-1),
    m: () =>
      app.set({
        mark:
          app.state.mark >= -1 && app.state.mark === app.entryAtCursor()
            ? -2
            : app.entryAtCursor(),
      }),
    z: () => {
      if (app.state.mark >= -1) {
        const [from, to] = [app.state.mark, app.entryAtCursor()].sort((x, y) => x - y);
        app.set({ from: Math.max(0, from), to: to + 1 });
      }
    },
    '/': () => byId('search').focus(),
    n: () => app.nextMatch(1),
    N: () => app.nextMatch(-1),
    f: () => {
      if (app.state.query !== '') app.set({ filter: !app.state.filter });
    },
    x: () => app.set({ axis: app.state.axis === 'time' ? 'event' : 'time' }),
    g: () => {
      const all = GROUPINGS.filter((c) => c.id !== 'category' || app.names.extras.length > 1);
      app.set({
        by: all[(all.findIndex((c) => c.id === app.state.by) + 1) % all.length].id,
        group: '',
      });
    },
    b: () => app.set({ mode: app.state.mode === 'pile' ? 'address' : 'pile', low: 0, high: 1 }),
    i: () => app.invert(),
    ' ': () => app.play(),
    t: () => app.setTheme(!app.isDark),
    '?': () => app.showKeys(),
    Escape: () => {
      app.flameFocus = null;
      app.showTip(null, 0, 0);
      if (app.state.life >= 0) app.set({ life: -1 });
      else if (app.state.group !== '') app.set({ group: '' });
      else app.set({ mark: -2 });
    },
  };
  window.addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || !app.source) return;
    if (target.tagName === 'INPUT') {
      if (event.key === 'Escape' || event.key === 'Enter') {
        target.blur();
        if (event.key === 'Enter') app.nextMatch(event.shiftKey ? -1 : 1);
      }
      return;
    }
    if (target.tagName === 'SELECT' || /** @type {HTMLDialogElement} */ (byId('keys')).open)
      return;
    if (target.tagName === 'BUTTON' && (event.key === ' ' || event.key === 'Enter')) return;
    if (!CANVAS_VIEWS[app.state.view] && ['Home', 'End', ' '].includes(event.key)) return;
    const view = VIEWS[Number(event.key) - 1];
    const act = view ? () => app.set({ view }) : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
}

/** @param {unknown} error */
function showBroken(error) {
  const isKnown = error instanceof BadPage;
  const text = error instanceof Error ? error.message : String(error);
  const panel = byId('broken');
  panel.replaceChildren(
    element('h2', {}, 'This page cannot be shown'),
    element(
      'p',
      {},
      isKnown ? `Its data cannot be read: ${text}.` : `The program in it stopped: ${text}`,
    ),
    element(
      'p',
      {},
      isKnown
        ? 'The file was probably changed or cut off on its way here. ' +
            'Ask for it again, or write it anew with \u201ctarn view\u201d.'
        : 'Please report this with the snapshot, if you may give it away. \u201ctarn ' +
            'peak\u201d and \u201ctarn oom\u201d print what the page would show.',
    ),
  );
  panel.hidden = false;
  document.body.classList.remove('loading');
  if (!isKnown) console.error(error);
}

/** For tests and for programs: the figures that the page shows, as numbers. @param {App} app */
function figuresOf(app) {
  return {
    app,
    get isReady() {
      return (
        Boolean(app.source) && !app.blocksJob && !document.body.classList.contains('loading')
      );
    },
    peak: () => ({ requested: app.curve.peak, reserved: app.curve.reservedPeak }),
    at: (/** @type {number} */ entry) => ({
      requested: app.curve.requested(entry),
      reserved: app.curve.reserved(entry),
    }),
    rows: () => tableRows(app),
    oom: (/** @type {number} */ entry) => ({
      facts: oomFacts(app, entry),
      holders: oomHolders(app, entry),
    }),
    layout: (/** @type {number} */ entry) =>
      layoutRows(app.source, layoutAt(app.source, entry).segments),
    columns: timelineColumns,
    pile: pileAt,
    explain: explainOom,
    flame: () => flamePlan(app),
  };
}

async function start() {
  const wantsDark = matchMedia('(prefers-color-scheme: dark)');
  document.documentElement.classList.toggle('dark', wantsDark.matches);
  const head = JSON.parse(new TextDecoder().decode(await readSection('head')));
  if (head.form !== 2 || !Array.isArray(head.sources))
    throw new BadPage('it is of another version of the viewer');
  byId('title').textContent = shownText(head.title, 200);
  if (head.sources.length === 0) {
    byId('empty').textContent = 'The snapshot is empty: it has no segments and no trace.';
    byId('empty').hidden = false;
    document.body.classList.remove('loading');
    return;
  }
  const names = new Names();
  const app = new App(head, names);
  app.state = app.readAddress();
  drawFirstPicture(app.overview, head.sources[app.state.source], app.theme);
  byId('status').textContent = 'reading';
  await breathe();
  await names.read();
  app.sizes = readSizes(await readSection('sizes'));
  app.rawAnnotations = readAnnotations(await readSection('annotations'), names);
  await app.open(app.state.source);
  if (app.state.to < 0) app.state.to = app.source.count;
  app.clampState();
  app.search(app.state.query);
  if (app.state.filter) app.group();
  /** @type {HTMLInputElement} */ (byId('search')).value = app.state.query;
  wantsDark.addEventListener('change', () => app.setTheme(wantsDark.matches));
  app.listen();
  document.body.classList.remove('loading');
  /** @type {any} */ (window).tarnView = figuresOf(app);
  app.draw();
}

start().catch(showBroken);
