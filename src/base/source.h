/* SPDX-License-Identifier: MIT */
/*
 * A stream of raw input bytes: a file, standard input or memory. Files are read, not mapped:
 * truncating a mapped file would kill the process, and its pages would count as our memory.
 */
#ifndef TN_BASE_SOURCE_H
#define TN_BASE_SOURCE_H

#include "tarn/status.h"

struct tn_source {
    int fd; /* -1 = memory */
    bool owns_fd;
    const uint8_t *memory;
    size_t memory_left;
    uint64_t taken;                /* bytes consumed */
    int64_t size;                  /* of a regular file or memory; -1 = unknown */
    const char *name;              /* for messages; borrowed */
    struct tarn_progress progress; /* reported after each read; initially none */
};

/* `path` "-" is standard input. Borrows `path`. */
enum tarn_status tn_source_open(struct tn_source *source, const char *path,
                                struct tarn_error *error) TARN_MUST_CHECK;

/* Borrows the bytes. */
void tn_source_init_memory(struct tn_source *source, const void *bytes, size_t size);

void tn_source_close(struct tn_source *source);

/* Up to `size` bytes; *got_out is 0 only at the end. TARN_ERR_IO; TARN_ERR_CANCELLED when
 * `progress` returns false; the bytes are then lost. */
enum tarn_status tn_source_read(struct tn_source *source, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
