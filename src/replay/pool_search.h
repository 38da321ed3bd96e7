/* SPDX-License-Identifier: MIT */
/*
 * Which segments were those of private pools. The final segments say of themselves, newer traces of
 * every entry; of a segment that a graph gave back before the end nothing is written. But where a
 * replay first differs from the recorded run, one of two segments was in another pool: that of the
 * recorded block, or that of the block which the replay took.
 *
 * So each of them is tried in a pool of its own or in one found before; what leads furthest is
 * kept, as long as something leads further.
 */
#ifndef TN_REPLAY_POOL_SEARCH_H
#define TN_REPLAY_POOL_SEARCH_H

#include "replay/program.h"
#include "snapshot/model.h"
#include "tarn/config.h"

/* Gives operations of the program the pools that are found, with the end of their use. Does nothing
 * when the run comes out exactly, when no segment is given back in the trace, or when its entries
 * say their pools. TARN_ERR_HOST_MEMORY; the program is then as it was. */
enum tarn_status tn_pool_search(struct tn_program *program, const struct tn_model *model,
                                const struct tarn_config *config,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
