// SPDX-License-Identifier: MIT
// A page without data: asks for a snapshot, or two to compare, and reads them here.
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

/** Waits until files have been chosen that can be read. @returns {Promise<Run[]>} */
export async function askForFiles() {
  const reader = await Reader.load();
  const place = byId('empty');
  document.body.classList.remove('loading');
  document.body.classList.add('asking');
  return new Promise((done, fail) => {
    const choose = async (/** @type {File[]} */ files) => {
      if (files.length === 0) return;
      document.body.classList.add('loading');
      try {
        const runs = await readFiles(reader, files);
        stop();
        document.body.classList.remove('asking');
        place.replaceChildren();
        place.hidden = true;
        done(runs);
      } catch (error) {
        document.body.classList.remove('loading');
        byId('status').textContent = '';
        if (!(error instanceof Refused)) fail(error);
        const refusal = byId('refusal');
        refusal.hidden = false;
        refusal.textContent = `Not shown: ${/** @type {Error} */ (error).message}`;
      }
    };
    const allow = (/** @type {DragEvent} */ event) => event.preventDefault();
    const drop = (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      choose([...(event.dataTransfer?.files ?? [])]);
    };
    const stop = () => {
      window.removeEventListener('dragover', allow);
      window.removeEventListener('drop', drop);
    };
    window.addEventListener('dragover', allow);
    window.addEventListener('drop', drop);
    place.replaceChildren(askPart(choose));
    place.hidden = false;
  });
}
