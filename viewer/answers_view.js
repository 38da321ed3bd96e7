// SPDX-License-Identifier: MIT
// What the program found out: what settings would have cost, what would have saved a request that
// failed, what is stuck, how steps differ, and where the file contradicts itself.
import { answersOf } from './answers.js';
import { changeText } from './compare_view.js';
import { countOf, countText, shareText, shownText, sizeText } from './format.js';
import { jumpTo } from './navigation.js';
import { element, replaceContent } from './paint.js';

const SAME = 0.001; // of what is reserved: a difference that is none
const STEPS_SHOWN = 200;

/** @typedef {ReturnType<typeof answersOf>} Answers */

/** @param {string} caption @param {(string | Node)[]} heads @param {HTMLElement[]} rows */
function answerTable(caption, heads, rows) {
  return element(
    'table',
    { class: 'figures' },
    element('caption', {}, caption),
    element(
      'thead',
      {},
      element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head))),
    ),
    element('tbody', {}, ...rows),
  );
}

/** @param {number} bytes @param {string} [text] */
function bytesCell(bytes, text = sizeText(bytes)) {
  return element('td', { title: `${countText(bytes)} bytes` }, text);
}

/** @param {string | Node} name @param {HTMLElement[]} cells @param {string} [kind] */
function answerRow(name, cells, kind = '') {
  return element('tr', { class: kind }, element('th', { scope: 'row' }, name), ...cells);
}

/** @param {string} heading @param {...(Node | null)} parts */
function answerPart(heading, ...parts) {
  return element('section', {}, element('h2', {}, heading), ...parts);
}

/** @param {string} text @param {string} [kind] */
function sentence(text, kind = '') {
  return element('p', { class: kind }, text);
}

/** An event that is a way to the map as it was then. @param {any} app @param {number | null} event
 * of the whole recording */
function eventButton(app, event) {
  if (event === null) return element('span', {}, 'the end');
  const entry = event - app.source.info.skipped;
  const text = countText(event);
  if (entry < 0 || entry >= app.source.count) return element('span', {}, text);
  return element(
    'button',
    { class: 'link', 'data-key': `at ${event}`, onclick: () => jumpTo(app, entry, 'map') },
    text,
  );
}

// ---- settings ----

/** Settings in words. @param {string | null} conf */
function confText(conf) {
  return conf === null ? '(not in this page)' : conf === '' ? '(default)' : shownText(conf, 300);
}

/** @param {import('./answers.js').Setting} row
 * @param {import('./answers.js').Setting} recorded */
function isSameCost(row, recorded) {
  return (
    row.ooms === recorded.ooms &&
    Math.abs(row.reserved - recorded.reserved) <= recorded.reserved * SAME
  );
}

/** @param {import('./answers.js').Setting} row @param {string} name
 * @param {import('./answers.js').Setting} recorded */
function settingRow(row, name, recorded) {
  const change = row.reserved - recorded.reserved;
  const share = `${change > 0 ? '+' : ''}${shareText(change, recorded.reserved)}`;
  return answerRow(
    name,
    [
      bytesCell(row.reserved),
      row === recorded
        ? element('td', {}, '')
        : bytesCell(change, `${changeText(change)}, ${share}`),
      element('td', {}, (row.reserved / Math.max(1, row.allocated)).toFixed(3)),
      bytesCell(row.allocated - row.requested),
      element('td', {}, countText(row.calls)),
      element('td', { class: row.ooms > 0 ? 'bad' : '' }, countText(row.ooms)),
    ],
    row === recorded ? 'chosen' : '',
  );
}

/** @param {Answers} answers */
function settingsTable({ settings }) {
  const [recorded, ...others] = settings;
  const differ = others
    .filter((row) => !isSameCost(row, recorded))
    .sort((a, b) => a.ooms - b.ooms || a.reserved - b.reserved);
  const same = others.filter((row) => isSameCost(row, recorded));
  return [
    answerTable(
      'The run replayed under each setting',
      [
        'Settings',
        'Peak reserved',
        'Change',
        'Reserved / allocated',
        'Lost to rounding',
        'Device calls',
        'Failed requests',
      ],
      [
        settingRow(recorded, `recorded: ${confText(recorded.conf)}`, recorded),
        ...differ.map((row) => settingRow(row, confText(row.conf), recorded)),
      ],
    ),
    same.length > 0
      ? element(
          'details',
          {},
          element('summary', {}, `${countOf(same.length, 'setting')} would have changed nothing`),
          element('p', {}, same.map((row) => confText(row.conf)).join(', ')),
        )
      : null,
    sentence(
      'policy:compact is that of libtarn, which moves free pages; the others are settings of ' +
        'PyTorch\u2019s allocator. \u201ctarn tune\u201d combines them.',
      'note',
    ),
  ];
}

