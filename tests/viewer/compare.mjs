// SPDX-License-Identifier: MIT
// Two recordings in one page: what grew is what `tarn diff` says, both pictures have one scale and
// the colours of names, and every other view shows either of them.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { axeFinds } from './axe.mjs';
import { addressOf, draw, openPage, whenReady } from './browser.mjs';
import { axePath, data, expect, expectTrue, pictures, report, tarn, work } from './check.mjs';

const BY = { stack: 'stack', line: 'line', module: 'module', category: 'category' };

const recording = (name) => join(data, `${name}.pickle.gz`);
const inOrder = (rows) => rows.map((row) => JSON.stringify(row)).sort();

function writePair(name, before, after, ...more) {
  const file = join(work, `${name}.html`);
  execFileSync(tarn, ['view', '-q', '-f', before, after, '-o', file, ...more]);
  return file;
}

const state = (page) => page.evaluate(() => ({ ...window.tarnView.app.state }));

async function changesAreTrue(browser) {
  for (const [first, second, from, to] of [
    ['gpt2_varlen', 'oom', '', ''],
    ['gpt2_varlen', 'gpt2_varlen', 'event:5000', 'event:20000'],
    ['llama_generate', 'resnet_sizes', 'event:900', 'end'],
    ['tiny', 'multistream', 'start', 'peak'],
  ]) {
    const what = `${first} to ${second}`;
    const file = writePair('pair', recording(first), recording(second));
    const { page, troubles, close } = await openPage(browser, file);
    expect(`${what}: opens with the comparison`, (await state(page)).view, 'compare');
    for (const [by, option] of Object.entries(BY)) {
      const at = from ? ['--at', from, '--to', to] : [];
      const [wanted] = report(
        'diff',
        recording(first),
        recording(second),
        '-n',
        '100000',
        '--by',
        option,
        ...at,
      );
      await page.evaluate(
        ([g, before, after]) =>
          window.tarnView.app.set({ by: g, otherCursor: before ?? -1, cursor: after ?? -1 }),
        [by, wanted.before.event, wanted.after.event],
      );
      if (!from)
        await page.evaluate(() => window.tarnView.app.set({ otherCursor: -2, cursor: -2 }));
      const found = await page.evaluate(() =>
        window.tarnView
          .changes()
          .map((row) => [row.before, row.after, row.change, row.blocksBefore, row.blocksAfter]),
      );
      expect(
        `${what}: changes by ${by}`,
        inOrder(found),
        inOrder(
          wanted.changes.map((row) => [
            row.before_bytes,
            row.after_bytes,
            row.change_bytes,
            row.before_blocks,
            row.after_blocks,
          ]),
        ),
      );
      const sizes = found.map((row) => Math.abs(row[2]));
      expectTrue(
        `${what}: most change first`,
        sizes.every((size, i) => i === 0 || size <= sizes[i - 1]),
      );
    }
    await draw(page);
    const cells = await page.locator('.changes tfoot td').allInnerTexts();
    expect(`${what}: the total is shown`, cells.length, 6);
    expect(`${what}: troubles`, troubles, []);
    await close();
  }
}

