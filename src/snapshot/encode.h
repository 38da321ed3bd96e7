/* SPDX-License-Identifier: MIT */
/*
 * Writes a model in any format: the opposite of decode.h, with the same keys. Keys of an entry keep
 * the order of the file; old files keep their format. Unknown keys, which the reader warned about,
 * are not in the model and not written.
 */
#ifndef TN_SNAPSHOT_ENCODE_H
#define TN_SNAPSHOT_ENCODE_H

#include "snapshot/format.h"

/* Writes format->model; failures stay in the output. The model's first strings must be those of
 * keys.h (tn_keys_enter). */
void tn_encode(struct tn_format *format);

/* Writes one trace entry of format->model. */
void tn_encode_entry(struct tn_format *format, const struct tn_trace_entry *entry);

#endif
