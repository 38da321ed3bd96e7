/* SPDX-License-Identifier: MIT */
/*
 * A writer that compresses: what it is given goes to another writer as gzip or zstd. The same bytes
 * give the same output: no times, no names.
 */
#ifndef TN_BASE_PACK_H
#define TN_BASE_PACK_H

#include "base/attr.h"
#include "base/packing.h"
#include "tarn/writer.h"

#include <stdbool.h>
#include <stddef.h>

struct tn_pack;

/* The compression that a file's name implies: ".gz", ".zst" or ".zstd" at its end. */
enum tn_packing tn_packing_of(const char *path);

/* The length of the name without that ending. */
size_t tn_packing_name_length(const char *path);

/* Owned by the caller, destroyed with tn_pack_destroy. NULL without host memory. The build must
 * have the compression: tn_packing_codec. */
struct tn_pack *tn_pack_create(enum tn_packing packing, const struct tarn_writer *writer);

/* NULL is allowed. What was not ended is lost. */
void tn_pack_destroy(struct tn_pack *pack);

/* Both return what the writer returns, or TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_pack_write(struct tn_pack *pack, const char *bytes, size_t size) TN_MUST_CHECK;
enum tarn_status tn_pack_end(struct tn_pack *pack) TN_MUST_CHECK;

#endif
