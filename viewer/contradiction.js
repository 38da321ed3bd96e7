// SPDX-License-Identifier: MIT
// Where a file contradicts itself, so that figures of it cannot all be right: what the events show,
// and what `tarn check` found when the page was made. It lists every case; the page says that there
// are some.
import { answersOf } from './answers.js';
import { countOf, countText, shareText, shownText } from './format.js';
import { KIND } from './kind.js';

/** The event at which most is requested beyond what is reserved; null: there is none. Where nothing
 * is reserved the file has no segments, and says nothing that could be wrong.
 * @param {import('./trace.js').Source} source @param {import('./curve.js').Curve} curve */
export function worstExcess(source, curve) {
  const { reservedAt, reservedValue } = curve;
  let worst = null;
  for (let i = 0; i < reservedAt.length; i++) {
    const from = Math.max(0, reservedAt[i]);
    const end = Math.min(source.count, reservedAt[i + 1] ?? source.count);
    const reserved = reservedValue[i];
    if (!(end > from) || !(reserved > 0)) continue;
    const { value, entry } = curve.most(from, end);
    if (value > reserved && !(worst && value / reserved <= worst.requested / worst.reserved))
      worst = { entry, requested: value, reserved };
  }
  return worst;
}

/** What contradicts what, in words. @param {any} app @returns {string[]} */
export function contradictions(app) {
  const { source, curve } = app;
  const texts = [];
  const worst = worstExcess(source, curve);
  if (worst) {
    const event = countText(worst.entry + source.info.skipped);
    const share = shareText(worst.requested, worst.reserved);
    texts.push(`at event ${event} ${share} of what is reserved is requested`);
  }
  const isLost = (/** @type {any} */ event) =>
    event.kind === KIND.LOST_FREE_REQUESTED || event.kind === KIND.LOST_FREE_COMPLETED;
  const lost = source.events.filter(isLost).length;
  if (lost > 0) texts.push(`${countOf(lost, 'free')} of what is free already`);
  const again = source.endedBy().size;
  if (again > 0) texts.push(`${countOf(again, 'allocation')} of what is allocated already`);
  const { findings } = answersOf(app);
  if (findings && findings.count > 0) {
    const first = findings.first.length > 0 ? `: ${shownText(findings.first[0], 200)}` : '';
    const isMore = findings.count > 1 ? ', first' : '';
    texts.push(
      `${countOf(findings.count, 'finding')} of \u201ctarn check\u201d${isMore}${first}`,
    );
  }
  return texts;
}
