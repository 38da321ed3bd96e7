// SPDX-License-Identifier: MIT
// From a rank to its own page: a link where it lies beside this one, else the command that makes
// it.
import { copyText } from './clipboard.js';
import { element } from './paint.js';

/** A path as a link that can name nothing but a file. @param {string} path */
export function linkOf(path) {
  const link = path.split('/').map(encodeURIComponent).join('/').replace(/^\/+/, '/');
  return /^(\/|\.\.?\/)/.test(link) ? link : `./${link}`;
}

/** A word for a shell, which takes it as it is; null: it has characters that nobody should paste.
 * @param {string} word */
export function shellWord(word) {
  if (/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/u.test(word)) return null;
  if (/^[\w%+,./:@][\w%+,./:@=-]*$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** @param {import('./rank.js').Rank} rank */
export function commandOf(rank) {
  const word = shellWord(rank.file.startsWith('-') ? `./${rank.file}` : rank.file);
  return word === null ? null : `tarn view ${word}`;
}

/** @param {import('./rank.js').Rank} rank */
export function wayTo(rank) {
  if (rank.page !== null)
    return element('a', { href: linkOf(rank.page) }, `The page of ${rank.name}`);
  const command = commandOf(rank);
  if (command === null) return element('span', {}, 'tarn view makes its page');
  return element(
    'span',
    {},
    element('code', {}, command),
    ' ',
    element(
      'button',
      {
        class: 'link',
        'aria-label': `Copy the command for ${rank.name}`,
        onclick: () => copyText(command),
      },
      'Copy',
    ),
  );
}
