// SPDX-License-Identifier: MIT
// The page in Firefox: it loads, every view draws, figures are those of the program, mouse, wheel
// and keys do what they do in Chromium, two recordings are compared, and a file is opened.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Firefox, findFirefox } from './bidi.mjs';
import {
  counts,
  data,
  expect,
  expectTrue,
  pictures,
  report,
  tarn,
  work,
  writePage,
} from './check.mjs';

const VIEWS = ['timeline', 'blocks', 'map', 'flame', 'table', 'oom', 'info', 'answers'];
const CANVASES = ['timeline', 'blocks', 'map', 'flame'];

const recording = (name) => join(data, `${name}.pickle.gz`);

/** Different colours of the picture. */
const COLOURS = `(() => {
  const { canvas } = window.tarnView.app;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
})()`;

async function picture(firefox, name) {
  if (pictures) await firefox.picture(join(pictures, `firefox_${name}.png`));
}

async function viewsAreDrawn(firefox) {
  for (const name of ['gpt2_varlen', 'oom', 'multistream']) {
    await firefox.open(writePage(`firefox_${name}`, recording(name)));
    const peak = await firefox.evaluate('window.tarnView.peak().requested');
    const [wanted] = report('peak', recording(name));
    expect(
      `Firefox, ${name}: the peak`,
      [peak.entry, peak.value],
      [wanted.requested_peak.event, wanted.requested_peak.requested_bytes],
    );
    for (const view of VIEWS) {
      await firefox.evaluate(`window.tarnView.app.set({ view: '${view}' })`);
      await firefox.draw();
      if (CANVASES.includes(view)) {
        const colours = await firefox.evaluate(COLOURS);
        expectTrue(`Firefox, ${name}: ${view} is drawn`, colours > 8, colours);
      } else {
        const text = await firefox.evaluate("document.getElementById('document').innerText");
        expectTrue(
          `Firefox, ${name}: ${view} has a text`,
          text.length > 40 || view === 'oom',
          text,
        );
      }
      await picture(firefox, `${name}_${view}`);
    }
    expect(`Firefox, ${name}: troubles`, firefox.troubles, []);
  }
}

async function inputsWork(firefox) {
  await firefox.open(join(work, 'firefox_oom.html'));
  const state = () => firefox.evaluate('window.tarnView.app.state');
  const [x, y] = await firefox.evaluate(`(() => {
    const { left, top, width, height } = document.getElementById('canvas').getBoundingClientRect();
    return [Math.round(left + width * 0.6), Math.round(top + height * 0.8)];
  })()`);
  await firefox.click(x, y);
  const { cursor, group } = await state();
  expectTrue('Firefox: a click sets the cursor', cursor > 1000, cursor);
  expectTrue('Firefox: and chooses a group', group !== '', group);
  await firefox.wheel(x, y, -300);
  const zoomed = await state();
  const count = await firefox.evaluate('window.tarnView.app.source.count');
  expectTrue('Firefox: the wheel zooms', zoomed.to - zoomed.from < count * 0.8, zoomed.to);
  await firefox.press('3');
  expect('Firefox: a key shows the map', (await state()).view, 'map');
  await firefox.press('?');
  expect(
    'Firefox: ? shows help',
    await firefox.evaluate("document.getElementById('keys').open"),
    true,
  );
  await firefox.press('\uE00C');
  await firefox.until("!document.getElementById('keys').open");
  await firefox.until(`/c=${cursor}/.test(location.hash)`);
  expect('Firefox: troubles of inputs', firefox.troubles, []);
}

async function narrowAndDark(firefox) {
  await firefox.open(join(work, 'firefox_gpt2_varlen.html'), { width: 390, height: 844 });
  await firefox.press('t');
  await firefox.draw();
  const wide = await firefox.evaluate(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
  expect('Firefox at 390: nothing hangs out', wide, false);
  await picture(firefox, 'narrow_dark');
  expect('Firefox at 390: troubles', firefox.troubles, []);
}

async function twoAreCompared(firefox) {
  const file = join(work, 'firefox_pair.html');
  execFileSync(tarn, ['view', '-qf', ...['gpt2_varlen', 'oom'].map(recording), '-o', file]);
  await firefox.open(file);
  await firefox.draw();
  const rows = await firefox.evaluate('window.tarnView.changes().length');
  const shown = await firefox.evaluate("document.querySelectorAll('.changes tbody tr').length");
  expect('Firefox: what changed', shown, rows);
  await picture(firefox, 'compare');
  expect('Firefox: troubles of two', firefox.troubles, []);
}

async function filesAreOpened(firefox) {
  const file = join(work, 'firefox_empty.html');
  if (spawnSync(tarn, ['view', '--empty', '-qf', '-o', file]).status !== 0) return;
  await firefox.open(file);
  await firefox.choose('#file', [resolve(recording('oom'))]);
  await firefox.until('window.tarnView?.isReady');
  const peak = await firefox.evaluate('window.tarnView.peak().requested.value');
  const [wanted] = report('peak', recording('oom'));
  expect('Firefox: a file is opened', peak, wanted.requested_peak.requested_bytes);
  expect('Firefox: troubles of a file', firefox.troubles, []);
}

export async function inFirefox() {
  if (!findFirefox()) {
    console.log('skip: in Firefox: it is not installed');
    counts.skipped++;
    return;
  }
  if (pictures) mkdirSync(pictures, { recursive: true });
  const firefox = await Firefox.launch();
  try {
    await viewsAreDrawn(firefox);
    await inputsWork(firefox);
    await narrowAndDark(firefox);
    await twoAreCompared(firefox);
    await filesAreOpened(firefox);
  } finally {
    await firefox.close();
  }
}
