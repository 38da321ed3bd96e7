/* SPDX-License-Identifier: MIT */
/*
 * Reports on a snapshot, as text to a writer. The texts are those of PyTorch's _memory_viz tool,
 * byte for byte; its command line prints one newline more at the end.
 */
#ifndef TARN_REPORT_H
#define TARN_REPORT_H

#include "snapshot.h"
#include "stats.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What `_memory_viz stats` prints: one line of letters a segment of 20 MiB and more, then totals.
 * Fails with what the writer returned, with TARN_ERR_MISMATCH when the blocks of a segment do not
 * add up to its size (written so far: the lines before), or with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_report_stats(const struct tarn_snapshot *snapshot,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* What `torch.cuda.memory_summary` prints for these counters, its final newline included.
 * Abbreviated: without the rows of each pool. */
TARN_API enum tarn_status tarn_report_summary(const struct tarn_stats *stats, int device,
                                              bool abbreviated,
                                              const struct tarn_writer *writer) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
