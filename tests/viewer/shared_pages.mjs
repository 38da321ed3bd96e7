// SPDX-License-Identifier: MIT
// Pages that several groups of cases open, written before any of them begins.
import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { data, tarn, work, writePage } from './check.mjs';

export const RECORDED = [
  'tiny',
  'oom',
  'cudagraph',
  'multistream',
  'gpt2_varlen',
  'gpt2_varlen_expandable',
  'resnet_sizes',
  'llama_generate',
];

/** Whose devices are those of "several". */
export const SEVERAL = ['multistream', 'oom', 'tiny'];

/** Recorded runs as the devices of one. */
function severalRun() {
  const runs = SEVERAL.map((name) => {
    const file = join(data, `${name}.pickle.gz`);
    const options = { maxBuffer: 1 << 28 };
    return JSON.parse(execFileSync(tarn, ['export', '-q', '--to', 'json', file], options));
  });
  const traces = runs.map((run) => run.device_traces.find((trace) => trace.length > 0));
  const segments = runs.flatMap((run, device) =>
    run.segments.map((segment) => ({ ...segment, device })),
  );
  const file = join(work, 'several.json');
  writeFileSync(file, JSON.stringify({ ...runs[1], segments, device_traces: traces }));
  return file;
}

/** A run of which modules and steps are known: weights before, two steps with activations whose
 * labels come with or after the allocation, and temporaries without a stack. */
function labelledRun() {
  const trace = [];
  let time = 1000;
  const put = (entry) => trace.push({ stream: 0, time_us: time++, ...entry });
  const frames = (name) => [{ name, filename: '/srv/model.py', line: 7 }];
  const alloc = (addr, size, more) => put({ action: 'alloc', addr, size, ...more });
  const free = (addr, size) => {
    put({ action: 'free_requested', addr, size });
    put({ action: 'free_completed', addr, size });
  };
  const notes = [];
  for (let layer = 0; layer < 20; layer++)
    alloc(4096 * (layer + 1), 2000, { user_metadata: `Net.layers.${layer}` });
  alloc(1 << 20, 4000, { frames: frames('embed') });
  put({ action: 'annotate', addr: 1 << 20, size: 4000, user_metadata: 'Net.embed' });
  put({ action: 'annotate', addr: 4096, size: 2000 });
  for (let step = 0; step < 3; step++) {
    notes.push({ stage: 'START', name: `ProfilerStep#${step}`, device: 0, time_us: time });
    for (let i = 0; i < 40; i++) {
      alloc((2 << 20) + 4096 * i, 1000 + i, {
        frames: frames(i % 3 ? 'forward' : 'other'),
        user_metadata: `Net.layers.${i % 20}.act`,
        compile_context: i % 5 ? 'N/A' : '0/0',
      });
    }
    alloc((3 << 20) + 4096 * step, 512, {});
    for (let i = 0; i < 40; i++) free((2 << 20) + 4096 * i, 1000 + i);
    notes.push({ stage: 'END', name: `ProfilerStep#${step}`, device: 0, time_us: time });
  }
  const file = join(work, 'labelled.json');
  writeFileSync(
    file,
    JSON.stringify({ segments: [], device_traces: [trace], external_annotations: notes }),
  );
  return file;
}

/** Memory without any history. */
function bareRun() {
  const segment = {
    device: 0,
    address: 512,
    total_size: 2097152,
    stream: 0,
    segment_type: 'small',
    blocks: [{ size: 2097152, state: 'active_allocated', requested_size: 5, frames: [] }],
  };
  const file = join(work, 'bare.json');
  writeFileSync(file, JSON.stringify({ segments: [segment], device_traces: [] }));
  return file;
}

/** How large the page may be that leaves events out, in bytes. */
export function cutLimit() {
  return statSync(join(work, 'gpt2_varlen.html')).size - 20000;
}

export function writeSharedPages() {
  for (const name of RECORDED) writePage(name, join(data, `${name}.pickle.gz`));
  writePage('cut', join(data, 'gpt2_varlen.pickle.gz'), '--max-size', String(cutLimit()));
  writePage('several', severalRun());
  writePage('labelled', labelledRun());
  writePage('bare', bareRun());
}
