// SPDX-License-Identifier: MIT
// A function between those that called it and those that it called: the stacks through it, cut in
// two at its outermost frame.

/** Whether two frames are of one function.
 * @param {any} names @param {number} a @param {number} b */
function isSameFunction(names, a, b) {
  return names.frameName[a] === names.frameName[b] && names.frameFile[a] === names.frameFile[b];
}

/** The frames that a function called, from it inwards, and those that called it, from it outwards;
 * null: the stack does not go through it.
 * @param {any} names @param {number[]} frames of a stack, innermost first @param {number} through
 * @returns {{callees: number[], callers: number[]} | null} */
export function cutStack(names, frames, through) {
  const at = frames.findLastIndex((frame) => isSameFunction(names, frame, through));
  if (at < 0) return null;
  return { callees: frames.slice(0, at).reverse(), callers: frames.slice(at + 1) };
}

/** The function that the stacks go through. @param {any} app */
export function throughText(app) {
  const { names } = app.source;
  return names.frameText(app.state.through).replace(/:\d+ /, ' ');
}
