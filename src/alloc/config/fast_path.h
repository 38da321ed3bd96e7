/* SPDX-License-Identifier: MIT */
/*
 * Which parts of the fast path are compiled in. TN_FAST_PATH 0 leaves out all of fast/ and
 * everything below; the decisions are the same. To measure what one part gains, TN_FAST_WITHOUT
 * names parts to switch off, for example -DTN_FAST_WITHOUT=TN_PART_BACKOFF (bench/ablation.sh
 * does).
 */
#ifndef TN_ALLOC_CONFIG_FAST_PATH_H
#define TN_ALLOC_CONFIG_FAST_PATH_H

#ifndef TN_FAST_PATH
#define TN_FAST_PATH 1
#endif

#define TN_PART_UNDO_LOG      1  /* the latest allocations, undone and redone by moving a cursor */
#define TN_PART_STREAM_CACHES 2  /* an undo log with a lock of its own per contending stream */
#define TN_PART_BACKOFF       4  /* the log is not used for a while where it does not pay */
#define TN_PART_BIASED_LOCK   8  /* no atomic read-modify-write for the thread that locks often */
#define TN_PART_SHORT_WAY     16 /* one test instead of one for each unusual condition */

#ifndef TN_FAST_WITHOUT
#define TN_FAST_WITHOUT 0
#endif

#define TN_FAST_HAS(part) (TN_FAST_PATH && ((TN_FAST_WITHOUT) & (part)) == 0)

#endif
