/* SPDX-License-Identifier: MIT */
/* Pickles written out as bytes, and the snapshot or error that they give. */
#ifndef TESTS_SUPPORT_PICKLE_BYTES_H
#define TESTS_SUPPORT_PICKLE_BYTES_H

#include "support/test.h"

#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

/* A literal with its length, which may hold NULs. */
#define BYTES(literal) (literal), sizeof(literal) - 1

/* Bytes that are no text and end without a NUL; returns their number. */
static inline size_t bytes_put(void *to, const char *bytes, size_t size)
{
    memcpy(to, bytes, size);
    return size;
}

/* A snapshot whose settings hold the values of `body`: key, value, ... */
#define SETTINGS(body)                                                                             \
    BYTES("\x80\x04}(\x8c\x08segments]\x8c\x12"                                                    \
          "allocator_settings}(" body "uu.")

/* The same with more than a buffer of bytes behind it. */
#define NINE_ZEROS "000000000"
#define LONG_SETTINGS(body)                                                                        \
    BYTES("\x80\x04}(\x8c\x08segments]\x8c\x12"                                                    \
          "allocator_settings}(" body "uu." NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS \
              NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS)

static inline enum tarn_status load(const char *bytes, size_t size, struct tarn_snapshot **snapshot,
                                    struct tarn_error *error)
{
    uint8_t *copy = malloc(size); /* so that a sanitizer sees a read past the end */

    memcpy(copy, bytes, size);
    const enum tarn_status status = tarn_snapshot_load_memory(copy, size, NULL, snapshot, error);
    free(copy);
    return status;
}

static inline void refused(const char *bytes, size_t size, enum tarn_status wanted,
                           const char *said)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {0};
    const enum tarn_status status = load(bytes, size, &snapshot, &error);

    if (status != wanted || !strstr(error.text, said)) {
        print_error("wanted %s and \"%s\", got %s and \"%s\"\n", tarn_status_name(wanted), said,
                    tarn_status_name(status), error.text);
    }
    assert_int_equal(status, wanted);
    assert_non_null(strstr(error.text, said));
    assert_true(wanted == TARN_ERR_TRUNCATED || !snapshot);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static inline struct tarn_snapshot *accepted(const char *bytes, size_t size)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {0};
    const enum tarn_status status = load(bytes, size, &snapshot, &error);

    assert_string_equal(error.text, "");
    assert_int_equal(status, TARN_OK);
    return snapshot;
}

/* The only setting of a snapshot. */
static inline struct tn_field setting(struct tarn_snapshot *snapshot)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->settings.field_count, 1);
    return model->settings.fields[0];
}

#endif
