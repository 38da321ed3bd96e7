// SPDX-License-Identifier: MIT
// What one chooses is the same in every view and in a link: groups, blocks and boxes of the flame;
// and what keys, words and the pointer do to it.
import { join } from 'node:path';
import { addressOf, becomes, draw, openPage, searchFor, whenReady } from './browser.mjs';
import { VIEWS, expect, expectTrue, work } from './check.mjs';

const state = (page) => page.evaluate(() => ({ ...window.tarnView.app.state }));

async function flameFocus(browser) {
  const file = join(work, 'oom.html');
  const { page, troubles, close } = await openPage(browser, file, { hash: '#v=flame&c=4400' });
  await draw(page);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await draw(page);
  const text = () => page.evaluate(() => window.tarnView.app.flameFocus?.text ?? '');
  const chosen = await text();
  expectTrue('flame: j goes into the largest box', chosen !== '', chosen);
  await page.keyboard.press('ArrowRight');
  await draw(page);
  expect('flame: the box stays when the cursor moves', await text(), chosen);
  const hash = await addressOf(page);
  const again = await openPage(browser, file, { hash });
  await draw(again.page);
  expect(
    'flame: a link has the box',
    await again.page.evaluate(() => window.tarnView.app.flameFocus?.text),
    chosen,
  );
  await again.close();
  const wrong = await openPage(browser, file, { hash: '#v=flame&fb=nothing' });
  await draw(wrong.page);
  expect('flame: a wrong box does no harm', wrong.troubles, []);
  await wrong.close();
  await coloursOfFiles(page);
  await page.keyboard.press('Escape');
  await draw(page);
  expect('flame: Escape shows all', await text(), '');
  expect('flame: troubles', troubles, []);
  await close();
}

/** The legend beside the flame has the colours of its boxes. */
async function coloursOfFiles(page) {
  const wrong = await page.evaluate(() => {
    const { app } = window.tarnView;
    const context = app.canvas.getContext('2d');
    const rows = [...document.querySelectorAll('#panel .legend .row')].map((row) => {
      const swatch = row.querySelector('.swatch');
      const colour = swatch.style.backgroundColor.match(/\d+/g).map(Number);
      const share = Number(swatch.style.opacity || 1);
      return { file: row.querySelector('.label').textContent, colour, share };
    });
    const paper = [1, 3, 5].map((at) => parseInt(app.theme.paper.slice(at, at + 2), 16));
    const bad = [];
    let checked = 0;
    for (const { x, y, width, node } of app.picture.boxes) {
      const row = rows.find(({ file }) => node.text.startsWith(`${file}:`));
      if (!row || width < 60 || node.depth < (app.flameFocus?.depth ?? 0)) continue;
      const pixel = context.getImageData(Math.round(x + width - 4), y + 8 + 3, 1, 1).data;
      const wanted = row.colour.map((byte, k) => byte * row.share + paper[k] * (1 - row.share));
      checked++;
      if (wanted.some((byte, k) => Math.abs(byte - pixel[k]) > 6))
        bad.push([node.text, wanted, [...pixel]]);
    }
    return { bad: bad.slice(0, 2), checked };
  });
  expect('flame: the legend has the colours of the boxes', wrong.bad, []);
  expectTrue('flame: boxes that were looked at', wrong.checked > 5, wrong.checked);
}

