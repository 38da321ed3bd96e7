// SPDX-License-Identifier: MIT
// Fingers on the pictures, sent as a touch screen sends them, and what they leave in the state.
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { expect, expectTrue, work } from './check.mjs';

const PHONE = { width: 390, height: 844, touch: true };

/** Fingers that go from some points to others, in steps. */
class Fingers {
  constructor(page, client) {
    this.page = page;
    this.client = client;
    this.time = Date.now(); // of the next event
  }

  send(type, points) {
    const touchPoints = points.map(([x, y, finger], i) => ({ x, y, id: finger ?? i }));
    const timestamp = this.time / 1000;
    return this.client.send('Input.dispatchTouchEvent', { type, touchPoints, timestamp });
  }

  async slide(from, to, steps = 8) {
    await this.send('touchStart', from.slice(0, 1));
    if (from.length > 1) await this.send('touchStart', from);
    for (let i = 1; i <= steps; i++) {
      const at = from.map(([x, y], k) => [
        x + ((to[k][0] - x) * i) / steps,
        y + ((to[k][1] - y) * i) / steps,
      ]);
      await this.send('touchMove', at);
    }
    await this.send('touchEnd', []);
    await draw(this.page);
  }

  /** @param {number} after milliseconds since the event before, as the page is told
   * @param {number} rest milliseconds that it really lasts */
  async tap(x, y, { after = 1000, rest = 20 } = {}) {
    this.time += after;
    await this.send('touchStart', [[x, y]]);
    await this.page.waitForTimeout(rest);
    this.time += rest;
    await this.send('touchEnd', []);
    await draw(this.page);
  }
}

async function openPhone(browser, name, hash = '', more = {}) {
  const options = { ...PHONE, hash, ...more };
  const opened = await openPage(browser, join(work, `${name}.html`), options);
  await draw(opened.page);
  const client = await opened.page.context().newCDPSession(opened.page);
  const state = () => opened.page.evaluate(() => ({ ...window.tarnView.app.state }));
  const box = await (await opened.page.$('#canvas')).boundingBox();
  return { ...opened, fingers: new Fingers(opened.page, client), state, box };
}

/** The place under a point of the canvas, in the window as it is now. */
function placeAt(page, x) {
  return page.evaluate((px) => {
    const { app } = window.tarnView;
    const { left } = app.canvas.getBoundingClientRect();
    const { box } = app.picture;
    return box.axis.place(px - left - box.left);
  }, x);
}

async function panning(browser) {
  const { page, fingers, state, box, close, troubles } = await openPhone(
    browser,
    'gpt2_varlen',
    '#a=10000&b=20000',
  );
  const [x, y] = [box.x + 200, box.y + 150];
  const held = await placeAt(page, x);
  await fingers.slide([[x, y]], [[x + 90, y + 5]]);
  const after = await state();
  expect('one finger keeps the span', Math.round(after.to - after.from), 10000);
  expectTrue('one finger moves the window back', after.from < 9000, after.from);
  const now = await placeAt(page, x + 90);
  expectTrue('what was under the finger stays there', Math.abs(now - held) < 60, now - held);
  expect('a drag sets no cursor', after.cursor, -2);
  expect('and scrolls no page', await page.evaluate(() => window.scrollY), 0);
  expect('touch: troubles', troubles, []);
  await close();
}

async function pinching(browser, axis) {
  const { page, fingers, state, box, close } = await openPhone(
    browser,
    'gpt2_varlen',
    `#a=10000&b=20000&x=${axis}`,
  );
  const y = box.y + 150;
  const [a, b] = [box.x + 150, box.x + 250];
  const held = [await placeAt(page, a), await placeAt(page, b)];
  await fingers.slide(
    [
      [a, y],
      [b, y],
    ],
    [
      [a - 50, y],
      [b + 50, y],
    ],
  );
  const apart = await state();
  const now = [await placeAt(page, a - 50), await placeAt(page, b + 50)];
  const away = Math.max(Math.abs(now[0] - held[0]), Math.abs(now[1] - held[1]));
  expectTrue(`two fingers hold what is under them, ${axis}`, away < 120, `${now} ${held}`);
  if (axis === 'event')
    expectTrue('a pinch zooms in', Math.abs(apart.to - apart.from - 5000) < 60, apart.to);
  await fingers.slide(
    [
      [a - 40, y],
      [b + 40, y],
    ],
    [
      [a + 30, y],
      [b - 30, y],
    ],
  );
  const close_ = await state();
  expectTrue(
    `and out, ${axis}`,
    close_.to - close_.from > (apart.to - apart.from) * 2,
    `${apart.from} ${apart.to} ${close_.from} ${close_.to}`,
  );
  expect('a pinch chooses nothing', [close_.cursor, close_.lifetime, close_.group], [-2, -1, '']);
  await close();
}

