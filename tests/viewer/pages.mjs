// SPDX-License-Identifier: MIT
// Pages on the map: as many moved as the program counts, from where the trace unmaps to where it
// maps, addresses without pages between segments, and the pages that a snapshot lists.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axeFinds } from './axe.mjs';
import { draw, openPage } from './browser.mjs';
import {
  axePath,
  data,
  expect,
  expectTrue,
  pictures,
  replay,
  report,
  tarn,
  work,
  writePage,
} from './check.mjs';

const PAGE = 2 << 20;

/** What the replay counts. */
function pagesMoved(name) {
  const words = ['replay', '-q', '--json', '--conf', 'policy:compact'];
  const text = execFileSync(tarn, [...words, join(data, `${name}.pickle.gz`)]);
  return JSON.parse(text).runs[0].pages_moved;
}

const sum = (ranges) => ranges.reduce((bytes, { from, to }) => bytes + to - from, 0);

async function movesAreTrue(browser) {
  for (const name of ['oom', 'multistream']) {
    const file = writePage(`pages_${name}`, replay(name, 'policy:compact'));
    const { page, troubles, close } = await openPage(browser, file, { hash: '#v=map' });
    const moves = await page.evaluate(() => window.tarnView.moves());
    const from = moves.reduce((bytes, move) => bytes + move.fromBytes, 0);
    expect(`${name}: pages moved`, from / PAGE, pagesMoved(name));
    expect(
      `${name}: ranges add up`,
      moves.every((move) => sum(move.from) === move.fromBytes && sum(move.to) === move.toBytes),
      true,
    );
    const reserved = await page.evaluate(
      (list) =>
        list.map(({ first, last }) => [window.tarnView.at(first - 1), window.tarnView.at(last)]),
      moves,
    );
    expect(
      `${name}: what is reserved changes by the new ones`,
      reserved.map(([before, after]) => after.reserved - before.reserved),
      moves.map((move) => move.toBytes - move.fromBytes),
    );
    expect(`${name}: troubles of its pages`, troubles, []);
    await close();
  }
}

/** Addresses that are drawn, each once: mapped ones as segments, others as holes. */
async function mapIsWhole(browser) {
  const file = join(work, 'pages_multistream.html');
  const { page, troubles, close } = await openPage(browser, file, { hash: '#v=map' });
  for (const entry of [40, 700, 2519, 9000]) {
    await page.evaluate((cursor) => window.tarnView.app.set({ cursor }), entry);
    await draw(page);
    const found = await page.evaluate((at) => {
      const { app } = window.tarnView;
      const { plan } = app.picture;
      const mapped = app.source.spans.filter((span) => span.start <= at && span.end > at);
      const bytes = (list) => list.reduce((all, one) => all + one, 0);
      const touches = (a, b) => a.from < b.to && a.to > b.from;
      const ranges = plan.holes.map(({ range }) => range);
      return {
        drawn: bytes(plan.places.map(({ segment }) => segment.end - segment.address)),
        mapped: bytes(mapped.map((span) => span.size)),
        holes: ranges.length,
        overlap: ranges.filter((range) =>
          mapped.some((span) =>
            touches(range, { from: span.address, to: span.address + span.size }),
          ),
        ).length,
      };
    }, entry);
    expect(`pages: all that is mapped at ${entry}`, found.drawn, found.mapped);
    expect(`pages: no hole is mapped at ${entry}`, found.overlap, 0);
    expectTrue(`pages: holes at ${entry}`, found.holes > 0, found.holes);
  }
  expect('pages: troubles', troubles, []);
  await close();
}

