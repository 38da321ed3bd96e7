// SPDX-License-Identifier: MIT
// What a page says that the program found out is what the commands say: tune, replay, oom, frag,
// steps and check. A page without it says why.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axeFinds } from './axe.mjs';
import { draw, openPage } from './browser.mjs';
import { axePath, data, expect, expectTrue, report, tarn, work, writePage } from './check.mjs';

const NAMES = ['tiny', 'oom', 'gpt2_varlen', 'llama_generate'];

const recording = (name) => join(data, `${name}.pickle.gz`);
const answersOf = (page) => page.evaluate(() => window.tarnView.answers());

/** The document of a command that has no devices. */
function document(...words) {
  try {
    return JSON.parse(execFileSync(tarn, [...words, '--json'], { stdio: 'pipe' }));
  } catch (error) {
    return JSON.parse(error.stdout); // a check that finds something
  }
}

function settingsAreTrue(name, answers) {
  const { recorded, each } = document('tune', '--each', recording(name)).data;
  const of = (row) => [
    row.conf,
    row.peak_reserved,
    row.peak_allocated,
    row.peak_requested,
    row.device_calls,
    row.ooms,
  ];
  const found = answers.settings.map((row) => [
    row.conf,
    row.reserved,
    row.allocated,
    row.requested,
    row.calls,
    row.ooms,
  ]);
  const compact = found.findIndex((row) => row[0] === 'policy:compact');
  expect(
    `${name}: settings`,
    found.filter((_, i) => i !== compact),
    [recorded, ...each].map(of),
  );
  const [run] = document('replay', '--conf', 'policy:compact', recording(name)).runs;
  expect(`${name}: the compact policy`, found[compact], [
    'policy:compact',
    run.peak_reserved,
    run.peak_allocated,
    run.peak_requested,
    run.num_device_alloc + run.num_device_free,
    run.num_ooms,
  ]);
}

function reportsAreTrue(name, answers) {
  const file = recording(name);
  expect(
    `${name}: what is stuck`,
    answers.states.map((state) => Object.values(state)),
    report('frag', file)[0].over_time.map((state) => [
      state.event,
      state.reserved_bytes,
      state.requested_bytes,
      state.free_bytes,
      state.releasable_bytes,
      state.stuck_bytes,
      state.held_elsewhere_bytes,
      state.largest_stuck_bytes,
    ]),
  );
  expect(
    `${name}: steps`,
    answers.steps.map((step) => Object.values(step)),
    report('steps', file)[0].steps.map((step) => [
      step.step,
      step.first_event,
      step.last_event,
      step.peak_requested_bytes,
      step.peak_event,
      step.end_requested_bytes,
      step.growth_bytes,
      step.peak_reserved_bytes,
      step.device_calls,
      step.is_outlier,
    ]),
  );
  const oom = report('oom', file)[0];
  expect(
    `${name}: what would have saved it`,
    answers.remedies.map((remedy) => Object.values(remedy)),
    (oom.remedies ?? []).map((remedy) => [
      remedy.conf,
      remedy.memory_bytes,
      remedy.peak_reserved_bytes,
    ]),
  );
  expect(
    `${name}: failures`,
    answers.failures.map((failure) => [failure.event, failure.expandable]),
    oom.ooms.map((one) => [one.event, one.expandable_segments_help]),
  );
  const check = document('check', file).data;
  expect(`${name}: findings`, answers.findings, {
    count: check.contradictions,
    first: check.first,
  });
}

/** What grew in a step, by the flame, is what the program counts. */
async function stepsLeadToGrowth(page, name, steps) {
  for (const step of steps.slice(0, 3)) {
    await page.evaluate(() => window.tarnView.app.set({ view: 'answers', mark: -2 }));
    await draw(page);
    const text = step.number === null ? 'beside steps' : String(step.number);
    await page.locator(`[data-key="step ${text}"]`).first().click();
    await draw(page);
    const found = await page.evaluate(() => {
      const { app } = window.tarnView;
      return [
        app.state.view,
        app.curve.requested(app.state.cursor) - app.curve.requested(app.state.mark),
      ];
    });
    expect(`${name}: step ${text} leads to what grew`, found, ['flame', step.growth]);
    if (step.number === null) break;
  }
}

