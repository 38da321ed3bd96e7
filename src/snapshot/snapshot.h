/* SPDX-License-Identifier: MIT */
/* The model inside a snapshot, for other folders of the library. */
#ifndef TN_SNAPSHOT_SNAPSHOT_H
#define TN_SNAPSHOT_SNAPSHOT_H

#include "snapshot/model.h"
#include "tarn/snapshot.h"

/* Borrowed until the snapshot is destroyed. */
const struct tn_model *tn_snapshot_model(const struct tarn_snapshot *snapshot);

/* A snapshot with an empty model, for producers other than files; fill it through the second
 * function. Caller owns, destroy with tarn_snapshot_destroy. */
enum tarn_status tn_snapshot_create(uint64_t memory_limit,
                                    struct tarn_snapshot **snapshot_out) TN_MUST_CHECK;
struct tn_model *tn_snapshot_model_mutable(struct tarn_snapshot *snapshot);

#endif
