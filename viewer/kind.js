// SPDX-License-Identifier: MIT
// Kinds of entries of a trace.

/** Kinds of entries; the numbers are those of src/page/record.h. */
export const KIND = {
  ALLOC: 0,
  FREE_REQUESTED: 1,
  FREE_COMPLETED: 2,
  FREE: 3,
  OLD_FREE_REQUESTED: 4,
  OLD_FREE_COMPLETED: 5,
  OLD_FREE: 6,
  LOST_FREE_REQUESTED: 7,
  LOST_FREE_COMPLETED: 8,
  SEGMENT_ALLOC: 9,
  SEGMENT_FREE: 10,
  SEGMENT_MAP: 11,
  SEGMENT_UNMAP: 12,
  SNAPSHOT: 13,
  OOM: 14,
  ANNOTATE: 15,
  USER_DEFINED: 16,
  OTHER: 17,
  ALLOC_AGAIN: 18,
};

/** Names of entries after decoding; kinds 3 to 6 are then gone. */
export const KIND_NAMES = [
  'alloc',
  'free requested',
  'free completed',
  '',
  '',
  '',
  '',
  'free of a free block',
  'free of a free block',
  'segment alloc',
  'segment free',
  'segment map',
  'segment unmap',
  'snapshot',
  'out of memory',
  'annotate',
  'user defined',
  'other',
  'alloc of an allocated block',
];

/** As a start: before the first entry. As an end: never. */
export const NEVER = 0xffffffff;
