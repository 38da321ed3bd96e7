/* SPDX-License-Identifier: MIT */
/*
 * Keeps what the model has no field for: unknown keys, and known ones whose value is of another
 * kind, with any value. Internal part of the decoder.
 *
 * A container is converted to a container of the model once, however often the file refers to it:
 * the work is linear in the file. No recursion: depth is bounded by the decoder's limits.
 */
#ifndef TN_SNAPSHOT_DECODE_REST_H
#define TN_SNAPSHOT_DECODE_REST_H

#include "snapshot/decode_object.h"

/* The extra items of a record while it is decoded. */
struct tn_rest {
    struct tn_field fields[TN_SHAPE_KEYS_MAX];
    uint32_t count;
    bool of_frame; /* takes no values with frames */
};

/* Converts a value; seals it. Trace entries, blocks of the old format and names to import are not
 * kept: then *kept_out is false, and nothing is stored. */
enum tarn_status tn_rest_convert(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                 struct tn_field *field_out, bool *kept_out) TN_MUST_CHECK;

/* Begins with the items that a record has already, 0 = none. */
void tn_rest_load(const struct tn_decoder *decoder, uint32_t container, struct tn_rest *rest_out);

/* Adds an item; the last one with a key counts. What cannot be kept becomes a warning. */
enum tarn_status tn_rest_add(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                             struct tn_value value) TN_MUST_CHECK;

/* The same for a key that the format does not have: a warning says so. */
enum tarn_status tn_rest_add_unknown(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                                     struct tn_value value) TN_MUST_CHECK;

/* The number of the dict for the record, 0 without items. */
enum tarn_status tn_rest_store(struct tn_decoder *decoder, const struct tn_rest *rest,
                               uint32_t *container_out) TN_MUST_CHECK;

#endif
