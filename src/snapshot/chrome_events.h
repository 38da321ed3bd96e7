/* SPDX-License-Identifier: MIT */
/*
 * Reads the events of a Chrome trace one by one: an object with "traceEvents", or a bare array.
 * Only one event is in memory at a time, at most 16 MiB. Containers nest at most 64 deep.
 */
#ifndef TN_SNAPSHOT_CHROME_EVENTS_H
#define TN_SNAPSHOT_CHROME_EVENTS_H

#include "base/input.h"

struct tn_chrome_visitor {
    /* An event: the text of a JSON object, borrowed during the call. */
    enum tarn_status (*event)(void *context, const char *text, size_t size, uint64_t offset);
    /* A plain member other than traceEvents. */
    void (*member)(void *context, const char *key, size_t key_size, const char *text, size_t size);
    void *context;
};

/* TARN_ERR_FORMAT, TARN_ERR_TRUNCATED, TARN_ERR_LIMIT, TARN_ERR_IO, TARN_ERR_HOST_MEMORY, or the
 * visitor's status. */
enum tarn_status tn_chrome_read(struct tn_input *input, const struct tn_chrome_visitor *visitor,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
