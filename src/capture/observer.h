/* SPDX-License-Identifier: MIT */
/* Observed memory at one time point, for a snapshot. */
#ifndef TN_CAPTURE_OBSERVER_H
#define TN_CAPTURE_OBSERVER_H

#include "alloc/engine/allocator.h"
#include "tarn/observer.h"

/* As tn_allocator_look, each allocation as a segment with one block. Sends no event. Fails only in
 * a forked child. */
enum tarn_status tn_observer_look(struct tarn_observer *observer, const struct tn_look *look,
                                  struct tarn_error *error) TN_MUST_CHECK;

int tn_observer_ordinal(const struct tarn_observer *observer);

/* NULL when there is none. */
struct tarn_history *tn_observer_history(const struct tarn_observer *observer);

#endif