async function movesAreShown(browser) {
  const file = join(work, 'pages_oom.html');
  for (const dark of [false, true]) {
    const { page, troubles, close } = await openPage(browser, file, { dark, hash: '#v=map&c=0' });
    await draw(page);
    await page.click('[data-key="move 1"]');
    await draw(page);
    const moves = await page.evaluate(() => window.tarnView.moves());
    const cursor = () => page.evaluate(() => window.tarnView.app.state.cursor);
    expect('pages: Next goes to the first move', await cursor(), moves[0].last);
    const text = await page.innerText('#panel');
    expectTrue('pages: its bytes are said', text.includes('4.00 MiB at 0x'), text.slice(0, 300));
    for (const move of moves.slice(1, 3)) {
      await page.click('[data-key="move 1"]');
      await draw(page);
      expect('pages: and to the next', await cursor(), move.last);
    }
    const hit = await page.evaluate(() => {
      const { app } = window.tarnView;
      const { x, y, width } = app.picture.plan.holes[0];
      return window.tarnView
        .hit(x + width / 2, y + 8 - app.mapScroll)
        .lines.map(([name]) => name);
    });
    expect('pages: what a hole is', hit[0], 'addresses without pages');
    const svg = await page.evaluate(() => window.tarnView.svg());
    expectTrue('pages: the picture is saved', svg.startsWith('<svg') && !svg.includes('NaN'));
    if (axePath) expect(`axe, pages${dark ? ', dark' : ''}`, await axeFinds(page), []);
    if (pictures)
      await page.screenshot({ path: join(pictures, `pages_map${dark ? '_dark' : ''}.png`) });
    await page.click('[data-key="move -1"]');
    await draw(page);
    expect('pages: Previous goes back', await cursor(), moves[1].last);
    expect('pages: troubles of showing', troubles, []);
    await close();
  }
}

async function othersHaveNone(browser) {
  const file = writePage('pages_none', join(data, 'gpt2_varlen.pickle.gz'));
  const { page, close } = await openPage(browser, file, { hash: '#v=map' });
  await draw(page);
  expectTrue('pages: no part without moves', !/Pages/.test(await page.innerText('#panel')));
  expect('pages: no button', await page.locator('[data-key="pages"]').count(), 0);
  expect(
    'pages: no holes',
    await page.evaluate(() => window.tarnView.app.picture.plan.holes.length),
    0,
  );
  await close();
}

// ---- pages that the snapshot lists ----

/** The number of pages of each kind in the segments at an entry, and whether they are all of it. */
async function kindsAt(page, entry) {
  await page.evaluate((cursor) => window.tarnView.app.set({ cursor }), entry);
  await draw(page);
  return page.evaluate((at) => {
    const { segments } = window.tarnView.segments(at);
    const { counts, bytes } = window.tarnView.pageCounts(segments, at);
    const { reserved } = window.tarnView.at(at);
    return { counts, isWhole: bytes.reduce((all, one) => all + one, 0) === reserved };
  }, entry);
}

/** At the end as many as the program counts; before, none that was mapped since. */
async function listedPagesAreTrue(browser) {
  for (const name of ['oom', 'multistream']) {
    const [wanted] = report('info', replay(name, 'policy:compact'));
    const file = join(work, `pages_${name}.html`);
    const { page, troubles, close } = await openPage(browser, file, { hash: '#v=map' });
    const last = await page.evaluate(() => window.tarnView.app.source.count - 1);
    const end = await kindsAt(page, last);
    const moved = wanted.moved_pages;
    expect(`${name}: listed pages`, end.counts, [wanted.pages - moved, moved, 0, 0]);
    for (const entry of [0, 40, 700, 2519, 4500, last - 1]) {
      const { counts, isWhole } = await kindsAt(page, entry);
      expectTrue(`${name}: pages cover the segments at ${entry}`, isWhole, counts);
      const isTrue = await page.evaluate((at) => {
        const { lists } = window.tarnView.pages();
        const later = window.tarnView.app.source.spans.filter((span) => span.start > at);
        return lists.every(({ address, size, handles }) =>
          handles.every((_, i) => {
            const from = address + i * size;
            const known = window.tarnView.page(from, at);
            return (
              !known ||
              !later.some((span) => span.address < from + size && span.address + span.size > from)
            );
          }),
        );
      }, entry);
      expectTrue(`${name}: known pages were mapped before ${entry}`, isTrue);
    }
    expect(`${name}: troubles of listed pages`, troubles, []);
    await close();
  }
}

const SHARED = 18446744073709551615n;

/** Two segments whose last pages are the same memory, and one without a list. */
function sharedPages() {
  const segment = (address, size, more) =>
    `{"device": 0, "address": ${address}, "total_size": ${size}, "is_expandable": true,` +
    ` "segment_type": "large", "blocks": [{"size": ${size}, "state": "inactive"}]${more}}`;
  const pages = (handles, times) =>
    `, "tarn_pages": {"page_size": ${PAGE}, "handles": [${handles}], "times": [${times}]}`;
  const file = join(work, 'shared_pages.json');
  const list = [
    segment(16 * PAGE, 3 * PAGE, pages(`7, 9, ${SHARED}`, '1, 4, 1')),
    segment(32 * PAGE, 2 * PAGE, pages(`3, ${SHARED}`, '1, 2')),
    segment(64 * PAGE, PAGE, ''),
  ];
  writeFileSync(file, `[${list.join(', ')}]`);
  return file;
}

