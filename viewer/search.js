// SPDX-License-Identifier: MIT
// Looking for text in stacks and metadata, or for an address: which stacks match, how many blocks
// and how many bytes.

/** @param {import('./trace.js').Names} names @param {string} query */
function matchingFrames(names, query) {
  const word = query.toLowerCase();
  const matches = new Uint8Array(names.frameName.length);
  const texts = new Map();
  const has = (/** @type {number} */ text) => {
    let found = texts.get(text);
    if (found === undefined) {
      found = names.text(text).toLowerCase().includes(word);
      texts.set(text, found);
    }
    return found;
  };
  for (let frame = 1; frame < matches.length; frame++) {
    matches[frame] =
      has(names.frameName[frame]) ||
      has(names.frameFile[frame]) ||
      names.frameText(frame).toLowerCase().includes(word)
        ? 1
        : 0;
  }
  return matches;
}

/** @param {import('./trace.js').Source} source @param {string} query */
export function findMatches(source, query) {
  const { names } = source;
  const frames = matchingFrames(names, query);
  const nodes = new Uint8Array(names.nodeParent.length);
  for (let node = 1; node < nodes.length; node++) {
    nodes[node] = frames[names.nodeFrame[node]] || nodes[names.nodeParent[node]];
  }
  const stacks = Uint8Array.from(names.stackNode, (node) => nodes[node]);
  const word = query.toLowerCase();
  const extras = Uint8Array.from(names.extras, (extra) =>
    `${extra.metadata} ${extra.category}`.toLowerCase().includes(word) ? 1 : 0,
  );
  const address = /^0x[0-9a-f]+$/i.test(query) ? Number(BigInt(query) - source.base) : NaN;
  let blocks = 0;
  let bytes = 0;
  /** @type {number[]} */
  const lifetimes = [];
  const has = new Uint8Array(source.lifetimes);
  for (let lifetime = 0; lifetime < source.lifetimes; lifetime++) {
    const size = source.size(lifetime);
    const start = source.lifetimeAddress[lifetime];
    const isAt = address >= start && address < start + Math.max(1, size);
    if (
      stacks[source.lifetimeStack[lifetime]] ||
      isAt ||
      (source.lifetimeExtra && extras[source.lifetimeExtra[lifetime]]) ||
      extras[source.said(lifetime)]
    ) {
      has[lifetime] = 1;
      blocks++;
      bytes += size;
      lifetimes.push(lifetime);
    }
  }
  return { frames, has, blocks, bytes, lifetimes };
}
