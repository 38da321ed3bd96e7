/* SPDX-License-Identifier: MIT */
/*
 * From the model to values, in any form: the opposite of decode.h, and with the same keys. Keys of
 * an entry come in the order that the file had them in; an old file keeps its form. What the model
 * does not hold (keys that are unknown, which the reader has warned of) is not written.
 */
#ifndef TN_SNAPSHOT_ENCODE_H
#define TN_SNAPSHOT_ENCODE_H

#include "snapshot/format.h"

/* Writes the snapshot of form->model; failures stay in the output. The model's first strings must
 * be those of keys.h (tn_keys_enter). */
void tn_encode(struct tn_format *format);

/* Writes one entry of a trace of form->model. */
void tn_encode_entry(struct tn_format *format, const struct tn_trace_entry *entry);

#endif
