// SPDX-License-Identifier: MIT
// A page that opens snapshots itself shows what a page of the program shows, and refuses what the
// program refuses, in its words. Without the reader in the program it is skipped.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { axeFinds } from './axe.mjs';
import { draw, openPage, whenReady } from './browser.mjs';
import {
  VIEWS,
  axePath,
  counts,
  data,
  expect,
  expectTrue,
  pictures,
  tarn,
  work,
  writePage,
} from './check.mjs';

const recording = (name) => join(data, `${name}.pickle.gz`);

/** Waits until the files are shown or refused; the words of the refusal. */
async function open(page, files) {
  await page.evaluate(() => {
    const refusal = document.getElementById('refusal');
    if (refusal) refusal.hidden = true;
  });
  await page.setInputFiles('#file', files);
  await page.waitForFunction(
    () =>
      window.tarnView?.isReady ||
      document.getElementById('refusal')?.hidden === false ||
      (!document.getElementById('refusal') && !document.getElementById('empty').hidden),
    null,
    { timeout: 60000 },
  );
  return page.evaluate(() => document.getElementById('refusal')?.textContent ?? '');
}

/** What a page shows, by every kind of figure. */
const figures = (page) =>
  page.evaluate(() => {
    const { app, peak, groups, layout, at, oom } = window.tarnView;
    const peaks = peak();
    return {
      peaks,
      counts: [app.source.count, app.source.lifetimes, app.source.spans.length],
      by: ['stack', 'line', 'category', 'module'].map((by) => groups(by, peaks.requested.entry)),
      at: [0, 0.3, 0.7].map((share) => at(Math.floor(app.source.count * share))),
      layout: layout(peaks.reserved.entry),
      ooms: app.source.ooms.map((entry) => oom(entry).facts.verdict),
      settings: app.head.settings,
      warnings: app.head.warnings,
      annotations: app.annotations.spans.length,
    };
  });

async function recordingsAreTheSame(browser, empty) {
  for (const name of ['tiny', 'oom', 'multistream', 'gpt2_varlen_expandable', 'llama_generate']) {
    const found = [];
    const written = await openPage(browser, writePage(`reader_${name}`, recording(name)));
    found.push(await figures(written.page));
    await written.close();
    const { page, troubles, close } = await openPage(browser, empty);
    expect(`reader: ${name} is not refused`, await open(page, [recording(name)]), '');
    found.push(await figures(page));
    expect(`reader: ${name}`, found[1], found[0]);
    expect(`reader: title of ${name}`, await page.innerText('#title'), `${name}.pickle.gz`);
    await page.keyboard.press('8');
    await draw(page);
    const answers = await page.innerText('#document');
    expectTrue('reader: it says that nothing was computed', /read the file itself/.test(answers));
    expect(`reader: troubles of ${name}`, troubles, []);
    await close();
  }
}

/** What the program says of a file, without its own name in front; '' when it reads it. */
function refusalOf(file) {
  const { status, stderr } = spawnSync(tarn, ['info', '-q', file], { encoding: 'utf8' });
  return status === 0 ? '' : stderr.replace(/^tarn info: /, '').trim();
}

async function refusalsAreTheSame(browser, empty) {
  const { page, troubles, close } = await openPage(browser, empty);
  for (const folder of ['unsafe', 'limits']) {
    const path = join(data, '../hostile', folder);
    for (const name of readdirSync(path)) {
      const file = join(path, name);
      const wanted = refusalOf(file);
      const found = await open(page, [file]);
      const said = found.replace(/^Not shown: /, '').replace(`${name}: `, '');
      const isPacked = readFileSync(file).subarray(0, 2).toString('hex') === '1f8b';
      // The browser unpacks, so a damaged packing is refused in its words.
      if (isPacked && /gzip|damaged|unpack/.test(said))
        expectTrue(`reader refuses ${name}`, found);
      else expect(`reader refuses ${folder}/${name}`, said, wanted.replaceAll(file, name));
    }
  }
  const readme = join(data, '../../../README.md');
  const words = (await open(page, [readme])).replace(/^Not shown: /, '');
  expect('reader: what is no snapshot', words, refusalOf(readme).replaceAll(readme, 'README.md'));
  const three = await open(page, ['tiny', 'oom', 'multistream'].map(recording));
  expectTrue('reader: three files', /one snapshot, or two/.test(three), three);
  if (axePath) expect('axe, reader that refuses', await axeFinds(page), []);
  expect('reader: after all that it still opens', await open(page, [recording('tiny')]), '');
  expect('reader: troubles of refusals', troubles, []);
  await close();
}

async function twoAreCompared(browser, empty) {
  const { page, troubles, close } = await openPage(browser, empty);
  expect('reader: two files', await open(page, ['gpt2_varlen', 'oom'].map(recording)), '');
  const state = await page.evaluate(() => window.tarnView.app.state.view);
  expect('reader: two are compared', state, 'compare');
  const total = await page.evaluate(() =>
    window.tarnView.changes().reduce((sum, row) => sum + row.change, 0),
  );
  const text = execFileSync(tarn, ['diff', '--json', ...['gpt2_varlen', 'oom'].map(recording)]);
  const [{ before, after }] = JSON.parse(text).data.devices;
  expect('reader: as diff has it', total, after.requested_bytes - before.requested_bytes);
  await page.click('text=Open another');
  await page.waitForSelector('#file');
  expect('reader: another can be opened', await open(page, [recording('tiny')]), '');
  expect('reader: troubles of two', troubles, []);
  await close();
}

