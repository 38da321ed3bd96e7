// SPDX-License-Identifier: MIT
// Segments and blocks at the cursor, by pool and stream. Each group has its own scale, so that
// segments of 2 MiB can be seen beside those of gigabytes.
import { segmentAt } from './card_facts.js';
import { countOf, countText, sizeText } from './format.js';
import { layoutAt, layoutRows } from './layout.js';
import { moveAt, segmentsAndHoles, unmappedAt } from './page_moves.js';
import { FONT, FONT_BOLD, fitText, groupColour, inkOn, openCanvas } from './paint.js';
import { drawPageStrip, pageLines } from './page_strip.js';
import { lifetimeLines } from './blocks.js';

const BAND = 22;
const GAP = 6;
const HEAD = 40;
const ROWS_MAX = 14; // of a group, roughly: the scale is chosen for it
const EDGE = 16;
const HOLE = 12; // pixels of a range without pages, however large it is
const PALE = 0.25; // of the colour of what is not chosen, or not looked for

/** Where every segment is drawn. @param {any} app @param {number} width */
export function mapPlan(app, width) {
  const { source, state } = app;
  const { segments, outside } = layoutAt(source, app.entryAtCursor());
  const { rows, total } = layoutRows(source, segments);
  const room = Math.max(50, width - 2 * EDGE);
  const places = [];
  const holes = []; // ranges without pages
  rows.sort((a, b) => b.reserved - a.reserved); // what holds most is seen first
  const heads = [];
  const breaks = []; // where a page may end
  let y = 12;
  for (const row of rows) {
    const own = segments.filter((s) => s.poolStream === row.poolStream && s.large === row.large);
    const widest = Math.max(...own.map((s) => s.end - s.address));
    const perRow = Math.max(widest, row.reserved / ROWS_MAX);
    heads.push({ y, row, perRow });
    breaks.push(y - 12);
    y += HEAD;
    let x = 0;
    for (const part of rowParts(source, own, segments)) {
      const wide =
        'pieces' in part ? Math.max(3, ((part.end - part.address) / perRow) * room) : HOLE;
      const most = 'pieces' in part ? room + 0.5 : room + EDGE; // a hole may lie in the margin
      if (x > 0 && x + wide > most) {
        x = 0;
        y += BAND + GAP;
        breaks.push(y - GAP / 2);
      }
      const place = { x: EDGE + x, y, width: Math.min(wide, room) };
      if ('pieces' in part) places.push({ ...place, segment: part });
      else holes.push({ ...place, range: part });
      x += wide + 3;
    }
    y += BAND + 20;
  }
  return { heads, places, holes, breaks, total, outside, height: y, view: state.view };
}

/** Segments that grow lie by address, with the ranges between them that have no pages now; others
 * largest first. @param {import('./trace.js').Source} source
 * @param {import('./layout.js').Segment[]} own
 * @param {import('./layout.js').Segment[]} all */
function rowParts(source, own, all) {
  const grown = own.filter((segment) => segment.expandable);
  const fixed = own.filter((segment) => !segment.expandable);
  grown.sort((a, b) => a.address - b.address);
  fixed.sort((a, b) => b.end - b.address - (a.end - a.address) || a.address - b.address);
  return [...(grown.length > 0 ? segmentsAndHoles(source, grown, all) : []), ...fixed];
}

/** What must not be cut: heads and segments. @param {any} app @param {number} width */
export function mapRows(app, width) {
  const { heads, places } = mapPlan(app, width);
  return [
    ...heads.map((head) => ({ x: 0, y: head.y, width: 0, height: HEAD + BAND })),
    ...places.map(({ x, y, width: wide }) => ({ x, y, width: wide, height: BAND })),
  ];
}

/**
 * @param {any} app
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function drawMap(app, canvas, width, height) {
  const { theme } = app;
  const { context } = openCanvas(canvas, width, height);
  const plan = mapPlan(app, width);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  app.mapScroll = Math.max(0, Math.min(app.mapScroll || 0, plan.height - height));
  context.save();
  context.translate(0, -app.mapScroll);
  for (const head of plan.heads) drawHead(app, context, head, width);
  for (const place of plan.places) {
    if (place.y + BAND < app.mapScroll || place.y > app.mapScroll + height) continue;
    drawSegment(app, context, place);
  }
  for (const place of plan.holes) drawHole(app, context, place);
  drawMove(app, context, plan);
  context.restore();
  if (plan.height > height && !app.printer.isOn) {
    const share = height / plan.height;
    context.fillStyle = theme.strong;
    context.fillRect(width - 6, app.mapScroll * share, 4, Math.max(20, height * share));
  }
  app.picture = { plan, height: plan.height, breaks: plan.breaks };
}

/**
 * @param {any} app
 * @param {CanvasRenderingContext2D} context
 * @param {any} head
 * @param {number} width
 */
