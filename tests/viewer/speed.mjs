// SPDX-License-Identifier: MIT
// speed.mjs PAGE...: how fast pages are in headless Chromium; one line of JSON each. Not part of
// the tests: no test looks at a clock.
import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBrowser } from './browser.mjs';

async function measure(browser, file) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
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
    const { app } = window.tarnView;
    window.gc?.();
    const heap = performance.memory.usedJSHeapSize;
    const frames = (view, count, act) => {
      app.set({ view });
      app.draw();
      const times = [];
      for (let i = 0; i < count; i++) {
        const at = performance.now();
        act(i);
        app.draw();
        times.push(performance.now() - at);
      }
      times.sort((a, b) => a - b);
      return { p50: times[count >> 1], p95: times[Math.floor(count * 0.95)] };
    };
    const middle = app.source.count * 0.4;
    const zoom = (i) => app.zoom(i % 40 < 20 ? 0.8 : 1.25, middle);
    const pan = (i) => app.pan(i % 20 < 10 ? 0.05 : -0.05);
    const timeline = frames('timeline', 80, zoom);
    app.zoom(0.2, middle);
    const timelinePan = frames('timeline', 80, pan);
    const blocks = frames('blocks', 80, pan);
    const at = performance.now();
    while (!window.tarnView.isReady) await new Promise((done) => setTimeout(done, 2));
    return {
      events: app.source.count,
      heap,
      timeline,
      timelinePan,
      blocks,
      blocksPainted: performance.now() - at,
    };
  });
  await context.close();
  const round = (value) =>
    typeof value === 'number'
      ? Math.round(value * 10) / 10
      : typeof value === 'object'
        ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, round(v)]))
        : value;
  console.log(
    JSON.stringify({
      page: basename(file),
      bytes: statSync(file).size,
      first: round(first),
      ready: round(ready),
      ...round(inside),
    }),
  );
}

const browser = await openBrowser();
for (const file of process.argv.slice(2)) await measure(browser, file);
await browser.close();