/** Two fingers, one of them lifted: the other goes on dragging, without a jump. */
async function liftingOne(browser) {
  const { page, fingers, state, box, close } = await openPhone(
    browser,
    'gpt2_varlen',
    '#a=10000&b=20000',
  );
  const y = box.y + 150;
  const [a, b] = [box.x + 150, box.x + 250];
  await fingers.send('touchStart', [[a, y]]);
  await fingers.send('touchStart', [
    [a, y],
    [b, y],
  ]);
  await fingers.send('touchMove', [
    [a, y],
    [b + 40, y],
  ]);
  await draw(page);
  const pinched = await state();
  await fingers.send('touchEnd', [[b + 40, y, 1]]);
  await fingers.send('touchMove', [[a + 20, y]]);
  await fingers.send('touchEnd', []);
  const after = await state();
  const span = pinched.to - pinched.from;
  expect('lifting one keeps the span', Math.round(after.to - after.from), Math.round(span));
  const moved = (pinched.from - after.from) / span;
  expectTrue('and the other drags on from where it is', moved > 0.03 && moved < 0.1, moved);
  expect('without a tap', after.cursor, -2);
  await close();
}

async function tapping(browser) {
  const { page, fingers, state, box, close } = await openPhone(browser, 'oom');
  const [x, y] = [box.x + 220, box.y + box.height - 60];
  const wanted = await page.evaluate(
    ([px, py]) => {
      const { app } = window.tarnView;
      const { left, top } = app.canvas.getBoundingClientRect();
      const i = Math.floor(
        ((px - left - app.picture.box.left) / app.picture.box.axis.width) * app.picture.columns,
      );
      return { entry: app.picture.data.moment[i], py: py - top };
    },
    [x, y],
  );
  await fingers.tap(x, y);
  const tapped = await state();
  expect('a tap sets the cursor', tapped.cursor, wanted.entry);
  expectTrue('and chooses the group', tapped.group !== '', tapped.group);
  const span = tapped.to - tapped.from;
  const held = await placeAt(page, x);
  await fingers.tap(x, y);
  await fingers.tap(x + 3, y - 2, { after: 100 });
  const twice = await state();
  expectTrue(
    'two taps zoom in',
    Math.abs((twice.to - twice.from) / span - 0.25) < 0.01,
    twice.to - twice.from,
  );
  expectTrue('where they were', held > twice.from && held < twice.to, held);
  await close();
}

async function resting(browser) {
  const { page, fingers, state, box, close } = await openPhone(browser, 'oom', '#v=map&c=4442');
  const spot = await page.evaluate(() => {
    const { app } = window.tarnView;
    for (const place of app.picture.plan.places) {
      const { segment } = place;
      const piece = segment.pieces.find((p) => p.kind === 'block' && p.to - p.from > 2 ** 20);
      if (!piece) continue;
      const middle = (piece.from + piece.to) / 2 - segment.address;
      return {
        lifetime: piece.lifetime,
        x: place.x + (middle / (segment.end - segment.address)) * place.width,
        y: place.y + 10,
      };
    }
    return null;
  });
  await fingers.tap(box.x + spot.x, box.y + spot.y, { rest: 650 });
  expect('a finger that rests chooses the block', (await state()).lifetime, spot.lifetime);
  expectTrue('shows its card', (await page.innerText('#panel')).includes('Allocated by'));
  const seen = await page.evaluate(
    () => document.querySelector('.card').getBoundingClientRect().top,
  );
  expectTrue('which is in sight', seen < 844, seen);
  await close();
}

async function scrolling(browser) {
  for (const [view, scroll] of [
    ['map', 'mapScroll'],
    ['flame', 'flameScroll'],
  ]) {
    const { page, fingers, box, close } = await openPhone(browser, 'gpt2_varlen', `#v=${view}`, {
      height: 600,
    });
    const [x, y] = [box.x + 200, box.y + 120];
    await fingers.slide([[x, y]], [[x, y - 150]]);
    const found = await page.evaluate((name) => window.tarnView.app[name], scroll);
    expectTrue(`a finger scrolls the ${view}`, found > 100, found);
    await close();
  }
}

/** Nothing is wider than a phone, and what is to be pressed is large enough for a finger. */
async function fitting(browser, views) {
  const { page, close } = await openPhone(browser, 'oom', '#c=4442');
  for (const view of views) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v, lifetime: 20 }), view);
    await draw(page);
    const found = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth,
      small: [...document.querySelectorAll('header button, #controls button, #controls select')]
        .filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().height < 32)
        .map((e) => e.textContent.slice(0, 20)),
      stage: document.getElementById('stage').getBoundingClientRect().height,
      controls: document.getElementById('controls').getBoundingClientRect().height,
      hidden: [...document.querySelectorAll('#controls > :not(:empty)')]
        .filter((e) => e.getClientRects().length === 0)
        .map((e) => e.textContent),
      named: [...document.querySelectorAll('#controls select')].every((e) => e.labels.length > 0),
    }));
    expect(`${view} is as wide as a phone`, found.wide, 390);
    expect(`${view}: buttons are large enough for a finger`, found.small, []);
    expectTrue(`${view} has room on a phone`, found.stage >= 380, found.stage);
    expectTrue(`${view}: its controls are two rows`, found.controls <= 135, found.controls);
    expect(`${view}: and have names`, found.named, true);
    expect(`${view}: none is left out`, found.hidden, []);
  }
  await close();
}

export async function touching(browser, views) {
  await panning(browser);
  await pinching(browser, 'event');
  await pinching(browser, 'time');
  await liftingOne(browser);
  await tapping(browser);
  await resting(browser);
  await scrolling(browser);
  await fitting(browser, views);
}
