// SPDX-License-Identifier: MIT
// What people do beyond looking: going from mark to mark, letting it run, what grew, copying,
// looking for labels, and pages that are given away.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { join } from 'node:path';
import { addressOf, becomes, draw, openPage, searchFor, whenReady } from './browser.mjs';
import { data, expect, expectTrue, report, tarn, work, writePage } from './check.mjs';
import { cutLimit } from './shared_pages.mjs';

const state = (page) => page.evaluate(() => ({ ...window.tarnView.app.state }));

/** One event of each kind that a recording has is where its lane says, and named. */
async function markers(browser, name, wanted) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`));
  const found = await page.evaluate(() => {
    const { app, hit } = window.tarnView;
    const seen = new Map();
    for (const event of app.source.events) if (!seen.has(event.kind)) seen.set(event.kind, event);
    const texts = [];
    for (const event of seen.values()) {
      app.state.from = Math.max(0, event.entry - 3);
      app.state.to = app.state.from + 8;
      app.draw();
      const { box } = app.picture;
      const x = box.left + box.axis.pixel(event.entry);
      const at = hit(x, box.top - 8);
      const ink = app.canvas
        .getContext('2d')
        .getImageData(Math.round(x) - 5, Math.round(box.top) - 22, 11, 20).data;
      let drawn = 0;
      for (let i = 4; i < ink.length; i += 4) if (ink[i] !== ink[0]) drawn++;
      texts.push([at?.lines[0][0], at?.entry === event.entry, drawn > 0]);
    }
    return texts.sort();
  });
  expect(
    `${name}: events over the timeline`,
    found,
    wanted.map((kind) => [kind, true, true]),
  );
  await close();
}

async function stepping(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'), {
    hash: '#c=100',
  });
  const starts = await page.evaluate(() =>
    window.tarnView.app.annotations.spans.map((s) => Math.floor(s.start)),
  );
  const next = Math.min(...starts.filter((s) => s > 100));
  await page.keyboard.press('.');
  expect('. goes to the next annotation', (await state(page)).cursor, next);
  await page.keyboard.press('.');
  await page.keyboard.press(',');
  expect(', goes back', (await state(page)).cursor, next);
  await page.keyboard.press(']');
  expect('] goes an entry on', (await state(page)).cursor, next + 1);
  await page.keyboard.press('[');
  expect('[ goes an entry back', (await state(page)).cursor, next);
  await close();
}

async function playing(browser) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=timeline&c=3000&a=2990&b=3400',
  });
  await page.keyboard.press('Space');
  await page.waitForFunction(() => window.tarnView.app.state.cursor > 3002);
  expect('space plays the map, from any view', (await state(page)).view, 'map');
  await page.keyboard.press('Space');
  await draw(page);
  const { cursor } = await state(page);
  expect('the slider is at the cursor', await page.inputValue('#scrub'), String(cursor));
  await page.focus('#scrub');
  await page.keyboard.press('ArrowRight');
  expect('an arrow on it moves the cursor', (await state(page)).cursor, cursor + 1);
  await page.keyboard.press('End');
  expect('to the end of the window', (await state(page)).cursor, 3399);
  await page.keyboard.press('1');
  expect('and keys go on working', (await state(page)).view, 'timeline');
  await close();
}

/** What grew less what shrank is the difference of what was in use, as the program has it. */
async function growing(browser) {
  const name = 'gpt2_varlen';
  const snapshot = join(data, `${name}.pickle.gz`);
  const { page, close } = await openPage(browser, join(work, `${name}.html`), {
    hash: '#v=flame&f=growth&m=2000&c=12000',
  });
  await draw(page);
  const at = (entry) => report('live', snapshot, '--at', `event:${entry}`)[0].instant;
  const grown = await page.evaluate(() => {
    const { root, shrunk } = window.tarnView.flame();
    return root.bytes - 2 * shrunk;
  });
  expect('growth', grown, at(12000).requested_bytes - at(2000).requested_bytes);
  const words = await page.evaluate(() => window.tarnView.hit(40, 16).lines[0][0]);
  expectTrue(
    'growth: says what shrank',
    /^grown by .* less elsewhere: -?\+?[\d.]+ \w+$/.test(words),
    words,
  );
  await close();
}

async function copying(browser) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=table&c=4442&g=category',
  });
  await draw(page);
  const wanted = report('top', join(data, 'oom.pickle.gz'), '--by', 'category')[0].stacks[0];
  const copied = async (label) => {
    await page.evaluate(() => {
      const keep = { writeText: async (text) => (window.copiedText = text) };
      Object.defineProperty(navigator, 'clipboard', { value: keep, configurable: true });
    });
    await page.click(`text=${label}`);
    return page.evaluate(() => window.copiedText.split('\n'));
  };
  const csv = await copied('Copy as CSV');
  expect(
    'CSV has exact bytes',
    csv[1].split(',').slice(0, 6),
    ['"activation"', wanted.peak_bytes, 249, wanted.peak_bytes, wanted.allocated_bytes, 700].map(
      String,
    ),
  );
  const table = await copied('Copy as Markdown');
  expectTrue('Markdown is a table', /^\|---\|/.test(table[1]), table[1]);
  expect('with all rows', table.length, csv.length + 1);
  await close();
}

/** Labels are found, counted and filtered as stacks are. */
async function labels(browser) {
  const { page, close } = await openPage(browser, join(work, 'labelled.html'), {
    hash: '#q=Net.embed&g=module',
  });
  await draw(page);
  expect('a label is found', await page.textContent('#found'), '1 block, 3.91 KiB in total');
  await page.keyboard.press('f');
  await draw(page);
  const sums = await page.evaluate(() => {
    const { app } = window.tarnView;
    return [...app.grouping.sumsAt(60)].map((bytes, g) => [app.grouping.text(g), bytes]);
  });
  expectTrue(
    'and the filter leaves it',
    sums.some(([text, bytes]) => text === 'Net.embed' && bytes === 4000),
    JSON.stringify(sums),
  );
  await close();
}

/** What is said in the address is all of what is looked at. */
async function flameLink(browser) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=flame&f=peak&w=category&i=1&e=1',
  });
  await draw(page);
  const pressed = await page.$$eval('#controls .tool', (all) =>
    all.map((b) => b.getAttribute('aria-pressed')),
  );
  expect('a link holds how the flame is drawn', pressed, ['true', 'true', 'false']);
  await page.keyboard.press('i');
  await page.waitForFunction(() => !/i=1/.test(location.hash));
  expectTrue('and follows it', /w=category/.test(page.url()), page.url());
  await close();
}

/** Pages that are given away have what may be given away. */
async function givenAway(browser) {
  const snapshot = join(data, 'oom.pickle.gz');
  const folders = /site-packages|\/torch\/|\/root\/|\/home\//;
  expectTrue('the file has folders', folders.test(gunzipSync(readFileSync(snapshot))));
  const whole = []; // first the page that has everything
  for (const [redact, names] of [
    ['nothing', true],
    ['paths', true],
    ['all', false],
  ]) {
    const file = writePage(
      `redact_${redact}`,
      snapshot,
      '--redact',
      redact,
      '--title',
      'a <b> & c',
    );
    const { page, troubles, close } = await openPage(browser, file);
    const found = await page.evaluate(() => {
      const { names: n } = window.tarnView.app;
      const own = window.tarnView.groups('own', window.tarnView.peak().requested.entry);
      return {
        own: own.map((row) => row.slice(1)),
        texts: n.texts.join('\n'),
        title: [document.title, document.getElementById('title').textContent],
      };
    });
    expect(`redact ${redact}: title`, found.title, ['a <b> & c', 'a <b> & c']);
    whole.push(found.own);
    if (redact === 'paths') expect('redact paths: memory by your code', found.own, whole[0]);
    expectTrue(
      `redact ${redact}: no folders`,
      redact === 'nothing' || !folders.test(found.texts),
    );
    expect(`redact ${redact}: functions`, /_init_group/.test(found.texts), names);
    await page.evaluate(() => window.tarnView.app.set({ view: 'info' }));
    await draw(page);
    expectTrue(
      `redact ${redact}: Info says so`,
      redact === 'nothing' || /left out of this page/.test(await page.innerText('#document')),
    );
    expect(`redact ${redact}: troubles`, troubles, []);
    await close();
  }
}

async function cutPagesSaySo(browser) {
  const file = join(work, 'cut.html');
  const { page, close } = await openPage(browser, file, { hash: '#v=info' });
  await draw(page);
  expectTrue('a page is as small as it must be', statSync(file).size <= cutLimit());
  const words = await page.innerText('#document');
  expectTrue('a cut page says so', /The page begins with event [1-9]/.test(words), words);
  const kept = await page.evaluate(() => window.tarnView.app.source.count);
  const skipped = await page.evaluate(() => window.tarnView.app.source.info.skipped);
  expect(
    'its head says so',
    (await page.innerText('h1 .cut')).replace(/,/g, ''),
    `without the first ${skipped} event${skipped === 1 ? '' : 's'}`,
  );
  const status = (await page.innerText('#status')).replace(/,/g, '');
  expectTrue(
    'its status counts all events, and claims the peak of the rest only',
    status.startsWith(`the last ${kept} events of ${kept + skipped}`) &&
      status.includes('of these peak requested'),
    status,
  );
  await close();
}

/** The texts that a picture draws, and where. */
function drawnTexts(page) {
  return page.evaluate(() => {
    const { app } = window.tarnView;
    const context = app.canvas.getContext('2d');
    const texts = [];
    const fillText = context.fillText.bind(context);
    context.fillText = (text, x, y) => {
      const { width } = context.measureText(text);
      texts.push({ text, x, y, width });
      fillText(text, x, y);
    };
    app.draw();
    delete context.fillText;
    const { bottom } = app.picture.box;
    return texts.map((one) => ({ ...one, foot: one.y === bottom + 13 }));
  });
}

/** The texts that a picture draws along its foot. */
async function axisTexts(page) {
  const texts = await drawnTexts(page);
  return texts.filter(({ text, foot }) => foot && /[0-9]/.test(text)).map(({ text }) => text);
}

/** A sum, or the most, of a page that is cut says that it is of the rest; moments are those of the
 * whole recording. */
async function cutFiguresSaySo(browser) {
  const file = join(work, 'cut.html');
  const { page, troubles, close } = await openPage(browser, file);
  await draw(page);
  const skipped = await page.evaluate(() => window.tarnView.app.source.info.skipped);
  const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
  const since = `since event ${count(skipped)}`;
  const says = async (what, selector, words = since) => {
    const text = await page.innerText(selector);
    expectTrue(`a cut page, ${what}: ${words}`, text.includes(words), text.slice(0, 300));
  };
  await says('the figure at the cursor', '#controls .figure');
  const names = (await drawnTexts(page)).map(({ text }) => text);
  expectTrue(
    'a cut page, the peak in the picture',
    names.some((text) => text.startsWith(`peak ${since}: `)),
    names,
  );
  await searchFor(page, '_init_group');
  await says('what is found', '#found', `in total ${since}`);
  await page.keyboard.press('Enter');
  await draw(page);
  await says('a card, of its stack', '.card', `in total ${since}`);
  await says('a card, of a block', '.card', `before event ${count(skipped)}`);
  for (const [view, selector] of [
    ['table', '#document caption'],
    ['oom', '#document'],
    ['info', '#document dl'],
    ['info', '#document caption'],
  ]) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    await says(view, selector);
  }
  const info = await page.innerText('#document');
  expectTrue('a cut page blames no ring', !/overflowed/.test(info), info);
  const wanted = await wholeTimes(browser, skipped);
  const found = await page.evaluate(() => {
    const { source, annotations } = window.tarnView.app;
    const last = annotations.spans[annotations.spans.length - 1];
    return {
      times: [0, 700, source.count - 1].map((entry) => source.time[entry]),
      starts: source.timeAt(0),
      step: Math.round(source.timeAt(last.start)),
    };
  });
  expect('a cut page has the times of the recording', found, wanted);
  expect('a cut page: troubles', troubles, []);
  await close();
}

/** The times that entries of a cut page have in the page of all of them. */
async function wholeTimes(browser, skipped) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'));
  const times = await page.evaluate((from) => {
    const { source, annotations } = window.tarnView.app;
    const last = annotations.spans[annotations.spans.length - 1];
    return {
      times: [from, from + 700, source.count - 1].map((entry) => source.time[entry]),
      starts: source.time[from],
      step: Math.round(source.timeAt(last.start)),
    };
  }, skipped);
  await close();
  return times;
}

/** What a page opens with by itself, left for another view, does not come back when the page is
 * loaded again, or by its link. */
async function viewsStay(browser) {
  const snapshot = join(data, 'oom.pickle.gz');
  const plot = join(work, 'segment_plot.html');
  execFileSync(tarn, ['segment_plot', '-q', snapshot, '-o', plot]);
  const pages = {
    'of two recordings': [writePage('two', snapshot, snapshot), 'compare', 'timeline'],
    'without history': [join(work, 'bare.html'), 'map', 'timeline'],
    'of segment_plot': [plot, 'map', 'timeline'],
  };
  for (const [what, [file, opens, chosen]] of Object.entries(pages)) {
    const { page, troubles, close } = await openPage(browser, file);
    expect(`a page ${what} opens with its view`, (await state(page)).view, opens);
    await page.keyboard.press('1');
    await addressOf(page);
    await page.reload();
    await whenReady(page);
    expect(`a page ${what}: the view chosen stays`, (await state(page)).view, chosen);
    await page.goBack();
    await becomes(page, (view) => window.tarnView.app.state.view === view, opens);
    expect(`a page ${what}: going back`, (await state(page)).view, opens);
    expect(`a page ${what}: troubles`, troubles, []);
    await close();
  }
}

async function labelsDiffer(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'));
  for (const axis of ['event', 'time']) {
    for (const span of [4, 8, 40, 700]) {
      await page.evaluate(
        ([kind, wide]) => window.tarnView.app.set({ axis: kind, from: 24406, to: 24406 + wide }),
        [axis, span],
      );
      const texts = await axisTexts(page);
      expectTrue(
        `labels of ${span} events by ${axis} differ`,
        texts.length > 0 && new Set(texts).size === texts.length,
        texts,
      );
    }
  }
  await close();
  for (const view of ['timeline', 'blocks']) {
    const deep = await openPage(browser, join(work, 'oom.html'), {
      hash: `#v=${view}&p=0.46&r=0.47`,
    });
    await draw(deep.page);
    const found = await drawnTexts(deep.page);
    const texts = found.filter(({ x }) => x === 68).map(({ text }) => text);
    const isWhole = found.every(({ x, width }) => x !== 68 || width <= 68);
    expectTrue(
      `labels of bytes differ, ${view}`,
      texts.length > 4 && new Set(texts).size === texts.length && isWhole,
      texts,
    );
    await deep.close();
  }
  const phone = await openPage(browser, join(work, 'oom.html'), { width: 390, height: 844 });
  for (const axis of ['event', 'time']) {
    await phone.page.evaluate((kind) => window.tarnView.app.set({ axis: kind }), axis);
    const texts = await axisTexts(phone.page);
    expectTrue(`labels of a narrow picture by ${axis}`, texts.length >= 2, texts);
  }
  await phone.close();
}

