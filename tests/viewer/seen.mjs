// SPDX-License-Identifier: MIT
// What can be told apart in the pictures, by everybody: colours, areas with their names, and groups
// that are ranked by what is seen.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { data, expect, expectTrue, work, writePage } from './check.mjs';
import { SIGHTS, closest, contrast } from './vision.mjs';

const APART = 12; // CIEDE2000 of two colours of groups, for everybody
const GREYS_APART = 4.5; // of two of the greys
const TEXT = 4.5; // contrast of text, by WCAG

async function coloursAreApart() {
  const code = readFileSync(join(data, '../../../viewer/paint.js'), 'utf8');
  const { themeOf } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  for (const isDark of [false, true]) {
    const theme = themeOf(isDark);
    const name = isDark ? 'dark' : 'light';
    for (const sight of SIGHTS) {
      const { away, pair } = closest([...theme.groups, theme.others, theme.free], sight);
      expectTrue(`${name}: colours for ${sight}`, away >= APART, `${away} ${pair}`);
      const greys = [theme.others, theme.rest, theme.slack, theme.free, theme.paper];
      const grey = closest(greys, sight);
      expectTrue(`${name}: greys for ${sight}`, grey.away >= GREYS_APART, JSON.stringify(grey));
    }
    for (const ink of ['text', 'muted', 'accent', 'warn', 'pending'])
      for (const ground of ['paper', 'panel']) {
        const found = contrast(theme[ink], theme[ground]);
        expectTrue(`${name}: ${ink} on ${ground}`, found >= TEXT, found);
      }
    const least = Math.min(...theme.groups.map((colour) => contrast(colour, theme.paper)));
    expectTrue(`${name}: areas on paper`, least >= (isDark ? 3 : 1.5), least);
  }
}

/** Thirty groups: small ones first, and one that is large for a while in the middle only. */
function windowedRun() {
  const trace = [];
  const put = (action, addr, size, name) =>
    trace.push({
      action,
      addr,
      size,
      stream: 0,
      time_us: trace.length + 1,
      frames: [{ name, filename: '/srv/model.py', line: 3 }],
    });
  put('segment_alloc', 1 << 20, 64 << 20, 'init');
  for (let i = 0; i < 30; i++) put('alloc', (1 << 20) + 8192 * i, 4096 + 16 * (30 - i), `f${i}`);
  put('alloc', 8 << 20, 40 << 20, 'huge');
  put('free_requested', 8 << 20, 40 << 20, 'huge');
  put('free_completed', 8 << 20, 40 << 20, 'huge');
  for (let i = 0; i < 100; i++) {
    put('alloc', 4 << 20, 512, 'tick');
    put('free_requested', 4 << 20, 512, 'tick');
    put('free_completed', 4 << 20, 512, 'tick');
  }
  put('alloc', 9 << 20, 1 << 20, 'adam');
  for (let i = 0; i < 40; i++) {
    put('alloc', 4 << 20, 512, 'tick');
    put('free_requested', 4 << 20, 512, 'tick');
    put('free_completed', 4 << 20, 512, 'tick');
  }
  const file = join(work, 'windowed.json');
  writeFileSync(file, JSON.stringify({ segments: [], device_traces: [trace] }));
  return file;
}

/** Texts of the groups with a colour, and the colour of each. */
const shown = (page) =>
  page.evaluate(() => {
    const { grouping } = window.tarnView.app;
    return Object.fromEntries(
      grouping.shown.map((key, i) => [
        grouping.keys[key].text.replace(/.* /, ''),
        grouping.colours[i],
      ]),
    );
  });

async function ranked(page) {
  await page.waitForFunction(() => window.tarnView.app.rankTimer === undefined);
  await draw(page);
  return shown(page);
}

