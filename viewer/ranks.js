// SPDX-License-Identifier: MIT
// Starts the page of a fleet.
import { showBroken } from './broken.js';
import { FleetApp } from './fleet_app.js';
import { Fleet } from './fleet_data.js';
import { hitLines } from './fleet_keys.js';
import { shownText } from './format.js';
import { byId } from './paint.js';
import { commandOf, linkOf } from './rank_link.js';
import { keptTheme } from './theme.js';

async function start() {
  const wantsDark = matchMedia('(prefers-color-scheme: dark)');
  document.documentElement.classList.toggle('dark', keptTheme() ?? wantsDark.matches);
  const fleet = await Fleet.read();
  byId('title').textContent = shownText(fleet.title, 200);
  const app = new FleetApp(fleet);
  app.listen();
  app.show();
  document.body.classList.remove('loading');
  app.draw(); // now that there is a scroll bar, or none
  /** @type {any} */ (window).tarnView = { isReady: true, app, hitLines, linkOf, commandOf };
}

start().catch(showBroken);
