// SPDX-License-Identifier: MIT
// The page of a fleet: its figures are those of `tarn ranks`, its rows those of the summaries, and
// what names are in the files does no harm.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axeFinds } from './axe.mjs';
import { openPage } from './browser.mjs';
import { axePath, data, expect, expectTrue, pictures, tarn, work } from './check.mjs';

const MIB = 1 << 20;
const PLANTED = [5, 3333]; // ranks that hold more than the others
const HOSTILE = [
  '</script><script>document.title="owned"</script>',
  '"><img src=x onerror=document.title="owned">',
  "a'b $(touch owned) `touch owned` \\",
  '-o owned',
  'javascript:alert(1)',
  '\u202egnp.exe',
];

// ---- fleets ----

/** Of each line its words of eight bytes, and one of its end. @param {string} lines */
function checksum(lines) {
  let hash = 0xcbf29ce484222325n;
  const add = (word) => {
    hash = BigInt.asUintN(64, (hash ^ word) * 0x100000001b3n);
    hash ^= hash >> 32n;
  };
  for (const line of lines.split('\n').slice(0, -1)) {
    const text = Buffer.from(line);
    const words = Buffer.alloc(Math.ceil(text.length / 8) * 8);
    text.copy(words);
    for (let at = 0; at < words.length; at += 8) add(words.readBigUInt64LE(at));
    add(10n);
  }
  return hash.toString(16).padStart(16, '0');
}

/** A summary of `count` ranks, each that of a recorded snapshot with other labels and as many bytes
 * more as `more` says. */
function writeFleet(name, count, labelsOf, more) {
  const one = join(work, 'one.tsum');
  const recorded = join(data, 'tiny.pickle.gz');
  rmSync(one, { force: true });
  execFileSync(tarn, ['summarize', '-q', recorded, '-o', one]);
  const lines = readFileSync(one, 'utf8').trim().split('\n');
  const stacks = lines.filter((line) => line.startsWith('{"stack"'));
  const rank = lines.find((line) => line.startsWith('{"rank"'));
  const ranks = Array.from({ length: count }, (_, i) => {
    const line = JSON.parse(rank);
    const bytes = more(i);
    line.rank.labels = { device: '0', ...labelsOf(i) };
    line.rank.at.requested += bytes;
    line.rank.held.others[1] += bytes;
    line.rank.requested = line.rank.requested.map((value, part) => value + bytes + part);
    return JSON.stringify(line);
  });
  const body = [lines[0], ...stacks, ...ranks.sort(), ''].join('\n');
  const file = join(work, `${name}.tsum`);
  writeFileSync(file, `${body}{"end":"${checksum(body)}"}\n`);
  return file;
}

const numbered = (i) => ({
  file: `dumps/host${i >> 3}/rank${i}.pickle.gz`,
  host: String(i >> 3),
  rank: String(i),
});

/** Two kinds of ranks, and those that hold more. */
const uneven = (i) => (PLANTED.includes(i) ? 40 * MIB : (i % 2) * 4 * MIB) + (i % 7) * 1000;

function writeRanks(name, summary, ...more) {
  const file = join(work, `${name}.html`);
  rmSync(file, { force: true });
  execFileSync(tarn, ['view', '-q', '--ranks', summary, '-o', file, ...more]);
  return file;
}

/** What `tarn ranks` says, and the sketches of the lines by file. */
function truthOf(summary, ...more) {
  const text = execFileSync(tarn, ['ranks', '--json', summary, ...more], {
    maxBuffer: 1 << 28,
  });
  const sketches = new Map();
  for (const line of readFileSync(summary, 'utf8').split('\n')) {
    if (!line.startsWith('{"rank"')) continue;
    const { rank } = JSON.parse(line);
    sketches.set(rank.labels.file, [rank.requested, rank.reserved]);
  }
  return { report: JSON.parse(text).data, sketches };
}

// ---- figures ----

async function figuresAreTrue(page, name, summary, ...more) {
  const wanted = truthOf(summary, ...more);
  const found = await page.evaluate(() => window.tarnView.app.fleet.report);
  expect(`${name}: the report`, found, wanted.report);
  const sketches = await page.evaluate(() => {
    const { fleet } = window.tarnView.app;
    const part = (values, i) => [...values.slice(i * fleet.points, (i + 1) * fleet.points)];
    return fleet.ranks.map((rank, i) => [
      rank.file,
      [part(fleet.requested, i), part(fleet.reserved, i)],
    ]);
  });
  expect(
    `${name}: sketches`,
    sketches.filter(
      ([file, both]) => JSON.stringify(both) !== JSON.stringify(wanted.sketches.get(file)),
    ),
    [],
  );
  expect(`${name}: all ranks`, sketches.length, wanted.sketches.size);
}

