/* SPDX-License-Identifier: MIT */
#include "base/input.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    WINDOW_SIZE = 1 << 18
};

static enum tarn_status input_start(struct tn_input *input, const struct tn_unpack_limits *limits,
                                    struct tarn_error *error)
{
    enum tarn_status status = tn_unpack_init(&input->unpack, &input->source, limits, error);

    if (status == TARN_OK) {
        input->buffer = tn_host_alloc(WINDOW_SIZE);
        if (!input->buffer) {
            status = tn_fail_memory(error);
        }
    }
    if (status != TARN_OK) {
        tn_input_close(input);
        return status;
    }
    input->capacity = WINDOW_SIZE;
    input->start = input->at = input->end = input->buffer;
    return TARN_OK;
}

enum tarn_status tn_input_open(struct tn_input *input, const char *path,
                               const struct tn_unpack_limits *limits, struct tarn_error *error)
{
    *input = (struct tn_input){0};
    const enum tarn_status status = tn_source_open(&input->source, path, error);

    return status == TARN_OK ? input_start(input, limits, error) : status;
}

enum tarn_status tn_input_open_memory(struct tn_input *input, const void *bytes, size_t size,
                                      const struct tn_unpack_limits *limits,
                                      struct tarn_error *error)
{
    *input = (struct tn_input){0};
    tn_source_init_memory(&input->source, bytes, size);
    return input_start(input, limits, error);
}

void tn_input_close(struct tn_input *input)
{
    tn_unpack_fini(&input->unpack);
    tn_source_close(&input->source);
    tn_host_free(input->buffer, input->capacity);
    input->buffer = NULL;
}

/* Moves the unread bytes to the front. */
static void input_compact(struct tn_input *input)
{
    const size_t left = (size_t)(input->end - input->at);

    input->base += (uint64_t)(input->at - input->start);
    memmove(input->buffer, input->at, left);
    input->at = input->start;
    input->end = input->start + left;
}

static enum tarn_status input_grow(struct tn_input *input, struct tarn_error *error)
{
    const size_t used = (size_t)(input->end - input->start);
    uint8_t *buffer = tn_host_resize(input->buffer, input->capacity, input->capacity * 2);

    if (!buffer) {
        return tn_fail_memory(error);
    }
    input->buffer = buffer;
    input->capacity *= 2;
    input->start = input->at = buffer;
    input->end = buffer + used;
    return TARN_OK;
}

enum tarn_status tn_input_fill(struct tn_input *input, size_t size, struct tarn_error *error)
{
    enum tarn_status status;

    input_compact(input);
    while ((size_t)(input->end - input->at) < size) {
        const size_t used = (size_t)(input->end - input->start);
        size_t got;

        if (used == input->capacity && (status = input_grow(input, error)) != TARN_OK) {
            return status;
        }
        status = tn_unpack_read(&input->unpack, input->buffer + used, input->capacity - used, &got,
                                error);
        if (status != TARN_OK) {
            return status;
        }
        if (got == 0) {
            return tn_fail_at(error, TARN_ERR_TRUNCATED, (int64_t)(input->base + used),
                              "the input ends early, at byte %llu",
                              (unsigned long long)(input->base + used));
        }
        input->end += got;
    }
    return TARN_OK;
}
