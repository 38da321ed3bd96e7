/* SPDX-License-Identifier: MIT */
/* From the bytes of a page to the structs of tarn/watch_read.h, trusting nothing. */
#ifndef TN_WATCH_WATCH_RECORD_H
#define TN_WATCH_WATCH_RECORD_H

#include "alloc/watch/latch.h"
#include "base/attr.h"
#include "tarn/watch_read.h"

/* Checks the head and takes what is public. TARN_ERR_FORMAT. */
enum tarn_status tn_watch_head_decode(const struct tn_page_head *head,
                                      struct tarn_watch_process *process_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Reads slot `index`; `read` as for tn_latch_read. Errors are those of tarn_watch_read. */
enum tarn_status tn_watch_record_read(tn_latch_source read, void *context, uint32_t index,
                                      struct tarn_watch_record *record_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

#endif
