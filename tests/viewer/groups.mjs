// SPDX-License-Identifier: MIT
// Groups by module, category and compile context are those of the program, in every view that
// shows them.
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPage } from './browser.mjs';
import { expect, expectTrue, report, work, writePage } from './check.mjs';

const BY = ['module', 'category', 'compile'];

const inOrder = (rows) => rows.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** Rows of `tarn top`, whatever they stand for. */
function topRows(device) {
  return device.stacks.map((row) => [
    row.name,
    row.peak_bytes,
    row.end_bytes,
    row.allocated_bytes,
    row.allocations,
    row.freed,
    row.events_from_allocation_to_free,
  ]);
}

async function tableIsTrue(page, name, snapshot, by, more) {
  await page.evaluate((g) => window.tarnView.app.set({ by: g, view: 'table' }), by);
  const rows = await page.evaluate(() =>
    window.tarnView
      .rows()
      .map((row) => [
        row.text,
        row.peak,
        row.end,
        row.allocated,
        row.count,
        row.freed,
        row.entries,
      ]),
  );
  const wanted = report('top', snapshot, '-n', '100000', '--by', by, ...more)[0];
  expect(`${name}: table by ${by}`, inOrder(rows), inOrder(topRows(wanted)));
}

/** Innermost frames, which the program names with their folders. */
async function linesAreTrue(page, name, snapshot, more) {
  await page.evaluate(() => window.tarnView.app.set({ by: 'line', view: 'table' }));
  const rows = await page.evaluate(() =>
    window.tarnView.rows().map((row) => [row.peak, row.end, row.allocated, row.count]),
  );
  const wanted = report('top', snapshot, '-n', '100000', '--by', 'frame', ...more)[0];
  expect(
    `${name}: table by innermost frame`,
    inOrder(rows),
    inOrder(topRows(wanted).map((row) => row.slice(1, 5))),
  );
}

/** What is in use at moments, from the sums that pictures are drawn from. */
async function momentsAreTrue(page, name, snapshot, by, more) {
  const instants = ['peak', 'reserved-peak', 'end'];
  for (const at of instants) {
    const wanted = report('live', snapshot, '--at', at, '-n', '100000', '--by', by, ...more)[0];
    const rows = wanted.instant.groups.map((row) => [row.name, row.bytes, row.blocks]);
    const found = await page.evaluate(
      ([g, e]) => window.tarnView.groups(g, e),
      [by, wanted.instant.event ?? -1],
    );
    expect(`${name}: by ${by} at ${at}`, inOrder(found), inOrder(rows));
    if (by !== 'category') continue;
    const none = rows.find((row) => row[0] === 'unclassified')?.[1] ?? 0;
    expect(`${name}: unclassified at ${at}`, none, wanted.instant.unclassified_bytes);
  }
}

/** The composition at the most, as `tarn peak` has it, against the sums of the timeline. */
async function peakIsTrue(page, name, snapshot, by, more) {
  const wanted = report('peak', snapshot, '-n', '100000', '--by', by, ...more)[0].requested_peak;
  const found = await page.evaluate(
    ([g, entry]) => {
      const { app } = window.tarnView;
      app.set({ by: g });
      const sums = app.grouping.sumsAt(entry);
      return app.grouping.order
        .filter((group) => sums[group] > 0)
        .map((group) => [group === 0 ? '' : app.grouping.text(group), sums[group]]);
    },
    [by, wanted.event ?? -1],
  );
  const known = new Set(found.map(([text]) => text));
  const rows = new Map();
  for (const group of wanted.groups) {
    const text = known.has(group.name) ? group.name : '';
    rows.set(text, (rows.get(text) || 0) + group.bytes);
  }
  const shown = [...rows].filter((row) => row[1] > 0);
  expect(`${name}: timeline by ${by} at the peak`, inOrder(found), inOrder(shown));
}

/** The outermost boxes of the flame. */
async function flameIsTrue(page, name, snapshot, by, more) {
  if (by === 'compile') return;
  const wanted = report('live', snapshot, '--at', 'peak', '-n', '100000', '--by', by, ...more)[0];
  const rows = new Map();
  for (const { name: text, bytes } of wanted.instant.groups) {
    const first = by === 'module' && text[0] !== '(' ? text.split('.')[0] : text;
    if (bytes > 0) rows.set(first, (rows.get(first) || 0) + bytes);
  }
  const found = await page.evaluate((boxes) => {
    window.tarnView.app.set({ view: 'flame', flame: 'peak', boxes });
    return [...window.tarnView.flame().root.children.values()].map((n) => [n.text, n.bytes]);
  }, by);
  expect(`${name}: flame by ${by}`, inOrder(found), inOrder([...rows]));
}

export async function groupsAreTrue(page, name, snapshot, more = []) {
  for (const by of BY) {
    await tableIsTrue(page, name, snapshot, by, more);
    await momentsAreTrue(page, name, snapshot, by, more);
    await peakIsTrue(page, name, snapshot, by, more);
    await flameIsTrue(page, name, snapshot, by, more);
  }
  await linesAreTrue(page, name, snapshot, more);
  await page.evaluate(() => window.tarnView.app.set({ by: 'line', boxes: 'stack' }));
}

const RULES = '# two\nforward pass: :forward$\nembedding <b>: :embed$\n';

export async function rulesAreTrue(browser) {
  const snapshot = join(work, 'labelled.json');
  const rules = join(work, 'two.rules');
  writeFileSync(rules, RULES);
  for (const more of [[], ['--rules', rules]]) {
    const name = `labelled ${more.length > 0 ? 'with rules' : 'run'}`;
    const file = writePage(name.replaceAll(' ', '_'), snapshot, ...more);
    const { page, troubles, close } = await openPage(browser, file);
    await groupsAreTrue(page, name, snapshot, more);
    const found = await page.evaluate(() => {
      const { app } = window.tarnView;
      app.set({ by: 'category', view: 'timeline', cursor: 60 });
      app.draw();
      return document.getElementById('panel').innerText;
    });
    expectTrue(`${name}: says what is unclassified`, /of it unclassified, [\d.]+ %/.test(found));
    expect(`${name}: troubles`, troubles, []);
    await close();
  }
  await cutPageKnows(browser, snapshot);
}

/** A page without the first entries knows the modules and categories of the blocks from then. */
async function cutPageKnows(browser, snapshot) {
  const whole = join(work, 'labelled.html');
  const small = writePage(
    'labelled_small',
    snapshot,
    '--max-size',
    `${statSync(whole).size - 300}`,
  );
  const rows = [];
  for (const file of [small, whole]) {
    const { page, close } = await openPage(browser, file);
    rows.push(
      await page.evaluate((skipped) => {
        const { app, groups } = window.tarnView;
        const skip = skipped ?? app.source.info.skipped;
        const list = [];
        for (let entry = skip; entry < skip + 60; entry += 10) {
          const at = entry - app.source.info.skipped;
          list.push(groups('module', at), groups('category', at));
        }
        return { skip, list };
      }, rows[0]?.skip),
    );
    await close();
  }
  expectTrue('cut labelled run: something was left out', rows[0].skip > 0, rows[0].skip);
  expect('cut labelled run', rows[0].list.map(inOrder), rows[1].list.map(inOrder));
}