/** The list at the top is that of the program, and comes first. */
async function outliersAreFirst(page, name, summary) {
  const text = String(execFileSync(tarn, ['ranks', summary]));
  const wanted = text
    .split('\n')
    .filter((line) => / outlier$/.test(line))
    .map((line) => line.trim().split(/ {2,}/).slice(0, 3));
  const found = await page.evaluate(() =>
    [...document.querySelectorAll('#outliers tbody tr')].map((row) =>
      [...row.children].slice(1, 4).map((cell) => cell.textContent),
    ),
  );
  expect(`${name}: those that stand out`, found, wanted);
  expectTrue(`${name}: there are some`, found.length > 0);
  const first = await page.evaluate(() => document.querySelector('main section').id);
  expect(`${name}: they come first`, first, 'outliers');
}

// ---- doing ----

/** Whether the row of a rank has the frame of those that are chosen, in pixels. */
function isMarked(page, index) {
  return page.evaluate((rank) => {
    const { app } = window.tarnView;
    const { lines, line } = app.map.drawn();
    const place = lines.ranks.findIndex((one) => one.index === rank);
    const context = app.map.canvas.getContext('2d');
    const y = Math.floor(place / lines.perLine) * line + line / 2;
    const pixel = context.getImageData(1, Math.floor(y), 1, 1).data;
    const wanted = [1, 3, 5].map((at) => parseInt(app.theme.mark.slice(at, at + 2), 16));
    return wanted.every((byte, k) => Math.abs(byte - pixel[k]) < 8);
  }, index);
}

async function choosing(page) {
  expect('ranks: no row is marked at first', await isMarked(page, 0), false);
  await page.click('#outliers tbody button');
  expect('ranks: a click on an outlier marks its row', await isMarked(page, 0), true);
  const cards = () => page.evaluate(() => document.querySelectorAll('#card-list .card').length);
  expect('ranks: its timeline is shown', await cards(), 1);
  expectTrue(
    'ranks: it keeps the focus',
    await page.evaluate(() => document.activeElement?.getAttribute('aria-pressed') === 'true'),
  );
  await page.focus('#canvas');
  const cursor = () => page.evaluate(() => ({ ...window.tarnView.app.cursor }));
  await page.keyboard.press('Home');
  const first = await cursor();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight']) await page.keyboard.press(key);
  const now = await cursor();
  const order = await page.evaluate(() => window.tarnView.app.shown.map((rank) => rank.index));
  expect('ranks: arrows move', [first.rank, now.rank], [order[0], order[2]]);
  expect('ranks: and along the time', now.part, first.part + 1);
  await page.keyboard.press('Enter');
  expect('ranks: Enter chooses', [await isMarked(page, now.rank), await cards()], [true, 2]);
  const said = await page.textContent('#live');
  expectTrue('ranks: it is said', /^rank 2;.*host=0.*1\.6 to 3\.1 %.*chosen$/.test(said), said);
  await page.keyboard.press('Escape');
  expect('ranks: Escape lets go', [await isMarked(page, now.rank)], [false]);
  expectTrue('ranks: one rank for each group', (await cards()) > 1);
}

/** The box beside the pointer says what the summary has at that place. */
async function hovering(page, summary) {
  const { sketches } = truthOf(summary);
  const box = await (await page.$('#canvas')).boundingBox();
  const at = await page.evaluate(() => {
    const { left, width, line } = window.tarnView.app.map.drawn();
    return { x: left + (width * 40.5) / 64, y: line * 3.5 };
  });
  await page.mouse.move(box.x + at.x, box.y + at.y);
  const lines = await page.evaluate(() =>
    [...document.querySelectorAll('#tip div')].map((row) =>
      [...row.children].map((cell) => cell.textContent),
    ),
  );
  const code = readFileSync(join(data, '../../../viewer/format.js'), 'utf8');
  const { sizeText } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const [requested, reserved] = sketches.get(numbered(3).file);
  expect('ranks: what hovering says', lines, [
    ['rank 3'],
    ['host=0'],
    ['time', '62.5 to 64.1 % of its events'],
    ['requested, at most', sizeText(requested[40])],
    ['reserved, at most', sizeText(reserved[40])],
  ]);
}

