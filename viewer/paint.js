// SPDX-License-Identifier: MIT
// Colours of the two themes, which people can tell apart who lack a kind of cone
// (tests/viewer/vision.mjs), and canvases that are sharp on every screen.

const LIGHT = {
  paper: '#ffffff',
  panel: '#f6f7f9',
  text: '#1b2129',
  muted: '#57606c',
  line: '#dfe3e8',
  strong: '#b9c0c9',
  accent: '#0b5fd0',
  warn: '#c0271f',
  reserved: '#1b2129',
  free: '#e4e8ed',
  slack: '#a6afba',
  pending: '#b35900',
  cursor: '#0b5fd0',
  mark: '#8a2be2',
  least: 'rgba(255,255,255,0.35)',
  edge: 'rgba(255,255,255,0.6)', // between areas
  others: '#8d96a1',
  rest: '#b9c1ca',
  range: 'rgba(11,95,208,0.12)',
  groups: [
    '#1668d7',
    '#f2bc4c',
    '#f36260',
    '#69b391',
    '#84648c',
    '#1d585b',
    '#24d9fc',
    '#845342',
    '#3f2689',
    '#6c800a',
    '#79003c',
    '#3f3c02',
  ],
};

const DARK = {
  paper: '#14171b',
  panel: '#1b1f25',
  text: '#e8ebef',
  muted: '#a3acb8',
  line: '#2b313a',
  strong: '#4a525e',
  accent: '#6fb1ff',
  warn: '#ff7b72',
  reserved: '#e8ebef',
  free: '#2a313a',
  slack: '#5b6571',
  pending: '#ffb057',
  cursor: '#6fb1ff',
  mark: '#cf9bff',
  least: 'rgba(20,23,27,0.35)',
  edge: 'rgba(20,23,27,0.6)', // between areas
  others: '#76808d',
  rest: '#4c5560',
  range: 'rgba(111,177,255,0.16)',
  groups: [
    '#5eb3bc',
    '#e47038',
    '#cd87ff',
    '#c8d75f',
    '#c82a5b',
    '#bed6ff',
    '#017962',
    '#f3b1b0',
    '#8c5a00',
    '#2affdc',
    '#9d4eb2',
    '#9a9c7a',
  ],
};

/** @typedef {typeof LIGHT} Theme */

/** @param {boolean} isDark @returns {Theme} */
export function themeOf(isDark) {
  return isDark ? DARK : LIGHT;
}

/** Colour of a group. @param {Theme} theme @param {{colour: (group: number) => number}} grouping
 * @param {number} group */
export function groupColour(theme, grouping, group) {
  const number = grouping.colour(group);
  if (number < 0) return number === -1 ? theme.others : theme.rest;
  return theme.groups[number % theme.groups.length];
}

/** "#rrggbb" as three numbers. @param {string} colour @returns {[number, number, number]} */
export function colourBytes(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

export const FONT = '12px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif';
export const FONT_BOLD = '600 ' + FONT;

/** Fits a canvas to its box and gives a context in CSS pixels. The processor draws: to send each of
 * thousands of small shapes to a graphics card takes longer, and much longer where one is only
 * played.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function openCanvas(canvas, width, height) {
  const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
  const wide = Math.max(1, Math.round(width * ratio));
  const high = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext('2d', { willReadFrequently: true })
  );
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.globalAlpha = 1;
  return { context, ratio };
}

/** Text cut to a width. @param {CanvasRenderingContext2D} context @param {string} text
 * @param {number} width */
export function fitText(context, text, width) {
  if (width < 12) return '';
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = Math.min(text.length, Math.ceil(width / 2));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + '\u2026').width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? text.slice(0, low) + '\u2026' : '';
}

/** Black or white, whichever reads on a colour. @param {string} colour */
export function inkOn(colour) {
  const [r, g, b] = colourBytes(colour).map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#10141a' : '#ffffff';
}

/** @template {HTMLElement} T @param {string} id @returns {T} */
export function byId(id) {
  return /** @type {T} */ (document.getElementById(id));
}

/** An element with children. @param {string} name @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined)} children @returns {HTMLElement} */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true && !key.startsWith('aria')) made.setAttribute(key, '');
    else if (value !== null && value !== undefined && (value !== false || key.startsWith('aria')))
      made.setAttribute(key, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** @param {Element} into */
function reachable(into) {
  return [...into.querySelectorAll('button, select, input, [tabindex]')];
}

/** What stays the same of something that is made anew. @param {Element} thing */
function focusKey(thing) {
  const own = thing.getAttribute('data-key') ?? thing.getAttribute('aria-label');
  return `${thing.tagName} ${own ?? thing.textContent}`;
}

/** Puts new children in the place of the old ones. What had the focus has it again: somebody who
 * has only a keyboard would have to begin at the top of the page.
 * @param {Element} into @param {...Node} children */
export function replaceContent(into, ...children) {
  const focused = into.contains(document.activeElement) ? document.activeElement : null;
  const key = focused ? focusKey(focused) : '';
  const index = focused ? reachable(into).indexOf(focused) : -1;
  into.replaceChildren(...children);
  if (index < 0) return;
  const now = reachable(into);
  const again =
    now.find((thing) => focusKey(thing) === key) ?? now[Math.min(index, now.length - 1)];
  /** @type {HTMLElement | undefined} */ (again)?.focus({ preventScroll: true });
}

/** A patch of colour before a name. @param {string} colour */
export function swatch(colour) {
  const made = element('span', { class: 'swatch', 'aria-hidden': 'true' });
  made.style.backgroundColor = colour;
  return made;
}
