/* SPDX-License-Identifier: MIT */
/*
 * Finds which segments belonged to private pools. Final segments name their pool, and so do the
 * entries of newer traces, but a segment that a graph released before the end does not. Where a
 * replay first differs from the recorded run, one of two segments was in another pool: that of the
 * recorded block, or that of the block the replay chose.
 *
 * So the search tries each of them in a new pool and in those found before, keeps the choice that
 * reproduces the longest part of the run, and repeats while that grows.
 */
#ifndef TN_REPLAY_POOL_SEARCH_H
#define TN_REPLAY_POOL_SEARCH_H

#include "replay/program.h"
#include "snapshot/model.h"
#include "tarn/config.h"

/* Assigns the found pools to operations of the program and ends their uses. Does nothing if the run
 * is reproduced exactly, if the trace releases no segment, if its entries name their pools, or if
 * pools have no more numbers. TARN_ERR_HOST_MEMORY; the program is then unchanged. */
enum tarn_status tn_pool_search(struct tn_program *program, const struct tn_model *model,
                                const struct tarn_config *config,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