async function ordering(page) {
  const first = () => page.evaluate(() => window.tarnView.app.shown[0].name);
  await page.selectOption('#order', 'outliers');
  expect('ranks: those that stand out on top', await first(), 'rank 5');
  await page.selectOption('#order', 'number');
  expect('ranks: by number', await first(), 'rank 0');
  await page.fill('#only', 'host=1');
  const shown = await page.evaluate(() => window.tarnView.app.shown.map((rank) => rank.name));
  expect(
    'ranks: only those of a host',
    shown,
    [8, 9, 10, 11, 12, 13, 14, 15].map((i) => `rank ${i}`),
  );
  await page.fill('#only', 'nothing has this');
  expectTrue('ranks: none is said', /No rank/.test(await page.textContent('#empty')));
  await page.fill('#only', '');
  for (const colour of ['share', 'reserved', 'requested']) {
    await page.selectOption('#colour', colour);
    const most = await page.textContent('#scale-most');
    expectTrue(`ranks: the scale of ${colour}`, most !== '', most);
  }
  expect('ranks: of the largest', await page.textContent('#scale-least'), '0 B');
}

/** A link where a page is, else a command; a page that two snapshots would share is none. */
async function linking(browser) {
  const summary = writeFleet(
    'linked',
    4,
    (i) => ({ file: `d${i >> 1}/r${i % 3}.pickle` }),
    uneven,
  );
  mkdirSync(join(work, 'own pages'), { recursive: true });
  for (const name of ['r0', 'r1'])
    writeFileSync(join(work, 'own pages', `${name}.html`), '<title>own</title>');
  const file = writeRanks('linked', summary, '--pages', join(work, 'own pages'));
  const { page, troubles, close } = await openPage(browser, file);
  const ways = await page.evaluate(() =>
    window.tarnView.app.fleet.ranks.map((rank) => [rank.file, rank.page]).sort(),
  );
  expect('ranks: pages beside', ways, [
    ['d0/r0.pickle', null], // d1/r0.pickle has its name
    ['d0/r1.pickle', 'own pages/r1.html'],
    ['d1/r0.pickle', null],
    ['d1/r2.pickle', null],
  ]);
  await page.evaluate(() => {
    const { app } = window.tarnView;
    for (const rank of app.fleet.ranks) app.toggle(rank);
  });
  expect(
    'ranks: commands for the others',
    await page.evaluate(() =>
      [...document.querySelectorAll('.card code')].map((one) => one.textContent).sort(),
    ),
    ['tarn view d0/r0.pickle', 'tarn view d1/r0.pickle', 'tarn view d1/r2.pickle'],
  );
  await page.click('.card a');
  expect('ranks: the link leads there', await page.title(), 'own');
  expect('ranks: troubles of linking', troubles, []);
  await close();
}

/** More ranks than pixels: each line has the largest of its ranks, and the page says so. */
async function merging(browser) {
  const summary = writeFleet('many', 4000, numbered, uneven);
  const file = writeRanks('many', summary);
  const { page, troubles, close } = await openPage(browser, file);
  await figuresAreTrue(page, 'many ranks', summary);
  await outliersAreFirst(page, 'many ranks', summary);
  const found = await page.evaluate(() => {
    const { app } = window.tarnView;
    const { lines, left, line } = app.map.drawn();
    const context = app.map.canvas.getContext('2d');
    const sum = (at) =>
      [...context.getImageData(left + 300, at, 1, 1).data].reduce((a, b) => a + b);
    const placed = lines.ranks.findIndex((rank) => rank.labels.rank === '3333');
    const at = Math.floor(placed / lines.perLine) * line;
    const wrong = [];
    for (let i = 0; i < lines.lines; i++) {
      const hit = app.map.hit(left + 300, (i + 0.5) * line);
      const values = hit.ranks.map((rank) => app.fleet.requested[rank.index * 64 + hit.part]);
      const value = app.fleet.requested[hit.rank.index * 64 + hit.part];
      if (value !== Math.max(...values)) wrong.push(i);
    }
    return {
      perLine: lines.perLine,
      all: lines.lines * lines.perLine >= 4000,
      wrong,
      darker: sum(Math.floor(at)) < sum(Math.floor(at - 3 * line)),
      merged: document.getElementById('merged').textContent,
    };
  });
  expect(
    'ranks: lines are the largest of theirs',
    [found.wrong, found.all, found.darker],
    [[], true, true],
  );
  expectTrue(
    'ranks: the page says so',
    found.perLine > 1 && found.merged.includes(`the largest of ${found.perLine} ranks`),
    found.merged,
  );
  await page.focus('#canvas');
  const ms = await page.evaluate(() => {
    const start = performance.now();
    for (let i = 0; i < 10; i++) window.tarnView.app.moveCursor((place) => place + 1, 1);
    return (performance.now() - start) / 10;
  });
  console.log(`4,000 ranks: ${ms.toFixed(1)} ms for a key`);
  expect('ranks: troubles of many', troubles, []);
  if (pictures) await page.screenshot({ path: join(pictures, 'ranks_many.png') });
  await close();
}

