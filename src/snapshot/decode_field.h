/* SPDX-License-Identifier: MIT */
/*
 * Converts values to fields of records, with messages that name the key and the position. Internal
 * part of the decoder: decode.c has the containers, decode_record.c decodes entries, frames and
 * blocks, decode_file.c the rest.
 */
#ifndef TN_SNAPSHOT_DECODE_FIELD_H
#define TN_SNAPSHOT_DECODE_FIELD_H

#include "snapshot/decode_object.h"

/* "the key `size` at byte 12 must hold an integer, but holds a string": TARN_ERR_FORMAT. */
TN_COLD enum tarn_status tn_field_wrong(struct tn_decoder *decoder, uint32_t key,
                                        struct tn_value value, const char *wanted);

/* Fails with TARN_ERR_LIMIT or TARN_ERR_HOST_MEMORY. */
TN_COLD enum tarn_status tn_decode_memory(struct tn_decoder *decoder);

/* Addresses and handles: negative numbers are reinterpreted as unsigned, as PyTorch writes them. */
enum tarn_status tn_field_address(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  uint64_t *out) TN_MUST_CHECK;

/* Sizes: negative ones count as 0, with a warning. */
enum tarn_status tn_field_size(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               uint64_t *out) TN_MUST_CHECK;

enum tarn_status tn_field_integer(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  int64_t *out) TN_MUST_CHECK;

/* Impossible times count as none, with a warning. */
enum tarn_status tn_field_time(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               int64_t *out) TN_MUST_CHECK;
enum tarn_status tn_field_bool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               bool *out) TN_MUST_CHECK;
enum tarn_status tn_field_string(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                 uint32_t *out) TN_MUST_CHECK;
enum tarn_status tn_field_pool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               struct tn_pool_id *out) TN_MUST_CHECK;

/* A list of frames, possibly empty; seals it. None counts as absent. */
enum tarn_status tn_field_stack(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                uint32_t *out) TN_MUST_CHECK;

/* The items of a list or tuple, or of a dict (alternating keys and values), for a walk over all of
 * them. A file can refer to a container any number of times, at a byte or two each: from the second
 * time on the items are charged again. `wanted` is for the error message. */
enum tarn_status tn_field_list(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted,
                               const struct tn_value_list **list_out) TN_MUST_CHECK;
enum tarn_status tn_field_dict(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted,
                               const struct tn_value_list **list_out) TN_MUST_CHECK;

/* The same for a list of trace entries. */
enum tarn_status tn_field_run(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                              struct tn_trace *run_out) TN_MUST_CHECK;

/* Adds a size of a record to the sum of all; `at` is for the warning if it is too large. */
void tn_decode_take_size(struct tn_decoder *decoder, uint32_t key, uint64_t at, uint64_t *size);

/* Charges the bytes of a record written out. */
enum tarn_status tn_decode_charge(struct tn_decoder *decoder, uint64_t bytes) TN_MUST_CHECK;

/* None, a bool, a number or a string. False, with only the key stored, for any other value. */
bool tn_field_plain(uint32_t key, struct tn_value value, struct tn_field *field) TN_MUST_CHECK;

/* Whether the keys are those of the previous entry, in the same order. */
bool tn_decode_keys_repeat(const struct tn_decoder *decoder, const struct tn_value *pairs,
                           size_t count);

/* Converts an empty dict to an entry if its keys repeat. */
enum tarn_status tn_decode_repeated_entry(struct tn_decoder *decoder, struct tn_object *object,
                                          const struct tn_value *pairs, size_t count) TN_MUST_CHECK;

/* Add pairs to the record of an object, which may have earlier ones. */
enum tarn_status tn_decode_entry(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;
enum tarn_status tn_decode_frame(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;
enum tarn_status tn_decode_block(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count) TN_MUST_CHECK;

#endif
