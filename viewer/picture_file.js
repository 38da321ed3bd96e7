// SPDX-License-Identifier: MIT
// The picture as a file: PNG, or SVG, where text stays text.
import { finishBlocks } from './blocks_picture.js';
import { byId, element } from './paint.js';
import { SvgContext } from './svg_context.js';
import { drawTimeline } from './timeline.js';
import { CANVAS_VIEWS } from './views.js';

/** "dump_timeline.png". @param {any} app @param {string} end */
export function pictureName(app, end) {
  const title = app.head.title.replace(/\.(pickle|pkl|json)(\.gz)?$/, '');
  return `${title.replace(/[^\w.-]+/g, '_').slice(0, 80) || 'memory'}_${app.state.view}.${end}`;
}

/** Whether there is a picture in the view. @param {any} app */
export function hasPicture(app) {
  const { view } = app.state;
  return view === 'compare' || (Boolean(CANVAS_VIEWS[view]) && !app.isEmptyView());
}

/** The pictures of a comparison, with what each is drawn from. @param {any} app */
function panelPictures(app) {
  return [...document.querySelectorAll('[data-side] canvas')].map((one) => {
    const canvas = /** @type {HTMLCanvasElement} */ (one);
    const { width, height } = canvas.getBoundingClientRect();
    const side = Number(canvas.closest('[data-side]')?.getAttribute('data-side'));
    return { canvas, width: Math.round(width), height: Math.round(height), side };
  });
}

/** The pictures of a comparison side by side, as PNG draws them. @param {any} app */
function pairCanvas(app) {
  const all = panelPictures(app).map(({ canvas }) => canvas);
  const whole = document.createElement('canvas');
  whole.width = all.reduce((sum, { width }) => sum + width, 0);
  whole.height = Math.max(...all.map(({ height }) => height));
  const context = /** @type {CanvasRenderingContext2D} */ (whole.getContext('2d'));
  let x = 0;
  for (const canvas of all) {
    context.drawImage(canvas, x, 0);
    x += canvas.width;
  }
  return whole;
}

/** @param {any} app */
function pairSvg(app) {
  const all = panelPictures(app);
  const width = all.reduce((sum, panel) => sum + panel.width, 0);
  const whole = new SvgContext(width, Math.max(...all.map(({ height }) => height)));
  let x = 0;
  for (const panel of all) {
    const context = new SvgContext(panel.width, panel.height, `${panel.side}_`);
    drawTimeline(app.panels[panel.side], /** @type {any} */ (context), panel.width, panel.height);
    whole.nest(context, x);
    x += panel.width;
  }
  app.draw(); // what is under the pointer is that of the canvases again
  return whole.text();
}

/** The view as SVG. @param {any} app */
export function svgText(app) {
  if (app.state.view === 'compare') return pairSvg(app);
  const { width, height } = byId('stage').getBoundingClientRect();
  const context = new SvgContext(Math.round(width), Math.round(height));
  const { draw } = CANVAS_VIEWS[app.state.view];
  if (app.state.view === 'blocks') finishBlocks(app);
  draw(app, context, width, height);
  draw(app, app.canvas, width, height); // what is under the pointer is that of the canvas again
  return context.text();
}

/** Hands a file to the browser. @param {Blob} blob @param {string} name */
function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = /** @type {HTMLAnchorElement} */ (
    element('a', { href: address, download: name, hidden: true })
  );
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** @param {any} app @param {'png' | 'svg'} form */
export function savePicture(app, form) {
  if (!hasPicture(app)) return;
  if (app.state.view === 'blocks') finishBlocks(app);
  app.draw();
  const name = pictureName(app, form);
  if (form === 'svg') download(new Blob([svgText(app)], { type: 'image/svg+xml' }), name);
  else {
    const canvas = app.state.view === 'compare' ? pairCanvas(app) : app.canvas;
    canvas.toBlob((/** @type {Blob | null} */ blob) => blob && download(blob, name));
  }
  app.say(`saved ${name}`);
}
