// SPDX-License-Identifier: MIT
// A page without data: asks for a snapshot, or two to compare, and reads them here.
import { showBroken } from './broken.js';
import { shownText } from './format.js';
import { byId, element } from './paint.js';
import { MappedSections, breathe } from './payload.js';
import { Reader, Refused } from './reader.js';
import { Run } from './run.js';

const RUNS_MAX = 2;

/** What the reader, which has no files, says of "memory". @param {File} file
 * @param {string} message */
function aboutFile(file, message) {
  const name = shownText(file.name, 200);
  return message.startsWith('memory ')
    ? message.replace('memory', () => name)
    : `${name}: ${message}`;
}

/** The recordings of files. @param {Reader} reader @param {File[]} files */
async function readFiles(reader, files) {
  if (files.length > RUNS_MAX) throw new Refused('one snapshot, or two to compare, can be shown');
  const runs = [];
  for (const [i, file] of files.entries()) {
    byId('status').textContent = `reading ${shownText(file.name, 200)}`;
    await breathe();
    const { sections, note } = await reader.read(file).catch((error) => {
      if (!(error instanceof Refused)) throw error;
      throw new Refused(aboutFile(file, error.message));
    });
    const run = await Run.begin(i, new MappedSections(sections));
    if (files.length > 1 && run.head.sources.length === 0)
      throw new Refused(
        `${shownText(file.name, 200)}: it has no segments and no trace to compare`,
      );
    run.head.title = files.map((one) => one.name).join(' to ');
    run.head.name = file.name;
    if (note) run.head.warnings.push([note, 1]);
    runs.push(run);
  }
  return runs;
}

/** What stands where the picture will be. @param {(files: File[]) => void} choose */
function askPart(choose) {
  const input = /** @type {HTMLInputElement} */ (
    element('input', { type: 'file', id: 'file', multiple: true })
  );
  input.addEventListener('change', () => choose([...(input.files ?? [])]));
  return element(
    'div',
    { class: 'ask' },
    element('h2', {}, 'Drop a snapshot here'),
    element(
      'p',
      {},
      element(
        'label',
        { for: 'file' },
        'or choose a file, or two to compare, before and after: ',
      ),
      input,
    ),
    element(
      'p',
      { class: 'note' },
      'A pickle or JSON of torch.cuda.memory._dump_snapshot(), plain or gzip. It is read here, ' +
        'in the browser: the page cannot send anything anywhere, and nothing in the file is run.',
    ),
    element('p', { class: 'limit', id: 'refusal', role: 'alert', hidden: true }),
  );
}

/** Why files are not shown, where they were asked for, or above what is shown.
 * @param {string} message */
function showRefusal(message) {
  const text = `Not shown: ${message}`;
  const refusal = document.getElementById('refusal');
  if (refusal) {
    refusal.hidden = false;
    refusal.textContent = text;
  } else byId('notices').prepend(element('p', { class: 'notice', role: 'alert' }, text));
}

/** Reads files, and gives them to `show`, unless they are refused.
 * @param {Reader} reader @param {File[]} files @param {(runs: Run[]) => void | Promise<void>} show
 * @param {(error: any) => void} fail */
async function openFiles(reader, files, show, fail) {
  if (files.length === 0) return;
  const { body } = document;
  body.classList.add('loading');
  try {
    await show(await readFiles(reader, files));
  } catch (error) {
    body.classList.remove('loading');
    if (error instanceof Refused) {
      if (body.classList.contains('asking')) byId('status').textContent = '';
      showRefusal(error.message);
    } else fail(error);
  }
}

/** Waits until files have been chosen that can be read. Files that are dropped later take their
 * place: a browser would otherwise leave the page for them.
 * @param {(runs: Run[]) => Promise<void>} showOthers @returns {Promise<Run[]>} */
export async function askForFiles(showOthers) {
  const reader = await Reader.load();
  const place = byId('empty');
  const { classList } = document.body;
  classList.remove('loading');
  classList.add('asking');
  return new Promise((done, fail) => {
    const showFirst = (/** @type {Run[]} */ runs) => {
      classList.remove('asking');
      place.replaceChildren();
      place.hidden = true;
      done(runs);
    };
    const choose = (/** @type {File[]} */ files) =>
      classList.contains('asking')
        ? openFiles(reader, files, showFirst, fail)
        : openFiles(reader, files, showOthers, showBroken);
    window.addEventListener('dragover', (event) => event.preventDefault());
    window.addEventListener('drop', (event) => {
      event.preventDefault();
      choose([...(event.dataTransfer?.files ?? [])]);
    });
    place.replaceChildren(askPart(choose));
    place.hidden = false;
  });
}
