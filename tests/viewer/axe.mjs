// SPDX-License-Identifier: MIT
// What axe finds wrong with a page for people who do not see it, or use no mouse.
import { readFileSync } from 'node:fs';
import { axePath } from './check.mjs';

/** @param {import('playwright-core').Page} page */
export function axeFinds(page) {
  return page
    .evaluate(
      async (code) => {
        if (!window.axe) new Function(code)();
        const found = await window.axe.run(document, { resultTypes: ['violations'] });
        return found.violations.map(
          (v) =>
            `${v.id}: ${v.nodes
              .map((n) => n.target)
              .join(' ')
              .slice(0, 200)}`,
        );
      },
      readFileSync(axePath, 'utf8'),
    )
    .catch((error) => [error.message]);
}
