// SPDX-License-Identifier: MIT
// The panel that is shown instead of a blank page.
import { element, byId } from './paint.js';
import { BadPage } from './payload.js';

/** @param {unknown} error */
export function showBroken(error) {
  const isKnown = error instanceof BadPage;
  const text = error instanceof Error ? error.message : String(error);
  const panel = byId('broken');
  panel.replaceChildren(
    element('h2', {}, 'This page cannot be shown'),
    element(
      'p',
      {},
      isKnown ? `Its data cannot be read: ${text}.` : `The program in it stopped: ${text}`,
    ),
    element(
      'p',
      {},
      isKnown
        ? 'The file was probably changed or cut off on its way here. ' +
            'Ask for it again, or write it anew with \u201ctarn view\u201d.'
        : 'Please report this with the snapshot, if you may give it away. \u201ctarn ' +
            'peak\u201d and \u201ctarn oom\u201d print what the page would show.',
    ),
  );
  panel.hidden = false;
  document.body.classList.remove('loading');
  if (!isKnown) console.error(error);
}