/** The stacks through one function hold as much above it as below, and as its frames say. */
async function sandwich(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=flame&c=4400',
  });
  await draw(page);
  const wanted = await page.evaluate(() => {
    const { app } = window.tarnView;
    const { source } = app;
    const { names } = source;
    const isIt = (f) => /^modeling_gpt2.py:\d+ forward$/.test(names.frameText(f));
    const node = app.picture.boxes.find((box) => isIt(box.node.frame)).node;
    let bytes = 0;
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++)
      if (
        source.isLive(lifetime, 4400) &&
        names.frames(source.lifetimeStack[lifetime]).some(isIt)
      )
        bytes += source.size(lifetime);
    app.set({ through: node.frame });
    return bytes;
  });
  await draw(page);
  const sums = () =>
    page.evaluate(() => {
      const { root, callers } = window.tarnView.flame();
      return [root.bytes, callers?.bytes];
    });
  expect('sandwich: callers and callees hold the same', await sums(), [wanted, wanted]);
  const rows = await page.evaluate(() => {
    const { app } = window.tarnView;
    const { root, callers } = app.flame;
    const topOf = (node) => (node.parent ? topOf(node.parent) : node);
    const all = app.picture.boxes;
    const middle = all.find(({ node }) => node === root).y;
    const above = all.filter(({ node }) => topOf(node) === callers);
    const below = all.filter(({ node }) => topOf(node) === root && node !== root);
    return [
      above.length > 3 && above.every(({ y }) => y < middle),
      below.length > 3 && below.every(({ y }) => y > middle),
    ];
  });
  expect('sandwich: callers are above it, callees below', rows, [true, true]);
  await page.keyboard.press('Escape');
  await draw(page);
  expect('sandwich: Escape shows all stacks', (await state(page)).through, -1);
  await page.keyboard.press('j');
  await draw(page);
  await page.click('[data-key="sandwich"]');
  expectTrue('sandwich: a button opens it for the chosen box', (await state(page)).through > 0);
  await close();
  const wrong = await openPage(browser, join(work, 'oom.html'), { hash: '#v=flame&th=99999999' });
  await draw(wrong.page);
  expect('sandwich: a wrong link does no harm', [wrong.troubles, troubles], [[], []]);
  await wrong.close();
}

async function chosenEverywhere(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=blocks',
  });
  await draw(page);
  const colours = () =>
    page.evaluate(() => {
      const { canvas } = window.tarnView.app.blocksPicture;
      const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      const [r, g, b] = [1, 3, 5].map((at) =>
        parseInt(window.tarnView.colour(1).slice(at, at + 2), 16),
      );
      const other = [1, 3, 5].map((at) =>
        parseInt(window.tarnView.colour(2).slice(at, at + 2), 16),
      );
      const count = [0, 0];
      for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i] === r && pixels[i + 1] === g && pixels[i + 2] === b) count[0]++;
        if (other.every((byte, k) => pixels[i + k] === byte)) count[1]++;
      }
      return count;
    });
  const before = await colours();
  await page.evaluate(() => {
    const { app } = window.tarnView;
    app.set({ group: app.grouping.keyOf(1) });
  });
  await draw(page);
  await whenReady(page);
  await page.waitForFunction(() => !window.tarnView.app.blocksJob);
  const after = await colours();
  expectTrue('blocks: a chosen group stays as it is', after[0] > 0.9 * before[0], [
    before,
    after,
  ]);
  expectTrue('blocks: the others are pale', before[1] > 50 && after[1] === 0, [before, after]);
  for (const hash of ['#v=timeline&l=1400', '#v=blocks&y=pile&l=1400']) {
    const other = await openPage(browser, join(work, 'oom.html'), { hash });
    await draw(other.page);
    const ink = await other.page.evaluate(() => {
      const { app } = window.tarnView;
      const { box } = app.picture;
      const { lifetimeStart, lifetimeEnd } = app.source;
      const text = [1, 3, 5].map((at) => parseInt(app.theme.text.slice(at, at + 2), 16));
      const is = (place) => {
        const x = Math.round(box.left + box.axis.pixel(place));
        const pixel = app.canvas
          .getContext('2d')
          .getImageData(x, Math.round(box.top + 2), 1, 1).data;
        return text.every((byte, k) => Math.abs(byte - pixel[k]) < 8);
      };
      const [from, to] = [lifetimeStart[1400], lifetimeEnd[1400]];
      return [is((from + to) / 2), is(from - 60), is(to + 60)];
    });
    expect(`${hash}: when a chosen block is there`, ink, [true, false, false]);
    await other.close();
  }
  expect('chosen everywhere: troubles', troubles, []);
  await close();
}

