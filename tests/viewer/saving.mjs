// SPDX-License-Identifier: MIT
// Pictures as files are the pictures on the screen; segments one by one add up to what is reserved.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { data, expect, expectTrue, work, writePage } from './check.mjs';

const PICTURES = ['timeline', 'blocks', 'map', 'flame'];

/** The mean difference of the canvas and the SVG, drawn, in parts of 255. */
const difference = (page) =>
  page.evaluate(async () => {
    const { app, svg } = window.tarnView;
    const text = svg();
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const { width, height } = app.canvas;
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0, width, height);
    const drawn = context.getImageData(0, 0, width, height).data;
    const shown = app.canvas.getContext('2d').getImageData(0, 0, width, height).data;
    let sum = 0;
    for (let i = 0; i < drawn.length; i++) sum += Math.abs(drawn[i] - shown[i]);
    return {
      mean: sum / drawn.length,
      isBroken: parsed.querySelector('parsererror') !== null,
      texts: parsed.querySelectorAll('text').length,
      scripts: parsed.querySelectorAll('script').length,
      isOutside: /(href|url)[=(]["']?https?:/.test(text),
    };
  });

async function picturesAreSaved(browser) {
  for (const dark of [false, true]) {
    const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
      dark,
      hash: '#c=4400&m=3000&l=900',
    });
    for (const view of PICTURES) {
      await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
      await draw(page);
      const found = await difference(page);
      expect(
        `${view}: SVG is whole, and asks for nothing`,
        [found.isBroken, found.scripts, found.isOutside],
        [false, 0, false],
      );
      expectTrue(`${view}: SVG has its texts as text`, found.texts > 5, found.texts);
      expectTrue(`${view}: SVG looks like the canvas`, found.mean < 4, found.mean);
    }
    expect('SVG: troubles', troubles, []);
    await close();
  }
}

async function downloads(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'));
  for (const [form, start] of [
    ['png', '\x89PNG'],
    ['svg', '<svg'],
  ]) {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.selectOption('#save', form),
    ]);
    expect(`${form}: name`, file.suggestedFilename(), `oom_timeline.${form}`);
    const bytes = readFileSync(await file.path());
    expect(`${form}: content`, bytes.subarray(0, 4).toString('latin1'), start);
  }
  await page.evaluate(() => {
    const keep = { writeText: async (text) => (window.copiedText = text) };
    Object.defineProperty(navigator, 'clipboard', { value: keep, configurable: true });
    window.tarnView.app.set({ view: 'map', cursor: 4000, group: '', by: 'stack' });
  });
  await page.selectOption('#save', 'link');
  const link = await page.evaluate(() => window.copiedText);
  expectTrue(
    'a link has all of the state',
    /#.*v=map/.test(link) && /c=4000/.test(link) && /g=stack/.test(link),
    link,
  );
  expect('saving: troubles', troubles, []);
  await close();
}

/** Both pictures of a comparison are saved, side by side; where there is none, none is offered. */
async function pairIsSaved(browser) {
  const pair = ['gpt2_varlen', 'oom'].map((name) => join(data, `${name}.pickle.gz`));
  const { page, troubles, close } = await openPage(browser, writePage('pair_saved', ...pair));
  await draw(page);
  const files = {};
  for (const form of ['png', 'svg']) {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.selectOption('#save', form),
    ]);
    files[form] = readFileSync(await file.path());
    expectTrue(`compare as ${form}: name`, file.suggestedFilename().endsWith(`_compare.${form}`));
  }
  const wide = await page.$$eval('[data-side] canvas', (all) =>
    all.reduce((sum, canvas) => sum + canvas.width, 0),
  );
  expect('compare as PNG: as wide as both', files.png.readUInt32BE(16), wide);
  const svg = files.svg.toString();
  const found = await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
    const ids = [...parsed.querySelectorAll('[id]')].map((one) => one.id);
    return [
      parsed.querySelector('parsererror') === null,
      parsed.querySelectorAll('svg svg').length,
      [...parsed.querySelectorAll('text')].filter((one) => /^peak /.test(one.textContent)).length,
      ids.length - new Set(ids).size,
    ];
  }, svg);
  expect('compare as SVG: two pictures, with their texts', found, [true, 2, 2, 0]);
  for (const [view, isOffered] of [
    ['table', false],
    ['flame', true],
  ]) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    const offered = await page.$$eval('#save option', (all) =>
      all.filter((one) => /picture/.test(one.textContent)).map((one) => !one.disabled),
    );
    expect(`${view}: a picture is offered`, offered, [isOffered, isOffered]);
  }
  expect('compare saved: troubles', troubles, []);
  await close();
}

async function segments(browser) {
  for (const name of ['oom', 'gpt2_varlen_expandable']) {
    const { page, troubles, close } = await openPage(browser, join(work, `${name}.html`), {
      hash: '#s=1',
    });
    await draw(page);
    const bad = await page.evaluate(() => {
      const { app, segmentsAt } = window.tarnView;
      const { source, curve } = app;
      const wrong = [];
      for (let i = 0; i <= 40; i++) {
        const entry = Math.floor((source.count - 1) * (i / 40));
        const sum = segmentsAt(entry).reduce((all, number) => all + source.spans[number].size, 0);
        if (sum !== curve.reserved(entry)) wrong.push([entry, sum, curve.reserved(entry)]);
      }
      return wrong.slice(0, 3);
    });
    expect(`${name}: segments add up to what is reserved`, bad, []);
    const spot = await page.evaluate(() => {
      const { app, segmentsAt } = window.tarnView;
      const { box, data, columns, y } = app.picture;
      const i = Math.floor(columns * 0.7);
      const [first] = segmentsAt(data.moment[i]);
      const at = app.canvas.getBoundingClientRect();
      const x = box.left + ((i + 0.5) / columns) * box.axis.width;
      return { first, x: at.left + x, y: at.top + (y(0) + y(app.source.spans[first].size)) / 2 };
    });
    await page.mouse.move(spot.x, spot.y);
    const tip = await page.innerText('#tip');
    expectTrue(
      `${name}: hovering shows the segment`,
      /pool, stream/.test(tip) && /address/.test(tip),
      tip,
    );
    await page.mouse.click(spot.x, spot.y);
    await page.waitForTimeout(60);
    await draw(page);
    const picked = await page.evaluate(() => window.tarnView.app.state.picked);
    expect(`${name}: a click opens its card`, picked, `s${spot.first}`);
    expectTrue(`${name}: with its stack`, /Reserved by/.test(await page.innerText('.card')));
    expectTrue(
      `${name}: the legend is of pools and streams`,
      /Reserved, by pool/.test(await page.innerText('#panel')),
    );
    expect(`${name}: segments, troubles`, troubles, []);
    await close();
  }
}

export async function saving(browser) {
  await picturesAreSaved(browser);
  await downloads(browser);
  await pairIsSaved(browser);
  await segments(browser);
}
