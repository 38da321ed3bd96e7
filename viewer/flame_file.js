// SPDX-License-Identifier: MIT
// The colours of the flame: each file has one, the same everywhere. Its legend lists the files.
import { baseName, countText, shownText, sizeText } from './format.js';
import { element, swatch } from './paint.js';

const FILES_SHOWN = 18;
export const LIBRARY_SHARE = 0.55; // of the colour of boxes that are not of the user's code

/** What a box has its colour from. @param {any} app @param {any} node */
export function fileOfBox(app, node) {
  const { names } = app.source;
  return node.frame === 0 ? node.text : names.text(names.frameFile[node.frame]);
}

/** The files of a source by what stacks through them request in all of the recording, most first:
 * the number of each. It is the same wherever the cursor is. @param {any} app
 * @returns {Map<string, number>} */
function fileNumbers(app) {
  const { source } = app;
  if (app.fileNumbers?.source === source) return app.fileNumbers.numbers;
  const { names } = source;
  const ofStack = new Float64Array(names.stackNode.length);
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++)
    ofStack[source.lifetimeStack[lifetime]] += source.size(lifetime);
  /** @type {Map<string, number>} */
  const bytes = new Map();
  ofStack.forEach((sum, stack) => {
    if (!(sum > 0)) return;
    const files = names
      .frames(stack)
      .map((/** @type {number} */ frame) => names.text(names.frameFile[frame]));
    for (const file of new Set(files)) bytes.set(file, (bytes.get(file) || 0) + sum);
  });
  const order = [...bytes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const numbers = new Map(order.map(([file], i) => [file, i]));
  app.fileNumbers = { source, numbers };
  return numbers;
}

/** A hash for what is no file: a module or a category. @param {string} text */
function textNumber(text) {
  let hash = 17;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash;
}

/** @param {any} app @param {string} file */
export function fileColour(app, file) {
  const { groups } = app.theme;
  return groups[(fileNumbers(app).get(file) ?? textNumber(file)) % groups.length];
}

/** What the stacks through each file hold, most first. @param {any} app @param {any} root
 * @returns {{file: string, bytes: number, isLibrary: boolean}[]} */
export function flameFiles(app, root) {
  /** @type {Map<string, number>} */
  const bytes = new Map();
  const libraries = new Set();
  /** @type {Set<string>} */
  const above = new Set();
  const visit = (/** @type {any} */ node) => {
    if (node.frame === 0 && (node.key === 'grown' || node.key === 'less')) {
      for (const child of node.children.values()) visit(child);
      return;
    }
    const file = fileOfBox(app, node);
    const isFirst = !above.has(file);
    if (node.library) libraries.add(file);
    if (isFirst) {
      bytes.set(file, (bytes.get(file) || 0) + node.sign * node.bytes);
      above.add(file);
    }
    for (const child of node.children.values()) visit(child);
    if (isFirst) above.delete(file);
  };
  for (const child of root.children.values()) visit(child);
  return [...bytes]
    .map(([file, sum]) => ({ file, bytes: sum, isLibrary: libraries.has(file) }))
    .sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes) || (a.file < b.file ? -1 : 1));
}

/** As pale as the boxes. @param {any} app @param {string} file @param {boolean} isLibrary */
function fileSwatch(app, file, isLibrary) {
  const made = swatch(fileColour(app, file));
  if (isLibrary) made.style.opacity = String(LIBRARY_SHARE);
  return made;
}

/** @param {any} app @param {any} root */
export function fileLegend(app, root) {
  const rows = flameFiles(app, root).slice(0, FILES_SHOWN);
  return element(
    'section',
    {},
    element('h2', {}, 'Files, by what stacks through them hold'),
    element(
      'ul',
      { class: 'legend' },
      ...rows.map(({ file, bytes, isLibrary }) =>
        element(
          'li',
          {},
          element(
            'div',
            { class: 'row', title: `${shownText(file, 300)}\n${countText(bytes)} bytes` },
            fileSwatch(app, file, isLibrary),
            element('span', { class: 'label' }, shownText(baseName(file), 100) || '(no file)'),
            element('span', { class: 'number' }, sizeText(bytes)),
          ),
        ),
      ),
    ),
  );
}
