/* SPDX-License-Identifier: MIT */
/*
 * Writes a snapshot as JSON: the same keys, tuples as arrays, nothing shared, on one line.
 * PyTorch's viewer reads it, too. Infinities and NaN become null.
 */
#ifndef TN_SNAPSHOT_JSON_WRITE_H
#define TN_SNAPSHOT_JSON_WRITE_H

#include "snapshot/format.h"

/* Borrows model and output. */
struct tn_format tn_json_format(const struct tn_model *model, struct tn_byte_out *out);

#endif
