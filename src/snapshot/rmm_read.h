/* SPDX-License-Identifier: MIT */
/*
 * Reads the log of RAPIDS' memory manager (RMM, logging_resource_adaptor) as the trace of device 0:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   2342727,15:47:02.841961,allocate,0x10012400000,1048576,0x0
 *
 * Actions are `allocate`, `free` (in some descriptions `deallocate`) and `allocate failure`. A
 * free completes immediately: RMM orders it by the stream. Times are times of day, continued past
 * midnight. Such a log has no segments, stacks or settings.
 */
#ifndef TN_SNAPSHOT_RMM_READ_H
#define TN_SNAPSHOT_RMM_READ_H

#include "base/input.h"
#include "snapshot/model.h"

/* Whether the bytes begin like the header. */
bool tn_rmm_begins(const uint8_t *bytes, size_t size);

/* Fills an empty model. TARN_ERR_FORMAT with the line in the text, TARN_ERR_TRUNCATED if the last
 * line is incomplete (the model has the rows before it), TARN_ERR_LIMIT, TARN_ERR_IO,
 * TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_rmm_read(struct tn_input *input, struct tn_model *model,
                             struct tarn_error *error) TN_MUST_CHECK;

#endif
