// SPDX-License-Identifier: MIT
// The list of events beside each view, and the card of whatever is clicked.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { becomes, draw, openPage, searchFor } from './browser.mjs';
import { VIEWS, data, expect, expectTrue, tarn, work } from './check.mjs';

const state = (page) => page.evaluate(() => ({ ...window.tarnView.app.state }));
const settled = async (page) => {
  await page.waitForTimeout(60);
  await draw(page);
};

/** What the program exports of each event. */
function exported(name) {
  const text = execFileSync(
    tarn,
    ['export', '--to', 'jsonl', '--table', 'events', join(data, `${name}.pickle.gz`)],
    { maxBuffer: 1 << 28 },
  ).toString();
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Rows that are elements now. */
const rowsOf = (page) =>
  page.$$eval('#events .event', (rows) =>
    rows.map((row) => ({
      row: Number(row.dataset.row),
      words: ['number', 'action', 'size', 'address'].map(
        (part) => row.querySelector(`.${part}`).textContent,
      ),
    })),
  );

async function rowsAreTrue(browser, name) {
  const { page, troubles, close } = await openPage(browser, join(work, `${name}.html`), {
    hash: '#z=1',
  });
  await settled(page);
  const events = exported(name);
  const count = await page.evaluate(() => window.tarnView.app.source.count);
  expect(`${name}: events of the list`, count, events.length);
  for (const share of [0, 0.31, 0.77, 1]) {
    await page.evaluate((part) => {
      const list = window.tarnView.app.eventList;
      list.place(list.count * part);
    }, share);
    await page.waitForTimeout(40);
    const rows = await rowsOf(page);
    expectTrue(`${name}: few elements at ${share}`, rows.length > 8 && rows.length < 60);
    const wanted = rows.map(({ row }) => {
      const event = events[row];
      return [event.action.replace('_', ' '), event.address.replace(/^0x0*(?=.)/, '0x')];
    });
    expect(
      `${name}: rows at ${share}`,
      rows.map(({ words }) => [words[1].replace('out of memory', 'oom'), words[3]]),
      wanted.map(([action, address], i) => [action, rows[i].words[3] === '' ? '' : address]),
    );
    const box = await page.evaluate(() => {
      const inside = document.querySelector('#events .scroller').getBoundingClientRect();
      const list = [...document.querySelectorAll('#events .event')].map((row) =>
        row.getBoundingClientRect(),
      );
      return list[0].top <= inside.top + 1 && list[list.length - 1].bottom >= inside.bottom - 1;
    });
    expectTrue(`${name}: rows fill the list at ${share}`, box);
  }
  expect(`${name}: list, troubles`, troubles, []);
  await close();
}

/** A turn of the wheel goes some rows on, also in a list that is longer than an element may be. */
async function wheeling(browser) {
  const { page, close } = await openPage(browser, join(work, 'llama_generate.html'), {
    hash: '#z=1',
  });
  await settled(page);
  expectTrue(
    'a long list is scaled',
    await page.evaluate(() => window.tarnView.app.eventList.isScaled()),
  );
  await page.evaluate(() => window.tarnView.app.eventList.place(30000));
  const box = await (await page.$('#events .scroller')).boundingBox();
  await page.mouse.move(box.x + 50, box.y + 50);
  await page.mouse.wheel(0, 400);
  await becomes(page, () => window.tarnView.app.eventList.top > 30000);
  const top = await page.evaluate(() => window.tarnView.app.eventList.top);
  expect('a turn of the wheel goes ten rows on', Math.round(top), 30010);
  await page.focus('#events .scroller');
  await page.keyboard.press('End');
  await settled(page);
  const { cursor } = await state(page);
  const count = await page.evaluate(() => window.tarnView.app.source.count);
  expect('End goes to the last event', cursor, count - 1);
  const seen = await page.$eval('#events [aria-selected="true"]', (row) => {
    const inside = document.querySelector('#events .scroller').getBoundingClientRect();
    const at = row.getBoundingClientRect();
    return at.top >= inside.top - 1 && at.bottom <= inside.bottom + 1;
  });
  expectTrue('which is in sight', seen);
  await close();
}

async function listing(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'));
  expectTrue('the list is closed at first', await page.isHidden('#events'));
  await page.keyboard.press('e');
  for (const view of VIEWS) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await settled(page);
    expectTrue(`the list is beside ${view}`, (await rowsOf(page)).length > 8);
  }
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline', cursor: 4441 }));
  await settled(page);
  const chosen = async () => page.textContent('#events [aria-selected="true"] .number');
  expect('the list follows the cursor', await chosen(), '4,441');
  await page.focus('#events .scroller');
  await page.keyboard.press('ArrowDown');
  await settled(page);
  expect(
    'an arrow goes to the next event',
    [await chosen(), (await state(page)).cursor],
    ['4,442', 4442],
  );
  expectTrue(
    'and opens the card of its block',
    /Block of 14.06 MiB/.test(await page.innerText('.card h2')),
  );
  await page.selectOption('#events select', 'oom');
  await settled(page);
  expect('only failed requests', (await rowsOf(page)).length, 1);
  await page.click('#events .event');
  await settled(page);
  expectTrue(
    'a failed request has a card',
    /Out of memory: 585.94 MiB/.test(await page.innerText('.card h2')),
  );
  await page.selectOption('#events select', '');
  await searchFor(page, 'segment free');
  await settled(page);
  const frees = exported('oom').filter((event) => event.action === 'segment_free').length;
  const shown = await page.textContent('#events .head .number');
  expectTrue('the list is searched', shown.startsWith(`${frees} of `), shown);
  expect('the list: troubles', troubles, []);
  await close();
}