/** @param {Answers} answers */
function settingsPart(answers) {
  const heading = 'What would each setting have cost?';
  if (answers.settings.length > 0) return answerPart(heading, ...settingsTable(answers));
  const why = answers.settingsMissing ?? 'only the first 16 devices with a trace are';
  return answerPart(heading, sentence(`The run was not replayed: ${why}.`, 'limit'));
}

// ---- failed requests ----

/** What changed before a request failed. @param {any} app
 * @param {import('./answers.js').Failure} failure */
function failureRow(app, failure) {
  const { skipped } = app.source.info;
  const since = failure.since;
  const show = () =>
    app.set({
      view: 'flame',
      flame: 'growth',
      mark: /** @type {number} */ (since) - skipped,
      cursor: failure.event - skipped,
    });
  const text = changeText(failure.change);
  const place = failure.is_step ? ', the end of the last step' : '';
  return answerRow(eventButton(app, failure.event), [
    element('td', {}, since === null ? '' : countText(since) + place),
    element(
      'td',
      { title: `${countText(failure.change)} bytes` },
      since !== null && since >= skipped
        ? element(
            'button',
            { class: 'link', 'data-key': `grew ${failure.event}`, onclick: show },
            text,
          )
        : text,
    ),
    element('td', {}, answerWord(failure.expandable)),
    element('td', {}, answerWord(failure.unrounded)),
  ]);
}

/** @param {boolean | null} answer */
function answerWord(answer) {
  return answer === null ? '' : answer ? 'yes' : 'no';
}

/** @param {Answers} answers */
function remediesTable(answers) {
  const { remedies, memory, isKnown } = answers;
  if (!isKnown)
    return sentence(
      'Whether other settings would have let the run finish is not known: the replay does not ' +
        'fail as the run did.',
      'limit',
    );
  if (remedies.length === 0)
    return sentence(`No setting lets the run finish in ${sizeText(memory)}.`, 'limit');
  return answerTable(
    `With these the run finishes; it could reserve ${sizeText(memory)}`,
    ['Settings', 'Memory it may reserve', 'Peak reserved'],
    remedies.map((remedy) =>
      answerRow(
        remedy.memory > memory ? `more memory, ${confText(remedy.conf)}` : confText(remedy.conf),
        [
          bytesCell(remedy.memory),
          remedy.reserved > 0 ? bytesCell(remedy.reserved) : element('td', {}, ''),
        ],
      ),
    ),
  );
}

/** @param {any} app @param {Answers} answers */
function savedPart(app, answers) {
  if (answers.failures.length === 0) return null;
  return answerPart(
    'What would have saved the request that failed?',
    remediesTable(answers),
    answerTable(
      'What changed before it failed',
      [
        'Event',
        'Since event',
        'Requested memory',
        'Expandable segments save it',
        'No rounding saves it',
      ],
      answers.failures.map((failure) => failureRow(app, failure)),
    ),
  );
}

// ---- over time ----

/** What a bar is made of, and its colours. */
const FRAG_PARTS = /** @type {const} */ ([
  ['requested', 'requested'],
  ['lost', 'lost to rounding'],
  ['releasable', 'free, can go back'],
  ['stuck', 'stuck'],
  ['elsewhere', 'free, of other streams and pools'],
]);

/** @param {import('./answers.js').FragState} state */
function fragBytes(state) {
  return { ...state, lost: Math.max(0, state.reserved - state.requested - state.free) };
}

/** @param {import('./answers.js').FragState} state @param {number} most */
function fragBar(state, most) {
  const bytes = fragBytes(state);
  return element(
    'span',
    { class: 'stack', 'aria-hidden': 'true' },
    ...FRAG_PARTS.map(([part]) => {
      const piece = element('span', { class: `part ${part}` });
      piece.style.width = `${(bytes[part] / Math.max(1, most)) * 100}%`;
      return piece;
    }),
  );
}

