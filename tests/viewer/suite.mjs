// SPDX-License-Identifier: MIT
// suite.mjs TARN SNAPSHOTS AXE [FOLDER]: pages of recorded snapshots in a browser. Prints a line
// for each case that fails and ends with the count. With FOLDER it leaves pictures of every view
// there.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import {
  MODES,
  addressOf,
  becomes,
  draw,
  openBrowser,
  openPage,
  rasterOf,
  searchFor,
} from './browser.mjs';
import { answering } from './answers.mjs';
import { axeFinds } from './axe.mjs';
import {
  VIEWS,
  axePath,
  counts,
  data,
  expect,
  expectTrue,
  pictures,
  work,
  writePage,
} from './check.mjs';
import { comparing } from './compare.mjs';
import { doing } from './doing.mjs';
import { events } from './events.mjs';
import { inFirefox } from './firefox.mjs';
import { rulesAreTrue } from './groups.mjs';
import { joining } from './joined.mjs';
import { marking } from './marks.mjs';
import { moving } from './moving.mjs';
import { noticing } from './notices.mjs';
import { paging } from './pages.mjs';
import { printing } from './print.mjs';
import { reaching } from './reach.mjs';
import { ranking } from './ranks.mjs';
import { opening } from './reader.mjs';
import { saving } from './saving.mjs';
import { seeing } from './seen.mjs';
import { sharing } from './shared.mjs';
import { RECORDED, writeSharedPages } from './shared_pages.mjs';
import { touching } from './touch.mjs';
import { smallerPagesAreTrue, truth } from './truth.mjs';

// ---- figures are those of the program ----

/** Sizes as the program writes them, whose unit test has the same list. */
async function sizesAreTrue() {
  const code = readFileSync(join(data, '../../../viewer/format.js'), 'utf8');
  const { sizeText } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const lines = readFileSync(join(data, '../sizes.txt'), 'utf8').trim().split('\n');
  for (const line of lines) {
    const [, bytes, text] = /** @type {string[]} */ (line.match(/^(\d+) (.*)$/));
    expect(`${bytes} bytes`, sizeText(Number(bytes)), text);
  }
}

// ---- pictures are the figures ----

/** Sizes of pages: they are the same on every machine. */
function pagesAreSmall() {
  for (const [name, most] of [
    ['tiny', 214],
    ['gpt2_varlen', 279],
    ['llama_generate', 275],
  ]) {
    const bytes = readFileSync(join(work, `${name}.html`)).length;
    expectTrue(`${name}: at most ${most} KiB`, bytes <= most * 1000, bytes);
  }
}

