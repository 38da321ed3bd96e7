// SPDX-License-Identifier: MIT
// What has to be known before a picture is looked at, above all views: why a request failed, and
// that a file contradicts itself.
import { contradictions } from './contradiction.js';
import { countOf, countText, sizeText } from './format.js';
import { jumpTo } from './navigation.js';
import { VERDICTS, oomFacts } from './oom.js';
import { byId, element } from './paint.js';
import { sourceName } from './source_name.js';

const ELSEWHERE_BUTTONS = 3; // more devices are in the list of them

/** @param {any} app */
function oomNotice(app) {
  const { source } = app;
  const { ooms } = source;
  if (ooms.length === 0 || app.state.view === 'oom') return null;
  const [entry] = ooms;
  const { verdict, size } = oomFacts(app, entry);
  const more =
    ooms.length > 1 ? ` ${countOf(ooms.length - 1, 'later request')} failed as well.` : '';
  const event = countText(entry + source.info.skipped);
  const which = app.runs.length > 1 ? (app.state.before ? 'Before: ' : 'After: ') : '';
  return element(
    'div',
    { class: 'notice oom' },
    element(
      'p',
      {},
      element('strong', {}, `${which}Out of memory at event ${event}: no ${sizeText(size)}. `),
      `${verdict[0].toUpperCase()}${verdict.slice(1)}: ${VERDICTS[verdict]}${more}`,
    ),
    element('button', { 'data-key': 'why', onclick: () => app.set({ view: 'oom' }) }, 'Why'),
    element(
      'button',
      { 'data-key': 'then', onclick: () => jumpTo(app, entry, 'map') },
      'Map then',
    ),
  );
}

/** Requests that failed on devices that are not shown. @param {any} app */
function elsewhereNotice(app) {
  const { head, state } = app;
  const others = head.sources
    .map((/** @type {any} */ info, /** @type {number} */ i) => ({ info, i }))
    .filter((/** @type {any} */ { info, i }) => info.ooms > 0 && i !== state.source);
  if (others.length === 0) return null;
  const words = others.map(
    (/** @type {any} */ { info }) => `${countOf(info.ooms, 'request')} on ${sourceName(info)}`,
  );
  return element(
    'div',
    { class: 'notice oom' },
    element('p', {}, element('strong', {}, 'Out of memory elsewhere: '), `${words.join(', ')}.`),
    ...others
      .slice(0, ELSEWHERE_BUTTONS)
      .map((/** @type {any} */ { info, i }) =>
        element(
          'button',
          { 'data-key': `elsewhere ${i}`, onclick: () => app.set({ source: i }) },
          `Show ${sourceName(info)}`,
        ),
      ),
  );
}

/** @param {any} app */
function contradictionNotice(app) {
  const texts = contradictions(app);
  if (texts.length === 0) return null;
  return element(
    'div',
    { class: 'notice' },
    element(
      'p',
      {},
      element('strong', {}, 'The file contradicts itself: '),
      `${texts.join('; ')}. Figures may be wrong; \u201ctarn check\u201d lists every case.`,
    ),
  );
}

/** @param {any} app */
export function drawNotices(app) {
  if (!app.isStale('notices', app.source.id, app.state.view === 'oom')) return;
  const parts = [oomNotice(app), elsewhereNotice(app), contradictionNotice(app)];
  byId('notices').replaceChildren(.../** @type {Node[]} */ (parts.filter((part) => part)));
}
