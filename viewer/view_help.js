// SPDX-License-Identifier: MIT
// What one sees in each view, for those who see it for the first time.

export const VIEW_HELP = /** @type {Record<string, string[]>} */ ({
  timeline: [
    'Memory over the events of the recording, or over time. Colours are requested bytes, ' +
      'by group; the dark line is what is reserved, and the grey below it is the cache of ' +
      'the allocator.',
    'A column of pixels shows its event with the most memory; the paler part is there for ' +
      'some of its events only. What lives longest is at the bottom.',
    'Above: annotations, ticks where segments came (high) and went (low), a red triangle ' +
      'for each failed request, dots for snapshots and notes.',
  ],
  blocks: [
    'Each block is a rectangle: from its allocation to its free, as high as it is large. ' +
      'By address it lies where the allocator put it; piled, blocks stand on each other in ' +
      'the order in which they came. Grey is reserved and free.',
    'A long thin line across grey is a small block that keeps a segment from being reused ' +
      'whole.',
  ],
  map: [
    'Segments at the cursor, by pool and stream, with the blocks in them. The allocator ' +
      'never mixes pools or streams: free memory of one cannot serve the other.',
    'Hatched blocks are freed, and wait for another stream. Darker grey behind a block is ' +
      'lost to rounding.',
    'A dashed box stands for addresses of an expandable segment that have no pages now, however ' +
      'many. Where the request at the cursor moved pages, an arrow goes from where they were to ' +
      'where they are.',
    'Where the file lists the pages of segments, a strip below each shows their borders, and ' +
      'which of them are at an address that had another page before, or at several addresses.',
  ],
  flame: [
    'Stacks: the width of a box is what its frame, and those that it called, hold. ' +
      'Colours are files; pale boxes are code of libraries. A click makes a box as wide as ' +
      'the picture.',
  ],
  table: [
    'All groups with what they hold at the cursor, held at the peak, and requested in ' +
      'total.',
  ],
  oom: ['Why each failed request failed: what was free and where, and who held the memory.'],
  answers: [
    'What the program found out when it wrote the page: it replayed the run under each setting, ' +
      'and with libtarn\u2019s policy that moves pages.',
    'Events lead to the map as it was then, steps to what grew in them.',
  ],
  compare: [
    'Two recordings on one scale, and what each group held before and holds after, at the ' +
      'event that is chosen in each: at first the peaks. A click or the slider chooses another.',
    'Groups are the same by name, whatever their addresses. v switches which recording the ' +
      'other views show.',
  ],
  info: ['What is in the file, and what is not.'],
});
