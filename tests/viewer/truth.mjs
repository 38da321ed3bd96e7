// SPDX-License-Identifier: MIT
// Figures of the page are those of the program: of recorded runs, as recorded and replayed, of a
// run on several devices, and of pages that had to be small.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { data, expect, expectTrue, replay, report, work, writePage } from './check.mjs';
import { groupsAreTrue } from './groups.mjs';
import { RECORDED, SEVERAL } from './shared_pages.mjs';

const REPLAYED = {
  oom: 'roundup_power2_divisions:4,max_split_size_mb:64',
  multistream: 'roundup_power2_divisions:8,expandable_segments:True',
};

export async function truth(browser) {
  for (const name of RECORDED) {
    await pageIsTrue(browser, name, join(data, `${name}.pickle.gz`));
    if (!(name in REPLAYED)) continue;
    const snapshot = replay(name, REPLAYED[name]);
    writePage(`${name}_replayed`, snapshot);
    await pageIsTrue(browser, `${name}_replayed`, snapshot);
  }
  await devicesAreTrue(browser);
}

async function pageIsTrue(browser, name, snapshot) {
  const { page, troubles, close } = await openPage(browser, join(work, `${name}.html`));
  await deviceIsTrue(page, name, snapshot, []);
  expect(`${name}: troubles`, troubles, []);
  await close();
}

/** All figures of the device that is shown.
 * @param {string[]} more options of the program that choose the same one */
async function deviceIsTrue(page, name, snapshot, more) {
  const of = (command, ...options) => report(command, snapshot, ...options, ...more)[0];
  await peakIsTrue(page, name, of('peak'));
  await topIsTrue(page, name, of('top', '-n', '100000'));
  await groupsAreTrue(page, name, snapshot, more);
  for (const oom of of('oom', '-n', '100000').ooms) await oomIsTrue(page, name, oom);
  for (const state of of('frag').over_time) await layoutIsTrue(page, name, state);
}

async function devicesAreTrue(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'several.html'));
  const snapshot = join(work, 'several.json');
  for (let device = 0; device < SEVERAL.length; device++) {
    await showDevice(page, device);
    await deviceIsTrue(page, `device ${device}`, snapshot, ['--device', String(device)]);
    await stripIsTrue(page, device);
  }
  expect('several devices: troubles', troubles, []);
  await close();
}

async function showDevice(page, device) {
  await page.evaluate((number) => {
    window.tarnView.app.set({ view: 'timeline', source: number });
  }, device);
  await page.waitForFunction((number) => window.tarnView.app.source.number === number, device);
  await draw(page);
}

/** The line of a device above the timeline has the figures of the device. */
async function stripIsTrue(page, device) {
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline' }));
  await draw(page);
  const texts = await page.$$eval('#devices .strip .number', (all) =>
    all.map((one) => one.textContent),
  );
  const peaks = await page.$$eval('#status b', (all) => all.map((one) => one.textContent));
  expect(`device ${device}: its strip`, texts[device], `peak ${peaks[0]} of ${peaks[1]}`);
}

async function peakIsTrue(page, name, wanted) {
  const found = await page.evaluate(() => window.tarnView.peak());
  const entry = (peak) => (peak.entry < 0 ? null : peak.entry);
  expect(
    `${name}: most in use`,
    [entry(found.requested), found.requested.value],
    [wanted.requested_peak.event, wanted.requested_peak.requested_bytes],
  );
  expect(
    `${name}: most reserved`,
    [entry(found.reserved), found.reserved.value],
    [wanted.reserved_peak.event, wanted.reserved_peak.reserved_bytes],
  );
  for (const peak of [wanted.requested_peak, wanted.reserved_peak]) {
    const at = await page.evaluate((e) => window.tarnView.at(e), peak.event ?? -1);
    expect(`${name}: at ${peak.event}`, at, {
      requested: peak.requested_bytes,
      reserved: peak.reserved_bytes,
    });
  }
}

