// SPDX-License-Identifier: MIT
// What is shown while somebody moves, and what makes that quick: figures are the same whichever way
// one comes to an entry, what stays the same is not made anew, and pictures of blocks follow.
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { expect, expectTrue, work } from './check.mjs';

/** Sums of groups, the most of ranges and what is in use, against a walk over all blocks. */
async function figuresAnywhere(browser, name) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`));
  const wrong = await page.evaluate(() => {
    const { app, pile } = window.tarnView;
    const { source, grouping, curve } = app;
    const found = [];
    let random = 12345;
    const next = (below) => {
      random = (random * 1103515245 + 12345) % 2 ** 31;
      return random % below;
    };
    const entries = [-1, 0, source.count - 1, -1, source.count - 1];
    for (let i = 0; i < 60; i++) {
      const entry = next(source.count);
      entries.push(entry, Math.max(-1, entry - next(300)), entry);
    }
    for (const entry of entries) {
      const sums = new Float64Array(grouping.count);
      const lifetimes = [];
      for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
        if (!source.isLive(lifetime, entry)) continue;
        sums[grouping.group(lifetime)] += source.size(lifetime);
        lifetimes.push(lifetime);
      }
      const here = [...grouping.sumsAt(entry)];
      const piled = [...pile(source, entry)].sort((a, b) => a - b);
      if (here.join() !== [...sums].join()) found.push(['sums', entry]);
      if (piled.join() !== lifetimes.join()) found.push(['lifetimes', entry]);
    }
    // Ranges that overlap by an entry, lie apart, and are empty but for one.
    const first = [];
    const end = [];
    for (
      let at = 0;
      at < source.count;
      at = end[end.length - 1] - next(2) + next(2) * next(200)
    ) {
      first.push(at);
      end.push(Math.min(source.count, at + 1 + next(300)));
      if (end[end.length - 1] >= source.count) break;
    }
    curve.mostOfEach(first, end, (i, most) => {
      const alone = curve.most(first[i], end[i]);
      let value = -Infinity;
      let entry = -1;
      let least = Infinity;
      for (let at = first[i]; at < end[i] && i % 9 === 0; at++) {
        const now = curve.requested(at);
        if (now > value) [value, entry] = [now, at];
        least = Math.min(least, now);
      }
      const same = (a) => a.value === most.value && a.entry === most.entry;
      if (!same(alone) || alone.least !== most.least) found.push(['most', first[i]]);
      if (i % 9 === 0 && !(same({ value, entry }) && least === most.least))
        found.push(['most of all', first[i]]);
    });
    return found.slice(0, 5);
  });
  expect(`${name}: figures at entries in no order`, wrong, []);
  await close();
}

/** The area that is painted of a part of the whole, in both directions. */
async function partsAreTrue(browser, name) {
  const { page, close } = await openPage(browser, join(work, `${name}.html`), {
    hash: '#v=blocks',
  });
  for (const [from, to, low, high] of [
    [0.3, 0.5, 0, 1],
    [0.62, 0.63, 0.1, 0.7],
    [0, 0.9, 0.5, 0.8],
  ]) {
    await page.evaluate(
      ([a, b, p, r]) => {
        const { app } = window.tarnView;
        const { count } = app.source;
        app.set({ from: a * count, to: b * count, low: p, high: r });
      },
      [from, to, low, high],
    );
    await draw(page);
    const found = await page.evaluate(() => {
      const { app } = window.tarnView;
      const { source, extents, blocksPicture: picture, state } = app;
      const { canvas, scale } = picture;
      const wide = canvas.width / (state.to - state.from);
      const tall = canvas.height / (scale.high - scale.low);
      let area = 0;
      for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
        const start =
          source.lifetimeStart[lifetime] === 0xffffffff ? 0 : source.lifetimeStart[lifetime];
        const stop =
          source.lifetimeEnd[lifetime] === 0xffffffff
            ? source.count
            : source.lifetimeEnd[lifetime];
        const foot = extents.height(source.lifetimeAddress[lifetime]);
        const top = foot + source.blockSize(lifetime);
        const x = Math.min(stop, state.to) - Math.max(start, state.from);
        const y = Math.min(top, scale.high) - Math.max(foot, scale.low);
        if (x > 0 && y > 0) area += x * wide * y * tall;
      }
      const { frame } = picture;
      return {
        area,
        painted: picture.painted,
        isThere: frame.from === state.from && frame.to === state.to && frame.low === state.low,
      };
    });
    expectTrue(
      `${name}: area of blocks from ${from} to ${to}, ${low} to ${high}`,
      found.isThere && Math.abs(found.painted - found.area) <= 0.002 * found.area + 1,
      JSON.stringify(found),
    );
  }
  await close();
}

/** The picture before stands for the next one, and the whole for what that does not reach. */
async function blocksFollow(browser) {
  const { page, troubles, close } = await openPage(browser, join(work, 'oom.html'), {
    hash: '#v=blocks',
  });
  await draw(page);
  /** Ink at the right end, of a frame that is drawn now: nothing comes between. */
  const inked = (act) =>
    page.evaluate((what) => {
      const { app } = window.tarnView;
      const { blocksPicture: old } = app;
      const { from, to } = app.state;
      if (what.moves) {
        app.state.from = from + (to - from) * 0.3;
        app.state.to = to + (to - from) * 0.3;
        app.blocksWorkshop = null;
        app.draw();
      }
      const { box } = app.picture;
      const wide = Math.floor(box.axis.width * 0.1);
      const { data } = app.canvas
        .getContext('2d')
        .getImageData(
          Math.floor(box.right) - wide,
          Math.ceil(box.top),
          wide,
          Math.floor(box.bottom - box.top),
        );
      let other = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i] < 250 || data[i + 1] < 250) other++;
      const { frame } = app.blocksPicture;
      return {
        ink: other / (data.length / 4),
        hasPicture: app.blocksPicture === old || frame.from === app.state.from,
      };
    }, act);
  await page.evaluate(() => {
    const { app } = window.tarnView;
    app.set({ from: app.source.count * 0.4, to: app.source.count * 0.6 });
  });
  await draw(page);
  const before = await inked({});
  for (const recolours of [false, true]) {
    const when = recolours ? ', colours new' : '';
    if (recolours) {
      // As when a zoom ranks the groups anew: the window is painted in the new colours, what was
      // painted of the whole has the old ones.
      await page.evaluate(() => {
        const { app } = window.tarnView;
        app.groupingNumber++;
        app.set({ from: app.source.count * 0.4, to: app.source.count * 0.6 });
      });
      await draw(page);
      const isMixed = await page.evaluate(() => {
        const { blocksPicture, blocksWhole } = window.tarnView.app;
        return blocksPicture.look !== blocksWhole.look;
      });
      expectTrue('the window has new colours', isMixed);
    }
    const { ink, hasPicture } = await inked({ moves: true });
    expectTrue(`while one moves a picture is shown${when}`, hasPicture);
    const isGood = ink > before.ink * 0.3 && ink > 0.05;
    expectTrue(`what is beside it is shown too${when}`, isGood, ink);
  }
  await draw(page);
  // The last drawing may have begun to paint once more.
  const itsOwn = () => {
    const { app } = window.tarnView;
    return app.blocksPicture.frame.from === app.state.from && !app.blocksJob;
  };
  const isThere = await page.waitForFunction(itsOwn, null, { timeout: 20000 }).then(
    () => true,
    () => false,
  );
  expectTrue('and then its own', isThere);
  await page.evaluate(() => window.tarnView.app.set({ from: 0 }));
  await page.evaluate(() => window.tarnView.app.set({ view: 'timeline' }));
  await draw(page);
  expect('a picture that nobody waits for is given up', troubles, []);
  await close();
}

/** Panels are the same elements until what they tell changes. */
async function partsStay(browser) {
  const { page, close } = await openPage(browser, join(work, 'gpt2_varlen.html'), {
    hash: '#c=5876&l=20',
  });
  await draw(page);
  const found = await page.evaluate(() => {
    const { app } = window.tarnView;
    const ids = ['panel', 'controls', 'tabs', 'status'];
    const parts = () => ids.map((id) => document.getElementById(id).firstElementChild);
    const changed = (changes) => {
      const before = parts();
      const text = document.getElementById('panel').innerText;
      app.set(changes);
      app.draw();
      const kept = parts().map((part, i) => part === before[i]);
      return [...kept, document.getElementById('panel').innerText === text];
    };
    return {
      window: changed({ from: 3000, to: 9000 }),
      again: changed({ from: 3000, to: 9000 }),
      cursor: changed({ cursor: 6000 }),
      group: changed({ by: 'stack' }),
      axis: changed({ axis: 'time' }),
    };
  });
  expect('moving makes only the status anew', found, {
    window: [true, true, true, false, true],
    again: [true, true, true, true, true],
    cursor: [false, true, true, true, false],
    group: [false, false, true, true, false],
    axis: [true, false, true, true, true],
  });
  await close();
}

/** On a common screen the bar of every view is one row, so pictures stay where they are. */
async function barIsOneRow(browser) {
  const { page, close } = await openPage(browser, join(work, 'oom.html'));
  for (const view of ['timeline', 'blocks', 'map', 'flame', 'table']) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
    const high = await page.evaluate(
      () => document.getElementById('controls').getBoundingClientRect().height,
    );
    expectTrue(`${view}: its bar is one row`, high <= 48, high);
  }
  await close();
}

export async function moving(browser) {
  await barIsOneRow(browser);
  for (const name of ['oom', 'multistream', 'gpt2_varlen_expandable', 'hostile'])
    await figuresAnywhere(browser, name);
  for (const name of ['oom', 'cudagraph', 'gpt2_varlen']) await partsAreTrue(browser, name);
  await blocksFollow(browser);
  await partsStay(browser);
}