/** @param {any} app @param {Answers} answers */
function fragPart(app, { states }) {
  if (states.length === 0) return null;
  const most = Math.max(...states.map((state) => state.reserved));
  return answerPart(
    'What is stuck over time?',
    sentence(
      'Stuck is memory that is free beside blocks: it cannot go back to the device. A click on ' +
        'an event shows the map as it was then.',
      'note',
    ),
    element(
      'p',
      { class: 'keyline' },
      ...FRAG_PARTS.map(([part, text]) =>
        element('span', {}, element('span', { class: `swatch ${part}` }), text),
      ),
    ),
    answerTable(
      'Reserved memory after each tenth of the recording',
      [
        'Event',
        'Of what is reserved',
        'Reserved',
        'Requested',
        'Can go back',
        'Stuck',
        'Largest stuck piece',
        'Elsewhere',
      ],
      states.map((state) =>
        answerRow(eventButton(app, state.event), [
          element('td', { class: 'stackcell' }, fragBar(state, most)),
          bytesCell(state.reserved),
          bytesCell(state.requested),
          bytesCell(state.releasable),
          bytesCell(state.stuck),
          bytesCell(state.largestStuck),
          bytesCell(state.elsewhere),
        ]),
      ),
    ),
  );
}

/** What changed in a step, in the flame. @param {any} app @param {import('./answers.js').Step} step
 * @param {string} text */
function stepButton(app, step, text) {
  const { skipped } = app.source.info;
  if (step.first < skipped) return element('span', {}, text);
  const show = () =>
    app.set({
      view: 'flame',
      flame: 'growth',
      mark: step.first - skipped - 1,
      cursor: step.last - skipped,
    });
  return element('button', { class: 'link', 'data-key': `step ${text}`, onclick: show }, text);
}

/** @param {any} app @param {Answers} answers */
function stepsPart(app, { steps, otherSteps }) {
  if (steps.length === 0) return null;
  const shown = steps.slice(0, STEPS_SHOWN);
  const left = otherSteps + steps.length - shown.length;
  return answerPart(
    'What changed from step to step?',
    sentence('A click on a step shows what grew in it.', 'note'),
    answerTable(
      'Steps of the recording',
      ['Step', 'Begins', 'Peak requested', 'At event', 'At its end', 'Change', 'Device calls'],
      shown.map((step) =>
        answerRow(
          stepButton(app, step, step.number === null ? 'beside steps' : countText(step.number)),
          [
            element('td', {}, countText(step.first)),
            bytesCell(step.peak),
            element('td', {}, eventButton(app, step.peakEvent)),
            bytesCell(step.end),
            bytesCell(step.growth, changeText(step.growth)),
            element('td', {}, countText(step.calls)),
          ],
          step.isOutlier ? 'bad' : '',
        ),
      ),
    ),
    left > 0 ? sentence(`and ${countOf(left, 'more step')}`, 'note') : null,
  );
}

/** @param {Answers} answers */
function findingsPart({ findings }) {
  if (!findings) return null;
  const { count, first } = findings;
  return answerPart(
    'Does the file contradict itself?',
    count === 0
      ? sentence('No: \u201ctarn check\u201d finds nothing.')
      : sentence(`${countOf(count, 'contradiction')}, found by \u201ctarn check\u201d:`, 'limit'),
    count > 0
      ? element('ul', {}, ...first.map((text) => element('li', {}, shownText(text, 300))))
      : null,
    count > first.length ? sentence(`and ${countText(count - first.length)} more`, 'note') : null,
  );
}

/** @param {any} app @param {HTMLElement} into */
export function fillAnswers(app, into) {
  const answers = answersOf(app);
  const parts = answers.missing
    ? [sentence(`The program computed nothing for this page: ${answers.missing}.`, 'limit')]
    : [
        savedPart(app, answers),
        settingsPart(answers),
        fragPart(app, answers),
        stepsPart(app, answers),
        findingsPart(answers),
      ];
  replaceContent(
    into,
    element('div', { class: 'page wide answers' }, ...parts.filter((part) => part)),
  );
}