/** Nothing that is drawn at the peak goes through its name, and the name is whole. */
async function peakIsLegible(browser) {
  for (const [name, width] of [
    ['oom', 1440],
    ['oom', 390],
    ['cut', 390],
    ['gpt2_varlen', 1440],
  ]) {
    const { page, close } = await openPage(browser, join(work, `${name}.html`), { width });
    await page.keyboard.press('p');
    await draw(page);
    const label = (await drawnTexts(page)).find(({ text }) => /^peak /.test(text));
    const { lines, left, right } = await page.evaluate(() => {
      const { app } = window.tarnView;
      const { box } = app.picture;
      const at = (entry) => box.left + box.axis.pixel(entry + 0.5);
      return {
        lines: [app.state.cursor, ...app.source.ooms].map(at),
        left: box.left,
        right: box.right,
      };
    });
    const isClear =
      name === 'cut' || lines.every((x) => x < label.x || x > label.x + label.width);
    const isWhole = label.x >= left && label.x + label.width <= right;
    expectTrue(`${name} at ${width}: the name of the peak`, isClear && isWhole, [
      label,
      lines,
      left,
      right,
    ]);
    await close();
  }
}

/** The peak is named in the picture, and the height can be that of what is allocated. */
async function peakIsNamed(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'));
  await draw(page);
  const look = () =>
    page.evaluate(() => {
      const { app } = window.tarnView;
      const context = app.canvas.getContext('2d');
      const texts = [];
      const fillText = context.fillText.bind(context);
      context.fillText = (text, x, y) => {
        texts.push(text);
        fillText(text, x, y);
      };
      app.draw();
      delete context.fillText;
      return { peak: texts.filter((text) => /^peak /.test(text)), high: app.picture.high };
    });
  const peak = await page.evaluate(() => window.tarnView.app.curve.peak);
  const before = await look();
  expectTrue(
    'the peak is named',
    before.peak.length === 1 && before.peak[0].replace(/,/g, '').endsWith(`event ${peak.entry}`),
    before.peak,
  );
  await page.keyboard.press('h');
  const fit = await look();
  expectTrue('h fits the height', Math.abs(fit.high - peak.value * 1.06) < 1, fit.high);
  expect('the link says so', (await state(page)).fit, true);
  await page.click('button[data-key="fit"]');
  expect('and the button takes it back', (await look()).high, before.high);
  await page.evaluate((entry) => window.tarnView.app.set({ from: entry + 1 }), peak.entry);
  expect('elsewhere it is not named', (await look()).peak, []);
  await close();
}