/** Heights of what is coloured in columns of the timeline, against the sums, in pixels. */
async function timelineIsTrue(browser, name, ratio, hash) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`), { ratio, hash });
  await draw(page);
  await heightsAreTrue(page, `${name} at ratio ${ratio}`, ratio);
  for (const [width, height] of [
    [1000, 700],
    [1600, 1000],
  ]) {
    await page.setViewportSize({ width, height });
    await page.waitForFunction(
      (scale) => {
        const { canvas, picture } = window.tarnView.app;
        const box = document.getElementById('stage').getBoundingClientRect();
        const isFit = (size, wanted) => Math.abs(size / scale - wanted) <= 1;
        return (
          isFit(canvas.width, box.width) &&
          isFit(canvas.height, box.height) &&
          picture.box.right <= box.width
        );
      },
      ratio,
      { timeout: 10000 },
    );
    await heightsAreTrue(page, `${name} at ratio ${ratio}, ${width} by ${height}`, ratio);
  }
  await close();
}

async function heightsAreTrue(page, what, ratio) {
  const { worst, checked } = await page.evaluate((scale) => {
    const { app } = window.tarnView;
    const { box, data, columns, y, labels } = app.picture;
    const context = app.canvas.getContext('2d');
    const small = document.createElement('canvas').getContext('2d');
    /** A colour, with others over it, as the canvas mixes them. */
    const mixed = (...colours) => {
      for (const colour of colours) {
        small.fillStyle = colour;
        small.fillRect(0, 0, 1, 1);
      }
      return small.getImageData(0, 0, 1, 1).data;
    };
    const plain = [...app.theme.groups, app.theme.others];
    // What is only there for a part of the column's time is shaded.
    const areas = plain.flatMap((colour) => [
      mixed(colour),
      mixed(colour, app.theme.least),
      mixed(colour, app.theme.edge),
    ]);
    let worst = 0;
    let checked = 0;
    for (let i = 4; i < columns - 4; i += 7) {
      const x = Math.floor((box.left + ((i + 0.5) * box.axis.width) / columns) * scale);
      const top = Math.round(box.top * scale);
      const pixels = context.getImageData(x, top, 1, Math.round(box.bottom * scale) - top).data;
      let high = 0;
      for (let at = 0; at < pixels.length; at += 4) {
        const away = (c) =>
          [0, 1, 2].reduce((sum, k) => sum + Math.abs(c[k] - pixels[at + k]), 0);
        if (areas.some((c) => away(c) < 12)) high++;
      }
      const isBeside = (label) =>
        x / scale < label.x - 2 || x / scale > label.x + label.width + 2;
      if (!labels.every(isBeside)) continue;
      // A step of the line of reserved bytes lies over the columns beside it.
      if ([-4, 4].some((k) => data.reserved[i + k] !== data.reserved[i])) continue;
      worst = Math.max(worst, Math.abs(high / scale - (y(0) - y(data.most[i]))));
      checked++;
    }
    return { worst, checked };
  }, ratio);
  // Up to one pixel at the edge of each of the areas that are stacked.
  expectTrue(`${what}: heights of the timeline`, worst <= 4, worst);
  expectTrue(`${what}: columns that were looked at`, checked >= 40, checked);
}

/** Sums of the columns: every group adds up to what is in use, at the moment with most of it. */
async function columnsAddUp(browser, name) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`));
  const bad = await page.evaluate(() => {
    const { app } = window.tarnView;
    const { source, curve } = app;
    const wrong = [];
    for (const [from, to] of [
      [0, source.count],
      [source.count * 0.3, source.count * 0.4],
      [10, 60],
    ]) {
      app.state.from = from;
      app.state.to = to;
      app.draw();
      const { data, columns, box } = app.picture;
      const { first, end } = box.axis.ranges(columns);
      for (let i = 0; i < columns; i++) {
        let sum = 0;
        for (let group = 0; group < data.groups; group++)
          sum += data.sums[i * data.groups + group];
        let most = -Infinity;
        if (i % 37 === 0)
          for (let entry = first[i]; entry < end[i]; entry++)
            most = Math.max(most, curve.requested(entry));
        if (sum !== data.most[i] || (i % 37 === 0 && most !== data.most[i]))
          wrong.push([from, i, sum, data.most[i], most]);
      }
    }
    return wrong.slice(0, 3);
  });
  expect(`${name}: columns`, bad, []);
  await close();
}

/** The painted area of the blocks is the sum of their areas, however small they are, and what is
 * large enough to have an inside has the colour of its group there. */
