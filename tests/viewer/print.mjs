// SPDX-License-Identifier: MIT
// Every view on paper: whole, light, with its figures as text, on the screen's emulation of paper
// and in a PDF.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { draw, openPage } from './browser.mjs';
import { VIEWS, expect, expectTrue, pictures, work, writePage } from './check.mjs';

/** All streams of a PDF that are deflated, as text. */
function pdfStreams(pdf) {
  const text = pdf.toString('latin1');
  const streams = [];
  for (let at = text.indexOf('stream\n'); at >= 0; at = text.indexOf('stream\n', at + 7)) {
    if (text.slice(at - 3, at) === 'end') continue;
    const end = text.indexOf('endstream', at);
    try {
      streams.push(inflateSync(pdf.subarray(at + 7, end)).toString('latin1'));
    } catch {
      /* a picture or a font: not deflated, or not text */
    }
  }
  return streams;
}

const hex = (text) => parseInt(text, 16);

/** Which letters the glyphs of a font are. */
function glyphLetters(stream) {
  const letters = new Map();
  for (const block of stream.matchAll(/beginbfchar([\s\S]*?)endbfchar/g))
    for (const [, glyph, letter] of block[1].matchAll(/<([0-9A-F]+)> <([0-9A-F]{4})/gi))
      letters.set(hex(glyph), String.fromCharCode(hex(letter)));
  for (const block of stream.matchAll(/beginbfrange([\s\S]*?)endbfrange/g))
    for (const [, from, to, letter] of block[1].matchAll(
      /<([0-9A-F]+)> <([0-9A-F]+)> <([0-9A-F]{4})>/gi,
    ))
      for (let i = 0; i <= hex(to) - hex(from); i++)
        letters.set(hex(from) + i, String.fromCharCode(hex(letter) + i));
  return letters;
}

/** The text of a PDF, once for each of its fonts: which font a text has is not looked at. */
function pdfText(pdf) {
  const streams = pdfStreams(pdf);
  const fonts = streams.filter((s) => s.includes('begincmap')).map(glyphLetters);
  const drawn = streams.filter((s) => /\bTf\b/.test(s)).join('\n');
  const runs = [...drawn.matchAll(/<([0-9A-F]+)>/gi)].map((m) => m[1]);
  return fonts.map((letters) =>
    runs
      .map((run) =>
        run
          .match(/.{4}/g)
          ?.map((g) => letters.get(hex(g)) ?? '')
          .join(''),
      )
      .join(''),
  );
}

/** How high a picture of a view is when all of it is there. */
function wholeHeight(page, view) {
  return page.evaluate((name) => {
    if (name === 'map') return window.tarnView.mapHeight(1040);
    if (name !== 'flame') return 560;
    const { root } = window.tarnView.flame();
    let deepest = 0;
    const look = (node) => {
      if ((node.bytes / root.bytes) * 1024 < 0.4) return;
      deepest = Math.max(deepest, node.depth);
      node.children.forEach(look);
    };
    look(root);
    return (deepest + 1) * 20 + 16;
  }, view);
}

/** What is on paper, measured in the page. */
function paperOf(page) {
  return page.evaluate(() => {
    const { app } = window.tarnView;
    const shown = (id) => document.getElementById(id).getClientRects().length > 0;
    const canvases = [...document.querySelectorAll('#paper canvas')];
    const corners = canvases.map((c) => [...c.getContext('2d').getImageData(1, 1, 1, 1).data]);
    return {
      text: document.body.innerText,
      high: canvases.reduce((sum, c) => sum + c.height / (window.devicePixelRatio || 1), 0),
      corners: corners.map((c) => c.join()),
      inked: canvases.every((c) => {
        const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
        let other = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] < 240) other++;
        return other > 500;
      }),
      tools: ['tabs', 'controls', 'search', 'canvas', 'overview'].filter(shown),
      wide: document.documentElement.scrollWidth,
      paper: getComputedStyle(document.body).backgroundColor,
    };
  });
}

async function viewOnPaper(page, view) {
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction(() => document.body.classList.contains('printing'));
  const found = await paperOf(page);
  const isPicture = ['timeline', 'blocks', 'map', 'flame'].includes(view);
  for (const words of ['oom.pickle.gz', 'device 0', 'at event 4,442', '6.39 GiB', 'block of'])
    expectTrue(
      `print ${view}: says ${words}`,
      found.text.includes(words),
      found.text.slice(0, 300),
    );
  expect(`print ${view}: no tools`, found.tools, []);
  expect(`print ${view}: white paper`, found.paper, 'rgb(255, 255, 255)');
  if (isPicture) {
    expect(`print ${view}: whole`, Math.round(found.high), await wholeHeight(page, view));
    expect(`print ${view}: light`, [...new Set(found.corners)], ['255,255,255,255']);
    expectTrue(`print ${view}: drawn`, found.inked);
    expectTrue(`print ${view}: figures as text`, /activations\.py:66 forward/.test(found.text));
  }
  if (pictures)
    await page.screenshot({ path: join(pictures, `print_${view}.png`), fullPage: true });
  const pdf = await page.pdf();
  const texts = pdfText(pdf);
  const has = (words) => texts.some((text) => text.replace(/\s/g, '').includes(words));
  expectTrue(
    `print ${view}: a PDF has the text`,
    has('oom.pickle.gz') && has('6.39GiB'),
    `${pdf.length} bytes ${texts.map((t) => t.slice(0, 60))}`,
  );
  await page.emulateMedia({ media: 'screen' });
  await page.waitForFunction(() => !document.body.classList.contains('printing'));
}