/** Heights in pixels of one number of bytes in both pictures, and colours of one name. */
async function picturesMatch(browser) {
  const file = writePair('pair', recording('gpt2_varlen'), recording('oom'));
  const { page, troubles, close } = await openPage(browser, file, { hash: '#g=category' });
  await draw(page);
  const found = await page.evaluate(() => {
    const { app } = window.tarnView;
    const colours = app.panels.map(({ grouping }) =>
      Object.fromEntries(
        grouping.shown.map((key, i) => [grouping.keys[key].key, grouping.colours[i]]),
      ),
    );
    const [a, b] = app.panels.map(({ picture }) => picture);
    return {
      scales: [a.scale, b.scale],
      bottoms: [a.box.bottom - a.y(2 ** 30), b.box.bottom - b.y(2 ** 30)],
      fits: app.panels.every(
        ({ picture, curve }) => picture.scale.high >= curve.reservedPeak.value,
      ),
      common: Object.keys(colours[0]).filter((key) => key in colours[1]).length,
      differ: Object.keys(colours[0]).filter(
        (key) => key in colours[1] && colours[0][key] !== colours[1][key],
      ),
    };
  });
  expect(
    'compare: one scale',
    [found.scales[0], found.bottoms[0]],
    [found.scales[1], found.bottoms[1]],
  );
  expectTrue('compare: both fit', found.fits);
  expectTrue('compare: names in common', found.common > 2, found.common);
  expect('compare: a name has one colour', found.differ, []);
  const colour = (hash) =>
    page.evaluate(async () => {
      const { app } = window.tarnView;
      const { grouping } = app;
      const key = grouping.keys.findIndex((k) => k.key === 'cactivation');
      return grouping.colour(grouping.groupOfKey[key]);
    }, hash);
  const after = await colour();
  await page.keyboard.press('v');
  await page.waitForFunction(() => window.tarnView.app.source.id === 0);
  expect('compare: also in the other views', await colour(), after);
  expect('compare: troubles', troubles, []);
  await close();
}

async function eitherIsShown(browser) {
  const file = writePair('pair', recording('gpt2_varlen'), recording('oom'));
  const { page, troubles, close } = await openPage(browser, file);
  const peaks = await page.evaluate(() =>
    window.tarnView.app.sides.map(({ curve }) => curve.peak),
  );
  const canvas = page.locator('[data-side="0"] canvas');
  const box = await canvas.boundingBox();
  await canvas.click({ position: { x: box.width / 2, y: box.height / 2 } });
  await draw(page);
  const clicked = (await state(page)).otherCursor;
  expectTrue(
    'compare: a click chooses the event of its recording',
    clicked > 15000 && clicked < 21000,
    clicked,
  );
  await page.locator('[data-side="1"] input').focus();
  await page.keyboard.press('Home');
  await draw(page);
  expect('compare: so does its slider, by keys', (await state(page)).cursor, -1);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('data-key'));
  expect('compare: which keeps the focus', await focused(), 'instant 1');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('1');
  await draw(page);
  expect(
    'compare: other views show the one after',
    await page.evaluate(() => window.tarnView.peak().requested),
    peaks[1],
  );
  await page.click('#controls >> text=Before');
  await whenReady(page);
  await page.waitForFunction(() => window.tarnView.app.source.id === 0);
  await draw(page);
  expect(
    'compare: or the one before',
    await page.evaluate(() => window.tarnView.peak().requested),
    peaks[0],
  );
  expect('compare: at its own event', (await state(page)).cursor, clicked);
  const hash = await addressOf(page);
  await page.goto('about:blank');
  await page.goto(`file://${file}${hash}`);
  await whenReady(page);
  expect(
    'compare: a link says which',
    [(await state(page)).before, await page.evaluate(() => window.tarnView.app.source.id)],
    [true, 0],
  );
  await page.keyboard.press('9');
  await draw(page);
  expect('compare: key 9', (await state(page)).view, 'compare');
  expect('compare: troubles', troubles, []);
  await close();
}

/** A run on two devices before, on one of them after. */
function writeDevices() {
  const trace = (size) => [
    { action: 'segment_alloc', addr: 4096, size: 1 << 21, stream: 0, time_us: 1 },
    { action: 'alloc', addr: 4096, size, stream: 0, time_us: 2 },
  ];
  const files = [
    ['devices_before', [trace(512), trace(1024)]],
    ['devices_after', [trace(4096)]],
  ].map(([name, device_traces]) => {
    const file = join(work, `${name}.json`);
    writeFileSync(file, JSON.stringify({ segments: [], device_traces }));
    return file;
  });
  return writePair('devices_pair', ...files);
}