function drawHead(app, context, head, width) {
  const { theme, source } = app;
  const { row } = head;
  const title = `${row.large ? 'Large' : 'Small'} pool, ${source.poolStreamText(row.poolStream)}`;
  const free =
    row.free > 0
      ? `${sizeText(row.free)} free in ${countOf(row.freeRuns, 'piece')}, ` +
        `the largest ${sizeText(row.largestFree)}`
      : 'nothing free';
  const parts = [
    `${countOf(row.segments, 'segment')} of ${sizeText(row.reserved)}`,
    `${sizeText(row.used)} used`,
    free,
    `${sizeText(row.slack)} lost to rounding`,
  ];
  if (row.waiting > 0) parts.push(`${sizeText(row.waiting)} waiting to be freed`);
  context.fillStyle = theme.text;
  context.font = FONT_BOLD;
  context.fillText(title, EDGE, head.y + 8);
  const titleWidth = context.measureText(title).width;
  context.font = FONT;
  context.fillStyle = theme.muted;
  context.textAlign = 'right';
  const scale = `full width = ${sizeText(head.perRow)}`;
  context.fillText(scale, width - EDGE, head.y + 8);
  context.textAlign = 'left';
  context.fillText(fitText(context, parts.join(' \u00b7 '), width - 2 * EDGE), EDGE, head.y + 26);
  return titleWidth;
}

/** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} x @param
 * {number} y
 * @param {number} width */
function drawHatch(context, colour, x, y, width) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, BAND);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = x - BAND; at < x + width; at += 5) {
    context.moveTo(at, y + BAND);
    context.lineTo(at + BAND, y);
  }
  context.stroke();
  context.restore();
}

/** @param {any} app @param {CanvasRenderingContext2D} context @param {any} place */
function drawSegment(app, context, place) {
  const { theme, source, grouping, state } = app;
  const { segment, x, y, width } = place;
  const entry = app.entryAtCursor();
  const times = width / (segment.end - segment.address);
  context.fillStyle = theme.free;
  context.fillRect(x, y, width, BAND);
  for (const piece of segment.pieces) {
    const from = x + (piece.from - segment.address) * times;
    const wide = (piece.to - piece.from) * times;
    if (piece.kind === 'slack') {
      context.fillStyle = theme.slack;
      context.fillRect(from, y, wide, BAND);
    } else if (piece.kind === 'block') {
      const colour = groupColour(theme, grouping, grouping.group(piece.lifetime));
      const isOther =
        state.group !== '' && app.groupOfSelection !== grouping.group(piece.lifetime);
      const isMiss = app.matching !== null && !app.matching[piece.lifetime];
      context.globalAlpha = isOther || isMiss ? PALE : 1;
      context.fillStyle = colour;
      context.fillRect(from, y, wide > 3 ? wide - 0.75 : wide, BAND);
      context.globalAlpha = 1;
      if (source.isPending(piece.lifetime, entry))
        drawHatch(context, theme.pending, from, y, wide);
      if (piece.lifetime === state.lifetime) {
        context.strokeStyle = theme.text;
        context.lineWidth = 2;
        context.strokeRect(from, y - 1, Math.max(2, wide), BAND + 2);
      }
      const text =
        wide > 60 ? fitText(context, sizeText(source.size(piece.lifetime)), wide - 8) : '';
      if (text) {
        context.fillStyle = inkOn(colour);
        context.fillText(text, from + 5, y + BAND / 2 + 0.5);
      }
    }
  }
  const picked = state.picked[0] === 's' ? source.spans[Number(state.picked.slice(1))] : null;
  const isPicked = picked && picked.address >= segment.address && picked.address < segment.end;
  context.strokeStyle = isPicked ? theme.text : theme.strong;
  context.lineWidth = isPicked ? 2 : 1;
  context.strokeRect(Math.round(x) + 0.5, y + 0.5, Math.max(1, Math.round(width) - 1), BAND - 1);
  if (!state.plain) drawPageStrip(app, context, place, y + BAND);
}

/** A range without pages. @param {any} app @param {CanvasRenderingContext2D} context
 * @param {any} place */
function drawHole(app, context, { x, y, width }) {
  context.strokeStyle = app.theme.muted;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.strokeRect(Math.round(x) + 0.5, y + 3.5, Math.round(width) - 1, BAND - 7);
  context.setLineDash([]);
}

/** Where addresses are in the picture; null: nowhere. @param {any} plan
 * @param {import('./page_moves.js').Range} range */
