// SPDX-License-Identifier: MIT
// What the program found out about a recording when the page was written: rows as objects, by
// device. The order of numbers in a row is that of src/page/answers.c.

/** @typedef {{conf: string | null, reserved: number, allocated: number, requested: number,
 *   calls: number, ooms: number}} Setting */

/** @typedef {{conf: string | null, memory: number, reserved: number}} Remedy */

/** @typedef {{event: number | null, reserved: number, requested: number, free: number,
 *   releasable: number, stuck: number, elsewhere: number, largestStuck: number}} FragState */

/** @typedef {{number: number | null, first: number, last: number, peak: number,
 *   peakEvent: number, end: number, growth: number, reserved: number, calls: number,
 *   isOutlier: boolean}} Step */

/** @typedef {{event: number, expandable: boolean | null, unrounded: boolean | null,
 *   change: number, is_step: boolean, since: number | null}} Failure */

/** An object of the numbers of a row. @param {string[]} names */
const namedBy = (names) => (/** @type {any[]} */ row) =>
  Object.fromEntries(names.map((name, i) => [name, row[i]]));

const settingOf = namedBy(['conf', 'reserved', 'allocated', 'requested', 'calls', 'ooms']);
const remedyOf = namedBy(['conf', 'memory', 'reserved']);
const fragOf = namedBy([
  'event',
  'reserved',
  'requested',
  'free',
  'releasable',
  'stuck',
  'elsewhere',
  'largestStuck',
]);
const stepOf = namedBy([
  'number',
  'first',
  'last',
  'peak',
  'peakEvent',
  'end',
  'growth',
  'reserved',
  'calls',
  'isOutlier',
]);

/** What is known of the source that is shown.
 * @param {any} app
 * @returns {{missing: string | null, settings: Setting[], settingsMissing: string | null,
 *   memory: number, isKnown: boolean, remedies: Remedy[], failures: Failure[],
 *   states: FragState[], steps: Step[], otherSteps: number,
 *   findings: {count: number, first: string[]} | null}} */
export function answersOf(app) {
  const { answers } = app.run;
  const { device, host } = app.source.info;
  const find = (/** @type {any[]} */ list) => list.find((one) => !host && one.device === device);
  const settings = find(answers.settings);
  const oom = find(answers.ooms);
  const steps = find(answers.steps);
  return {
    missing: answers.missing,
    settings: settings?.rows.map(settingOf) ?? [],
    settingsMissing: settings?.missing ?? null,
    memory: oom?.memory ?? 0,
    isKnown: oom?.known ?? false,
    remedies: oom?.remedies.map(remedyOf) ?? [],
    failures: oom?.failures ?? [],
    states: find(answers.frag)?.states.map(fragOf) ?? [],
    steps: steps?.rows.map(stepOf) ?? [],
    otherSteps: steps?.others ?? 0,
    findings: answers.findings,
  };
}
