// SPDX-License-Identifier: MIT
// Opens pages in headless Chromium, and holds each against what holds for every page: it asks the
// network for nothing, breaks no security policy and throws nothing.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

function findBrowser() {
  return process.env.CHROMIUM || PATHS.find((path) => existsSync(path)) || '';
}

/** Chromium's two ways to draw: by its own program on the processor, and through the interface of a
 * graphics card, which SwiftShader plays. */
export const MODES = {
  processor: ['--disable-gpu'],
  'graphics interface': [
    '--use-gl=angle',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
  ],
};

/** What of a mode is in effect, in the browser's own words. */
export async function rasterOf(browser) {
  const page = await browser.newPage();
  await page.goto('chrome://gpu');
  const words = ['Canvas', 'Compositing', 'Rasterization'];
  const find = (names) => {
    const texts = [];
    const walk = (root) => {
      for (const element of root.querySelectorAll('*'))
        if (element.shadowRoot) walk(element.shadowRoot);
      texts.push(root.textContent || root.body?.textContent || '');
    };
    walk(document);
    const text = texts.join('\n');
    const found = names.map((name) =>
      new RegExp(`\\b${name}: *(Software only|Hardware accelerated|Disabled)`).exec(text),
    );
    return found.every((one) => one) ? found.map((one) => `${one[0]}`) : null;
  };
  const handle = await page.waitForFunction(find, words, { timeout: 20000 });
  const lines = await handle.jsonValue();
  await page.close();
  return lines;
}

/** The whole browser in one of its modes; without one, Chromium's engine alone, where it can be
 * had: a page takes half the time there. */
export async function openBrowser(mode = '') {
  const flags = MODES[mode || 'processor'];
  const alone = mode ? '' : process.env.CHROMIUM_HEADLESS_SHELL;
  return chromium.launch({
    executablePath: alone || findBrowser(),
    ignoreDefaultArgs: flags.includes('--disable-gpu') ? [] : ['--disable-gpu'],
    args: [
      ...flags,
      '--no-sandbox',
      '--disable-quic',
      '--no-first-run',
      '--disable-sync',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-default-apps',
      '--enable-precise-memory-info',
      '--js-flags=--expose-gc',
      '--font-render-hinting=none',
    ],
  });
}

/** Pages that are done with, by browser and by what cannot be set later: a page that is there takes
 * two thirds of the time that a new one takes. @type {WeakMap<object, Map<string, Array<any>>>} */
const left = new WeakMap();

function leftOf(browser, { ratio = 1, touch = false }) {
  if (!left.has(browser)) left.set(browser, new Map());
  const byKind = left.get(browser);
  const kind = `${ratio} ${touch}`;
  if (!byKind.has(kind)) byKind.set(kind, []);
  return byKind.get(kind);
}

/** An empty page with these options, new or as good as new. */
async function emptyPage(browser, options) {
  const viewport = { width: options.width || 1440, height: options.height || 900 };
  let page = leftOf(browser, options).pop();
  if (page) {
    await page.setViewportSize(viewport);
  } else {
    const context = await browser.newContext({
      viewport,
      deviceScaleFactor: options.ratio || 1,
      hasTouch: Boolean(options.touch),
    });
    page = await context.newPage();
  }
  await page.emulateMedia({
    colorScheme: options.dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    media: null,
    forcedColors: null,
  });
  return page;
}

/** Leaves a page for the next that wants one. */
async function leavePage(browser, options, page) {
  for (const name of ['request', 'pageerror', 'console']) page.removeAllListeners(name);
  await page.evaluate(() => localStorage.clear());
  await page.mouse.move(-1, -1);
  await page.goto('about:blank');
  leftOf(browser, options).push(page);
}

/** A page with its troubles: requests, errors and refusals of its policy. */
export async function openPage(browser, file, options = {}) {
  const page = await emptyPage(browser, options);
  const troubles = [];
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) troubles.push(`asked for ${request.url()}`);
  });
  page.on('pageerror', (error) => troubles.push(`threw ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`said ${message.text()}`);
  });
  await page.goto(pathToFileURL(file).href + (options.hash || ''));
  if (!options.broken) await whenReady(page);
  return { page, troubles, close: () => leavePage(browser, options, page) };
}

export async function whenReady(page) {
  await page.waitForFunction(
    () =>
      window.tarnView?.isReady ||
      !document.getElementById('broken').hidden ||
      !document.getElementById('empty').hidden,
    null,
    { timeout: 120000, polling: 20 },
  );
}

/** Whether something comes to hold within ten seconds. */
export function becomes(page, condition, argument = null) {
  return page.waitForFunction(condition, argument, { timeout: 10000 }).then(
    () => true,
    () => false,
  );
}

/** Searches for words: the page begins a moment after the last key. */
export async function searchFor(page, words) {
  await page.fill('#search', words);
  await becomes(page, (wanted) => window.tarnView.app.state.query === wanted, words);
}

/** What the address says of what is looked at, once it says it: it follows a moment later. */
export async function addressOf(page) {
  await becomes(page, () => window.tarnView.app.address.isRight());
  return page.evaluate(() => location.hash);
}

/** Draws now, not with the next frame. */
export async function draw(page) {
  await page.evaluate(() => window.tarnView.app.draw());
  await whenReady(page);
  await page.evaluate(() => window.tarnView.app.draw());
}
