// SPDX-License-Identifier: MIT
// For people who do not use a mouse, see other colours, or need everything larger or still.
import { join } from 'node:path';
import { becomes, draw, openPage } from './browser.mjs';
import { VIEWS, expect, expectTrue, pictures, work } from './check.mjs';

const OOM = () => join(work, 'oom.html');

const focus = (page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    return {
      id: at.id,
      tag: at.tagName,
      text: (at.getAttribute('aria-label') || at.textContent || '').slice(0, 60),
      ring: getComputedStyle(at).outlineStyle !== 'none',
      inside: at.closest('#controls, #panel, #document, #tabs, .tools, #stage')?.id ?? '',
    };
  });

const state = (page) => page.evaluate(() => ({ ...window.tarnView.app.state }));

/** Presses Tab until something has the focus that is wanted. */
async function tabTo(page, what, wanted) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab');
    const at = await focus(page);
    if (!at.ring && at.tag !== 'BODY')
      expectTrue(`keyboard: ${what}: ${at.text} shows the focus`, false, at.tag);
    if (wanted(at)) return at;
  }
  expectTrue(`keyboard: Tab reaches ${what}`, false);
  return null;
}

/** All views by the tabs, with the focus on their picture or document. */
async function walkTabs(page) {
  await tabTo(page, 'the tabs', (at) => at.id === 'tab-timeline');
  for (const view of VIEWS.slice(1)) {
    await page.keyboard.press('ArrowRight');
    expect(`keyboard: an arrow goes to ${view}`, (await state(page)).view, view);
    expect(`keyboard: the focus is on its tab`, (await focus(page)).id, `tab-${view}`);
  }
  await page.keyboard.press('ArrowRight');
  expect('keyboard: behind the last comes the first', (await state(page)).view, 'timeline');
}

async function walkTools(page) {
  await tabTo(page, 'the search', (at) => at.id === 'search');
  await page.keyboard.type('adam');
  await becomes(page, () => window.tarnView.app.state.query === 'adam');
  await page.keyboard.press('Enter');
  const { lifetime } = await state(page);
  expectTrue('keyboard: a match is chosen', lifetime >= 0, lifetime);
  await draw(page);
  expectTrue(
    'keyboard: and said',
    await page
      .waitForFunction(() => /match 1 of/.test(document.getElementById('live').textContent))
      .then(() => true),
  );
}

/** What a choice makes anew keeps the focus. */
async function walkControls(page) {
  await page.focus('#controls select');
  await page.keyboard.press('ArrowDown');
  await draw(page);
  expect('keyboard: a choice changes the colours', (await state(page)).by, 'own');
  expect('keyboard: and keeps the focus', (await focus(page)).tag, 'SELECT');
  await tabTo(page, 'a switch', (at) => at.text === 'Time');
  await page.keyboard.press('Enter');
  await draw(page);
  expect('keyboard: a switch switches', (await state(page)).axis, 'time');
  expect('keyboard: and keeps the focus, too', (await focus(page)).text, 'Time');
}

async function walkPanel(page) {
  await tabTo(page, 'the picture', (at) => at.id === 'canvas');
  const before = await state(page);
  await page.keyboard.press('ArrowRight');
  expect('keyboard: the cursor moves', (await state(page)).cursor, before.cursor + 1);
  const row = await tabTo(
    page,
    'a group',
    (at) => at.inside === 'panel' && /^\w+\.py:\d/.test(at.text),
  );
  await page.keyboard.press('Enter');
  await draw(page);
  expectTrue('keyboard: a group is chosen', (await state(page)).group !== '');
  expect('keyboard: and keeps the focus again', (await focus(page)).text, row.text);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  expect(
    'keyboard: Esc lets go',
    [(await state(page)).group, (await state(page)).lifetime],
    ['', -1],
  );
}

async function walkTable(page) {
  await page.keyboard.press('5');
  await draw(page);
  await tabTo(page, 'a column', (at) => /^Times/.test(at.text));
  await page.keyboard.press('Enter');
  await draw(page);
  expect('keyboard: a column sorts', (await state(page)).sort, 'count');
  expectTrue('keyboard: and keeps the focus', /^Times/.test((await focus(page)).text));
  await page.keyboard.press('Enter');
  await draw(page);
  expect('keyboard: the other way', (await state(page)).up, true);
  await tabTo(page, 'a row', (at) => /\.py/.test(at.text) && at.inside === 'document');
  await page.keyboard.press('Enter');
  await draw(page);
  expectTrue('keyboard: a row is chosen', (await state(page)).group !== '');
  const spoken = await page.getAttribute('#document tr.chosen button', 'aria-pressed');
  expect('keyboard: and is said to be', spoken, 'true');
}

