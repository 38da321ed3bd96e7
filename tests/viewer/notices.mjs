// SPDX-License-Identifier: MIT
// What a page says before anybody asks: why a request failed, that a file contradicts itself, all
// devices of a run; and where a page without history opens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage, whenReady } from './browser.mjs';
import { data, expect, expectTrue, report, work, writePage } from './check.mjs';

const MIB = 1 << 20;

function writeRun(name, traces, segments = []) {
  const file = join(work, `${name}.json`);
  writeFileSync(file, JSON.stringify({ segments, device_traces: traces }));
  return writePage(name, file);
}

/** A trace from [action, address, size] rows. */
const traceOf = (rows) =>
  rows.map(([action, addr, size], i) => ({ action, addr, size, stream: 0, time_us: 10 + i }));

async function verdictOnTop(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'));
  await draw(page);
  const wanted = report('oom', join(data, 'oom.pickle.gz'))[0].ooms[0];
  const text = await page.innerText('#notices');
  expectTrue(
    'a failed request is said on top, with the verdict of the program',
    text.includes('Out of memory at event 4,458: no 585.94 MiB') &&
      text.toLowerCase().includes(wanted.verdict.replaceAll('_', ' ')),
    text,
  );
  await page.click('#notices >> text=Why');
  await draw(page);
  expect(
    'Why shows the view of it',
    await page.evaluate(() => window.tarnView.app.state.view),
    'oom',
  );
  expect('which says it itself', await page.innerText('#notices'), '');
  expect('verdict: troubles', troubles, []);
  await close();
}

async function contradicting(browser) {
  const rows = [
    ['segment_alloc', MIB, 2 * MIB],
    ['alloc', MIB, MIB],
    ['alloc', 2 * MIB, 1.5 * MIB],
    ['alloc', MIB, 0.25 * MIB],
    ['free_completed', 77 * MIB, 512],
  ];
  const segment = {
    device: 0,
    address: MIB,
    total_size: 2 * MIB,
    stream: 0,
    segment_type: 'large',
    blocks: [{ size: 2 * MIB, state: 'inactive', requested_size: 0, frames: [] }],
  };
  const file = writeRun('contradicting', [traceOf(rows)], [segment]);
  const { page, troubles, close } = await openPage(browser, file);
  await draw(page);
  const text = await page.innerText('#notices');
  expectTrue(
    'a file that contradicts itself opens with a warning',
    /contradicts itself/.test(text),
    text,
  );
  expectTrue('which says by how much', /125\.0 % of what is reserved/.test(text), text);
  expectTrue(
    'and what was allocated twice',
    /1 allocation of what is allocated/.test(text),
    text,
  );
  expect('contradicting: troubles', troubles, []);
  await close();
  const short = { ...segment, blocks: [{ ...segment.blocks[0], size: MIB }] };
  const other = await openPage(browser, writeRun('short', [traceOf(rows.slice(0, 2))], [short]));
  await draw(other.page);
  const found = await other.page.innerText('#notices');
  expectTrue(
    'what only the check finds is in the warning too',
    /contradicts itself: 2 findings of .tarn check., first: segment \d/.test(found),
    found,
  );
  await other.close();
  for (const name of ['tiny', 'gpt2_varlen', 'multistream', 'cudagraph', 'llama_generate']) {
    const good = await openPage(browser, join(work, `${name}.html`));
    await draw(good.page);
    expect(`${name}: nothing to warn of`, await good.page.innerText('#notices'), '');
    await good.close();
  }
}

