// SPDX-License-Identifier: MIT
// Light or dark, when somebody has chosen: kept by the browser, because it is the reader's and not
// part of the picture that a link shows.

const KEY = 'tarn-theme';

/** @param {boolean} isDark */
export function keepTheme(isDark) {
  try {
    localStorage.setItem(KEY, isDark ? 'dark' : 'light');
  } catch {
    /* some viewers of files keep nothing */
  }
}

/** What was chosen, if anything was: true is dark. @returns {boolean | null} */
export function keptTheme() {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === null ? null : kept === 'dark';
  } catch {
    return null;
  }
}
