// SPDX-License-Identifier: MIT
// What is marked over the pictures: annotations and steps, segments that come and go, failed
// requests, snapshots and what the program noted, each where its entry is, on both axes. Where they
// have to be is computed from what `tarn export` writes of the file.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { data, expect, expectTrue, tarn, work, writePage } from './check.mjs';

/** A run with every kind of mark, far enough from each other, at uneven times. */
function markedRun() {
  const trace = [];
  let time = 5000;
  let number = 0;
  const put = (entry) =>
    trace.push({
      addr: 0,
      size: 0,
      stream: 0,
      time_us: (time += 3 + (number++ % 7) ** 3),
      ...entry,
    });
  const fill = (count) => {
    for (let i = 0; i < count; i++)
      put({ action: 'alloc', addr: (1 << 20) + 512 * number, size: 100 });
  };
  const notes = [];
  const note = (stage, name, device = 0) =>
    notes.push({ stage, name, device, time_us: time + 1 });
  put({ action: 'segment_alloc', addr: 1 << 20, size: 2 << 20 });
  for (let step = 0; step < 3; step++) {
    note('START', `ProfilerStep#${step}`);
    fill(7);
    put({ action: 'segment_map', addr: (8 + 4 * step) << 20, size: 2 << 20 });
    note('START', 'forward');
    note('START', 'another device', 1);
    fill(7);
    put({ action: 'user_defined', user_metadata: `said "${step}"` });
    note('END', 'forward');
    fill(7);
    put({ action: 'snapshot', size: 700 });
    fill(7);
    put({
      action: 'annotate',
      addr: (1 << 20) + 512 * number - 512,
      size: 100,
      user_metadata: 'w',
    });
    fill(7);
    put({ action: 'my_mark', user_metadata: 'of a later version' });
    fill(7);
    put({ action: 'oom', size: 9000 + step, device_free: 4096 });
    fill(7);
    put({ action: 'segment_unmap', addr: (8 + 4 * step) << 20, size: 2 << 20 });
    note('END', `ProfilerStep#${step}`);
    fill(9);
  }
  put({ action: 'segment_free', addr: 1 << 20, size: 2 << 20 });
  fill(5);
  const file = join(work, 'marked.json');
  writeFileSync(
    file,
    JSON.stringify({ segments: [], device_traces: [trace], external_annotations: notes }),
  );
  return file;
}

const SHAPES = {
  segment_alloc: 'up',
  segment_map: 'up',
  segment_free: 'down',
  segment_unmap: 'down',
  oom: 'triangle',
};
const PLAIN = ['alloc', 'free_requested', 'free_completed', 'free'];

