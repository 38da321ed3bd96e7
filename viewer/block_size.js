// SPDX-License-Identifier: MIT
// The rounding of requests to blocks, by the rules of src/base/block_size.h.

const UNIT = 512;
const INTERVAL = 2 ** 21; // where the second one begins

/** @param {number} size */
export function unitRounded(size) {
  return Math.max(UNIT, Math.ceil(size / UNIT) * UNIT);
}

/** The largest power of two that is not larger. @param {number} size */
function powerBelow(size) {
  const power = 2 ** Math.floor(Math.log2(size));
  return power > size ? power / 2 : power * 2 <= size ? power * 2 : power;
}

/** @param {number} size @param {number[]} roundup divisions by size of the request, 0 and 1: off */
export function settingsRounded(size, roundup) {
  let interval = 0;
  for (let from = INTERVAL; size >= from && interval < roundup.length - 1; from *= 2) interval++;
  const divisions = roundup[interval];
  if (divisions <= 1 || size <= UNIT * divisions) return unitRounded(size);
  const power = powerBelow(size);
  const step = power / powerBelow(divisions);
  if (size === power) return size;
  return step < 1 ? power * 2 : Math.ceil(size / step) * step;
}