async function blocksAreTrue(browser, name, mode) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`), {
    hash: `#v=blocks&y=${mode}`,
  });
  await draw(page);
  const found = await page.evaluate((how) => {
    const { app } = window.tarnView;
    const { source, extents, curve, picture, blocksPicture, grouping } = app;
    const { canvas } = blocksPicture;
    const { axis } = picture.box;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const times = canvas.height / (blocksPicture.scale.high - blocksPicture.scale.low);
    let area = 0;
    let inside = 0;
    let wrong = 0;
    if (how === 'pile') {
      const { first, end } = axis.ranges(canvas.width);
      for (let i = 0; i < canvas.width; i++) area += curve.most(first[i], end[i]).value * times;
      return { area, painted: blocksPicture.painted, inside: 1, wrong };
    }
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      const start =
        source.lifetimeStart[lifetime] === 0xffffffff ? 0 : source.lifetimeStart[lifetime];
      const stop =
        source.lifetimeEnd[lifetime] === 0xffffffff ? source.count : source.lifetimeEnd[lifetime];
      const size = source.blockSize(lifetime);
      const wide = ((stop - start) / source.count) * canvas.width;
      area += wide * size * times;
      if (wide < 8 || size * times < 8) continue;
      const x = Math.floor(((start + stop) / 2 / source.count) * canvas.width);
      const y = Math.floor(
        canvas.height - (extents.height(source.lifetimeAddress[lifetime]) + size / 2) * times,
      );
      const group = grouping.group(lifetime);
      const colour = window.tarnView.colour(group);
      const away = [1, 3, 5].reduce(
        (sum, at, k) =>
          sum +
          Math.abs(
            parseInt(colour.slice(at, at + 2), 16) - pixels[(y * canvas.width + x) * 4 + k],
          ),
        0,
      );
      inside++;
      if (away > 6) wrong++;
    }
    return { area, painted: blocksPicture.painted, inside, wrong };
  }, mode);
  expectTrue(
    `${name}: area of blocks, ${mode}`,
    Math.abs(found.painted / found.area - 1) < 0.002,
    JSON.stringify(found),
  );
  expectTrue(`${name}: colours of blocks, ${mode}`, found.wrong === 0, JSON.stringify(found));
  if (name === 'cudagraph') expectTrue(`${name}: large blocks, ${mode}`, found.inside > 0);
  await close();
}

// ---- what people do ----

async function interactions(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'));
  const state = () => page.evaluate(() => ({ ...window.tarnView.app.state }));
  const span = async () => {
    const s = await state();
    return s.to - s.from;
  };
  const all = await span();
  await page.mouse.move(500, 500);
  await page.mouse.wheel(0, -300);
  await becomes(
    page,
    (entries) => window.tarnView.app.state.to - window.tarnView.app.state.from !== entries,
    all,
  );
  const zoomed = await span();
  expectTrue('the wheel zooms in', zoomed < all * 0.7, zoomed);
  const before = (await state()).from;
  await page.mouse.down();
  await page.mouse.move(300, 500, { steps: 4 });
  await page.mouse.up();
  expectTrue('a drag moves', (await state()).from > before);
  await page.keyboard.press('0');
  expect('0 shows all', await span(), all);
  await page.mouse.click(500, 500);
  const clicked = (await state()).cursor;
  expectTrue('a click sets the cursor', clicked > 0, clicked);
  await page.keyboard.press('ArrowRight');
  expect('an arrow moves the cursor', (await state()).cursor, clicked + 1);
  await page.keyboard.press('p');
  expect('p goes to the peak', (await state()).cursor, 4442);
  await page.keyboard.press('o');
  expect('o goes to the failed request', (await state()).cursor, 4458);
  await page.keyboard.press('m');
  await page.keyboard.press('Home');
  expectTrue('m sets the mark', (await state()).mark === 4458 && (await state()).cursor === -1);
  await page.keyboard.press('Escape');
  await page.keyboard.press('t');
  expectTrue(
    't turns dark',
    await page.evaluate(() => document.documentElement.classList.contains('dark')),
  );
  for (const [i, view] of VIEWS.entries()) {
    await page.keyboard.press(String(i + 1));
    await draw(page);
    expect(`key ${i + 1}`, (await state()).view, view);
  }
  await page.keyboard.press('?');
  expectTrue('? lists the keys', await page.evaluate(() => document.getElementById('keys').open));
  await page.keyboard.press('Escape');
  await searching(page);
  await overviewBrush(page, span);
  expect('troubles while doing things', troubles, []);
  await close();
}

