/* SPDX-License-Identifier: MIT */
/*
 * Values as Python has them, for the generators of documents: a graph, in which a container may be
 * in several places, and in itself. Writers turn it into a pickle, where sharing is kept, or JSON,
 * where it is written out.
 */
#ifndef FUZZ_VALUE_H
#define FUZZ_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,  /* `number` as a signed number */
    VALUE_UINT, /* and as one without a sign */
    VALUE_HUGE, /* `number` times 2^64 */
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_BYTES,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT /* keys and values in turn */
};

enum {
    VALUE_TEXT_MAX = 64,
    VALUES_MAX = 4096,
    VALUE_SLOTS_MAX = 16384, /* items of all containers */
    DOCUMENT_MAX = 1 << 18   /* bytes of a document */
};

struct value {
    enum value_kind kind;
    unsigned depth; /* of the writer that is inside of it */
    unsigned memo;  /* number in a pickle's memo, from 1 */
    uint64_t number;
    double real;
    uint8_t text[VALUE_TEXT_MAX];
    size_t length; /* of the text */
    size_t first;  /* slot of a container's first item */
    size_t count;  /* items; of a dict twice its pairs */
    size_t capacity;
};

/* All values of a document. `slots` are the items of its containers, a run for each. */
struct value_pool {
    struct value values[VALUES_MAX];
    size_t count;
    struct value *slots[VALUE_SLOTS_MAX];
    size_t slot_count;
    struct value plain; /* what is handed out when there is no room */
};

struct document {
    uint8_t bytes[DOCUMENT_MAX];
    size_t size;
    bool is_full; /* something did not fit and was left out */
};

void value_pool_clear(struct value_pool *pool);

/* Never NULL. Containers are made for at most `capacity` items; what does not fit is dropped. */
struct value *value_make(struct value_pool *pool, enum value_kind kind, size_t capacity);
struct value *value_uint(struct value_pool *pool, uint64_t number);
struct value *value_int(struct value_pool *pool, int64_t number);
struct value *value_text(struct value_pool *pool, const char *text);
void value_add(struct value_pool *pool, struct value *container, struct value *item);
void value_set(struct value_pool *pool, struct value *dict, const char *key, struct value *item);

void document_put(struct document *document, const void *bytes, size_t size);
void document_put_text(struct document *document, const char *text);

/* Appends the value. `flavour` chooses among the ways to write a thing. */
void value_write_pickle(struct value_pool *pool, struct value *value, unsigned flavour,
                        struct document *document);
void value_write_json(struct value_pool *pool, struct value *value, struct document *document);

#endif