// ---- files that mean no good ----

async function harmless(browser) {
  const labels = (i) => ({ file: `d/${HOSTILE[i]}`, host: HOSTILE[i], rank: HOSTILE[i] });
  const summary = writeFleet('hostile', HOSTILE.length, labels, (i) => (i === 0 ? 90 * MIB : i));
  const file = writeRanks('hostile', summary, '--title', HOSTILE[0], '--pages', work);
  const { page, troubles, close } = await openPage(browser, file);
  await figuresAreTrue(page, 'hostile ranks', summary);
  await page.evaluate(() => {
    const { app } = window.tarnView;
    for (const rank of app.fleet.ranks) app.toggle(rank);
  });
  expect('ranks: the title is text', await page.title(), HOSTILE[0]);
  expect(
    'ranks: nothing became markup',
    await page.evaluate(() => document.querySelectorAll('img, main script').length),
    0,
  );
  const links = await page.evaluate(() =>
    ['javascript:alert(1)', 'a b/%2e', '//host/x', '../x'].map(window.tarnView.linkOf),
  );
  expect('ranks: links name files', links, [
    './javascript%3Aalert(1)',
    './a%20b/%252e',
    '/host/x',
    '../x',
  ]);
  const commands = await page.evaluate(() =>
    window.tarnView.app.fleet.ranks.map((rank) => [rank.file, window.tarnView.commandOf(rank)]),
  );
  for (const [name, command] of commands) {
    if (command === null) {
      expectTrue('ranks: no command with what does not show', name.includes('\u202e'), name);
      continue;
    }
    const words = command.replace(/^tarn view /, 'printf %s ');
    expect('ranks: a command names the file', String(execFileSync('sh', ['-c', words])), name);
  }
  expect('ranks: troubles of hostile names', troubles, []);
  await close();
}

/** In every width and light, for people who do not see it, or use no mouse. */
async function looks(browser, file) {
  for (const [width, dark] of [
    [1440, false],
    [1440, true],
    [390, false],
    [390, true],
  ]) {
    const name = `ranks_${width}${dark ? '_dark' : ''}`;
    const { page, troubles, close } = await openPage(browser, file, { width, dark });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expectTrue(`${name}: nothing is beyond the edge`, wide <= width, wide);
    if (axePath) expect(`axe, ${name}`, await axeFinds(page), []);
    await page.click('#outliers tbody button');
    if (axePath) expect(`axe, ${name}, chosen`, await axeFinds(page), []);
    if (pictures)
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: width < 600 });
    await page.click('#theme');
    expect(
      `${name}: the other light`,
      await page.evaluate(() => document.documentElement.classList.contains('dark')),
      !dark,
    );
    expect(`${name}: troubles`, troubles, []);
    await close();
  }
}

export async function ranking(browser) {
  const summary = writeFleet('ranks', 16, numbered, uneven);
  const options = ['--device-total', '1GiB', '--since-step', '2'];
  const file = writeRanks('ranks', summary, ...options);
  const { page, troubles, close } = await openPage(browser, file);
  await figuresAreTrue(page, 'ranks', summary, ...options);
  await outliersAreFirst(page, 'ranks', summary);
  await choosing(page);
  await hovering(page, summary);
  await ordering(page);
  expect('ranks: troubles', troubles, []);
  await close();
  await looks(browser, file);
  await linking(browser);
  await merging(browser);
  await harmless(browser);
}
