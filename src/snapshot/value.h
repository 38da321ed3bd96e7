/* SPDX-License-Identifier: MIT */
/*
 * A value of a file of any format: a plain value, or the number of a container that the decoder
 * keeps. 16 bytes, including its position in the input for messages.
 */
#ifndef TN_SNAPSHOT_VALUE_H
#define TN_SNAPSHOT_VALUE_H

#include <stdint.h>

enum tn_value_kind {
    TN_VALUE_NONE,
    TN_VALUE_BOOL,
    TN_VALUE_INT,    /* as.integer */
    TN_VALUE_UINT,   /* as.number, only above INT64_MAX */
    TN_VALUE_FLOAT,  /* as.real */
    TN_VALUE_STRING, /* as.number: string of the model */
    TN_VALUE_PAIR,   /* as.number: a tuple of two integers, kept by the decoder */
    TN_VALUE_OBJECT, /* as.number: dict, list or other tuple, kept by the decoder */
    TN_VALUE_GLOBAL, /* as.number: a name that the pickle reader knows; never data */
    TN_VALUE_KIND_COUNT
};

struct tn_value {
    uint64_t kind_and_offset; /* kind in the low 8 bits */
    union {
        int64_t integer;
        uint64_t number;
        double real;
    } as;
};

static inline enum tn_value_kind tn_value_kind(struct tn_value value)
{
    return (enum tn_value_kind)(value.kind_and_offset & 0xff);
}

static inline uint64_t tn_value_offset(struct tn_value value)
{
    return value.kind_and_offset >> 8;
}

static inline struct tn_value tn_value_make(enum tn_value_kind kind, uint64_t offset,
                                            uint64_t number)
{
    const struct tn_value value = {(uint64_t)kind | offset << 8, {.number = number}};

    return value;
}

static inline struct tn_value tn_value_integer(uint64_t offset, int64_t integer)
{
    const struct tn_value value = {(uint64_t)TN_VALUE_INT | offset << 8, {.integer = integer}};

    return value;
}

static inline struct tn_value tn_value_real(uint64_t offset, double real)
{
    const struct tn_value value = {(uint64_t)TN_VALUE_FLOAT | offset << 8, {.real = real}};

    return value;
}

#endif