/** Hovering shows the stack of what is there. */
async function hoveringShowsStacks(browser) {
  for (const view of ['timeline', 'blocks']) {
    const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'), {
      hash: `#v=${view}`,
    });
    await draw(page);
    const found = await page.evaluate(() => {
      const { app, hit } = window.tarnView;
      const { box } = app.picture;
      for (let y = box.bottom - 3; y > box.top; y -= 7) {
        for (let x = box.left + 40; x < box.right; x += 90) {
          const at = hit(x, y);
          const frames = at?.of ? app.names.frames(at.of.stack) : [];
          if (frames.length > 1) {
            const { left, top } = app.canvas.getBoundingClientRect();
            return [left + x, top + y, frames.slice(0, 2).map((f) => app.names.frameText(f))];
          }
        }
      }
      return null;
    });
    expectTrue(`${view}: something with a stack`, found !== null);
    await page.mouse.move(found[0], found[1]);
    await draw(page);
    const texts = await page.$$eval('#tip .frames p', (all) => all.map((p) => p.textContent));
    const shown = texts.filter((text) => text !== 'one of its stacks:').slice(0, 2);
    expect(`${view}: hovering shows its stack`, shown, found[2]);
    await close();
  }
}

async function wrongAddressesAreIgnored(browser) {
  const hash = '#g=foo&f=foo&w=foo&x=foo&y=foo&v=foo&d=99&l=x';
  const file = join(work, 'gpt2_varlen.html');
  const { page, troubles, close } = await openPage(browser, file, { hash });
  await draw(page);
  const { by, flame, boxes, axis, mode, view, source } = await state(page);
  expect(
    'a wrong address is ignored',
    [by, flame, boxes, axis, mode, view, source],
    ['line', 'live', 'stack', 'event', 'address', 'timeline', 0],
  );
  await page.evaluate(() => (location.hash = '#g=foo'));
  await draw(page);
  expect('also one that is typed later', (await state(page)).by, 'line');
  expect('wrong addresses: troubles', troubles, []);
  await close();
}

