// SPDX-License-Identifier: MIT
// Pages on the map: as many moved as the program counts, from where the trace unmaps to where it
// maps, and addresses without pages between segments.
import { execFileSync } from 'node:child_process';
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
  expect(
    'pages: no holes',
    await page.evaluate(() => window.tarnView.app.picture.plan.holes.length),
    0,
  );
  await close();
}

export async function paging(browser) {
  await movesAreTrue(browser);
  await mapIsWhole(browser);
  await movesAreShown(browser);
  await othersHaveNone(browser);
}