async function searching(page) {
  await page.keyboard.press('1');
  await page.keyboard.press('/');
  await page.keyboard.type('_init_group');
  await becomes(page, () => window.tarnView.app.state.query === '_init_group');
  const wanted = await page.evaluate(() => {
    const { source } = window.tarnView.app;
    let bytes = 0;
    let blocks = 0;
    for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
      const frames = source.names.frames(source.lifetimeStack[lifetime]);
      if (frames.some((frame) => source.names.frameText(frame).includes('_init_group'))) {
        blocks++;
        bytes += source.size(lifetime);
      }
    }
    return `${blocks} blocks, ${(bytes / 2 ** 20).toFixed(2)} MiB in total`;
  });
  expect('search counts blocks and bytes', await page.textContent('#found'), wanted);
  await page.keyboard.press('Enter');
  await draw(page);
  const lifetime = await page.evaluate(() => window.tarnView.app.state.lifetime);
  expectTrue('Enter goes to the first match', lifetime >= 0, lifetime);
  expectTrue('its card shows', (await page.textContent('#panel')).includes('Allocated by'));
  await page.keyboard.press('f');
  await draw(page);
  expectTrue(
    'f shows only matches',
    (await page.textContent('#panel')).includes('not matching the filter'),
  );
  const sum = await page.evaluate(() => {
    const { app } = window.tarnView;
    return [...app.grouping.sumsAt(4442)].reduce((a, b) => a + b) - app.curve.requested(4442);
  });
  expect('with a filter groups still add up', sum, 0);
  await searchFor(page, '');
  await page.keyboard.press('Escape');
}

async function overviewBrush(page, span) {
  const box = await (await page.$('#overview')).boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 5 });
  await page.mouse.up();
  const count = await page.evaluate(() => window.tarnView.app.source.count);
  expectTrue(
    'a brush on the overview chooses the window',
    Math.abs((await span()) / count - 0.25) < 0.01,
    await span(),
  );
}

async function deepLinks(browser) {
  const file = join(work, 'gpt2_varlen.html');
  const first = await openPage(browser, file, {
    hash: '#v=blocks&a=4000&b=9000&c=5876&g=stack&x=time&y=pile',
  });
  await draw(first.page);
  const state = await first.page.evaluate(() => ({ ...window.tarnView.app.state }));
  expect(
    'a link is followed',
    [state.view, state.from, state.to, state.cursor, state.by, state.axis, state.mode],
    ['blocks', 4000, 9000, 5876, 'stack', 'time', 'pile'],
  );
  await first.page.keyboard.press('ArrowLeft');
  await first.page.keyboard.press('4');
  const hash = await addressOf(first.page);
  const second = await openPage(browser, file, { hash });
  expect(
    'its address shows the same',
    await second.page.evaluate(() => ({ ...window.tarnView.app.state })),
    await first.page.evaluate(() => ({ ...window.tarnView.app.state })),
  );
  await first.page.goBack();
  await becomes(first.page, () => window.tarnView.app.state.view === 'blocks');
  expect(
    'going back returns to the view',
    await first.page.evaluate(() => window.tarnView.app.state.view),
    'blocks',
  );
  await first.close();
  await second.close();
  const odd = await openPage(browser, file, {
    hash: '#v=nothing&a=NaN&b=-7&c=1e99&g=%E0%A4%A&l=99999999&p=9&y=%%%&d=77',
  });
  await draw(odd.page);
  expect(
    'a wrong link does no harm',
    [odd.troubles, await odd.page.isHidden('#broken')],
    [[], true],
  );
  await odd.close();
}

// ---- files that mean no good ----

const HOSTILE = [
  '</script><script>document.title="owned"</script>',
  '"><img src=x onerror=alert(1)>',
  '\u202egnp.exe',
  'nul\u0000in\u0007it',
  '\ud800',
  'x'.repeat(10000),
  '=cmd|calc',
  '<!--',
  '{{7*7}}',
];