async function walkDialog(page) {
  await page.keyboard.press('?');
  expect('keyboard: ? opens the list', (await focus(page)).text, 'Close');
  await page.keyboard.press('2');
  expect('keyboard: keys do nothing below it', (await state(page)).view, 'table');
  await page.keyboard.press('Escape');
  expect('keyboard: Esc closes it', await page.isVisible('#keys'), false);
}

async function keyboardOnly(browser) {
  const { page, troubles, close } = await openPage(browser, OOM(), { hash: '#c=4442' });
  await walkTabs(page);
  await walkTools(page);
  await walkControls(page);
  await walkPanel(page);
  await walkTable(page);
  await walkDialog(page);
  expect('keyboard: troubles', troubles, []);
  await close();
}

/** A page of 1440 x 900 at 200 %. */
async function enlarged(browser) {
  const { page, close } = await openPage(browser, OOM(), {
    width: 720,
    height: 450,
    ratio: 2,
    hash: '#c=4442&l=20',
  });
  for (const view of VIEWS) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    const found = await page.evaluate(() => {
      const things = 'header button, #controls button, #controls select';
      const cut = [...document.querySelectorAll(things)]
        .filter((e) => e.getClientRects().length > 0)
        .filter((e) => {
          const box = e.getBoundingClientRect();
          return box.right > innerWidth + 1 || box.left < 0;
        });
      return {
        wide: document.documentElement.scrollWidth,
        cut: cut.map((e) => e.textContent),
        high: document.getElementById('stage').getBoundingClientRect().height,
      };
    });
    expect(`${view} at 200 %: nothing is cut off`, [found.wide, found.cut], [720, []]);
    expectTrue(`${view} at 200 %: has room`, found.high >= 380, found.high);
    if (pictures)
      await page.screenshot({ path: join(pictures, `zoom200_${view}.png`), fullPage: true });
  }
  await close();
}

/** A page of 1280 at 400 %: nothing has to be scrolled sideways to be read. */
async function enlargedMost(browser) {
  for (const name of ['oom', 'cut', 'several']) {
    const { page, close } = await openPage(browser, join(work, `${name}.html`), {
      width: 320,
      height: 700,
      hash: '#l=20&z=1',
    });
    for (const view of VIEWS) {
      await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
      await draw(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(`${name}, ${view} at 400 %: nothing is cut off`, wide, 320);
    }
    await close();
  }
}

/** Where the system says the colours, what is chosen is told apart, and groups keep theirs. */
async function forcedColours(browser) {
  const { page, close } = await openPage(browser, OOM(), { hash: '#c=4442&g=line' });
  await page.emulateMedia({ forcedColors: 'active' });
  await page.evaluate(() => {
    const { app } = window.tarnView;
    app.set({ group: app.grouping.keys[app.grouping.shown[0]].key });
  });
  await draw(page);
  const found = await page.evaluate(() => {
    const colour = (selector) =>
      getComputedStyle(document.querySelector(selector)).backgroundColor;
    const swatches = [...document.querySelectorAll('.legend .swatch')].map(
      (s) => getComputedStyle(s).backgroundColor,
    );
    return {
      tab: colour('#tabs [aria-selected="true"]') !== colour('#tabs [aria-selected="false"]'),
      pressed:
        colour('.switch [aria-pressed="true"]') !== colour('.switch [aria-pressed="false"]'),
      row: colour('.row.chosen') !== colour('.legend button.row:not(.chosen)'),
      swatches: new Set(swatches).size > 5,
    };
  });
  expect('forced colours', found, { tab: true, pressed: true, row: true, swatches: true });
  await close();
}

/** Nothing moves by itself for people who do not want that. */
async function stillness(browser) {
  const { page, close } = await openPage(browser, OOM(), { hash: '#v=map&c=4442' });
  const moving = () =>
    page.evaluate(() =>
      [...document.querySelectorAll('*')]
        .filter((e) => {
          const style = getComputedStyle(e);
          return /[1-9]/.test(style.transitionDuration + style.animationDuration);
        })
        .map((e) => e.id || e.tagName),
    );
  expect('reduced motion: nothing moves by itself', await moving(), []);
  expect('nothing plays by itself', (await state(page)).cursor, 4442);
  await page.keyboard.press('Space');
  await page.waitForFunction(() => window.tarnView.app.state.cursor > 4442);
  await page.keyboard.press('Space');
  const stopped = (await state(page)).cursor;
  await draw(page);
  expect('space stops it', (await state(page)).cursor, stopped);
  await close();
}

export async function reaching(browser) {
  await keyboardOnly(browser);
  await enlarged(browser);
  await enlargedMost(browser);
  await forcedColours(browser);
  await stillness(browser);
}
