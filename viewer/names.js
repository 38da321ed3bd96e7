// SPDX-License-Identifier: MIT
// Texts, frames and stacks of a page, which its sources share.
import { BadPage, Numbers } from './payload.js';
import { baseName, shownText } from './format.js';

/** @param {Uint8Array} bytes */
function allVarints(bytes) {
  const numbers = new Numbers(bytes);
  const list = [];
  while (!numbers.isAtEnd()) list.push(numbers.varint());
  numbers.finish();
  return list;
}

/** Texts, frames and stacks of the page. */
export class Names {
  constructor() {
    /** @type {string[]} */
    this.texts = [''];
    this.frameName = new Uint32Array(1);
    this.frameFile = new Uint32Array(1);
    this.frameLine = new Float64Array(1);
    this.frameOrigin = new Uint8Array(1); // 0: the user's code, 1: a library's, 2: PyTorch's
    /** @type {number[][]} */
    this.frameFx = [[]];
    this.nodeParent = new Uint32Array(1);
    this.nodeFrame = new Uint32Array(1);
    this.stackNode = new Uint32Array(1);
    this.stackCategory = new Uint32Array(1); // what the rules say of the stack; 0: nothing
    /**
     * @type {{metadata: string, compile: string, category: string, internal: string, action:
     * string}[]}
     */
    this.extras = [{ metadata: '', compile: '', category: '', internal: '', action: '' }];
    /** @type {string[]} */
    this.frameTexts = [];
  }

  /** @param {{read: (name: string) => Promise<Uint8Array>}} sections */
  async read(sections) {
    const sizes = allVarints(await sections.read('text.sizes'));
    const bytes = await sections.read('text.bytes');
    const decoder = new TextDecoder();
    let at = 0;
    for (const size of sizes) {
      this.texts.push(decoder.decode(bytes.subarray(at, at + size)));
      at += size;
    }
    if (at !== bytes.length) throw new BadPage('the texts have another length than they say');
    this.readFrames(await sections.read('frames'));
    this.readNodes(await sections.read('nodes'));
    this.readStacks(await sections.read('stacks'));
    const extra = allVarints(await sections.read('extras'));
    for (let i = 0; i + 4 < extra.length; i += 5) {
      this.extras.push({
        metadata: this.text(extra[i]),
        compile: this.text(extra[i + 1]),
        category: this.text(extra[i + 2]),
        internal: this.text(extra[i + 3]),
        action: this.text(extra[i + 4]),
      });
    }
  }

  /** @param {Uint8Array} bytes */
  readFrames(bytes) {
    const numbers = new Numbers(bytes);
    const name = [0];
    const file = [0];
    const line = [0];
    const origin = [0];
    while (!numbers.isAtEnd()) {
      name.push(numbers.varint());
      file.push(numbers.varint());
      line.push(numbers.step());
      origin.push(numbers.varint());
      const fx = [numbers.varint(), numbers.varint(), numbers.varint(), numbers.varint()];
      this.frameFx.push(fx.some((text) => text > 0) ? fx : []);
    }
    numbers.finish();
    this.frameName = Uint32Array.from(name);
    this.frameFile = Uint32Array.from(file);
    this.frameLine = Float64Array.from(line);
    this.frameOrigin = Uint8Array.from(origin);
  }

  /** @param {Uint8Array} bytes */
  readNodes(bytes) {
    const numbers = new Numbers(bytes);
    const parent = [0];
    const frame = [0];
    while (!numbers.isAtEnd()) {
      parent.push(parent.length - numbers.varint());
      frame.push(numbers.varint());
    }
    numbers.finish();
    this.nodeParent = Uint32Array.from(parent);
    this.nodeFrame = Uint32Array.from(frame);
    for (let i = 1; i < parent.length; i++) {
      if (!(parent[i] < i) || !(frame[i] < this.frameName.length)) {
        throw new BadPage('the stacks contradict themselves');
      }
    }
  }

  /** Node and category of each. @param {Uint8Array} bytes */
  readStacks(bytes) {
    const stacks = allVarints(bytes);
    this.stackNode = new Uint32Array(1 + stacks.length / 2);
    this.stackCategory = new Uint32Array(1 + stacks.length / 2);
    for (let i = 0; i + 1 < stacks.length; i += 2) {
      this.stackNode[1 + i / 2] = stacks[i];
      this.stackCategory[1 + i / 2] = stacks[i + 1];
    }
  }

  /** @param {number} text */
  text(text) {
    return this.texts[text] ?? '';
  }

  /** "activations.py:66 forward". @param {number} frame */
  frameText(frame) {
    let text = this.frameTexts[frame];
    if (text === undefined) {
      const file = baseName(this.text(this.frameFile[frame]));
      const line = this.frameLine[frame];
      const name = this.text(this.frameName[frame]);
      text = shownText(
        file ? `${file}${line ? ':' + line : ''} ${name}` : name || '(no name)',
        300,
      );
      this.frameTexts[frame] = text;
    }
    return text;
  }

  /** Code of libraries and of the interpreter. @param {number} frame */
  isLibrary(frame) {
    return this.frameOrigin[frame] > 0 || !this.frameFile[frame];
  }

  /** Frames of a stack, innermost first. @param {number} stack */
  frames(stack) {
    const list = [];
    for (let node = this.stackNode[stack]; node > 0; node = this.nodeParent[node]) {
      list.push(this.nodeFrame[node]);
    }
    return list;
  }

  /** The innermost frame and up to three more that say most: those not of PyTorch, and the
   * innermost one of the user's code. @param {number} stack */
  stackText(stack) {
    if (stack === 0) return '(not recorded)';
    const frames = this.frames(stack);
    if (frames.length === 0) return '(no frames)';
    const rest = frames.slice(1);
    const shown = rest.filter((frame) => this.frameOrigin[frame] < 2).slice(0, 2);
    const own = rest.find((frame) => !this.isLibrary(frame));
    if (own !== undefined && !shown.includes(own)) shown.push(own);
    return [frames[0], ...shown].map((frame) => this.frameText(frame)).join(' \u2190 ');
  }
}