async function answersAreTrue(browser) {
  for (const name of NAMES) {
    const file = writePage(`answers_${name}`, recording(name));
    const { page, troubles, close } = await openPage(browser, file, { hash: '#v=answers' });
    const answers = await answersOf(page);
    settingsAreTrue(name, answers);
    reportsAreTrue(name, answers);
    await draw(page);
    const text = await page.innerText('#document');
    expectTrue(
      `${name}: settings are shown`,
      text.includes('policy:compact') && text.includes('recorded:'),
    );
    if (axePath) expect(`axe, answers of ${name}`, await axeFinds(page), []);
    await stepsLeadToGrowth(page, name, answers.steps);
    expect(`${name}: troubles of its answers`, troubles, []);
    await close();
  }
}

/** With a failed request: from what it says to what it is about. */
async function failuresLeadOn(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'answers_oom.html'), {
    hash: '#v=answers',
  });
  const { failures } = await answersOf(page);
  await draw(page);
  await page.click('[data-key="grew 4458"]');
  await draw(page);
  const found = await page.evaluate(() => {
    const { app } = window.tarnView;
    return [
      app.state.flame,
      app.curve.requested(app.state.cursor) - app.curve.requested(app.state.mark),
    ];
  });
  expect('answers: what grew since the last step', found, ['growth', failures[0].change]);
  await page.keyboard.press('8');
  await draw(page);
  await page.click('[data-key="at 4458"]');
  await draw(page);
  const at = await page.evaluate(() => [
    window.tarnView.app.state.view,
    window.tarnView.app.state.cursor,
  ]);
  expect('answers: an event leads to the map then', at, ['map', 4458]);
  expect('answers: troubles', troubles, []);
  await close();
}

async function nothingIsMissingSilently(browser) {
  const trace = [
    { action: 'alloc', addr: 512, size: 512, stream: 0, time_us: 1 },
    { action: 'alloc', addr: 512, size: 512, stream: 0, time_us: 2 },
  ];
  const odd = join(work, 'answers_odd.json');
  const long = join(work, 'answers_long.json');
  writeFileSync(odd, JSON.stringify({ segments: [], device_traces: [trace] }));
  const many = Array.from({ length: 500002 }, (_, i) => ({
    action: i % 2 ? 'free_completed' : 'alloc',
    addr: 4096,
    size: 512,
    stream: 0,
  }));
  writeFileSync(long, JSON.stringify({ segments: [], device_traces: [many] }));
  for (const [what, file, words, more] of [
    ['asked for without', recording('tiny'), /written with --no-answers/, ['--no-answers']],
    ['long', long, /500002 events; of more than 500000, .tarn view --answers/, []],
    ['long, asked for', long, /What would each setting have cost/, ['--answers']],
    ['contradicts itself', odd, /contradictions?, found by .tarn check/, []],
    ['hidden', recording('oom'), /recorded: \(not in this page\)/, ['--redact', 'all']],
  ]) {
    const name = `answers_${what.replace(/\W+/g, '_')}`;
    const page = await openPage(browser, writePage(name, file, ...more), { hash: '#v=answers' });
    await draw(page.page);
    const text = await page.page.innerText('#document');
    expectTrue(`answers: ${what}: says so`, words.test(text), text.slice(0, 300));
    if (what === 'hidden')
      expectTrue(
        'answers: hidden settings',
        !text.includes('garbage_collection_threshold:0.6,') &&
          !text.includes('max_split_size_mb:128,garbage'),
        text,
      );
    expect(`answers: ${what}: troubles`, page.troubles, []);
    await page.close();
  }
}

/** A page that begins later leads only to what it has. */
async function cutPagesLeadNowhere(browser) {
  const file = writePage('answers_cut', recording('gpt2_varlen'), '--max-size', '215000');
  const { page, troubles, close } = await openPage(browser, file, { hash: '#v=answers' });
  await draw(page);
  const { states } = await answersOf(page);
  const skipped = await page.evaluate(() => window.tarnView.app.source.info.skipped);
  const gone = states.filter((state) => state.event < skipped).map((state) => state.event);
  const led = await page.evaluate(
    (events) => events.filter((event) => document.querySelector(`[data-key="at ${event}"]`)),
    gone,
  );
  expectTrue('answers: the page begins later', gone.length > 0, skipped);
  expect('answers: what is gone is no link', led, []);
  expect('answers: troubles of a cut page', troubles, []);
  await close();
}

export async function answering(browser) {
  await answersAreTrue(browser);
  await failuresLeadOn(browser);
  await nothingIsMissingSilently(browser);
  await cutPagesLeadNowhere(browser);
}
