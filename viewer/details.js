// SPDX-License-Identifier: MIT
// The panel at the side: the card of what is chosen, a range, and the legend.
import { cardPart } from './card.js';
import { flamePlan } from './flame_tree.js';
import { fileLegend } from './flame_file.js';
import { countOf, countText, sizeText, timeText } from './format.js';
import { legendPart } from './legend.js';
import { pagePart } from './page_part.js';
import { element, replaceContent } from './paint.js';
import { segmentLegend } from './segment_stack.js';
import { stackList } from './stack_list.js';
import { NEVER } from './kind.js';

/** What changed between the mark and the cursor. @param {any} app */
function rangePart(app) {
  const { state, curve, source } = app;
  if (state.mark < -1 || state.cursor < -1) return null;
  const [from, to] = [state.mark, state.cursor].sort((a, b) => a - b);
  const most =
    source.count > 0 ? curve.most(Math.max(0, from), Math.max(1, to + 1)) : { value: 0 };
  const change = curve.requested(to) - curve.requested(from);
  let allocs = 0;
  let bytes = 0;
  let kept = 0;
  let keptBytes = 0;
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const start = source.lifetimeStart[lifetime];
    if (start === NEVER || start <= from || start > to) continue;
    allocs++;
    bytes += source.size(lifetime);
    if (source.isLive(lifetime, to)) {
      kept++;
      keptBytes += source.size(lifetime);
    }
  }
  const took = source.hasTime ? timeText(source.timeAt(to) - source.timeAt(from)) : '';
  return element(
    'section',
    {},
    element('h2', {}, 'From mark to cursor'),
    element(
      'dl',
      { class: 'facts' },
      ...facts([
        ['events', `${countText(to - from)}${took ? ', ' + took : ''}`],
        ['requested', `${change >= 0 ? '+' : ''}${sizeText(change)}`],
        ['most in between', sizeText(most.value)],
        ['allocated', `${sizeText(bytes)} in ${countOf(allocs, 'block')}`],
        ['of these still there', `${sizeText(keptBytes)} in ${countOf(kept, 'block')}`],
      ]),
    ),
    element(
      'p',
      { class: 'bar' },
      element(
        'button',
        { onclick: () => app.set({ view: 'flame', flame: 'growth' }) },
        'Who grew',
      ),
      element('button', { onclick: () => app.set({ mark: -2 }) }, 'Clear the mark'),
    ),
  );
}

/** @param {[string, string | Node][]} pairs */
function facts(pairs) {
  return pairs.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]);
}

/** The chosen group, when it is of one stack. @param {any} app */
function groupPart(app) {
  const { state, grouping } = app;
  const key = grouping.keys.find(
    (/** @type {any} */ k) => k.key === state.group && state.group !== '',
  );
  if (!key || key.stack < 0) return null;
  return element(
    'section',
    {},
    element('h3', {}, grouping.by === 'stack' ? 'Stack of the group' : 'A stack of the group'),
    stackList(app, key.stack),
  );
}

/** What the colours stand for: those of the flame are files. @param {any} app */
function legendParts(app) {
  if (app.state.view === 'flame') return [fileLegend(app, flamePlan(app).root)];
  if (app.state.view === 'timeline' && app.state.segments) return [segmentLegend(app)];
  return [pagePart(app), legendPart(app), groupPart(app)];
}

/** @param {any} app @param {HTMLElement} into */
export function fillPanel(app, into) {
  const parts = [cardPart(app), rangePart(app), ...legendParts(app)];
  replaceContent(into, .../** @type {Node[]} */ (parts.filter(Boolean)));
}
