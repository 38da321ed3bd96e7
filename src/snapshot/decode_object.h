/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the decoder: its state, and the containers of the file.
 *
 * Containers are numbers of objects:
 *   entry, frame  dicts recognized by their keys (keys.h), packed immediately
 *   block         a dict with the keys of one, packed when it is added to a list; anywhere
 *                 else it is metadata that happens to have these keys
 *   dict          any other: pairs, processed in tn_decode_finish
 *   run           a list of entries: a range of model->entries
 *   stack         a list of frames: number of a stack of the model
 *   list, tuple   any other: values
 * A container is sealed when it is added to another one; later changes are refused. So no container
 * contains itself, no memory is shared with one that still changes, and depth is bounded.
 *
 * Invariants: an object's items are sealed; depth of a generic container = 1 + the deepest item's.
 */
#ifndef TN_SNAPSHOT_DECODE_OBJECT_H
#define TN_SNAPSHOT_DECODE_OBJECT_H

#include "snapshot/keys.h"
#include "snapshot/model.h"
#include "snapshot/value.h"

enum tn_object_kind {
    TN_OBJECT_EMPTY_DICT,
    TN_OBJECT_DICT,
    TN_OBJECT_ENTRY,
    TN_OBJECT_FRAME,
    TN_OBJECT_BLOCK,
    TN_OBJECT_EMPTY_LIST,
    TN_OBJECT_LIST,
    TN_OBJECT_RUN,
    TN_OBJECT_STACK,
    TN_OBJECT_TUPLE
};

/* 8 bytes, because there is one per container of the file. */
struct tn_object {
    uint64_t kind : 5; /* enum tn_object_kind */
    uint64_t sealed : 1;
    uint64_t pieces : 7; /* batches of a stack */
    uint64_t depth : 7;
    uint64_t walked : 1; /* its items were visited, see tn_field_list */
    uint64_t index : 42; /* of the record, depending on the kind */
};

/* Truncates to the width of `index`. */
#define TN_OBJECT_INDEX(number) ((number) & (((uint64_t)1 << 42) - 1))

/* Values in the scratch arena: items of a list or tuple, alternating keys and values of a dict. */
struct tn_value_list {
    struct tn_value *items;
    size_t count; /* of a spare one: 1 + the next, or 0 */
    size_t capacity;
    uint32_t converted; /* the container of the model, see decode_rest.h */
    uint32_t classes;   /* of a dict's keys so far */
};

struct tn_decode_limits {
    unsigned max_depth;  /* of nested containers */
    unsigned max_frames; /* of a stack */
};

enum {
    TN_SHAPE_KEYS_MAX = 32, /* keys of a trace entry whose order is kept */
#ifdef TN_LIMITS_LOW        /* tests/torture */
    TN_DECODE_ITEMS_MAX = 5000
#else
    TN_DECODE_ITEMS_MAX = INT32_MAX /* values in one container */
#endif
};

struct tn_decoder {
    struct tn_model *model;
    struct tn_decode_limits limits;
    struct tarn_error *error;
    struct tn_arena scratch;
    struct tn_chunked_vec objects; /* struct tn_object */
    struct tn_chunked_vec lists;   /* struct tn_value_list, also of dicts and tuples */
    uint64_t spare_list;           /* 1 + the first list that nobody uses; 0 = none */
    struct tn_chunked_vec runs;    /* struct tn_trace */
    struct tn_chunked_vec blocks;  /* struct tn_model_block */
    struct tn_chunked_vec pairs;   /* struct tn_pool_id */
    struct tn_id_table pair_ids;
    uint32_t *frame_buffer; /* limits.max_frames */
    uint32_t last_shape;    /* most entries have the shape and the extra of the previous one */
    uint32_t last_extra;
};

/* The object of a value of kind TN_VALUE_OBJECT. */
static inline struct tn_object *tn_decode_object(const struct tn_decoder *decoder,
                                                 struct tn_value value)
{
    return tn_chunked_vec_at(&decoder->objects, value.as.number);
}

/* Items of a dict (alternating keys and values), list or tuple; NULL if it is neither. */
const struct tn_value_list *tn_decode_items(const struct tn_decoder *decoder, struct tn_value value,
                                            bool dict);

/* Whether the value is a dict of any kind, or a list of any kind. */
bool tn_decode_is_dict(const struct tn_decoder *decoder, struct tn_value value);
bool tn_decode_is_list(const struct tn_decoder *decoder, struct tn_value value);

#endif
