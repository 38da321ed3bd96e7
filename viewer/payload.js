// SPDX-License-Identifier: MIT
// The data of the page: sections in script elements that no browser runs, deflated, in base64.

/** What is wrong with the page's data, in words for its reader. */
export class BadPage extends Error {}

const SECTION_MAX = 2 ** 30;

/** @param {string} text */
function base64Bytes(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
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
  const element = document.querySelector(`script[data-name="${name}"]`);
  const size = Number(element?.getAttribute('data-size'));
  if (!element || !(size >= 0 && size <= SECTION_MAX)) {
    throw new BadPage(`section \u201c${name}\u201d is missing: the file was cut off or changed`);
  }
  try {
    const packed = base64Bytes(element.textContent || '');
    element.remove();
    return await inflate(packed, size);
  } catch (error) {
    throw new BadPage(
      `section \u201c${name}\u201d is damaged: ${/** @type {Error} */ (error).message}`,
    );
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