function hostileSnapshot() {
  const stack = HOSTILE.map((text, i) => ({ name: text, filename: `/a/${text}`, line: i }));
  const deep = Array.from({ length: 500 }, (_, i) => ({
    name: `f${i}`,
    filename: 'deep.py',
    line: i,
  }));
  const trace = [];
  HOSTILE.forEach((text, i) =>
    trace.push({
      action: 'alloc',
      addr: 4096 * (i + 1),
      size: 600 + i,
      stream: 0,
      time_us: 1000 + i,
      frames: i % 2 ? stack : deep,
      user_metadata: text,
      compile_context: text,
      category: text,
    }),
  );
  trace.push({ action: HOSTILE[0], addr: 1, size: 2, stream: 0, time_us: 5 });
  trace.push({
    action: 'oom',
    device_free: 2 ** 53,
    size: 2 ** 60,
    stream: 2 ** 53,
    time_us: 9,
    frames: stack,
  });
  trace.push({ action: 'free_completed', addr: 77, size: 5, stream: 3, time_us: -9 });
  trace.push({ action: 'alloc', addr: 4096, size: 1, stream: 0, time_us: 1e15 });
  const file = join(work, 'hostile.json');
  writeFileSync(
    file,
    JSON.stringify({
      segments: [
        {
          device: 0,
          address: 4096,
          total_size: 1 << 20,
          stream: 0,
          segment_type: 'small',
          blocks: [
            { size: 1 << 20, requested_size: 9, state: 'active_pending_free', frames: stack },
          ],
        },
      ],
      device_traces: [trace],
      allocator_settings: { PYTORCH_CUDA_ALLOC_CONF: HOSTILE[0], [HOSTILE[1]]: HOSTILE[2] },
      external_annotations: HOSTILE.map((name, i) => ({
        stage: i % 3 ? 'START' : 'END',
        name,
        device: 0,
        time_us: 1000 + i,
      })),
    }),
  );
  return file;
}

async function hostile(browser) {
  const file = writePage('hostile', hostileSnapshot(), '--title', HOSTILE[0]);
  for (const view of VIEWS) {
    for (const by of ['line', 'module', 'label']) {
      const { page, troubles, close } = await openPage(browser, file, {
        hash: `#v=${view}&g=${by}&l=1&c=3`,
      });
      await draw(page);
      const found = await page.evaluate(() => [
        document.title.includes('</script>'),
        document.images.length,
        document.scripts.length,
        /[\u202e\u0000\u0007]/.test(document.body.innerText),
        document.getElementById('broken').hidden,
      ]);
      expect(
        `hostile names, ${view} by ${by}`,
        [...found, troubles],
        [true, 0, 1, false, true, []],
      );
      await close();
    }
  }
}

async function brokenPages(browser) {
  const text = readFileSync(join(work, 'tiny.html'), 'utf8');
  const section = /data-name="d0\.trace\.0" data-size="(\d+)">([^<]+)</.exec(text);
  const cases = {
    'a section that is gone': text.replace(
      /<script type="application[^>]*data-name="frames"[^<]*<\/script>/,
      '',
    ),
    'a changed byte': text.replace(
      section[2],
      () => section[2].slice(0, 40) + (section[2][40] === 'A' ? 'B' : 'A') + section[2].slice(41),
    ),
    'a section cut short': text.replace(section[2], () => section[2].slice(0, 60)),
    'no letters': text.replace(section[2], '\u4e00\u4e01'),
    'a wrong size': text.replace(
      `data-name="d0.trace.0" data-size="${section[1]}"`,
      'data-name="d0.trace.0" data-size="7"',
    ),
    'a size that would fill memory': text.replace(
      `data-name="d0.trace.0" data-size="${section[1]}"`,
      'data-name="d0.trace.0" data-size="99999999999999"',
    ),
    'sections of another page': text.replace(
      section[2],
      () =>
        /data-name="d0\.trace\.0" data-size="\d+">([^<]+)</.exec(
          readFileSync(join(work, 'oom.html'), 'utf8'),
        )[1],
    ),
    'no head': text.replace(/data-name="head"/, 'data-name="tail"'),
  };
  for (const [name, changed] of Object.entries(cases)) {
    expectTrue(`${name}: the page was changed`, changed !== text);
    const file = join(work, 'broken.html');
    writeFileSync(file, changed);
    const { page, close } = await openPage(browser, file, { broken: true });
    await page
      .waitForFunction(() => !document.getElementById('broken').hidden, null, { timeout: 15000 })
      .catch(() => {});
    expectTrue(
      `${name}: a panel says so`,
      (await page.innerText('#broken')).includes('cannot be read'),
      await page.innerText('#broken'),
    );
    await close();
  }
}

