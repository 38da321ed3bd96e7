// SPDX-License-Identifier: MIT
// Where the page begins, when the oldest events were left out to keep it small: said at every
// figure that is of the rest only.
import { countText } from './format.js';

/** Which part of the recording a sum, or the most, is of; '' where the page has all of it.
 * @param {{info: {skipped: number}}} source */
export function sinceText({ info }) {
  return info.skipped > 0 ? ` since event ${countText(info.skipped)}` : '';
}

/** The moment before the events that the page has.
 * @param {{info: {skipped: number}}} source
 * @param {string} whole its name where those are all */
export function beforeText({ info }, whole) {
  return info.skipped > 0 ? `before event ${countText(info.skipped)}` : whole;
}