async function devices(browser) {
  const rows = (size) => [
    ['segment_alloc', MIB, 8 * MIB],
    ['alloc', MIB, size],
    ['free_requested', MIB, size],
    ['free_completed', MIB, size],
  ];
  const file = writeRun('devices', [
    traceOf(rows(MIB)),
    traceOf(rows(3 * MIB)),
    traceOf(rows(5 * MIB)),
  ]);
  const { page, troubles, close } = await openPage(browser, file);
  await draw(page);
  const strips = await page.$$eval('#devices .strip', (list) => list.map((one) => one.innerText));
  expect(
    'all devices one above another',
    strips.map((text) => text.replace(/\s+/g, ' ').trim()),
    [
      'device 0 peak 1.00 MiB of 8.00 MiB',
      'device 1 peak 3.00 MiB of 8.00 MiB',
      'device 2 peak 5.00 MiB of 8.00 MiB',
    ],
  );
  const ink = await page.$$eval('#devices canvas', (list) =>
    list.map((canvas) => {
      const { data: pixels } = canvas
        .getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      const colour = pixels.slice(
        (canvas.width * canvas.height - Math.floor(canvas.width / 2)) * 4,
      );
      for (let i = 0; i < pixels.length; i += 4)
        if ([0, 1, 2].every((k) => Math.abs(pixels[i + k] - colour[k]) < 4)) count++;
      return count;
    }),
  );
  expectTrue(
    'a device that held more has a higher strip',
    ink[0] < ink[1] && ink[1] < ink[2],
    ink,
  );
  await page.click('#devices .strip:nth-child(3)');
  await page.waitForFunction(() => window.tarnView.app.source.number === 2);
  await draw(page);
  expect(
    'a click shows one in full',
    await page.evaluate(() => window.tarnView.peak().requested.value),
    5 * MIB,
  );
  expect('devices: troubles', troubles, []);
  await close();
}

/** A request that failed on another device than the first. */
async function failedElsewhere(browser) {
  const rows = [
    ['segment_alloc', MIB, 8 * MIB],
    ['alloc', MIB, 3 * MIB],
  ];
  const failed = [
    ...traceOf(rows),
    { action: 'oom', size: 20 * MIB, device_free: 4096, stream: 0, time_us: 20 },
  ];
  const file = writeRun('elsewhere', [traceOf(rows), failed, failed]);
  const { page, troubles, close } = await openPage(browser, file);
  await draw(page);
  const shown = () => page.evaluate(() => window.tarnView.app.source.number);
  expect('a page opens at the device on which a request failed', await shown(), 1);
  const text = await page.innerText('#notices');
  expectTrue('with the verdict', /Out of memory at event 2: no 20\.00 MiB/.test(text), text);
  expectTrue('and names the other one', /elsewhere: 1 request on device 2/.test(text), text);
  await page.evaluate(() => window.tarnView.app.set({ source: 0 }));
  await page.waitForFunction(() => window.tarnView.app.source.number === 0);
  await draw(page);
  const other = await page.innerText('#notices');
  expectTrue(
    'a device without says where one failed',
    /1 request on device 1, 1 request on device 2/.test(other),
    other,
  );
  await page.waitForFunction(() => /d=0/.test(location.hash));
  await page.reload();
  await whenReady(page);
  expect('and stays when the page is loaded again', await shown(), 0);
  await page.click('#notices >> text=Show device 2');
  await page.waitForFunction(() => window.tarnView.app.source.number === 2);
  await draw(page);
  expectTrue(
    'a button leads there',
    /Out of memory at event 2/.test(await page.innerText('#notices')),
  );
  expect('elsewhere: troubles', troubles, []);
  await close();
}

async function withoutHistory(browser) {
  const segment = {
    device: 0,
    address: MIB,
    total_size: 2 * MIB,
    stream: 0,
    segment_type: 'small',
    blocks: [{ size: 2 * MIB, state: 'active_allocated', requested_size: 5, frames: [] }],
  };
  const file = writeRun('no_history', [], [segment]);
  for (const [hash, view] of [
    ['', 'map'],
    ['#v=info', 'info'],
  ]) {
    const { page, troubles, close } = await openPage(browser, file, { hash });
    await draw(page);
    const found = await page.evaluate(() => window.tarnView.app.state.view);
    expect(`without history ${hash || 'a page'} opens on ${view}`, [found, troubles], [view, []]);
    await close();
  }
}

export async function noticing(browser) {
  await verdictOnTop(browser);
  await contradicting(browser);
  await devices(browser);
  await failedElsewhere(browser);
  await withoutHistory(browser);
}
