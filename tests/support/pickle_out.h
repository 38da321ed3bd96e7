/* SPDX-License-Identifier: MIT */
/*
 * Writing small pickles in memory: enough for a snapshot. Values go out in order; a dict or list is
 * opened, filled and closed.
 */
#ifndef TESTS_SUPPORT_PICKLE_OUT_H
#define TESTS_SUPPORT_PICKLE_OUT_H

#include "support/test.h"

#include <stdbool.h>
#include <string.h>

struct pickle_out {
    uint8_t bytes[1 << 16];
    size_t size;
};

static inline void pickle_put(struct pickle_out *out, const void *bytes, size_t size)
{
    assert_true(out->size + size <= sizeof out->bytes);
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static inline void pickle_begin(struct pickle_out *out)
{
    out->size = 0;
    pickle_put(out, "\x80\x02", 2);
}

static inline void pickle_end(struct pickle_out *out)
{
    pickle_put(out, ".", 1);
}

static inline void pickle_dict(struct pickle_out *out)
{
    pickle_put(out, "}(", 2);
}

static inline void pickle_dict_end(struct pickle_out *out)
{
    pickle_put(out, "u", 1);
}

static inline void pickle_list(struct pickle_out *out)
{
    pickle_put(out, "](", 2);
}

static inline void pickle_list_end(struct pickle_out *out)
{
    pickle_put(out, "e", 1);
}

static inline void pickle_text(struct pickle_out *out, const char *text)
{
    const uint8_t head[5] = {'X', (uint8_t)strlen(text)};

    assert_true(strlen(text) < 256);
    pickle_put(out, head, sizeof head);
    pickle_put(out, text, strlen(text));
}

/* LONG1 with nine bytes: any number from 0 on. */
static inline void pickle_number(struct pickle_out *out, uint64_t number)
{
    uint8_t bytes[11] = {0x8a, 9};

    for (int i = 0; i < 8; i++) {
        bytes[2 + i] = (uint8_t)(number >> (8 * i));
    }
    pickle_put(out, bytes, sizeof bytes);
}

static inline void pickle_item(struct pickle_out *out, const char *key, uint64_t number)
{
    pickle_text(out, key);
    pickle_number(out, number);
}

static inline void pickle_item_text(struct pickle_out *out, const char *key, const char *text)
{
    pickle_text(out, key);
    pickle_text(out, text);
}

static inline void pickle_item_bool(struct pickle_out *out, const char *key, bool value)
{
    pickle_text(out, key);
    pickle_put(out, value ? "\x88" : "\x89", 1);
}

#endif
