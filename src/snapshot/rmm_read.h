/* SPDX-License-Identifier: MIT */
/*
 * Reads the log of RAPIDS' memory manager (RMM, logging_resource_adaptor) as the trace of device 0:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   2342727,15:47:02.841961,allocate,0x10012400000,1048576,0x0
 *
 * Actions are `allocate`, `free` (in some descriptions `deallocate`) and `allocate failure`. A
 * free is complete at once: RMM orders it by the stream. Times are of a day; those that begin again
 * at midnight go on. There are no segments, stacks or settings in such a log.
 */
#ifndef TN_SNAPSHOT_RMM_READ_H
#define TN_SNAPSHOT_RMM_READ_H

#include "base/input.h"
#include "snapshot/model.h"

/* Whether the bytes begin like the header. */
bool tn_rmm_begins(const uint8_t *bytes, size_t size);

/* Fills an empty model. TARN_ERR_FORMAT with the line in the text, TARN_ERR_TRUNCATED when the last
 * line is cut (the rows before it are in the model), TARN_ERR_LIMIT, TARN_ERR_IO,
 * TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_rmm_read(struct tn_input *input, struct tn_model *model,
                             struct tarn_error *error) TN_MUST_CHECK;

#endif