/** A filter takes no colour from a group. */
async function filterKeepsColours(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'), {
    hash: '#g=line',
  });
  const colours = () =>
    page.evaluate(() => {
      const { grouping } = window.tarnView.app;
      return Object.fromEntries(
        grouping.shown.map((key, i) => [grouping.keys[key].key, grouping.colours[i]]),
      );
    });
  const before = await colours();
  await searchFor(page, '/forward|optim/');
  await page.evaluate(() => window.tarnView.app.set({ filter: true }));
  await draw(page);
  const after = Object.entries(await colours()).filter(([key]) => key in before);
  expectTrue('a filter leaves groups', after.length > 2, after.length);
  expect(
    'a filter keeps colours',
    after.filter(([key, colour]) => before[key] !== colour),
    [],
  );
  await close();
}

/** Several words, each anywhere in a stack, and regular expressions. */
async function words(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'));
  const blocks = async (query) => {
    await searchFor(page, query);
    return page.evaluate((words) => {
      const { app } = window.tarnView;
      const { source } = app;
      const tests = words.map((word) => new RegExp(word, 'im'));
      let count = 0;
      for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
        const frames = source.names.frames(source.lifetimeStack[lifetime]);
        const texts = frames.map(
          (f) => `${source.names.text(source.names.frameFile[f])}\n${source.names.frameText(f)}`,
        );
        if (tests.every((test) => texts.some((text) => test.test(text)))) count++;
      }
      return [app.matches.blocks, count];
    }, TESTS[query]);
  };
  for (const query of Object.keys(TESTS)) {
    const [found, wanted] = await blocks(query);
    expect(`search: ${query}`, found, wanted);
    expectTrue(`search: ${query} finds some`, wanted > 0);
  }
  await searchFor(page, '/[/ (');
  expect('search: what is no expression does no harm', troubles, []);
  await searchFor(page, 'gpt2 forward');
  await page.evaluate(() => {
    const { app } = window.tarnView;
    app.set({ lifetime: app.matches.lifetimes[0] });
  });
  await draw(page);
  expectTrue(
    'search: hits are marked in the stack of a card',
    (await page.$$('.card mark')).length > 0,
  );
  await close();
}

const TESTS = {
  'gpt2 activations': ['gpt2', 'activations'],
  '/adam\\.py:1\\d+/': ['adam\\.py:1\\d+'],
  '_init_group /step$/': ['_init_group', 'step$'],
};

/** Hits are marked in every picture: ticks over time, and what does not match is pale. */
async function hitsAreMarked(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#q=_init_group&v=timeline',
  });
  await draw(page);
  const ticks = await page.evaluate(() => {
    const { app } = window.tarnView;
    const { box } = app.picture;
    const wanted = new Set();
    for (const lifetime of app.matches.lifetimes) {
      const start = app.source.lifetimeStart[lifetime];
      if (start !== 0xffffffff) wanted.add(Math.floor(box.axis.pixel(start)));
    }
    const row = app.canvas
      .getContext('2d')
      .getImageData(0, Math.round(box.bottom + 3), app.canvas.width, 1).data;
    const mark = [1, 3, 5].map((at) => parseInt(app.theme.mark.slice(at, at + 2), 16));
    const missing = [...wanted].filter((x) => {
      const at = 4 * Math.round(box.left + x);
      return !mark.every((byte, k) => Math.abs(byte - row[at + k]) < 40);
    });
    return { wanted: wanted.size, missing };
  });
  // A tick of the axis may lie over one.
  expectTrue(
    'hits have ticks on the timeline',
    ticks.wanted > 5 && ticks.missing.length < ticks.wanted / 10,
    JSON.stringify(ticks),
  );
  for (const view of ['blocks', 'map']) {
    await page.evaluate(
      (v) => window.tarnView.app.set({ view: v, cursor: 4400, mode: 'address' }),
      view,
    );
    await draw(page);
    await page.waitForFunction(() => !window.tarnView.app.blocksJob);
    const counts = await page.evaluate(() => {
      const { app } = window.tarnView;
      const colour = (group) => {
        const text = window.tarnView.colour(group);
        return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
      };
      const hit = new Set(app.matches.lifetimes.map((lifetime) => app.grouping.group(lifetime)));
      const { width, height } = app.canvas;
      const pixels = app.canvas.getContext('2d').getImageData(0, 0, width, height).data;
      const count = (groups) => {
        const colours = groups.map(colour);
        let sum = 0;
        for (let i = 0; i < pixels.length; i += 4)
          if (colours.some((c) => c.every((byte, k) => pixels[i + k] === byte))) sum++;
        return sum;
      };
      const all = app.grouping.shown.map((_, i) => i + 1);
      return [count(all.filter((g) => hit.has(g))), count(all.filter((g) => !hit.has(g)))];
    });
    expectTrue(
      `${view}: hits have their colours, the rest is pale`,
      counts[0] > 500 && counts[1] < counts[0] / 20,
      counts,
    );
  }
  expect('hits: troubles', troubles, []);
  await close();
}

