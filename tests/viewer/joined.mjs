// SPDX-License-Identifier: MIT
// The page as it is built where there is no esbuild: its modules joined in the order of
// src/page/CMakeLists.txt. It has to have all of them, and no two of one name.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draw, openPage } from './browser.mjs';
import { VIEWS, data, expect, work } from './check.mjs';

const root = join(data, '../../..');

/** The words of a list of src/page/CMakeLists.txt. */
function listOf(name) {
  const text = readFileSync(join(root, 'src/page/CMakeLists.txt'), 'utf8');
  return new RegExp(`set\\(${name} ([^)]*)\\)`).exec(text)[1].split(/\s+/);
}

/** The pieces of a page, without what the program puts between them. */
function bundle(page, styles, modules) {
  const output = join(work, 'joined.c');
  execFileSync('cmake', [
    `-DFOLDER=${join(root, 'viewer')}`,
    `-DPAGE=${page}`,
    `-DSTYLES=${styles}`,
    `-DMODULES=${modules.join()}`,
    '-DNAME=tn_joined',
    '-DESBUILD=',
    `-DOUTPUT=${output}`,
    '-P',
    join(root, 'cmake/TarnBundle.cmake'),
  ]);
  const pieces = readFileSync(output, 'utf8').matchAll(/char (\w+)\[\d+\] = \{([^}]*)\}/g);
  return Object.fromEntries(
    [...pieces].map(([, name, bytes]) => [
      name,
      Buffer.from(bytes.split(',').filter(Boolean).map(Number)).toString('latin1'),
    ]),
  );
}

/** A page that the program wrote, with another program in it. */
function joinedPage(written) {
  const { start, policy, middle, end } = bundle(
    'page.html',
    'base.css,style.css',
    listOf('page_modules'),
  );
  const sections = readFileSync(written, 'utf8').match(
    /<script type="application[^>]*>[^<]*<\/script>/g,
  );
  const file = join(work, 'joined.html');
  writeFileSync(file, `${start}${policy}joined${middle}${sections.join('\n')}${end}`);
  return file;
}

export async function joining(browser) {
  const file = joinedPage(join(work, 'oom.html'));
  const { page, troubles, close } = await openPage(browser, file);
  for (const view of VIEWS) {
    await page.evaluate((v) => window.tarnView.app.set({ view: v }), view);
    await draw(page);
  }
  const peak = await page.evaluate(() => window.tarnView.peak().requested.entry);
  expect('without esbuild: the page works', [troubles, peak], [[], 4442]);
  await close();
}