/** Rows by stack: bytes and counts, in one order for both sides. */
async function topIsTrue(page, name, wanted) {
  await page.evaluate(() => window.tarnView.app.set({ by: 'stack', view: 'table' }));
  const rows = await page.evaluate(() => window.tarnView.rows());
  const order = (a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
  const found = rows.map((row) => [
    row.peak,
    row.end,
    row.allocated,
    row.count,
    row.freed,
    row.entries,
  ]);
  const list = wanted.stacks.map((row) => [
    row.peak_bytes,
    row.end_bytes,
    row.allocated_bytes,
    row.allocations,
    row.freed,
    row.events_from_allocation_to_free,
  ]);
  expect(`${name}: stacks`, found.sort(order), list.sort(order));
}

async function layoutIsTrue(page, name, wanted) {
  const { total } = await page.evaluate((e) => window.tarnView.layout(e), wanted.event);
  expect(
    `${name}: memory after ${wanted.event}`,
    [
      total.reserved,
      total.bySettings,
      total.slack,
      total.free,
      total.largestFree,
      total.freeRuns,
    ],
    [
      wanted.reserved_bytes,
      wanted.rounded_by_settings_bytes,
      wanted.slack_bytes,
      wanted.free_bytes,
      wanted.largest_free_bytes,
      wanted.free_pieces,
    ],
  );
}

async function oomIsTrue(page, name, wanted) {
  const { facts, holders } = await page.evaluate((e) => window.tarnView.oom(e), wanted.event);
  const pool = (row) => [
    row.reserved,
    row.used,
    row.bySettings,
    row.waiting,
    row.slack,
    row.free,
    row.largestFree,
    row.freeRuns,
    row.whole,
  ];
  const poolOf = (row) => [
    row.reserved_bytes,
    row.used_bytes,
    row.rounded_by_settings_bytes,
    row.waiting_bytes,
    row.slack_bytes,
    row.free_bytes,
    row.largest_free_bytes,
    row.free_pieces,
    row.whole_free_segment_bytes,
  ];
  expect(`${name}: pools`, facts.rows.map(pool), wanted.pools.map(poolOf));
  expect(`${name}: all pools`, pool(facts.total), poolOf(wanted.all_pools));
  expect(
    `${name}: verdict`,
    [facts.verdict, facts.emptyingHelps, facts.isLimited, facts.segment],
    [
      wanted.verdict,
      wanted.emptying_the_cache_helps,
      wanted.refused_by_a_limit_of_the_allocator,
      wanted.segment_bytes,
    ],
  );
  expect(
    `${name}: holders`,
    holders.map((row) => [row.live, row.blocks]),
    wanted.holders.groups.map((row) => [row.bytes, row.blocks]),
  );
}

/** A page that had to be small knows of what it has as much as the whole one. */
export async function smallerPagesAreTrue(browser) {
  for (const [name, snapshot, count] of [
    ['gpt2_varlen', join(data, 'gpt2_varlen.pickle.gz'), 1],
    ['llama_generate', join(data, 'llama_generate.pickle.gz'), 1],
    ['gpt2_varlen_expandable', join(data, 'gpt2_varlen_expandable.pickle.gz'), 1],
    ['several', join(work, 'several.json'), SEVERAL.length],
  ]) {
    const whole = join(work, `${name}.html`);
    const limit = String(statSync(whole).size - (count > 1 ? 20000 : 40000));
    const small = writePage(`small_${name}`, snapshot, '--max-size', limit);
    const pages = [await openPage(browser, small), await openPage(browser, whole)];
    for (let device = 0; device < count; device++) {
      if (count > 1) for (const { page } of pages) await showDevice(page, device);
      const [less, all] = pages.map(({ page }) => page);
      const skipped = await less.evaluate(() => window.tarnView.app.source.info.skipped);
      expectTrue(`small ${name} ${device}: something was left out`, skipped > 0, skipped);
      expect(
        `small ${name} ${device}: figures`,
        await figuresSince(less, skipped),
        await figuresSince(all, skipped),
      );
    }
    expect(`small ${name}: troubles`, pages[0].troubles, []);
    for (const { close } of pages) await close();
  }
}

/** What is there at moments from an event on, whatever the page begins with. */
function figuresSince(page, event) {
  return page.evaluate((since) => {
    const { source } = window.tarnView.app;
    const from = since - source.info.skipped;
    return Array.from({ length: 21 }, (_, i) => {
      const entry = from - 1 + Math.floor(((source.count - from) * i) / 20);
      const layout = window.tarnView.layout(entry);
      return [
        window.tarnView.groups('category', entry),
        window.tarnView.groups('module', entry),
        window.tarnView.at(entry),
        layout.total,
        layout.rows.map((row) => [row.used, row.free, row.slack]),
      ];
    });
  }, event);
}
