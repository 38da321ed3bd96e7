// SPDX-License-Identifier: MIT
// What the parts of the suite share: what they were called with, pages and reports of the program,
// and counting.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const [, , tarn, data, axePath, pictures] = process.argv;
export const work = mkdtempSync(join(tmpdir(), 'tarn-viewer-'));
export const counts = { passed: 0, failed: 0, skipped: 0 };
export const VIEWS = ['timeline', 'blocks', 'map', 'flame', 'table', 'oom', 'info', 'answers'];

export function expect(what, value, wanted) {
  const good = JSON.stringify(value) === JSON.stringify(wanted);
  if (good) counts.passed++;
  else {
    counts.failed++;
    console.log(`FAIL ${what}: ${JSON.stringify(value)}, expected ${JSON.stringify(wanted)}`);
  }
}

export function expectTrue(what, good, value = '') {
  if (good) counts.passed++;
  else {
    counts.failed++;
    console.log(`FAIL ${what} ${value}`);
  }
}

export function writePage(name, snapshot, ...more) {
  const file = join(work, `${name}.html`);
  rmSync(file, { force: true }); // a page that is there is left alone
  execFileSync(tarn, ['view', snapshot, '-o', file, ...more]);
  return file;
}

/** A recording as it would have been under other settings. */
export function replay(name, settings) {
  const file = join(work, `${name}_${settings.replace(/\W/g, '_')}.pickle`);
  if (existsSync(file)) return file;
  const save = String(execFileSync(tarn, ['replay', '--help'])).includes('--save')
    ? '--save'
    : '--output';
  const recording = join(data, `${name}.pickle.gz`);
  execFileSync(tarn, ['replay', '--quiet', '--conf', settings, '--force', save, file, recording]);
  return file;
}

export function report(command, snapshot, ...more) {
  const text = execFileSync(tarn, [command, snapshot, '--json', ...more], { maxBuffer: 1 << 28 });
  return JSON.parse(text).data.devices;
}