function boxOfRange(plan, { from, to }) {
  for (const { segment, x, y, width } of plan.places) {
    if (from >= segment.end || to <= segment.address) continue;
    const times = width / (segment.end - segment.address);
    const left = x + Math.max(0, from - segment.address) * times;
    const right = x + Math.min(segment.end - segment.address, to - segment.address) * times;
    return { x: left, y, width: Math.max(3, right - left) };
  }
  const hole = plan.holes.find(
    (/** @type {any} */ one) => from < one.range.to && to > one.range.from,
  );
  return hole ?? null;
}

/** Pages that moved for the request at the cursor: from where, and to where.
 * @param {any} app @param {CanvasRenderingContext2D} context @param {any} plan */
function drawMove(app, context, plan) {
  const { theme, source } = app;
  const move = moveAt(source, app.entryAtCursor());
  if (!move) return;
  const ends = move.to.map((range) => boxOfRange(plan, range)).filter((box) => box);
  const starts = move.from.map((range) => boxOfRange(plan, range)).filter((box) => box);
  context.lineWidth = 2;
  context.strokeStyle = theme.accent;
  for (const box of ends) context.strokeRect(box.x, box.y - 2, box.width, BAND + 4);
  context.strokeStyle = theme.warn;
  for (const box of starts) context.strokeRect(box.x, box.y - 2, box.width, BAND + 4);
  for (const start of starts) {
    for (const end of ends.slice(0, 1)) {
      const [ax, bx] = [start, end].map((box) => box.x + box.width / 2);
      const below = Math.max(start.y, end.y) + BAND + 2;
      context.beginPath();
      context.moveTo(ax, start.y + BAND + 2);
      context.lineTo(ax, below + 10);
      context.lineTo(bx, below + 10);
      context.lineTo(bx, end.y + BAND + 8);
      context.stroke();
      drawArrowHead(context, bx, end.y + BAND + 2, theme.warn);
    }
  }
}

/** The head of an arrow that points up. @param {CanvasRenderingContext2D} context
 * @param {number} x @param {number} y @param {string} colour */
function drawArrowHead(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - 1);
  context.lineTo(x - 5, y + 8);
  context.lineTo(x + 5, y + 8);
  context.fill();
}

/** @param {any} app @param {import('./page_moves.js').Range} range */
function holeHit(app, range) {
  const { source } = app;
  const event = unmappedAt(source, range, app.entryAtCursor());
  const lines = [
    ['addresses without pages', sizeText(range.to - range.from)],
    ['address', source.hex(range.from)],
  ];
  if (event >= 0) lines.push(['unmapped at event', countText(event + source.info.skipped)]);
  else lines.push(['not mapped so far', '']);
  return { entry: -2, group: -1, lifetime: -1, lines, picked: '' };
}

/** @param {any} app @param {number} px @param {number} py */
export function hitMap(app, px, py) {
  const { picture, source } = app;
  if (!picture || !picture.plan) return null;
  const y = py + (app.mapScroll || 0);
  const hole = picture.plan.holes.find(
    (/** @type {any} */ p) => px >= p.x && px <= p.x + p.width && y >= p.y && y < p.y + BAND,
  );
  if (hole) return holeHit(app, hole.range);
  const place = picture.plan.places.find(
    (/** @type {any} */ p) => px >= p.x && px <= p.x + p.width && y >= p.y && y < p.y + BAND,
  );
  if (!place) return null;
  const { segment } = place;
  const at = segment.address + ((px - place.x) / place.width) * (segment.end - segment.address);
  const piece = segment.pieces.find((/** @type {any} */ p) => at >= p.from && at < p.to);
  const lines = [];
  if (piece && piece.kind === 'block') {
    lines.push(...lifetimeLines(app, piece.lifetime));
    if (source.isPending(piece.lifetime, app.entryAtCursor()))
      lines.push(['its free waits for another stream', '']);
  } else if (piece) {
    lines.push([
      piece.kind === 'slack' ? 'part of the block before it: not split off' : 'free',
      sizeText(piece.to - piece.from),
    ]);
    lines.push(['address', source.hex(piece.from)]);
  }
  if (!app.state.plain) lines.push(...pageLines(source, at, app.entryAtCursor()));
  lines.push([
    segment.expandable ? 'expandable segment' : 'segment',
    `${source.hex(segment.address)}, ${sizeText(segment.end - segment.address)}`,
  ]);
  return {
    entry: -2,
    group: -1,
    lifetime: piece && piece.kind === 'block' ? piece.lifetime : -1,
    lines,
    picked:
      piece && piece.kind === 'block' ? '' : `s${segmentAt(source, at, app.entryAtCursor())}`,
  };
}