/** A server may say that the page is of another character set than it says itself. */
async function wrongCharset(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const body = readFileSync(join(work, 'tiny.html'));
  await page.route('**/*', (route) =>
    route.fulfill({ body, contentType: 'text/html; charset=iso-8859-1' }),
  );
  await page.goto('http://tarn.test/');
  await page
    .waitForFunction(() => !document.getElementById('broken').hidden, null, { timeout: 15000 })
    .catch(() => {});
  const text = await page.innerText('#broken');
  expectTrue('another character set: a panel says so', text.includes('is UTF-8'), text);
  await context.close();
}

async function oddFiles(browser) {
  const files = {
    list: [],
    nothing: { segments: [], device_traces: [] },
    segments: {
      segments: [
        {
          device: 1,
          address: 512,
          total_size: 2097152,
          stream: 0,
          segment_type: 'small',
          blocks: [{ size: 2097152, state: 'active_allocated', requested_size: 5, frames: [] }],
        },
      ],
      device_traces: [],
    },
    one: { segments: [], device_traces: [[{ action: 'alloc', addr: 512, size: 10, stream: 0 }]] },
    pinned: {
      segments: [],
      device_traces: [[]],
      host_segments: [],
      host_traces: [[{ action: 'alloc', addr: 512, size: 10, stream: 0, time_us: 5 }]],
    },
  };
  for (const [name, value] of Object.entries(files)) {
    const json = join(work, `${name}.json`);
    writeFileSync(json, JSON.stringify(value));
    const file = writePage(`odd_${name}`, json);
    for (const view of VIEWS) {
      const { page, troubles, close } = await openPage(browser, file, { hash: `#v=${view}` });
      await page.waitForTimeout(30);
      expect(`file "${name}", ${view}`, [troubles, await page.isHidden('#broken')], [[], true]);
      await close();
    }
  }
}

// ---- people who do not see the pictures ----

async function accessibility(browser) {
  for (const dark of [false, true]) {
    for (const name of ['several', 'bare', 'cut']) {
      const { page, close } = await openPage(browser, join(work, `${name}.html`), { dark });
      await draw(page);
      expect(`axe, page "${name}"${dark ? ', dark' : ''}`, await axeFinds(page), []);
      await close();
    }
    const { page, close } = await openPage(browser, join(work, 'oom.html'), {
      dark,
      hash: '#c=4000&l=20&z=1&n=1',
    });
    for (const view of VIEWS) {
      await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
      await draw(page);
      expect(`axe, ${view}${dark ? ', dark' : ''}`, await axeFinds(page), []);
    }
    const words = await page.getAttribute('#canvas', 'aria-label');
    expectTrue('a picture has words', /requested of .* reserved/.test(words || ''), words);
    await close();
  }
}

// ---- to be looked at ----

async function takePictures(browser) {
  mkdirSync(pictures, { recursive: true });
  const shots = [
    ['gpt2_varlen', '#c=5876'],
    ['oom', '#c=4442'],
    ['cudagraph', ''],
    ['llama_generate', ''],
  ];
  for (const [name, hash] of shots) {
    for (const dark of [false, true]) {
      const { page, close } = await openPage(browser, join(work, `${name}.html`), { dark, hash });
      for (const view of VIEWS) {
        await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
        await draw(page);
        await page.screenshot({
          path: join(pictures, `${name}_${view}${dark ? '_dark' : ''}.png`),
        });
      }
      await close();
    }
  }
  copyFileSync(join(work, 'gpt2_varlen.html'), join(pictures, 'gpt2_varlen.html'));
}

