// SPDX-License-Identifier: MIT
// flame.mjs FILE.svg: runs the script of a flame graph on just enough of a document, and looks at
// what clicks and keys do. Prints a line for each case that fails, and exits with their number.
import { readFileSync } from 'node:fs';

const text = readFileSync(process.argv[2], 'utf8');
const unescape = (s) => s.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"')
  .replace(/&#39;/g, "'").replace(/&amp;/g, '&');

function element(name, attributes = {}) {
  const classes = new Set((attributes.class || '').split(' ').filter(Boolean));
  return {
    nodeName: name, attributes, style: {}, textContent: '', children: {}, listeners: {}, classes,
    classList: { toggle: (word, on) => { if (on) classes.add(word); else classes.delete(word); } },
    getAttribute(key) { return this.attributes[key]; },
    setAttribute(key, value) { this.attributes[key] = String(value); },
    querySelector(child) { return this.children[child] || null; },
    appendChild(child) { this.children[child.nodeName] = child; },
    addEventListener(type, listener) { this.listeners[type] = listener; },
    closest(selector) { return selector === '.f' && classes.has('f') ? this : null; },
  };
}

const svg = element('svg');
const ids = Object.fromEntries(
  ['line', 'search', 'found', 'reset'].map((id) => [id, element('text')]));
const form = new RegExp(
  '<g class="f" data-o="(\\d+)" data-b="(\\d+)" data-d="(\\d+)"><title>([^<]*)' +
  '</title><rect x="([^"]*)" y="([^"]*)" width="([^"]*)"[^>]*/><text[^>]*>([^<]*)</text></g>', 'g');
const boxes = [...text.matchAll(form)].map((m) => {
  const box = element('g', { class: 'f', 'data-o': m[1], 'data-b': m[2], 'data-d': m[3] });
  box.children.title = Object.assign(element('title'), { textContent: unescape(m[4]) });
  box.children.rect = element('rect', { x: m[5], y: m[6], width: m[7] });
  box.children.text = Object.assign(element('text'), { textContent: unescape(m[8]) });
  return box;
});
const window = { addEventListener(type, listener) { this[type] = listener; } };
const document = {
  documentElement: svg,
  querySelectorAll: () => boxes,
  getElementById: (id) => ids[id],
  createElementNS: (space, name) => element(name),
};
const source = text.slice(text.indexOf('<![CDATA[') + 9, text.lastIndexOf(']]>'));
new Function('document', 'window', source)(document, window);

let failed = 0;
function expect(what, value, wanted) {
  if (value !== wanted) {
    console.log(`${what}: ${value}, expected ${wanted}`);
    failed++;
  }
}
const find = (start) => boxes.find((box) => box.children.title.textContent.startsWith(start));
const shown = (box) => box.style.display !== 'none';
const width = (box) => Number(box.children.rect.attributes.width);
const press = (key, more = {}) =>
  window.keydown({ key, target: svg, preventDefault() {}, ...more });

const root = find('all (');
const active = find('active_allocated (');
const inactive = find('inactive (');
expect('boxes', boxes.length > 5, true);
expect('script has set itself up', svg.attributes.class, 'on');
expect('the root is as wide as the picture', width(root), 1180);
svg.listeners.mouseover({ target: active });
expect('hover', ids.line.textContent, active.children.title.textContent);

svg.listeners.click({ target: active });
expect('a zoomed box is as wide as the picture', width(active), 1180);
expect('what is above stays', shown(root) && root.classes.has('a'), true);
expect('what is beside goes', shown(inactive), false);
expect('the way back shows', ids.reset.style.display, '');
press('Escape');
expect('back again', shown(inactive) && width(root) === 1180, true);
press('Enter', { target: inactive });
expect('Enter zooms', width(inactive), 1180);
ids.reset.listeners.click({});
expect('all', ids.reset.style.display, 'none');

press('/');
for (const letter of 'leaf') press(letter);
expect('typed', ids.search.textContent, 'search: leaf_');
const leaf = boxes.filter((box) => box.classes.has('m'));
expect('matches', leaf.length,
  boxes.filter((box) => /leaf/.test(box.children.title.textContent)).length);
const bytes = leaf.reduce((sum, box) => sum + Number(box.attributes['data-b']), 0);
expect('found', ids.found.textContent.endsWith(`(${bytes})`), true);
press('Backspace');
expect('taken back', ids.search.textContent, 'search: lea_');
press('Escape');
expect('no matches', boxes.some((box) => box.classes.has('m')), false);
press('f', { ctrlKey: true });
for (const letter of '[') press(letter);
expect('what is no expression is looked for as it is',
  ids.found.textContent.startsWith('0 boxes'), true);
press('Enter');
expect('left as it is', ids.search.textContent, 'search: [');
process.exit(failed);