/** Segments of many streams: a map of several sheets. */
function manySegments() {
  const segments = [];
  for (let i = 0; i < 240; i++) {
    const total = (2 + (i % 5) * 2) << 20;
    segments.push({
      device: 0,
      address: (i + 1) * (1 << 25),
      total_size: total,
      stream: i % 8,
      segment_type: 'large',
      blocks: [
        { size: total / 2, requested_size: total / 2, state: 'active_allocated', frames: [] },
        { size: total / 2, requested_size: 0, state: 'inactive', frames: [] },
      ],
    });
  }
  const file = join(work, 'many_segments.json');
  writeFileSync(file, JSON.stringify({ segments, device_traces: [] }));
  return file;
}

/** Every row of a picture of several pages is whole on one of them. */
async function rowsAreWhole(browser, view, file) {
  const { page, close } = await openPage(browser, file, { hash: `#v=${view}` });
  await draw(page);
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction(() => document.body.classList.contains('printing'));
  const found = await page.evaluate((name) => {
    const { app } = window.tarnView;
    const canvases = [...document.querySelectorAll('#paper canvas')];
    const ratio = window.devicePixelRatio || 1;
    const rows =
      name === 'map'
        ? window.tarnView.mapRows(1040)
        : app.picture.boxes.map((box) => ({
            x: box.x,
            y: box.y + 8,
            width: box.width,
            height: 19,
          }));
    let at = 0;
    const pieces = canvases.map((canvas) => {
      const piece = { canvas, from: at, to: at + canvas.height / ratio };
      at = piece.to;
      return piece;
    });
    let cut = 0;
    let pale = 0;
    for (const row of rows) {
      const on = pieces.filter((p) => row.y < p.to && row.y + row.height > p.from);
      if (on.length !== 1) cut++;
      if (on.length !== 1 || row.width < 12) continue;
      const context = on[0].canvas.getContext('2d');
      // Both of its edges are drawn.
      for (const y of [row.y + 1, row.y + row.height - 2]) {
        const { data } = context.getImageData(row.x + 3, y - on[0].from, 1, 1);
        if (data[0] > 250 && data[1] > 250 && data[2] > 250) pale++;
      }
    }
    return {
      pages: canvases.length,
      high: pieces.map((p) => p.to - p.from),
      rows: rows.length,
      cut,
      pale,
    };
  }, view);
  expectTrue(`print ${view}: several pages`, found.pages >= 3, JSON.stringify(found));
  expectTrue(`print ${view}: each fits`, Math.max(...found.high) <= 600, found.high);
  expectTrue(`print ${view}: many rows`, found.rows >= 40, found.rows);
  expect(`print ${view}: no row is cut or missing`, [found.cut, found.pale], [0, 0]);
  await close();
}

/** A table of several sheets: each has the heads of its columns, the last one the sums, once. */
async function tableIsPrinted(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'), {
    hash: '#v=table&g=stack',
  });
  await draw(page);
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction(() => document.body.classList.contains('printing'));
  const pdf = await page.pdf();
  const sheets = pdf.toString('latin1').match(/\/Type\s*\/Page\b/g).length;
  const texts = pdfText(pdf).map((text) => text.replace(/\s/g, ''));
  const count = (words) => Math.max(...texts.map((text) => text.split(words).length - 1));
  expectTrue('a printed table has several sheets', sheets >= 2, sheets);
  expect('each with the heads of its columns', count('Meanlifetime'), sheets);
  expect('and the sums once', count('total9.72GiB'), 1);
  await close();
}

/** One stack of many frames: a flame of several sheets. */
function deepStack() {
  const frames = Array.from({ length: 90 }, (_, i) => ({
    name: `f${i}`,
    filename: `part${i}.py`,
    line: i + 1,
  }));
  const trace = [{ action: 'alloc', addr: 4096, size: 5000, stream: 0, time_us: 1, frames }];
  const file = join(work, 'deep_stack.json');
  writeFileSync(file, JSON.stringify({ segments: [], device_traces: [trace] }));
  return file;
}

export async function printing(browser) {
  await rowsAreWhole(browser, 'map', writePage('many_segments', manySegments()));
  await rowsAreWhole(browser, 'flame', writePage('deep_stack', deepStack()));
  await tableIsPrinted(browser);
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    dark: true,
    hash: '#c=4442&l=20',
  });
  for (const view of VIEWS) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    const scroll = await page.evaluate(() => (window.tarnView.app.mapScroll = 40));
    await draw(page);
    const before = await page.evaluate(() => window.tarnView.app.mapScroll);
    await viewOnPaper(page, view);
    await draw(page);
    const after = await page.evaluate(() => [
      window.tarnView.app.mapScroll,
      document.getElementById('paper').childElementCount,
      document.documentElement.classList.contains('dark'),
      window.tarnView.app.theme.paper,
    ]);
    expect(
      `print ${view}: all is as before`,
      [scroll, ...after],
      [40, before, 0, true, '#14171b'],
    );
  }
  expect('print: troubles', troubles, []);
  await close();
}
