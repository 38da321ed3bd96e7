// SPDX-License-Identifier: MIT
// Text to the clipboard, also where a page from a file may not write it.
import { element } from './paint.js';

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element('textarea', { class: 'hidden', 'aria-hidden': 'true' });
    /** @type {HTMLTextAreaElement} */ (area).value = text;
    document.body.append(area);
    /** @type {HTMLTextAreaElement} */ (area).select();
    document.execCommand('copy');
    area.remove();
  }
}