/** A file that is dropped on a page that shows one takes its place; a refused one does not. */
async function othersAreDropped(browser, empty, drop) {
  const { page, troubles, close } = await openPage(browser, empty);
  await open(page, [recording('oom')]);
  for (const view of ['blocks', 'flame', 'table', 'map', 'timeline']) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v, events: true }), view);
    await draw(page);
  }
  await page.evaluate(() => window.tarnView.app.set({ query: 'adam', cursor: 4000, by: 'own' }));
  await drop(page, readFileSync(join(data, '../../../README.md')), 'README.md');
  await page.waitForSelector('#notices [role="alert"]');
  const refused = await page.innerText('#notices [role="alert"]');
  expectTrue('reader: dropped later, refused', /README.md is not a snapshot/.test(refused));
  expect('reader: what was shown stays', await page.innerText('#title'), 'oom.pickle.gz');
  await drop(page, readFileSync(recording('tiny')), 'tiny.pickle.gz');
  await page.waitForFunction(() => document.getElementById('title').textContent[0] === 't');
  await whenReady(page);
  const written = await openPage(browser, join(work, 'reader_tiny.html'));
  expect('reader: dropped later', await figures(page), await figures(written.page));
  for (const view of VIEWS) {
    for (const one of [page, written.page]) {
      await one.evaluate((v) => window.tarnView.app.set({ view: v }), view);
      await draw(one);
    }
    const texts = (one) => one.innerText('#controls');
    expect(`reader: dropped later, ${view}`, await texts(page), await texts(written.page));
  }
  expect('reader: dropped later: tabs', (await page.$$('#tabs button')).length, 8);
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline', events: true }));
  await draw(page);
  expect(
    'reader: dropped later: the list of events',
    await page.innerText('#events .head .number'),
    '21 events',
  );
  expect('reader: dropped later: troubles', troubles, []);
  await written.close();
  await close();
}

/** A file that is dropped, one that ends early, and one that is empty. */
async function filesAreDropped(browser, empty) {
  const plain = gunzipSync(readFileSync(recording('tiny')));
  const drop = async (page, bytes, name) => {
    await page.evaluate(
      ([base64, file]) => {
        const bytes64 = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes64], file));
        window.dispatchEvent(
          new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }),
        );
      },
      [Buffer.from(bytes).toString('base64'), name],
    );
    await page.waitForFunction(() => window.tarnView?.isReady, null, { timeout: 30000 });
  };
  for (const [what, bytes, isPartial] of [
    ['dropped', plain, false],
    ['dropped, and ends early', plain.subarray(0, Math.floor(plain.length * 0.7)), true],
  ]) {
    const { page, troubles, close } = await openPage(browser, empty);
    await drop(page, bytes, 'a <b>.pickle');
    expect(`reader: ${what}: title`, await page.innerText('#title'), 'a <b>.pickle');
    expect(
      `reader: ${what}: partial`,
      await page.evaluate(() => window.tarnView.app.head.partial),
      isPartial,
    );
    expect(`reader: ${what}: troubles`, troubles, []);
    await close();
  }
  await othersAreDropped(browser, empty, drop);
  const none = join(work, 'nothing.json');
  writeFileSync(none, '{"segments": [], "device_traces": []}');
  const { page, close } = await openPage(browser, empty);
  await open(page, [none]);
  expectTrue('reader: an empty snapshot', /is empty/.test(await page.innerText('#empty')));
  await close();
}

function policyIsNarrow(empty) {
  const policy = (file) =>
    /Content-Security-Policy" content="([^"]*)"/.exec(readFileSync(file, 'utf8'))[1];
  const plain = policy(join(work, 'reader_tiny.html'));
  expectTrue('reader: pages of recordings run no WebAssembly', !/wasm|eval/.test(plain), plain);
  expect('reader: its own page does', policy(empty).replace(" 'wasm-unsafe-eval'", ''), plain);
  expectTrue(
    'reader: the page is at most 350 KB',
    statSync(empty).size < 350000,
    statSync(empty).size,
  );
}

export async function opening(browser) {
  const empty = join(work, 'viewer.html');
  const made = spawnSync(tarn, ['view', '--empty', '-q', '-o', empty], { encoding: 'utf8' });
  if (made.status !== 0) {
    console.log(`skip: the reader of empty pages: ${made.stderr.trim()}`);
    counts.skipped++;
    return;
  }
  const { page, troubles, close } = await openPage(browser, empty);
  if (axePath) expect('axe, reader', await axeFinds(page), []);
  if (pictures) await page.screenshot({ path: join(pictures, 'reader.png') });
  expect('reader: troubles before a file', troubles, []);
  await close();
  await recordingsAreTheSame(browser, empty);
  await refusalsAreTheSame(browser, empty);
  await twoAreCompared(browser, empty);
  await filesAreDropped(browser, empty);
  policyIsNarrow(empty);
}
