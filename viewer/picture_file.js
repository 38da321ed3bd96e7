// SPDX-License-Identifier: MIT
// The picture as a file: PNG, or SVG, where text stays text.
import { finishBlocks } from './blocks_picture.js';
import { byId, element } from './paint.js';
import { SvgContext } from './svg_context.js';
import { CANVAS_VIEWS } from './views.js';

/** "dump_timeline.png". @param {any} app @param {string} end */
export function pictureName(app, end) {
  const title = app.head.title.replace(/\.(pickle|pkl|json)(\.gz)?$/, '');
  return `${title.replace(/[^\w.-]+/g, '_').slice(0, 80) || 'memory'}_${app.state.view}.${end}`;
}

/** The view as SVG. @param {any} app */
export function svgText(app) {
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
  if (!CANVAS_VIEWS[app.state.view] || app.isEmptyView()) return;
  if (app.state.view === 'blocks') finishBlocks(app);
  app.draw();
  const name = pictureName(app, form);
  if (form === 'svg') download(new Blob([svgText(app)], { type: 'image/svg+xml' }), name);
  else app.canvas.toBlob((/** @type {Blob | null} */ blob) => blob && download(blob, name));
  app.say(`saved ${name}`);
}
