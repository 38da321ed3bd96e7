// SPDX-License-Identifier: MIT
// The data of the page: sections in script elements that no browser runs, deflated, in base 128.

/** What is wrong with the page's data, in words for its reader. */
export class BadPage extends Error {}

const SECTION_MAX = 2 ** 30;

// What a character of U+0080 and above stands for, by src/page/base128.c.
const FORBIDDEN = [0, 13, 60, 26];

/** The bytes of base 128: seven bits a character, those from U+0080 on, of two bytes, twelve.
 * @param {string} text */
function base128Bytes(text) {
  const codes = new TextEncoder().encode(text);
  const bytes = codes; // they are fewer: what is written has been read
  let used = 0;
  let bits = 0;
  let held = 0;
  for (let i = 0; i < codes.length; i++) {
    let code = codes[i];
    if (code < 128) {
      bits = (bits << 7) | code;
      held += 7;
    } else {
      if (code > 0xc3) throw new BadPage('it has characters that it cannot have');
      code = ((code & 1) << 6) | (codes[++i] & 63);
      bits = (bits << 12) | (FORBIDDEN[code >> 5] << 5) | (code & 31);
      held += 12;
      if (held >= 16) {
        held -= 8;
        bytes[used++] = bits >> held;
      }
    }
    if (held >= 8) {
      held -= 8;
      bytes[used++] = bits >> held;
    }
  }
  return bytes.subarray(0, used);
}

/** @param {Uint8Array} packed @param {number} size */
async function inflate(packed, size) {
  const stream = new Blob([/** @type {any} */ (packed)])
    .stream()
    .pipeThrough(new DecompressionStream('deflate'));
  const reader = stream.getReader();
  const bytes = new Uint8Array(size);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > size) throw new BadPage('it is longer than it says');
    bytes.set(value, at);
    at += value.length;
  }
  if (at !== size) throw new BadPage('it ends early');
  return bytes;
}

/** The bytes of a section; its element goes, so that each is held once.
 * @param {string} name @returns {Promise<Uint8Array>} */
export async function readSection(name) {
  if (document.characterSet !== 'UTF-8') {
    throw new BadPage(`it was sent as ${document.characterSet}, and is UTF-8`);
  }
  const element = document.querySelector(`script[data-name="${name}"]`);
  const size = Number(element?.getAttribute('data-size'));
  if (!element || !(size >= 0 && size <= SECTION_MAX)) {
    throw new BadPage(`section \u201c${name}\u201d is missing: the file was cut off or changed`);
  }
  try {
    const packed = base128Bytes(element.textContent || '');
    element.remove();
    return await inflate(packed, size);
  } catch (error) {
    throw new BadPage(
      `section \u201c${name}\u201d is damaged: ${/** @type {Error} */ (error).message}`,
    );
  }
}

/** The sections of a recording: those of the first of two have no prefix. */
export class Sections {
  /** @param {string} prefix */
  constructor(prefix) {
    this.prefix = prefix;
  }

  /** @param {string} name */
  read(name) {
    return readSection(this.prefix + name);
  }
}

/** Sections that are there already, each read once. */
export class MappedSections {
  /** @param {Map<string, Uint8Array>} sections */
  constructor(sections) {
    this.sections = sections;
  }

  /** @param {string} name @returns {Promise<Uint8Array>} */
  async read(name) {
    const bytes = this.sections.get(name);
    if (!bytes) throw new BadPage(`section \u201c${name}\u201d is missing`);
    this.sections.delete(name);
    return bytes;
  }
}

/** Numbers of a column, one after another. */
export class Numbers {
  /** @param {Uint8Array} bytes @param {number} [start] @param {number} [end] */
  constructor(bytes, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  varint() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let number = byte & 127;
    let times = 128;
    do {
      byte = bytes[this.at++];
      number += (byte & 127) * times;
      times *= 128;
    } while (byte >= 128);
    return number;
  }

  /** A signed one. */
  step() {
    const number = this.varint();
    return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
  }

  byte() {
    return this.bytes[this.at++];
  }

  isAtEnd() {
    return this.at >= this.end;
  }

  /** Every number must have been there, and nothing else. */
  finish() {
    if (this.at !== this.end)
      throw new BadPage('a column of the data does not end where it should');
  }
}

/** Numbers that are spread over planes of bytes: the lowest bytes of all of them, then the next.
 * @param {Uint8Array} bytes @param {number} at @param {number} count @param {number} width */
export function planeNumbers(bytes, at, count, width) {
  if (width > 8) throw new BadPage('its numbers are too large');
  const numbers = width <= 4 ? new Uint32Array(count) : new Float64Array(count);
  if (width === 1) numbers.set(bytes.subarray(at, at + count));
  else if (width === 2) {
    for (let i = 0; i < count; i++, at++) numbers[i] = bytes[at] | (bytes[at + count] << 8);
  } else {
    for (let plane = 0, times = 1; plane < width; plane++, times *= 256, at += count) {
      for (let i = 0; i < count; i++) numbers[i] += bytes[at + i] * times;
    }
  }
  return numbers;
}

/** Lets the browser draw and answer. */
export function breathe() {
  return new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      done(undefined);
    };
    channel.port2.postMessage(0);
  });
}
