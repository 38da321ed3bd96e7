// SPDX-License-Identifier: MIT
// speed.mjs PAGE...: how fast pages are in headless Chromium, in each of its two ways to draw; one
// line of JSON each. Not part of the tests: no test looks at a clock.
//
// `first` and `ready` are milliseconds from the request to the first picture and until all is
// there; `longest` is the longest task of the page's thread meanwhile. Of frames, `draw` is what
// the program takes and `frame` the time from one picture on the screen to the next, while the
// window is another one in every frame, as when somebody drags or turns a wheel; `slow` is how many
// of 320 took longer than 33.4 ms. `list` is the list of events that scrolls by three rows in every
// frame, `regroup` the longest change of what has a colour. `painted` is when the blocks of the
// last window are there, after it stands still. `heap` is what the page keeps, in bytes; `memory`
// all private memory of its process; `load` the machine's. RUNS=5 prints the median of five of
// each figure.
import { readFileSync, statSync } from 'node:fs';
import { loadavg } from 'node:os';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MODES, openBrowser, rasterOf } from './browser.mjs';

/** Private bytes of the process that holds the page: the largest of the browser's renderers. */
async function privateBytes(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const sizes = processInfo
    .filter((info) => info.type === 'renderer')
    .map((info) => {
      const text = readFileSync(`/proc/${info.id}/smaps_rollup`, 'utf8');
      return [...text.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].reduce(
        (sum, found) => sum + Number(found[1]) * 1024,
        0,
      );
    });
  return Math.max(...sizes);
}

async function frames(page) {
  return page.evaluate(async () => {
    const { app } = window.tarnView;
    const shown = () => new Promise((done) => requestAnimationFrame(done));
    const range = (times) => {
      times.sort((a, b) => a - b);
      const at = (share) => times[Math.floor(times.length * share)];
      return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
    };
    const painted = async () => {
      const begun = performance.now();
      while (!window.tarnView.isReady) await new Promise((done) => setTimeout(done, 2));
      return performance.now() - begun;
    };
    /** What is changed in one frame is drawn in the next. */
    const run = async (view, act) => {
      const frame = [];
      await painted();
      app.set({ view });
      await shown();
      await painted();
      let last = await shown();
      app.frames.length = 0;
      for (let i = 0; i < 320; i++) {
        act(i);
        const now = await shown();
        frame.push(now - last);
        last = now;
      }
      const draw = range([...app.frames]);
      const slow = frame.filter((time) => time > 33.4).length;
      return { draw, frame: range(frame), slow, painted: await painted() };
    };
    const middle = app.source.count * 0.4;
    const zoom = (i) => app.zoom(i % 40 < 20 ? 0.8 : 1.25, middle);
    const pan = (i) => app.pan(i % 20 < 10 ? 0.05 : -0.05);
    const both = async (view) => {
      app.set({ from: 0, to: app.source.count });
      const zooming = await run(view, zoom);
      app.zoom(0.2, middle);
      return { zooming, moving: await run(view, pan) };
    };
    const timeline = await both('timeline');
    const blocks = await both('blocks');
    const begunAt = (act) => {
      const begun = performance.now();
      act();
      return performance.now() - begun;
    };
    app.set({ from: 0, to: app.source.count, view: 'timeline' });
    await painted();
    const regroup = ['category', 'file', 'pool_stream', 'stack'].map((by) =>
      begunAt(() => {
        app.set({ by });
        app.draw();
      }),
    );
    app.set({ events: true });
    await shown();
    await painted();
    const scroller = document.querySelector('#events .scroller');
    const list = await run('timeline', () => {
      const turn = new WheelEvent('wheel', { deltaY: 120, cancelable: true });
      if (scroller.dispatchEvent(turn)) scroller.scrollTop += 120; // it scrolls by itself
    });
    app.set({ events: false });
    return { timeline, blocks, regroup: Math.max(...regroup), list };
  });
}

async function measure(browser, file) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries())
        window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: 'longtask', buffered: true });
  });
  const begun = performance.now();
  await page.goto(pathToFileURL(file).href, { waitUntil: 'commit' });
  await page.waitForFunction(() => document.getElementById('status')?.textContent !== '', null, {
    polling: 5,
  });
  const first = performance.now() - begun;
  await page.waitForFunction(() => window.tarnView?.isReady, null, {
    timeout: 300000,
    polling: 10,
  });
  const ready = performance.now() - begun;
  const inside = await page.evaluate(async () => {
    const pause = () => new Promise((done) => setTimeout(done, 300));
    await pause();
    const { longest } = window;
    for (let i = 0; i < 2; i++) {
      window.gc?.(); // what was read with is given back behind it
      await pause();
    }
    return {
      events: window.tarnView.app.source.count,
      longest,
      heap: performance.memory.usedJSHeapSize,
    };
  });
  const memory = await privateBytes(browser);
  const drawn = await frames(page);
  await context.close();
  return { bytes: statSync(file).size, first, ready, ...inside, memory, ...drawn };
}

/** Each number the median of those at its place. */
function medians(results) {
  const [one] = results;
  if (typeof one === 'object')
    return Object.fromEntries(
      Object.keys(one).map((key) => [key, medians(results.map((result) => result[key]))]),
    );
  const sorted = results.toSorted((a, b) => a - b);
  return Math.round(sorted[sorted.length >> 1] * 10) / 10;
}

const wanted = process.env.RASTER ? [process.env.RASTER] : Object.keys(MODES);
for (const mode of wanted) {
  const browser = await openBrowser(mode);
  console.log(`# ${mode}: ${(await rasterOf(browser)).join(', ')}`);
  for (const file of process.argv.slice(2)) {
    const results = [];
    for (let i = 0; i < Number(process.env.RUNS || 1); i++)
      results.push({ ...(await measure(browser, file)), load: loadavg()[0] });
    console.log(JSON.stringify({ page: basename(file), raster: mode, ...medians(results) }));
  }
  await browser.close();
}
