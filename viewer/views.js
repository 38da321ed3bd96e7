// SPDX-License-Identifier: MIT
// The views, in the order of their tabs and keys. Those that draw have a canvas, what is at a point
// of it, and maybe an axis of time; the others fill a document.
import { countText } from './format.js';
import { byId, element } from './paint.js';
import { VIEWS } from './state.js';
import { drawTimeline, hitTimeline } from './timeline.js';
import { drawBlocks, hitBlocks } from './blocks.js';
import { drawMap, hitMap } from './map.js';
import { drawFlame, hitFlame } from './flame.js';
import { fillTable } from './table.js';
import { fillOom } from './oom.js';
import { fillInfo } from './info.js';
import { fillAnswers } from './answers_view.js';
import { fillCompare } from './compare_view.js';

export const VIEW_TEXTS = /** @type {Record<string, string>} */ ({
  timeline: 'Timeline',
  blocks: 'Blocks',
  map: 'Map',
  flame: 'Flame',
  table: 'Table',
  oom: 'OOM',
  info: 'Info',
  answers: 'Answers',
  compare: 'Compare',
});

export const CANVAS_VIEWS =
  /** @type {Record<string, {draw: Function, hit: Function, isOverTime: boolean}>} */ ({
    timeline: { draw: drawTimeline, hit: hitTimeline, isOverTime: true },
    blocks: { draw: drawBlocks, hit: hitBlocks, isOverTime: true },
    map: { draw: drawMap, hit: hitMap, isOverTime: false },
    flame: { draw: drawFlame, hit: hitFlame, isOverTime: false },
  });

export const DOCUMENT_VIEWS = /** @type {Record<string, Function>} */ ({
  table: fillTable,
  oom: fillOom,
  info: fillInfo,
  answers: fillAnswers,
  compare: fillCompare,
});

/** Those that the page has. @param {any} app */
export function viewsOf(app) {
  return VIEWS.filter((view) => view !== 'compare' || app.runs.length > 1);
}

/** @param {any} app @param {HTMLElement} tabs */
function makeTabs(app, tabs) {
  viewsOf(app).forEach((view) => {
    const tab = element(
      'button',
      {
        role: 'tab',
        id: `tab-${view}`,
        'aria-controls': 'stage',
        title: `${VIEW_TEXTS[view]} (${VIEWS.indexOf(view) + 1})`,
        onclick: () => app.set({ view }),
      },
      VIEW_TEXTS[view],
    );
    tabs.append(tab);
  });
}

/** @param {any} app */
export function drawTabs(app) {
  if (!app.isStale('tabs', app.state.view, app.source.id)) return;
  const tabs = byId('tabs');
  if (!tabs.firstChild) makeTabs(app, tabs);
  viewsOf(app).forEach((view) => {
    const tab = byId(`tab-${view}`);
    tab.setAttribute('aria-selected', String(view === app.state.view));
    tab.tabIndex = view === app.state.view ? 0 : -1;
    if (view === 'oom') {
      const count = app.source.ooms.length;
      tab.replaceChildren(
        VIEW_TEXTS.oom,
        ...(count > 0 ? [element('span', { class: 'badge' }, countText(count))] : []),
      );
    }
  });
  const id = `tab-${app.state.view}`;
  if (byId('stage').getAttribute('aria-labelledby') !== id) showTab(tabs, byId(id));
  byId('stage').setAttribute('aria-labelledby', id);
}

/** Where they do not all fit. @param {HTMLElement} tabs @param {HTMLElement} tab */
function showTab(tabs, tab) {
  const left = tab.offsetLeft - tabs.offsetLeft;
  if (left < tabs.scrollLeft) tabs.scrollLeft = left;
  else if (left + tab.offsetWidth > tabs.scrollLeft + tabs.clientWidth)
    tabs.scrollLeft = left + tab.offsetWidth - tabs.clientWidth;
}

/** Arrows go from tab to tab. @param {any} app */
export function listenToTabs(app) {
  byId('tabs').addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const views = viewsOf(app);
    const next = views[(views.indexOf(app.state.view) + step + views.length) % views.length];
    app.set({ view: next });
    app.draw();
    byId(`tab-${next}`).focus();
  });
}
