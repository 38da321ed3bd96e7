/* SPDX-License-Identifier: MIT */
/* Pinned memory at one moment, for a snapshot. */
#ifndef TN_PINNED_PINNED_LOOK_H
#define TN_PINNED_PINNED_LOOK_H

#include "alloc/engine/allocator.h"
#include "tarn/pinned.h"

/* As tn_allocator_look, each block as tarn_pinned_walk shows it. No event is sent for it. Fails in
 * a forked child only. */
enum tarn_status tn_pinned_look(struct tarn_pinned *pinned, const struct tn_look *look,
                                struct tarn_error *error) TN_MUST_CHECK;

/* The context of the receiver whose stacks blocks keep; NULL when there is none. */
const void *tn_pinned_stack_keeper(struct tarn_pinned *pinned);

/* Number of the device that the memory is made through. */
int tn_pinned_ordinal(const struct tarn_pinned *pinned);

#endif