/** Every box of the flame can be reached, not only the largest ones. */
async function boxesByKeys(page) {
  await page.evaluate(() => window.tarnView.app.set({ view: 'flame', focus: '' }));
  await draw(page);
  for (const key of ['j', 'j', 'j', 'J']) await page.keyboard.press(key);
  await draw(page);
  const found = await page.evaluate(() => {
    const { app } = window.tarnView;
    const beside = [...app.flameFocus.parent.children.values()];
    beside.sort((a, b) => b.bytes - a.bytes);
    return [beside.length > 1, beside.indexOf(app.flameFocus)];
  });
  expect('flame: J goes to the next box beside', found, [true, 1]);
  await page.keyboard.press('K');
  await draw(page);
  const first = await page.evaluate(() => {
    const { app } = window.tarnView;
    const beside = [...app.flameFocus.parent.children.values()];
    return app.flameFocus.bytes === Math.max(...beside.map((box) => box.bytes));
  });
  expect('flame: K to the one before', first, true);
  await page.keyboard.press('Escape');
}

/** Rows of the table in its own order, however far down, each brought into sight. */
async function rowsByKeys(page) {
  await page.evaluate(() =>
    window.tarnView.app.set({ view: 'table', by: 'stack', group: '', sort: 'count' }),
  );
  await draw(page);
  const order = await page.evaluate(() => {
    const { grouping } = window.tarnView.app;
    return window.tarnView.rows().map((row) => grouping.keys[row.key].key);
  });
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press('j');
    if (i % 10 === 0) await draw(page);
  }
  await draw(page);
  expect('table: j goes down the rows', (await state(page)).group, order[29]);
  const isSeen = await page.evaluate(() => {
    const row = document.querySelector('#document tr.chosen').getBoundingClientRect();
    const box = document.getElementById('document').getBoundingClientRect();
    return row.top >= box.top - 1 && row.bottom <= box.bottom + 1;
  });
  expectTrue('table: the row is in sight', isSeen);
  await page.keyboard.press('k');
  expect('table: k goes up', (await state(page)).group, order[28]);
  await page.evaluate(() => window.tarnView.app.set({ by: 'line', group: '', sort: 'live' }));
}

async function segmentsByKeys(page) {
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline', segments: true }));
  await draw(page);
  const list = await page.evaluate(() =>
    window.tarnView.segmentsAt(window.tarnView.app.state.cursor),
  );
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await draw(page);
  expect('segments: j chooses the one above', (await state(page)).picked, `s${list[1]}`);
  expectTrue('segments: its card shows', /^Segment of/.test(await page.innerText('.card h2')));
  await page.keyboard.press('k');
  expect('segments: k the one below', (await state(page)).picked, `s${list[0]}`);
  await page.evaluate(() => window.tarnView.app.set({ segments: false, picked: '' }));
}

