/* SPDX-License-Identifier: MIT */
/*
 * A format for writing snapshots: one table of functions, which encode.c calls in the order of the
 * values. Lists begin with their number of items; `item` and `key` have the index of the next item.
 * Strings, frames and stacks are numbers of the model.
 *
 * Equal frames and stacks can be written once: `recall` writes a reference to an earlier one and
 * returns true; otherwise it is written, followed by `remember`.
 */
#ifndef TN_SNAPSHOT_FORMAT_H
#define TN_SNAPSHOT_FORMAT_H

#include "base/byte_out.h"
#include "snapshot/model.h"

enum tn_shared {
    TN_SHARED_FRAME,
    TN_SHARED_STACK
};

struct tn_format;

enum tn_item_kind {
    TN_ITEM_WHOLE,
    TN_ITEM_INTEGER, /* value.integer */
    TN_ITEM_STRING,
    TN_ITEM_PAIR, /* value.pair */
    TN_ITEM_STACK,
    TN_ITEM_FIELD /* value.field */
};

/* A key and value of a dict that is built before it is written. */
struct tn_item {
    uint32_t key; /* string */
    uint32_t kind;
    union {
        uint64_t number; /* the value, or the number of the string or stack */
        int64_t integer;
        const uint64_t *pair;
        const struct tn_field *field;
    } value;
};

struct tn_format_ops {
    void (*begin)(struct tn_format *format); /* NULL: nothing stands before the value */
    void (*end)(struct tn_format *format);
    void (*list_begin)(struct tn_format *format, uint64_t count);
    void (*item)(struct tn_format *format, uint64_t index);
    void (*list_end)(struct tn_format *format, uint64_t count);
    void (*tuple_begin)(struct tn_format *format, uint64_t count);
    void (*tuple_item)(struct tn_format *format, uint64_t index);
    void (*tuple_end)(struct tn_format *format, uint64_t count);
    void (*dict_begin)(struct tn_format *format);
    void (*key)(struct tn_format *format, uint64_t index, uint32_t string);
    void (*dict_end)(struct tn_format *format);
    void (*none)(struct tn_format *format);
    void (*boolean)(struct tn_format *format, bool value);
    void (*integer)(struct tn_format *format, int64_t value);
    void (*whole)(struct tn_format *format, uint64_t value);
    void (*real)(struct tn_format *format, double value);
    void (*string)(struct tn_format *format, uint32_t string);
    void (*pair)(struct tn_format *format, const uint64_t pair[2]); /* a tuple */
    /* Writes a whole dict at once. Returns false, having written nothing, if it cannot: then the
     * dict is written key by key. May be NULL. */
    bool (*row)(struct tn_format *format, const struct tn_item *items, uint32_t count);
    /* Both NULL: everything is written again. */
    bool (*recall)(struct tn_format *format, enum tn_shared kind, uint32_t number);
    void (*remember)(struct tn_format *format, enum tn_shared kind, uint32_t number);
};

/* First member of every format's state. */
struct tn_format {
    const struct tn_format_ops *ops;
    const struct tn_model *model;
    struct tn_byte_out *out;
};

#endif