/** Opens a page and gives the card after something was done. */
async function cardAfter(browser, hash, act) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'), { hash });
  await draw(page);
  await act(page);
  await settled(page);
  const card = await page.$('.card');
  const text = card ? await card.innerText() : '';
  const picked = (await state(page)).picked;
  await close();
  return { text, picked };
}

async function cards(browser) {
  const mark = (shape) => async (page) => {
    const [x, y] = await page.evaluate((kind) => {
      const { app } = window.tarnView;
      const { box } = app.picture;
      const event = app.source.events.find((one) => one.kind === kind);
      const at = app.canvas.getBoundingClientRect();
      return [at.left + box.left + box.axis.pixel(event.entry), at.top + box.top - 8];
    }, shape);
    await page.mouse.click(x, y);
  };
  const tick = await cardAfter(browser, '#a=0&b=40', mark(9));
  expectTrue(
    'a tick opens the card of its segment alloc',
    /^Segment alloc: /.test(tick.text),
    tick.text,
  );
  expectTrue('with its stack', /Copy stack/.test(tick.text) && tick.picked[0] === 'e');
  const triangle = await cardAfter(browser, '', mark(14));
  expectTrue('a triangle opens the card of the OOM', /^Out of memory/.test(triangle.text));
  expectTrue(
    'with full paths',
    /\/site-packages\/torch\/.*linear\.py:134/.test(triangle.text.replace(/\n/g, '')),
  );
  const map = await cardAfter(browser, '#v=map&c=4400', async (page) => {
    const [x, y] = await page.evaluate(() => {
      const { app } = window.tarnView;
      const at = app.canvas.getBoundingClientRect();
      for (const { segment, x: left, y: top, width } of app.picture.plan.places) {
        const free = segment.pieces.find(
          (piece) => piece.kind === 'free' && piece.to - piece.from > 1e6,
        );
        const middle = free && (free.from + free.to) / 2;
        if (free)
          return [
            at.left +
              left +
              ((middle - segment.address) / (segment.end - segment.address)) * width,
            at.top + top + 10,
          ];
      }
      return [0, 0];
    });
    await page.mouse.click(x, y);
  });
  expectTrue(
    'free memory on the map opens the card of its segment',
    /^Segment of /.test(map.text),
    map.text,
  );
  const holder = await cardAfter(browser, '#v=oom', (page) =>
    page.click('.oom table:last-of-type button'),
  );
  expectTrue('a holder opens the card of its stack', /^Stack/.test(holder.text), holder.text);
  expectTrue('with what it holds', /48 blocks/.test(holder.text), holder.text);
  const request = await cardAfter(browser, '#v=oom', (page) => page.click('.oom p button.link'));
  expectTrue(
    'a failed request opens its card',
    /^Out of memory/.test(request.text),
    request.text,
  );
}

async function copied(browser) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#c=4442&l=900',
  });
  await draw(page);
  await page.evaluate(() => {
    const keep = { writeText: async (text) => (window.copiedText = text) };
    Object.defineProperty(navigator, 'clipboard', { value: keep, configurable: true });
  });
  const frames = await page.evaluate(() => {
    const { source } = window.tarnView.app;
    const { names } = source;
    return names
      .frames(source.lifetimeStack[900])
      .map((f) => [
        names.text(names.frameFile[f]),
        names.frameLine[f],
        names.text(names.frameName[f]),
      ]);
  });
  await page.click('text=Copy stack');
  const stack = await page.evaluate(() => window.copiedText);
  const wanted =
    frames.length > 0
      ? frames.map(([file, line, name]) =>
          file ? `${file}${line ? `:${line}` : ''} ${name}` : name,
        )
      : ['(no frames)'];
  expect('Copy stack has all frames with their paths', stack.trimEnd().split('\n'), wanted);
  await page.click('text=Copy as text');
  const text = await page.evaluate(() => window.copiedText);
  expectTrue(
    'Copy as text has the whole card',
    text.startsWith('Block of ') && /\naddress: 0x/.test(text) && text.includes(wanted[0]),
    text,
  );
  await close();
}

/** A link opens the list and the card. */
async function linked(browser) {
  for (const [hash, wanted] of [
    ['#z=1&j=e4458&c=4458', 'Out of memory'],
    ['#j=s3', 'Segment of '],
    ['#j=t2', 'Stack'],
  ]) {
    const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), { hash });
    await draw(page);
    expectTrue(`${hash} opens a card`, (await page.innerText('.card h2')).startsWith(wanted));
    await page.keyboard.press('Escape');
    await draw(page);
    expect(`${hash}: Escape closes it`, [await page.$('.card'), troubles], [null, []]);
    await close();
  }
  for (const hash of ['#j=e99999999', '#j=s-1', '#j=x', '#j=t1e9', '#ea=nothing&z=1']) {
    const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), { hash });
    await draw(page);
    expect(`${hash} does no harm`, [troubles, await page.$('.card')], [[], null]);
    await close();
  }
}

export async function events(browser) {
  for (const name of ['oom', 'llama_generate']) await rowsAreTrue(browser, name);
  await wheeling(browser);
  await listing(browser);
  await cards(browser);
  await copied(browser);
  await linked(browser);
}