/** What the tip says at a page of a segment, both by number. */
function tipAt(page, segment, number) {
  return page.evaluate(
    ([place, at, size]) => {
      const { app } = window.tarnView;
      const {
        x,
        y,
        width,
        segment: of,
      } = app.picture.plan.places
        .filter((one) => one.segment)
        .sort((a, b) => a.segment.address - b.segment.address)[place];
      const pixel = x + (((at + 0.5) * size) / (of.end - of.address)) * width;
      return window.tarnView.hit(pixel, y + 8 - app.mapScroll).lines;
    },
    [segment, number, PAGE],
  );
}

/** The colours of the strip below the segments, from the left, each once. */
function stripOf(page, segment) {
  return page.evaluate((place) => {
    const { app } = window.tarnView;
    const { x, y, width } = app.picture.plan.places.sort(
      (a, b) => a.segment.address - b.segment.address,
    )[place];
    const context = app.canvas.getContext('2d');
    const { data } = context.getImageData(Math.round(x), y + 23, Math.round(width) - 1, 1);
    const names = ['paper', 'muted', 'accent', 'warn', 'strong'];
    const found = [];
    for (let i = 0; i < data.length; i += 4) {
      const hex = `#${[0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, '0')).join('')}`;
      const name = names.find((one) => app.theme[one] === hex);
      if (name && found[found.length - 1] !== name) found.push(name);
    }
    return found;
  }, segment);
}

async function sharedPagesAreShown(browser) {
  const file = writePage('shared_pages', sharedPages());
  for (const dark of [false, true]) {
    const { page, troubles, close } = await openPage(browser, file, { dark, hash: '#v=map' });
    await draw(page);
    const panel = await page.innerText('#panel');
    for (const [text, size] of [
      ['first at their address', '4.00 MiB'],
      ['another was there before', '2.00 MiB'],
      ['at several addresses', '4.00 MiB'],
      ['not known at the cursor', '2.00 MiB'],
    ])
      expectTrue(`pages: ${text}`, panel.includes(`${text}\n${size}`), panel.slice(0, 400));
    const tip = Object.fromEntries(await tipAt(page, 0, 2));
    expect('pages: a handle of 64 bits', tip['its handle'], String(SHARED));
    expectTrue('pages: where it is as well', /^0x/.test(tip['mapped as well at']), tip);
    const later = Object.fromEntries(await tipAt(page, 0, 1));
    expect('pages: how many were there', later['pages at this address so far'], '4');
    const borders = ['muted', 'paper', 'accent', 'paper', 'warn'];
    expect('pages: the strip', await stripOf(page, 0), borders);
    expect('pages: the strip without a list', await stripOf(page, 2), ['strong']);
    if (axePath) expect(`axe, strip${dark ? ', dark' : ''}`, await axeFinds(page), []);
    if (pictures)
      await page.screenshot({ path: join(pictures, `pages_strip${dark ? '_dark' : ''}.png`) });
    await page.click('[data-key="pages"]');
    await draw(page);
    expect('pages: without the strip', await stripOf(page, 0), ['paper']);
    const lines = await tipAt(page, 0, 2);
    expectTrue('pages: nor in the tip', !lines.some(([name]) => name === 'its handle'));
    await page.waitForFunction(() => location.hash.includes('pl=1'), null, { timeout: 5000 });
    expect('pages: troubles of the strip', troubles, []);
    await close();
  }
}

/** The card of a segment counts its pages. */
async function cardCountsPages(browser) {
  const file = join(work, 'shared_pages.html');
  const { page, close } = await openPage(browser, file, { hash: '#v=map&j=s0' });
  await draw(page);
  const text = await page.innerText('#panel .card');
  const wanted = '3 pages: 1 first at their address, 1 another was there before, 1 at several';
  expectTrue('pages: on the card', text.includes(wanted), text);
  await close();
}

export async function paging(browser) {
  await movesAreTrue(browser);
  await mapIsWhole(browser);
  await movesAreShown(browser);
  await othersHaveNone(browser);
  await listedPagesAreTrue(browser);
  await sharedPagesAreShown(browser);
  await cardCountsPages(browser);
}
