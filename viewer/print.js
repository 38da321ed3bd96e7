// SPDX-License-Identifier: MIT
// The view on paper: whole, in light colours, with what is looked at and its figures as text. It is
// made when printing begins and goes when it ends.
import { sinceText } from './begin.js';
import { countText, shareText, shownText, sizeText } from './format.js';
import { flamePlan } from './flame_tree.js';
import { byId, element, themeOf } from './paint.js';
import { finishBlocks } from './blocks_picture.js';
import { windowText } from './statusbar.js';
import { figuresTable } from './table.js';
import { CANVAS_VIEWS, VIEW_TEXTS } from './views.js';
import { cursorText, placeName } from './describe.js';

const PAPER_WIDTH = 1040; // pixels of a picture
const PAPER_HEIGHT = 560; // of what is not longer by itself
const SHEET = 600; // of a piece of a longer one: it fits on a page
const PAPER_ROWS = 40;
const FLAME_LEAST = 0.01; // of all, of the boxes that appear as text
const FLAME_DEEP = 60;

/** What is chosen, in words; '' without. @param {any} app */
function chosenText(app) {
  const { state, grouping, source } = app;
  const parts = [];
  const key = grouping.keys.find((/** @type {any} */ k) => k.key === state.group);
  if (key && state.group !== '') parts.push(key.text);
  if (state.lifetime >= 0)
    parts.push(
      `block of ${sizeText(source.size(state.lifetime))} at ` +
        source.hex(source.lifetimeAddress[state.lifetime]),
    );
  return parts.join('; ');
}

/** @param {any} app @returns {[string, string][]} */
function paperFacts(app) {
  const { state, source, curve, head } = app;
  const entry = app.entryAtCursor();
  return [
    ['File', shownText(head.title, 300)],
    ['Source', source.name],
    ['Shown', source.count > 0 ? windowText(app) : 'the moment of the snapshot'],
    [
      'Cursor',
      `${cursorText(app)}: ${sizeText(curve.requested(entry))} requested of ` +
        `${sizeText(curve.reserved(entry))} reserved`,
    ],
    ['Mark', state.mark >= -1 ? placeName(source, state.mark) : ''],
    ['Chosen', chosenText(app)],
    ['Search', state.query ? `${shownText(state.query)}: ${byId('found').textContent}` : ''],
  ];
}

/** Where the pieces of the picture begin and the last one ends, when nothing has to be scrolled:
 * each fits on a page, and ends between two rows. @param {any} app */
function pieceEdges(app) {
  const { view } = app.state;
  if (CANVAS_VIEWS[view].isOverTime) return [0, PAPER_HEIGHT];
  const probe = document.createElement('canvas');
  CANVAS_VIEWS[view].draw(app, probe, PAPER_WIDTH, SHEET);
  const whole = Math.max(80, Math.ceil(app.picture.height || 0));
  /** @type {number[]} */
  const breaks = app.picture.breaks || [];
  const edges = [0];
  for (let at = 0; at < whole; edges.push(at)) {
    const most = at + SHEET;
    const fits = breaks.filter((edge) => edge > at && edge <= most);
    at = most >= whole ? whole : (fits[fits.length - 1] ?? most);
  }
  return edges;
}

/** The picture in pieces that each fit on a page. @param {any} app */
function paperPictures(app) {
  const { draw } = CANVAS_VIEWS[app.state.view];
  const edges = pieceEdges(app);
  return edges.slice(0, -1).map((at, i) => {
    const canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { role: 'img' }));
    const height = edges[i + 1] - at;
    app.mapScroll = at;
    app.flameScroll = at;
    draw(app, canvas, PAPER_WIDTH, height);
    if (app.blocksJob) {
      finishBlocks(app);
      draw(app, canvas, PAPER_WIDTH, height);
    }
    canvas.setAttribute('aria-label', `${VIEW_TEXTS[app.state.view]} of ${app.source.name}`);
    return canvas;
  });
}

/** The boxes of the flame as lines, those that hold least left out. @param {any} app */
function flameLines(app) {
  const { root } = flamePlan(app);
  /** @type {string[]} */
  const lines = [];
  const put = (/** @type {any} */ node, /** @type {number} */ depth) => {
    const share = shareText(node.bytes, root.bytes).padStart(8);
    lines.push(`${share} ${sizeText(node.bytes).padStart(11)} ${' '.repeat(depth)} ${node.text}`);
    if (depth >= FLAME_DEEP) return;
    const children = [...node.children.values()].filter(
      (child) => child.bytes >= root.bytes * FLAME_LEAST,
    );
    for (const child of children.sort((a, b) => b.bytes - a.bytes)) put(child, depth + 1);
  };
  if (root.bytes > 0) put(root, 0);
  return element('pre', { class: 'lines' }, lines.join('\n'));
}

/** @param {any} app */
function paperFigures(app) {
  return app.state.view === 'flame' ? flameLines(app) : figuresTable(app, PAPER_ROWS);
}

export class Printer {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.isOn = false;
  }

  listen() {
    const paper = matchMedia('print');
    window.addEventListener('beforeprint', () => this.begin());
    window.addEventListener('afterprint', () => this.end());
    paper.addEventListener('change', () => (paper.matches ? this.begin() : this.end()));
  }

  begin() {
    const { app } = this;
    if (this.isOn || !app.source) return;
    const scrolls = [app.mapScroll, app.flameScroll];
    this.isOn = true;
    app.theme = themeOf(false);
    app.draw();
    byId('paper').replaceChildren(...this.sheets());
    [app.mapScroll, app.flameScroll] = scrolls;
    document.body.classList.add('printing');
  }

  /** @returns {Node[]} */
  sheets() {
    const { app } = this;
    const { view } = app.state;
    const facts = paperFacts(app).filter(([, text]) => text !== '');
    const sheets = [
      element('h2', {}, `${VIEW_TEXTS[view]} of ${app.source.name}`),
      element(
        'dl',
        {},
        ...facts.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]),
      ),
    ];
    if (CANVAS_VIEWS[view] && !app.isEmptyView())
      sheets.push(...paperPictures(app), paperFigures(app));
    sheets.push(
      element(
        'p',
        { class: 'note' },
        `tarn ${app.head.tool}; ${countText(app.source.count)} trace events` +
          sinceText(app.source),
      ),
    );
    return sheets;
  }

  end() {
    const { app } = this;
    if (!this.isOn) return;
    this.isOn = false;
    document.body.classList.remove('printing');
    byId('paper').replaceChildren();
    app.setTheme(app.isDark);
    app.draw();
  }
}
