/* SPDX-License-Identifier: MIT */
/*
 * Builds the model from values, independent of the file's format. A reader (pickle.c, json_read.c)
 * creates values and containers with these functions; the decoder knows the keys of a snapshot and
 * packs each dict into a record as soon as its items arrive, so that no tree of the file ever
 * exists.
 *
 * All functions fail with TARN_ERR_FORMAT (offset and key in the error), TARN_ERR_LIMIT or
 * TARN_ERR_HOST_MEMORY. After a failure only tn_decoder_fini, and tn_decode_finish on earlier
 * values, may follow.
 */
#ifndef TN_SNAPSHOT_DECODE_H
#define TN_SNAPSHOT_DECODE_H

#include "snapshot/decode_object.h"

enum tarn_status tn_decoder_init(struct tn_decoder *decoder, struct tn_model *model,
                                 const struct tn_decode_limits *limits,
                                 struct tarn_error *error) TN_MUST_CHECK;
void tn_decoder_fini(struct tn_decoder *decoder);

/* A new empty dict or list. */
enum tarn_status tn_decode_new(struct tn_decoder *decoder, enum tn_object_kind kind,
                               uint64_t offset, struct tn_value *value_out) TN_MUST_CHECK;

enum tarn_status tn_decode_tuple(struct tn_decoder *decoder, const struct tn_value *items,
                                 size_t count, uint64_t offset,
                                 struct tn_value *value_out) TN_MUST_CHECK;

/* Makes a block of a dict that has the keys of one; leaves other values alone. */
enum tarn_status tn_decode_make_block(struct tn_decoder *decoder,
                                      struct tn_value value) TN_MUST_CHECK;

/* Adds `count` keys, each followed by its value. */
enum tarn_status tn_decode_set_items(struct tn_decoder *decoder, struct tn_value dict,
                                     const struct tn_value *pairs, size_t count) TN_MUST_CHECK;

enum tarn_status tn_decode_append(struct tn_decoder *decoder, struct tn_value list,
                                  const struct tn_value *items, size_t count) TN_MUST_CHECK;

/* Fills the model from the top-level value. Called once. */
enum tarn_status tn_decode_finish(struct tn_decoder *decoder, struct tn_value top) TN_MUST_CHECK;

#endif
