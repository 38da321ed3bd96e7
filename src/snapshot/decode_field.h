/* SPDX-License-Identifier: MIT */
/*
 * Values to the fields of records, with messages that name the key and the place. Inner part of the
 * decoder: decode.c keeps containers, decode_record.c makes entries, frames and blocks,
 * decode_file.c the rest.
 */
#ifndef TN_SNAPSHOT_DECODE_FIELD_H
#define TN_SNAPSHOT_DECODE_FIELD_H

#include "snapshot/decode_object.h"

/* "the key `size` at byte 12 must be an integer, found a string": TARN_ERR_FORMAT. */
TN_COLD enum tarn_status tn_field_wrong(struct tn_decoder *decoder, uint32_t key,
                                        struct tn_value value, const char *wanted);

/* TARN_ERR_LIMIT or TARN_ERR_HOST_MEMORY with a text. */
TN_COLD enum tarn_status tn_decode_memory(struct tn_decoder *decoder);

/* Addresses and handles: negative numbers are the unsigned ones of the same bits, as the C++ writer
 * makes them. */
enum tarn_status tn_field_address(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  uint64_t *out) TN_MUST_CHECK;

/* Amounts: negative ones count as 0 with a warning. */
enum tarn_status tn_field_size(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               uint64_t *out) TN_MUST_CHECK;

enum tarn_status tn_field_integer(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  int64_t *out) TN_MUST_CHECK;

/* Times that no clock shows count as none with a warning. */
enum tarn_status tn_field_time(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               int64_t *out) TN_MUST_CHECK;
enum tarn_status tn_field_bool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               bool *out) TN_MUST_CHECK;
enum tarn_status tn_field_string(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                 uint32_t *out) TN_MUST_CHECK;
enum tarn_status tn_field_pool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               struct tn_pool_id *out) TN_MUST_CHECK;

/* A list of frames, possibly empty, which is sealed; None counts as absent. */
enum tarn_status tn_field_stack(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                uint32_t *out) TN_MUST_CHECK;

/* The items of a list or tuple, or of a dict (keys and values in turn), to go through all of them.
 * A file may refer to a container as often as it likes, at a byte or two each time: from the second
 * time on the items are charged as if they stood there again. `wanted` for the message when it is
 * none. */
enum tarn_status tn_field_list(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted,
                               const struct tn_value_list **list_out) TN_MUST_CHECK;
enum tarn_status tn_field_dict(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted,
                               const struct tn_value_list **list_out) TN_MUST_CHECK;

/* A list of trace entries, the same. */
enum tarn_status tn_field_run(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                              struct tn_trace *run_out) TN_MUST_CHECK;

/* Takes a size of a record into the sum of all; `at` for the warning when it does not fit. */
void tn_decode_take_size(struct tn_decoder *decoder, uint32_t key, uint64_t at, uint64_t *size);

/* Charges what a record takes when it is written out. */
enum tarn_status tn_decode_charge(struct tn_decoder *decoder, uint64_t bytes) TN_MUST_CHECK;

/* A string for information: any other value is skipped with a warning. */
void tn_field_note(struct tn_decoder *decoder, uint32_t key, struct tn_value value, uint32_t *out);

/* Whether the keys are those of the entry before, in the same order. */
bool tn_decode_keys_repeat(const struct tn_decoder *decoder, const struct tn_value *pairs,
                           size_t count);

/* Makes an empty dict an entry when its keys repeat. */
enum tarn_status tn_decode_repeated_entry(struct tn_decoder *decoder, struct tn_object *object,
                                          const struct tn_value *pairs, size_t count) TN_MUST_CHECK;

/* Pairs into the record of an object, which may have got others before. */
enum tarn_status tn_decode_entry(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;
enum tarn_status tn_decode_frame(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;
enum tarn_status tn_decode_block(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;

#endif
