// SPDX-License-Identifier: MIT
// Starts the page: the data in it, or in files that it is given, and the first picture.
import { App } from './app.js';
import { showBroken } from './broken.js';
import { figuresOf } from './figures.js';
import { askForFiles } from './open_files.js';
import { openSource, replaceRuns } from './open_source.js';
import { drawFirstPicture } from './overview.js';
import { byId, element } from './paint.js';
import { drawTitle } from './page_title.js';
import { breathe } from './payload.js';
import { Reader } from './reader.js';
import { Run } from './run.js';
import { searchFor } from './searchbar.js';
import { clampState } from './state.js';
import { keptTheme } from './theme.js';

const FIRST_EDGE = { left: 76, right: 12, top: 40, bottom: 24 }; // as the timeline has

/** The recordings in the page: one, or the one before and the one after. */
async function runsOfPage() {
  const first = await Run.begin(0);
  return first.head.runs > 1 ? [first, await Run.begin(1)] : [first];
}

/** Asks for files again. */
function reloadPage() {
  history.replaceState(null, '', location.pathname);
  location.reload();
}

async function start() {
  const wantsDark = matchMedia('(prefers-color-scheme: dark)');
  document.documentElement.classList.toggle('dark', keptTheme() ?? wantsDark.matches);
  const isReader = Reader.has();
  /** @type {(runs: Run[]) => Promise<void>} */
  let showOthers = async () => reloadPage(); // where nothing is shown
  const runs = isReader ? await askForFiles((others) => showOthers(others)) : await runsOfPage();
  const [first] = runs;
  drawTitle(runs);
  if (isReader) {
    const again = element('button', { class: 'tool', onclick: reloadPage }, 'Open another');
    byId('title').after(again);
  }
  if (first.head.sources.length === 0) {
    byId('empty').textContent = 'The snapshot is empty: it has no segments and no trace.';
    byId('empty').hidden = false;
    document.body.classList.remove('loading');
    return;
  }
  const app = new App(runs);
  app.state = app.address.read();
  const info = app.head.sources[app.state.source];
  drawFirstPicture(app.overview, info, app.theme);
  if (app.state.view === 'timeline' && app.state.to < 0)
    drawFirstPicture(
      app.canvas,
      info,
      app.theme,
      byId('stage').getBoundingClientRect(),
      FIRST_EDGE,
    );
  byId('status').textContent = 'reading';
  await breathe();
  for (const run of runs) await run.readTables();
  await openSource(app, app.state.source);
  if (app.state.to < 0) app.state.to = app.source.count;
  clampState(app.state, app.source);
  searchFor(app, app.state.query);
  if (app.state.filter) app.group();
  /** @type {HTMLInputElement} */ (byId('search')).value = app.state.query;
  wantsDark.addEventListener('change', () => {
    if (keptTheme() === null) app.setTheme(wantsDark.matches);
  });
  app.listen();
  document.body.classList.remove('loading');
  /** @type {any} */ (window).tarnView = figuresOf(app);
  showOthers = (others) => replaceRuns(app, others);
  app.draw();
}

start().catch(showBroken);