/** Shortcuts work while the list that colours are chosen from has the focus. */
async function listsLeaveShortcuts(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'));
  await page.selectOption('select[data-key="Colour by"]', 'category');
  await page.focus('select[data-key="Colour by"]');
  await page.keyboard.press('p');
  const peak = await page.evaluate(() => window.tarnView.app.curve.peak.entry);
  expect('p after a choice goes to the peak', (await state(page)).cursor, peak);
  expect('and does not choose', (await state(page)).by, 'category');
  await page.keyboard.press('ArrowRight');
  expect(
    'an arrow after a choice moves the cursor',
    [(await state(page)).cursor, (await state(page)).by],
    [peak + 1, 'category'],
  );
  await page.keyboard.press('3');
  expect('3 after a choice is the map', (await state(page)).view, 'map');
  await close();
}

async function themeStays(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'));
  const isDark = () => page.evaluate(() => document.documentElement.className === 'dark');
  const before = await isDark();
  await page.keyboard.press('t');
  await page.reload();
  await page.waitForFunction(() => window.tarnView);
  expect('the theme chosen stays after a reload', await isDark(), !before);
  await close();
}

export async function doing(browser) {
  const common = ['segment alloc', 'segment free', 'snapshot'];
  await markers(browser, 'oom', ['out of memory', ...common].sort());
  await stepping(browser);
  await playing(browser);
  await growing(browser);
  await copying(browser);
  await labels(browser);
  await flameLink(browser);
  await givenAway(browser);
  await cutPagesSaySo(browser);
  await cutFiguresSaySo(browser);
  await viewsStay(browser);
  await labelsDiffer(browser);
  await peakIsNamed(browser);
  await peakIsLegible(browser);
  await hoveringShowsStacks(browser);
  await wrongAddressesAreIgnored(browser);
  await listsLeaveShortcuts(browser);
  await themeStays(browser);
}
