// SPDX-License-Identifier: MIT
// Firefox as it comes from Debian, by WebDriver BiDi, which it speaks itself: no driver and no
// browser of somebody's own making in between.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import WebSocket from 'ws';

const PATHS = ['/usr/bin/firefox-esr', '/usr/bin/firefox'];
const START = 60000; // milliseconds until it listens

/** What it would do on its own. */
const PREFERENCES = {
  'app.update.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.page': 0,
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,#',
  'toolkit.telemetry.enabled': false,
};

export function findFirefox() {
  return process.env.FIREFOX || PATHS.find((path) => existsSync(path)) || '';
}

/** The address that the browser says it listens at. */
function addressOf(browser) {
  return new Promise((done, fail) => {
    let said = '';
    const late = setTimeout(() => fail(new Error(`Firefox does not listen: ${said}`)), START);
    browser.stderr.on('data', (bytes) => {
      said += bytes;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (!found) return;
      clearTimeout(late);
      done(found[1]);
    });
    browser.on('exit', () => fail(new Error(`Firefox ended: ${said.slice(0, 500)}`)));
  });
}

export class Firefox {
  static async launch() {
    const profile = mkdtempSync(join(tmpdir(), 'tarn-firefox-'));
    writeFileSync(
      join(profile, 'user.js'),
      Object.entries(PREFERENCES)
        .map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`)
        .join(''),
    );
    const words = [
      '--headless',
      '--no-remote',
      '--profile',
      profile,
      '--remote-debugging-port=0',
    ];
    const browser = spawn(findFirefox(), [...words, 'about:blank']);
    const socket = new WebSocket(`${await addressOf(browser)}/session`);
    await new Promise((done, fail) => {
      socket.on('open', done);
      socket.on('error', fail);
    });
    const firefox = new Firefox(browser, profile, socket);
    await firefox.send('session.new', { capabilities: {} });
    const events = ['log.entryAdded', 'network.beforeRequestSent'];
    await firefox.send('session.subscribe', { events });
    return firefox;
  }

  constructor(browser, profile, socket) {
    Object.assign(this, { browser, profile, socket, number: 0, troubles: [] });
    this.waiting = new Map();
    socket.on('message', (bytes) => this.hear(JSON.parse(bytes)));
  }

  hear(message) {
    if (message.type === 'event') {
      this.note(message);
      return;
    }
    const { done, fail } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.type === 'success') done(message.result);
    else fail(new Error(`${message.error}: ${message.message}`));
  }

  /** What holds for every page, as in browser.mjs. */
  note({ method, params }) {
    if (method === 'network.beforeRequestSent') {
      const { url } = params.request;
      if (!/^(file|data|blob|about):/.test(url)) this.troubles.push(`asked for ${url}`);
    } else if (params.level === 'error') this.troubles.push(`said ${params.text}`);
  }

  send(method, params) {
    const id = ++this.number;
    this.socket.send(JSON.stringify({ id, method, params }));
    return new Promise((done, fail) => this.waiting.set(id, { done, fail }));
  }

  async open(file, { width = 1440, height = 900, hash = '' } = {}) {
    this.troubles = [];
    if (this.context) await this.send('browsingContext.close', { context: this.context });
    const { context } = await this.send('browsingContext.create', { type: 'tab' });
    this.context = context;
    await this.send('browsingContext.setViewport', { context, viewport: { width, height } });
    const url = pathToFileURL(file).href + hash;
    await this.send('browsingContext.navigate', { context, url, wait: 'complete' });
    await this.until(
      "window.tarnView?.isReady || !document.getElementById('broken').hidden || " +
        "!document.getElementById('empty').hidden",
    );
  }

  /** The value of an expression, as JSON. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('script.evaluate', {
      expression: `(async () => JSON.stringify(await (${expression})))()`,
      target: { context: this.context },
      awaitPromise: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return result.value === undefined ? undefined : JSON.parse(result.value);
  }

  async until(expression) {
    for (let i = 0; i < 600; i++) {
      if (await this.evaluate(`Boolean(${expression})`)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`Firefox waits in vain for ${expression}`);
  }

  async draw() {
    await this.evaluate('window.tarnView.app.draw()');
    await this.until('window.tarnView.isReady');
    await this.evaluate('window.tarnView.app.draw()');
  }

  async picture(file) {
    const { data } = await this.send('browsingContext.captureScreenshot', {
      context: this.context,
    });
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  act(...actions) {
    return this.send('input.performActions', { context: this.context, actions });
  }

  press(key) {
    const actions = ['keyDown', 'keyUp'].map((type) => ({ type, value: key }));
    return this.act({ type: 'key', id: 'keyboard', actions });
  }

  click(x, y) {
    const button = { button: 0 };
    return this.act({
      type: 'pointer',
      id: 'mouse',
      actions: [
        { type: 'pointerMove', x, y },
        { type: 'pointerDown', ...button },
        { type: 'pointerUp', ...button },
      ],
    });
  }

  wheel(x, y, deltaY) {
    const actions = [{ type: 'scroll', x, y, deltaX: 0, deltaY }];
    return this.act({ type: 'wheel', id: 'wheel', actions });
  }

  async choose(selector, files) {
    const { result } = await this.send('script.evaluate', {
      expression: `document.querySelector('${selector}')`,
      target: { context: this.context },
      awaitPromise: false,
    });
    const element = { sharedId: result.sharedId };
    await this.send('input.setFiles', { context: this.context, element, files });
  }

  async close() {
    const ended = new Promise((done) => this.browser.on('exit', done));
    await Promise.race([
      this.send('browser.close', {}),
      new Promise((done) => setTimeout(done, 5000)),
    ]);
    this.socket.close();
    this.browser.kill();
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }
}