async function keysAlone(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#c=4400',
  });
  await page.keyboard.press('j');
  expectTrue('j chooses a group', (await state(page)).group !== '');
  for (const view of ['blocks', 'map']) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v, lifetime: -1 }), view);
    await draw(page);
    await page.keyboard.press('j');
    const first = (await state(page)).lifetime;
    await page.keyboard.press('j');
    const second = (await state(page)).lifetime;
    await page.keyboard.press('k');
    expectTrue(
      `${view}: j chooses the block above`,
      first >= 0 && second >= 0 && first !== second,
    );
    expect(`${view}: k the one below`, (await state(page)).lifetime, first);
  }
  await boxesByKeys(page);
  await rowsByKeys(page);
  await segmentsByKeys(page);
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline', lifetime: -1 }));
  await draw(page);
  await page.mouse.move(300, 500);
  await page.mouse.move(302, 500);
  const place = () =>
    page.evaluate(() => {
      const { box } = window.tarnView.app.picture;
      return box.axis.place(
        302 - window.tarnView.app.canvas.getBoundingClientRect().left - box.left,
      );
    });
  const before = await place();
  expectTrue('hovering shows what is there', await page.isVisible('#tip'));
  await page.keyboard.press('w');
  await draw(page);
  expectTrue('w zooms at the pointer', Math.abs((await place()) - before) < 2, [
    before,
    await place(),
  ]);
  expectTrue('a key takes the tooltip away', await page.isHidden('#tip'));
  await page.mouse.move(304, 500);
  expectTrue('hovering shows it again', await page.isVisible('#tip'));
  await page.mouse.wheel(0, 120);
  const isGone = await becomes(page, () => document.getElementById('tip').hidden);
  expectTrue('the wheel takes the tooltip away', isGone);
  const outline = () => page.$eval('#canvas', (canvas) => getComputedStyle(canvas).outlineStyle);
  await page.mouse.click(400, 500);
  await page.keyboard.press('ArrowRight');
  expect('a key after a click frames nothing', await outline(), 'none');
  await page.keyboard.press('Tab');
  await page.focus('#canvas');
  expect('Tab frames what has the focus', await outline(), 'solid');
  const span = async () => (await state(page)).to - (await state(page)).from;
  const wide = await span();
  await page.click('[aria-label="Zoom in (w)"]');
  expectTrue('a button zooms in', (await span()) < wide);
  await page.click('[aria-label="Show all (0)"]');
  expect(
    'a button shows all',
    await span(),
    await page.evaluate(() => window.tarnView.app.source.count),
  );
  await page.mouse.move(500, 500);
  await page.keyboard.down('Control');
  const { from, to } = await state(page);
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await becomes(
    page,
    (entries) => window.tarnView.app.state.to - window.tarnView.app.state.from !== entries,
    to - from,
  );
  const pinched = await state(page);
  expectTrue(
    'pinching a touchpad zooms the window, not the height',
    pinched.high - pinched.low === 1 &&
      (await span()) < wide * 1e9 &&
      pinched.to - pinched.from < 5841,
  );
  for (const view of VIEWS) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    await page.keyboard.press('?');
    const text = await page.innerText('#keys');
    expectTrue(
      `${view}: says what one sees`,
      /^What am I seeing\?\n+\S.{30}/.test(text),
      text.slice(0, 90),
    );
    await page.keyboard.press('Escape');
  }
  expect('keys alone: troubles', troubles, []);
  await close();
}

export async function sharing(browser) {
  await flameFocus(browser);
  await sandwich(browser);
  await chosenEverywhere(browser);
  await filterKeepsColours(browser);
  await words(browser);
  await hitsAreMarked(browser);
  await keysAlone(browser);
}
