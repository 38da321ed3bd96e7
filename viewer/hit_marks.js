// SPDX-License-Identifier: MIT
// Where a search has hits in a picture over time: ticks on its ground line, at the allocations of
// blocks that match.

/** The pixels with a hit. @param {any} app @param {any} box @returns {number[]} */
export function hitPixels(app, box) {
  const { matches, source } = app;
  if (!matches) return [];
  const { from, to, width } = box.axis;
  const key = [matches, from, to, width, box.axis.isTime, source];
  if (
    app.hitMarks?.key.every((/** @type {any} */ part, /** @type {number} */ i) => part === key[i])
  )
    return app.hitMarks.pixels;
  const has = new Uint8Array(Math.ceil(width) + 1);
  for (const lifetime of matches.lifetimes) {
    const start = source.lifetimeStart[lifetime];
    if (start >= from && start < to) has[Math.floor(box.axis.pixel(start))] = 1;
  }
  /** @type {number[]} */
  const pixels = [];
  has.forEach((is, x) => {
    if (is) pixels.push(x);
  });
  app.hitMarks = { key, pixels };
  return pixels;
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} box */
export function drawHits(app, context, box) {
  context.fillStyle = app.theme.mark;
  for (const x of hitPixels(app, box)) context.fillRect(box.left + x, box.bottom - 5, 1.5, 9);
}