/** The rows of a table of `tarn export`. */
function rowsOf(snapshot, table) {
  const text = execFileSync(tarn, ['export', '--to', 'jsonl', '--table', table, snapshot], {
    maxBuffer: 1 << 28,
  }).toString();
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Where entries and moments lie, from the exported rows alone. */
function ruler(events, isTime, from, to) {
  const times = events.map((event) => event.time_us);
  let latest = times[0];
  const clock = times.map((time) => (latest = Math.max(latest, time)));
  const timeAt = (place) => {
    const entry = Math.min(Math.floor(place), clock.length - 1);
    const next = clock[Math.min(entry + 1, clock.length - 1)];
    return clock[entry] + (next - clock[entry]) * Math.min(1, place - entry);
  };
  const placeAt = (time) => {
    const next = clock.findIndex((one) => one > time);
    if (next === 0) return 0;
    if (next < 0) return clock.length;
    return next - 1 + (time - clock[next - 1]) / (clock[next] - clock[next - 1]);
  };
  const value = (place) => (isTime ? timeAt(place) : place);
  const share = (place) => (value(place) - value(from)) / (value(to) - value(from));
  return { share, placeAt };
}

/** What a mark says: its name, and its text where it has one. */
function wordsOf(event) {
  const names = {
    oom: 'out of memory',
    snapshot: 'snapshot',
    annotate: 'annotate',
    user_defined: 'user defined',
  };
  const words = [names[event.action] ?? event.action.replace(/^segment_/, 'segment ')];
  if (event.user_metadata) words.push(event.user_metadata);
  if (event.action.startsWith('segment')) words.push(event.address);
  return words;
}

/** What is drawn in the lane of events: the shapes at places, and how much is elsewhere. */
function lookAtLane(page, places) {
  return page.evaluate((list) => {
    const { app, hit } = window.tarnView;
    const { box } = app.picture;
    const context = app.canvas.getContext('2d');
    const y = box.top - 22;
    const muted = app.theme.muted;
    const bytes = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const isOf = (x, row, colour) => {
      const pixel = context.getImageData(x, row, 1, 1).data;
      return bytes(colour).every((byte, i) => Math.abs(byte - pixel[i]) < 24);
    };
    const shapeAt = (x) => {
      if (isOf(x, y + 3, app.theme.warn) && isOf(x, box.bottom - 3, app.theme.warn))
        return 'triangle';
      if (isOf(x, y + 6, muted) && isOf(x + 2, y + 6, muted)) return 'dot';
      const up = isOf(x, y + 1, muted) && isOf(x, y + 4, muted);
      const down = isOf(x, y + 8, muted) && isOf(x, y + 11, muted);
      return `${up ? 'up' : ''}${down ? 'down' : ''}`;
    };
    const at = list.map((place) => Math.round(box.left + place * box.axis.width));
    const lane = context.getImageData(Math.ceil(box.left), y, Math.floor(box.axis.width), 13);
    let elsewhere = 0;
    for (let i = 0; i < lane.data.length; i += 4) {
      const x = Math.ceil(box.left) + ((i / 4) % lane.width);
      const isPaper = bytes(app.theme.paper).every((b, k) => Math.abs(b - lane.data[i + k]) < 4);
      if (!isPaper && !at.some((mark) => Math.abs(mark - x) <= 6)) elsewhere++;
    }
    return {
      marks: at.map((x) => {
        const found = hit(x, y + 6);
        return { shape: shapeAt(x), entry: found?.entry, words: found?.lines.flat().join('|') };
      }),
      elsewhere,
    };
  }, places);
}

async function laneIsTrue(page, name, events, isTime, from, to) {
  const { share } = ruler(events, isTime, from, to);
  const wanted = events.filter(
    (event) => !PLAIN.includes(event.action) && event.event >= from && event.event < to,
  );
  const found = await lookAtLane(
    page,
    wanted.map((event) => share(event.event)),
  );
  const what = `${name}, ${isTime ? 'time' : 'entries'} ${from} to ${to}`;
  expect(
    `${what}: marks`,
    found.marks.map((mark) => [mark.shape, mark.entry]),
    wanted.map((event) => [SHAPES[event.action] ?? 'dot', event.event]),
  );
  const silent = wanted.filter(
    (event, i) => !wordsOf(event).every((word) => found.marks[i].words?.includes(word)),
  );
  expect(`${what}: what they say`, silent, []);
  expect(`${what}: nothing else is there`, found.elsewhere, 0);
  return wanted.length;
}

/** Annotations as spans, by the order of their rows. */
function spansOf(rows, device) {
  const spans = [];
  for (const row of rows.filter((one) => one.device === device || one.device < 0)) {
    if (row.stage === 'START') spans.push({ name: row.name, from: row.time_us, to: null });
    else spans.findLast((span) => span.name === row.name && span.to === null).to = row.time_us;
  }
  return spans;
}

async function annotationsAreTrue(page, name, events, rows, isTime, from, to) {
  const { share, placeAt } = ruler(events, isTime, from, to);
  const wanted = spansOf(rows, 0).map((span) => ({
    name: span.name,
    from: share(placeAt(span.from)),
    to: share(placeAt(span.to)),
  }));
  const found = await page.evaluate((spans) => {
    const { app, hit } = window.tarnView;
    const { box } = app.picture;
    const context = app.canvas.getContext('2d');
    const { depth } = app.annotations;
    return spans.map((span) => {
      const x0 = box.left + span.from * box.axis.width;
      const x1 = box.left + span.to * box.axis.width;
      for (let row = 0; row < depth; row++) {
        const y = 4 + 18 * row;
        const said = hit((x0 + x1) / 2, y + 7);
        if (said?.lines[0][0] !== span.name) continue;
        const isInk = (x) => context.getImageData(x, y + 13, 1, 1).data.some((b) => b < 240);
        const edges = [x0 + 2, (x0 + x1) / 2, x1 - 3].map((x) => isInk(Math.round(x)));
        const beside = [x0 - 3, x1 + 2].map((x) => isInk(Math.round(x)));
        return [span.name, edges.every(Boolean), beside.some(Boolean)];
      }
      return [span.name, 'not found'];
    });
  }, wanted);
  expect(
    `${name}, ${isTime ? 'time' : 'entries'}: annotations`,
    found,
    wanted.map((span) => [span.name, true, false]),
  );
}

export async function marking(browser) {
  const snapshot = markedRun();
  const events = rowsOf(snapshot, 'events');
  const rows = rowsOf(snapshot, 'annotations');
  const file = writePage('marked', snapshot);
  for (const view of ['timeline', 'blocks']) {
    const { page, troubles, close } = await openPage(browser, file, { hash: `#v=${view}` });
    for (const axis of ['event', 'time']) {
      for (const [from, to] of [
        [0, events.length],
        [40, 100],
      ]) {
        await page.evaluate(
          ([x, a, b]) => window.tarnView.app.set({ axis: x, from: a, to: b }),
          [axis, from, to],
        );
        await draw(page);
        const name = `marks over ${view}`;
        const count = await laneIsTrue(page, name, events, axis === 'time', from, to);
        expectTrue(`${name}: some were looked at`, count > 5, count);
        if (from === 0)
          await annotationsAreTrue(page, name, events, rows, axis === 'time', from, to);
      }
    }
    expect(`marks over ${view}: troubles`, troubles, []);
    await close();
  }
  await recordedMarks(browser);
}

/** Of recorded runs, a window around each kind of mark that they have. */
async function recordedMarks(browser) {
  for (const name of ['oom', 'gpt2_varlen_expandable', 'multistream']) {
    const events = rowsOf(join(data, `${name}.pickle.gz`), 'events').filter(
      (event) => event.device === 0,
    );
    const { page, close } = await openPage(browser, join(work, `${name}.html`));
    const kinds = new Map();
    for (const event of events)
      if (!PLAIN.includes(event.action) && !kinds.has(event.action))
        kinds.set(event.action, event);
    for (const event of kinds.values()) {
      const from = Math.max(0, Math.min(event.event - 20, events.length - 40));
      for (const axis of ['event', 'time']) {
        await page.evaluate(
          ([x, a, b]) => window.tarnView.app.set({ axis: x, from: a, to: b }),
          [axis, from, from + 40],
        );
        await draw(page);
        const { share } = ruler(events, axis === 'time', from, from + 40);
        const { marks } = await lookAtLane(page, [share(event.event)]);
        const shape = SHAPES[event.action] ?? 'dot';
        expectTrue(
          `${name}: ${event.action} by ${axis}`,
          marks[0].shape.includes(shape),
          JSON.stringify(marks),
        );
      }
    }
    await close();
  }
}
