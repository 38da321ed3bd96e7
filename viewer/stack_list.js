// SPDX-License-Identifier: MIT
// A whole stack, innermost frame first, on the page and as text.
import { baseName, countOf, shownText } from './format.js';
import { element } from './paint.js';

const FRAMES_SHOWN = 500;

/** What torch.fx says of a frame; '' without. @param {any} names @param {number} frame */
function fxText(names, frame) {
  return names.frameFx[frame]
    .map((/** @type {number} */ text) => shownText(names.text(text), 120))
    .filter(Boolean)
    .join(' ');
}

/** The file of a frame with its folders and the line; '' where the frame's own words say as much.
 * @param {any} names @param {number} frame */
function pathText(names, frame) {
  const file = names.text(names.frameFile[frame]);
  if (!file || file === baseName(file)) return '';
  const line = names.frameLine[frame];
  return shownText(file, 500) + (line ? `:${line}` : '');
}

/** @param {any} app @param {number} frame */
function frameItem(app, frame) {
  const { names } = app.source;
  const kind = names.isLibrary(frame) ? 'library' : '';
  const isMatch = app.frameMatches?.[frame] > 0;
  const text = names.frameText(frame);
  const path = pathText(names, frame);
  const fx = fxText(names, frame);
  return element(
    'li',
    { class: kind },
    isMatch ? element('mark', {}, text) : text,
    path ? element('span', { class: 'path' }, path) : null,
    fx ? element('div', { class: 'note' }, `torch.fx: ${fx}`) : null,
  );
}

/** A stack as a list, or why there is none. @param {any} app @param {number} stack */
export function stackList(app, stack) {
  const frames = app.source.names.frames(stack);
  if (frames.length === 0) {
    return element(
      'p',
      { class: 'note' },
      stack === 0
        ? 'No stack was recorded: the block is from before ' +
            'the recording, or stacks were switched off.'
        : 'The stack has no frames: it was taken where neither Python nor C++ ' +
            'frames were recorded, as in the backward pass without stacks="all".',
    );
  }
  const items = frames
    .slice(0, FRAMES_SHOWN)
    .map((/** @type {number} */ frame) => frameItem(app, frame));
  if (frames.length > FRAMES_SHOWN)
    items.push(element('li', {}, `${countOf(frames.length - FRAMES_SHOWN, 'frame')} more`));
  return element('ol', { class: 'stack' }, ...items);
}

/** A line for each frame: its file with all folders, the line, and the function.
 * @param {any} names @param {number} stack */
export function stackLines(names, stack) {
  const frames = names.frames(stack);
  if (frames.length === 0) return names.stackText(stack);
  return frames
    .map((/** @type {number} */ frame) => {
      const file = shownText(names.text(names.frameFile[frame]), 2000);
      const line = names.frameLine[frame];
      const name = shownText(names.text(names.frameName[frame]), 2000) || '(no name)';
      return file ? `${file}${line ? ':' + line : ''} ${name}` : name;
    })
    .join('\n');
}
