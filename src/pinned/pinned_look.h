/* SPDX-License-Identifier: MIT */
/* Pinned memory at one time point, for a snapshot. */
#ifndef TN_PINNED_PINNED_LOOK_H
#define TN_PINNED_PINNED_LOOK_H

#include "alloc/engine/allocator.h"
#include "tarn/pinned.h"

/* As tn_allocator_look, each block as in tarn_pinned_walk. Sends no event. Fails only in a forked
 * child. */
enum tarn_status tn_pinned_look(struct tarn_pinned *pinned, const struct tn_look *look,
                                struct tarn_error *error) TN_MUST_CHECK;

/* The context of the sink whose stacks the blocks hold; NULL when there is none. */
const void *tn_pinned_stack_keeper(struct tarn_pinned *pinned);

/* Ordinal of the device that allocates the memory. */
int tn_pinned_ordinal(const struct tarn_pinned *pinned);

#endif