async function devicesAreMatched(browser) {
  const { page, troubles, close } = await openPage(browser, writeDevices());
  const rows = () =>
    page.evaluate(() =>
      window.tarnView.changes().map((row) => [row.before, row.after, row.change]),
    );
  expect('compare: device 0', await rows(), [[512, 4096, 3584]]);
  await page.evaluate(() => window.tarnView.app.set({ before: true }));
  await page.waitForFunction(() => window.tarnView.app.source.id === 0);
  await page.evaluate(() => window.tarnView.app.set({ source: 1 }));
  await page.waitForFunction(() => window.tarnView.app.source.id === 1);
  await draw(page);
  expect('compare: of a device that one has', await rows(), [[1024, 0, -1024]]);
  await page.evaluate(() => window.tarnView.app.set({ view: 'compare' }));
  await draw(page);
  const text = await page.innerText('[data-side="1"]');
  expectTrue('compare: the other says so', text.includes('nothing of this device'), text);
  expect('compare: troubles', troubles, []);
  await close();
}

/** Options work as with one recording. */
async function optionsHold(browser) {
  const pair = [recording('gpt2_varlen'), recording('oom')];
  const whole = statSync(writePair('pair', ...pair)).size;
  const file = writePair(
    'pair_small',
    ...pair,
    '--max-size',
    String(whole - 30000),
    '--title',
    'a <b>',
  );
  expectTrue('compare: --max-size', statSync(file).size <= whole - 30000, statSync(file).size);
  const small = await openPage(browser, file);
  const skipped = await small.page.evaluate(() =>
    window.tarnView.app.runs.map((run) => run.skipped),
  );
  expectTrue(
    'compare: both lose their oldest events',
    skipped.every((count) => count > 0),
    skipped,
  );
  expect('compare: --title', await small.page.innerText('#title'), 'a <b>');
  expectTrue(
    'compare: the page says what is missing',
    /without the first/.test(await small.page.innerText('header')),
  );
  await small.close();

  const [plain, hidden] = [
    writePair('pair', ...pair),
    writePair('pair_hidden', ...pair, '--redact', 'all'),
  ];
  const rows = [];
  for (const one of [plain, hidden]) {
    const { page, close } = await openPage(browser, one, { hash: '#g=line' });
    rows.push(
      await page.evaluate(() =>
        window.tarnView.changes().map((row) => [row.before, row.after, row.text]),
      ),
    );
    await close();
  }
  const sums = (list) => list.reduce((sum, row) => [sum[0] + row[0], sum[1] + row[1]], [0, 0]);
  expect('compare: --redact all keeps the bytes', sums(rows[1]), sums(rows[0]));
  expectTrue(
    'compare: and the names that both have in common',
    rows[1].some((row) => row[0] > 0 && row[1] > 0 && /function \d+/.test(row[2])),
  );
  expectTrue(
    'compare: names are hidden',
    !/_init_group/.test(readFileSync(hidden, 'utf8')) &&
      rows[1].every((row) => !/\.py/.test(row[2])),
  );
}

async function comparisonIsSeen(browser) {
  const file = writePair('pair', recording('gpt2_varlen'), recording('oom'));
  for (const [width, height, dark] of [
    [1440, 900, false],
    [1920, 1080, true],
    [390, 844, false],
  ]) {
    const { page, troubles, close } = await openPage(browser, file, { width, height, dark });
    await draw(page);
    const isWide = await page.evaluate(
      () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
    );
    expect(`compare at ${width}: nothing hangs out`, isWide, false);
    if (pictures) {
      const name = `compare_${width}${dark ? '_dark' : ''}.png`;
      await page.screenshot({ path: join(pictures, name) });
    }
    if (axePath) expect(`axe, compare at ${width}`, await axeFinds(page), []);
    expect(`compare at ${width}: troubles`, troubles, []);
    await close();
  }
}

export async function comparing(browser) {
  await changesAreTrue(browser);
  await picturesMatch(browser);
  await eitherIsShown(browser);
  await devicesAreMatched(browser);
  await optionsHold(browser);
  await comparisonIsSeen(browser);
}