/** What is on the screen, in each of Chromium's ways to draw. */
async function drawing() {
  for (const mode of byDay ? ['processor'] : Object.keys(MODES)) {
    let browser = null;
    let raster = [];
    try {
      browser = await openBrowser(mode);
      raster = await rasterOf(browser);
    } catch (error) {
      raster = [error.message.split('\n')[0]];
    }
    const wanted =
      mode === 'processor' ? 'Canvas: Software only' : 'Canvas: Hardware accelerated';
    if (!raster.includes(wanted)) {
      console.log(`skip: drawing by ${mode}: Chromium says "${raster.join(', ')}"`);
      counts.skipped++;
    } else {
      console.log(`drawing by ${mode}: ${raster.join(', ')}`);
      await picturesAreTrue(browser);
    }
    await browser?.close();
  }
}

async function picturesAreTrue(browser) {
  await timelineIsTrue(browser, 'gpt2_varlen', 1, '#g=origin&a=4000&b=7000');
  await timelineIsTrue(browser, 'oom', 2, '#g=origin');
  await timelineIsTrue(browser, 'gpt2_varlen', 3, '#g=origin&a=4000&b=7000');
  for (const name of ['cudagraph', 'oom', 'gpt2_varlen']) {
    await blocksAreTrue(browser, name, 'address');
    await blocksAreTrue(browser, name, 'pile');
  }
}

/** In CI: what takes long and depends on the page's code least is left to the night. */
const byDay = Boolean(process.env.TARN_BY_DAY);

/** Groups of cases. Each writes pages of its own, or has those of shared_pages.mjs.
 * @type {Array<Function>} */
const GROUPS = [
  sizesAreTrue,
  truth,
  rulesAreTrue,
  smallerPagesAreTrue,
  ...RECORDED.map((name) => (browser) => columnsAddUp(browser, name)),
  drawing,
  pagesAreSmall,
  interactions,
  (browser) => touching(browser, VIEWS),
  printing,
  doing,
  reaching,
  seeing,
  events,
  noticing,
  comparing,
  answering,
  paging,
  ranking,
  opening,
  ...(byDay ? [] : [inFirefox]),
  sharing,
  saving,
  deepLinks,
  hostile,
  moving,
  marking,
  brokenPages,
  wrongCharset,
  joining,
  oddFiles,
  ...(axePath && !byDay ? [accessibility] : []),
  ...(pictures && !byDay ? [takePictures] : []),
];

function countError(error) {
  counts.failed++;
  console.log(`FAIL ${error.stack}`);
}

/** Seconds of each group. @type {Array<[string, number]>} */
const taken = [];

/** Groups, one after the other, until none is left. One that throws ends itself alone. */
async function runFrom(groups) {
  const browser = await openBrowser();
  for (let group = groups.shift(); group; group = groups.shift()) {
    const begun = performance.now();
    try {
      await group(browser);
    } catch (error) {
      countError(error);
    }
    taken.push([group.name || 'a page', (performance.now() - begun) / 1000]);
  }
  await browser.close();
}

/** What a run's time went to, for whoever wants it shorter. */
function sayTimes() {
  taken.sort((a, b) => b[1] - a[1]);
  const longest = taken.slice(0, 10).map(([name, seconds]) => `${name} ${seconds.toFixed(0)}`);
  console.log(`seconds of the longest groups: ${longest.join(', ')}`);
}

/** A group keeps one processor busy. */
async function runGroups() {
  if (pictures) mkdirSync(pictures, { recursive: true });
  writeSharedPages();
  if (byDay) console.log('not by day: Firefox, drawing by the graphics library, axe, pictures');
  const groups = [...GROUPS];
  const workers = Math.min(cpus().length, 4);
  await Promise.all(Array.from({ length: workers }, () => runFrom(groups)));
}

await runGroups().catch(countError);
sayTimes();
rmSync(work, { recursive: true, force: true });
if (process.env.TEST_COUNTS) {
  writeFileSync(
    process.env.TEST_COUNTS,
    `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`,
  );
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed > 0 ? 1 : 0);