async function groupsFollowTheWindow(browser) {
  const file = writePage('windowed', windowedRun());
  const { page, troubles, close } = await openPage(browser, file);
  const whole = await shown(page);
  expectTrue('the whole shows what was huge once', 'huge' in whole, JSON.stringify(whole));
  await page.evaluate(() => window.tarnView.app.set({ from: 340, to: 440 }));
  const part = await ranked(page);
  expectTrue('a window shows what is large in it', 'adam' in part && !('huge' in part));
  for (const [name, colour] of Object.entries(part))
    if (name in whole) expect(`${name} keeps its colour`, colour, whole[name]);
  expect('no two groups share a colour', new Set(Object.values(part)).size, 12);
  await page.evaluate(() => window.tarnView.app.set({ from: 0, to: 1e9 }));
  expect('back again all is as before', await ranked(page), whole);
  const linked = await openPage(browser, file, { hash: '#a=340&b=440' });
  expect('a link shows the same groups', await shown(linked.page), part);
  await linked.close();
  await othersOpen(page);
  expect('groups: troubles', troubles, []);
  await close();
}

async function othersOpen(page) {
  await page.evaluate(() => window.tarnView.app.set({ cursor: 100 }));
  await draw(page);
  const bytes = await page.evaluate(() => window.tarnView.app.grouping.sumsAt(100)[0]);
  await page.click('[data-key="others"]');
  await draw(page);
  const rows = await page.$$eval('.legend.inner button', (list) =>
    list.map((one) => Number(/([\d,]+) bytes/.exec(one.title)[1].replace(/,/g, ''))),
  );
  expect(
    'what the others are adds up to them',
    rows.reduce((sum, size) => sum + size, 0),
    bytes,
  );
  expect('an address says that they are open', await openAgain(page), true);
  const first = await page.getAttribute('.legend.inner button', 'data-key');
  await page.click('.legend.inner button');
  await draw(page);
  const isShown = await page.evaluate((id) => {
    const { app } = window.tarnView;
    return `group ${app.state.group}` === id && app.groupOfSelection > 0;
  }, first);
  expectTrue('a chosen one of them has a group', isShown);
  await page.keyboard.press('Escape');
}

const openAgain = async (page) => {
  await page.waitForFunction(() => /n=1/.test(location.hash));
  return page.evaluate(() => window.tarnView.app.state.others);
};

/** Labels lie in the area of their group, all of their height and width. */
async function labelsAreInAreas(browser) {
  for (const [name, hash] of [
    ['gpt2_varlen', '#g=line&c=5876'],
    ['oom', '#g=own'],
  ]) {
    const { page, close } = await openPage(browser, join(work, `${name}.html`), { hash });
    await draw(page);
    const { labels, bad, largest } = await page.evaluate(() => {
      const { app } = window.tarnView;
      const { labels, data, columns, y, box } = app.picture;
      const area = new Float64Array(data.groups);
      const wrong = [];
      for (let i = 0; i < columns; i++)
        for (let g = 0; g < data.groups; g++) area[g] += data.sums[i * data.groups + g];
      for (const label of labels) {
        for (let x = label.x; x <= label.x + label.width; x += 8) {
          const i = Math.floor(((x - box.left) / box.axis.width) * columns);
          let sum = 0;
          for (const group of app.grouping.order) {
            if (group === label.group) break;
            sum += data.sums[i * data.groups + group];
          }
          const top = y(sum + data.sums[i * data.groups + label.group]);
          if (top > label.y - 4 || y(sum) < label.y + 4) wrong.push([label.text, x]);
        }
      }
      return {
        labels: labels.map((label) => label.group),
        bad: wrong.slice(0, 3),
        largest: area.indexOf(Math.max(...area)),
      };
    });
    expect(`${name}: labels in their areas`, bad, []);
    expectTrue(`${name}: labels`, labels.length >= 2, labels);
    // Of a sawtooth the largest area may be narrow everywhere.
    if (name === 'oom')
      expectTrue('the largest area has its label', labels.includes(largest), labels);
    await close();
  }
}

export async function seeing(browser) {
  await coloursAreApart();
  await groupsFollowTheWindow(browser);
  await labelsAreInAreas(browser);
}
