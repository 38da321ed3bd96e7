// SPDX-License-Identifier: MIT
// The program's reader of snapshots, as WebAssembly: bytes of a file go in, sections come out. What
// it refuses the program refuses, in the same words. Its functions are those of src/page/reader.h.
import { readSection } from './payload.js';

const FILE_MAX = 2 ** 30; // bytes; what the reader needs beside them must fit into 4 GiB
const RATIO_MAX = 2000; // bytes that one of a packed file may become, as in the program
const BAD_FILE = 8; // WASI's EBADF: there are no files

/** Why a file is not shown, in words for its reader. */
export class Refused extends Error {}

/** What wasi-libc asks of a system: there is none. @param {WebAssembly.Module} module */
function systemOf(module) {
  /** @type {Record<string, Record<string, Function>>} */
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = () => BAD_FILE;
  }
  for (const functions of Object.values(imports))
    if (functions.proc_exit)
      functions.proc_exit = () => {
        throw new Refused('the reader stopped');
      };
  return /** @type {any} */ (imports);
}

/** The bytes of a file, unpacked if it is gzip. @param {File} file */
async function bytesOf(file) {
  if (file.size > FILE_MAX)
    throw new Refused('it has more than 1 GiB: \u201ctarn view\u201d writes its page');
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (head[0] !== 0x1f || head[1] !== 0x8b) return [await file.arrayBuffer()];
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const most = Math.min(FILE_MAX, Math.max(2 ** 20, file.size * RATIO_MAX));
  const pieces = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new Refused(`its gzip data are damaged or cut off: ${error.message}`);
    });
    if (done) return pieces;
    size += value.length;
    if (size > most)
      throw new Refused(`it unpacks to more than ${most} bytes: \u201ctarn view\u201d reads it`);
    pieces.push(value);
  }
}

export class Reader {
  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.module = module;
  }

  static has() {
    return document.querySelector('script[data-name="reader"]') !== null;
  }

  static async load() {
    const bytes = await readSection('reader');
    return new Reader(await WebAssembly.compile(/** @type {any} */ (bytes)));
  }

  /** Each file has an instance of its own, which goes with all its memory.
   * @param {File} file @returns {Promise<{sections: Map<string, Uint8Array>, note: string}>} */
  async read(file) {
    const pieces = await bytesOf(file);
    const instance = await WebAssembly.instantiate(this.module, systemOf(this.module));
    const reader = /** @type {any} */ (instance.exports);
    try {
      return readWith(reader, pieces);
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Refused(`the reader stopped: ${/** @type {Error} */ (error).message}`);
    }
  }
}

/** @param {any} reader @param {number} at */
function textAt(reader, at) {
  const bytes = new Uint8Array(reader.memory.buffer, at);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}

/** @param {any} reader @param {(ArrayBuffer | Uint8Array)[]} pieces */
function readWith(reader, pieces) {
  const size = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  reader._initialize();
  const room = reader.alloc(size) >>> 0;
  if (room === 0) throw new Refused('there is not enough memory for it');
  let at = room;
  for (const piece of pieces) {
    new Uint8Array(reader.memory.buffer).set(new Uint8Array(piece), at);
    at += piece.byteLength;
  }
  const status = reader.read(room, size);
  const note = textAt(reader, reader.message() >>> 0);
  if (status !== 0) throw new Refused(note || textAt(reader, reader.status_name(status) >>> 0));
  /** @type {Map<string, Uint8Array>} */
  const sections = new Map();
  for (let i = 0; i < reader.section_count(); i++) {
    const from = reader.section_bytes(i) >>> 0;
    const bytes = new Uint8Array(reader.memory.buffer, from, reader.section_size(i) >>> 0);
    sections.set(textAt(reader, reader.section_name(i) >>> 0), bytes.slice());
  }
  return { sections, note };
}
