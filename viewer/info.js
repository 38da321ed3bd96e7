// SPDX-License-Identifier: MIT
// What is in the file and what is not.
import { beforeText, sinceText } from './begin.js';
import { countOf, countText, shownText, sizeText, timeText } from './format.js';
import { element, replaceContent } from './paint.js';
import { KIND_NAMES, NEVER } from './kind.js';

/** @param {string} name @param {string | Node} value */
function fact(name, value) {
  return [element('dt', {}, name), element('dd', {}, value)];
}

/** What keeps the recording from being the whole story, in sentences. @param {any} app */
export function limits(app) {
  const { source, head } = app;
  const lines = [];
  const { info } = source;
  if (source.count === 0 && info.skipped === 0) {
    lines.push(
      head.list
        ? 'The file is a list of segments only: there is no history in it.'
        : 'No history was recorded for this device: call ' +
            'torch.cuda.memory._record_memory_history() before the code to observe.',
    );
  }
  if (info.skipped > 0 && source.count === 0) {
    lines.push(
      `All ${countOf(info.skipped, 'event')} were left out to keep the page small (--max-size).`,
    );
  } else if (info.skipped > 0) {
    lines.push(
      `The page begins with event ${countText(info.skipped)}: the ` +
        `${countText(info.skipped)} before it were left out to keep it small (--max-size).`,
    );
  }
  let old = 0;
  let bytes = 0;
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    if (source.lifetimeStart[lifetime] === NEVER) {
      old++;
      bytes += source.size(lifetime);
    }
  }
  if (old > 0 && source.count > 0) {
    lines.push(
      `${countOf(old, 'block')} of ${sizeText(bytes)} were ` +
        (info.skipped > 0
          ? `allocated ${beforeText(source, '')}.`
          : `allocated before the first event: the recording began ` +
            `mid-run, or its ring overflowed. Where the trace ` +
            `frees such a block, who allocated it is not known.`),
    );
  }
  if (head.partial) lines.push('The file ends early: what could be read is shown.');
  if (head.legacy)
    lines.push(
      'The file is of an old form, in which blocks have a history and no stacks of their own.',
    );
  if (head.redacted !== 'nothing') {
    lines.push(
      head.redacted === 'paths'
        ? 'Folders of source files were left out of this page.'
        : 'Names, files and other texts were left out of this page.',
    );
  }
  return lines;
}

/** @param {any} app @param {HTMLElement} into */
export function fillInfo(app, into) {
  const { source, head, curve } = app;
  const kinds = new Map();
  for (let entry = 0; entry < source.count; entry++) {
    const name = KIND_NAMES[source.kind[entry]];
    kinds.set(name, (kinds.get(name) || 0) + 1);
  }
  let withStack = 0;
  for (let entry = 0; entry < source.count; entry++) withStack += source.stack[entry] > 0 ? 1 : 0;
  const since = sinceText(source);
  const at = (/** @type {any} */ peak) => {
    if (peak.entry < 0) return beforeText(source, 'before the first event');
    const event = countText(peak.entry + source.info.skipped);
    return `at event ${event}${since && `, of those${since}`}`;
  };
  const span =
    source.hasTime && source.count > 1
      ? `, ${timeText(source.time[source.count - 1] - source.timeBegun)}`
      : '';
  const sum =
    [...kinds.values()].length > 0
      ? element(
          'table',
          { class: 'figures narrow' },
          element('caption', {}, `Events by action${since}`),
          element(
            'tbody',
            {},
            ...[...kinds]
              .sort((a, b) => b[1] - a[1])
              .map(([name, count]) =>
                element(
                  'tr',
                  {},
                  element('th', { scope: 'row' }, name),
                  element('td', {}, countText(count)),
                ),
              ),
          ),
        )
      : null;
  const settings = head.settings.map((/** @type {any} */ [name, value]) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, shownText(String(name), 200)),
      element('td', {}, value === '' ? '(default)' : shownText(String(value), 500)),
    ),
  );
  replaceContent(
    into,
    element(
      'div',
      { class: 'page' },
      element('h2', {}, shownText(head.title, 300)),
      element(
        'dl',
        {},
        ...fact('Source', source.name),
        ...fact(
          'Trace',
          source.count > 0 ? countOf(source.count, 'event', 'events') + since + span : 'none',
        ),
        ...fact('Peak requested', `${sizeText(curve.peak.value)} ${at(curve.peak)}`),
        ...fact(
          'Peak reserved',
          `${sizeText(curve.reservedPeak.value)} ${at(curve.reservedPeak)}`,
        ),
        ...fact(
          'At the end',
          `${sizeText(curve.requested(source.count - 1))} requested, ` +
            `${sizeText(curve.reserved(source.count - 1))} reserved`,
        ),
        ...fact(
          'Stacks',
          `${countText(source.names.stackNode.length - 1)} different; ` +
            `${countText(withStack)} of ${countOf(source.count, 'event', 'events')} have one`,
        ),
        ...fact('Annotations', countText(app.annotations.spans.length)),
        ...fact('Written by', `tarn ${head.tool}`),
      ),
      element(
        'p',
        { class: 'note' },
        'Requested bytes are those that the program asked for, before rounding, until the free ' +
          'is complete: what torch.cuda.memory_stats calls requested_bytes. Reserved are the ' +
          'bytes of segments. What max_memory_allocated() counts lies between: it is rounded.',
      ),
      ...limits(app).map((line) => element('p', { class: 'limit' }, line)),
      sum,
      settings.length > 0
        ? element(
            'table',
            { class: 'figures narrow left' },
            element('caption', {}, 'Allocator settings'),
            element('tbody', {}, ...settings),
          )
        : null,
      head.warnings.length > 0
        ? element(
            'table',
            { class: 'figures narrow left' },
            element('caption', {}, 'Oddities of the file'),
            element(
              'tbody',
              {},
              ...head.warnings.map((/** @type {any} */ [text, count]) =>
                element(
                  'tr',
                  {},
                  element('th', { scope: 'row' }, shownText(text, 300)),
                  element('td', {}, countText(count)),
                ),
              ),
            ),
          )
        : null,
    ),
  );
}
