/* SPDX-License-Identifier: MIT */
/*
 * Memory snapshots of PyTorch: reading and writing the files of torch.cuda.memory._dump_snapshot.
 *
 * A file is a pickle (protocol 2 to 5), JSON with the same keys, or a log of RMM's
 * logging_resource_adaptor (one trace, no segments), plain, gzip or zstd. The file need not be
 * trusted: nothing in it is ever imported or called, and its size in memory is limited.
 *
 * A loaded snapshot is immutable; any number of threads may use it.
 */
#ifndef TARN_SNAPSHOT_H
#define TARN_SNAPSHOT_H

#include "status.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_snapshot;

/* Zero bytes mean the defaults. */
struct tarn_read_limits {
    uint32_t struct_size; /* sizeof(struct tarn_read_limits) */
    uint32_t max_depth;   /* nested containers; 0 = 64, at most 120 */
    uint64_t max_bytes;   /* of the uncompressed input; 0 = 64 GiB */
    uint64_t max_memory;  /* host memory for the snapshot; 0 = 16 times the size of a plain input,
                                512 times that of a packed one, but not less than 256 MiB and
                                at most half of the machine's. With all that it shares written
                                out, the snapshot may have 64 times the limit that is given;
                                else 1024 times the size of a plain input, 8192 times that of
                                a packed one, at least 256 MiB */
    uint64_t max_string;  /* bytes of one string; 0 = 64 MiB */
    uint64_t max_ratio;   /* uncompressed to compressed size beyond 16 MiB; 0 = 2000 */
    uint32_t max_frames;  /* of one stack; 0 = 4096 */
    bool strict;          /* reject even harmless imports (OrderedDict and the like) */

    /* In bytes of the file, compressed if it is compressed; the total of a pipe is unknown. Called
     * after each chunk of 64 KiB to 256 KiB. */
    struct tarn_progress progress;
};

/* Loads a file; "-" is standard input. `limits` may be NULL. Caller owns *snapshot_out, destroy
 * with tarn_snapshot_destroy. Fails with
 *   TARN_ERR_IO         the file cannot be read
 *   TARN_ERR_FORMAT     not a snapshot, or damaged; error->offset is the position
 *   TARN_ERR_UNSAFE     the pickle asks to import or call something; the error names it
 *   TARN_ERR_LIMIT      a limit was exceeded
 *   TARN_ERR_TRUNCATED  the input ends early
 *   TARN_ERR_CANCELLED  limits->progress returned false
 *   TARN_ERR_HOST_MEMORY
 * *snapshot_out is NULL after a failure, with one exception: after TARN_ERR_TRUNCATED it may hold
 * what could be read (see tarn_snapshot_is_partial), which the caller then owns. */
TARN_API enum tarn_status tarn_snapshot_load(const char *path,
                                             const struct tarn_read_limits *limits,
                                             struct tarn_snapshot **snapshot_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* The same from memory, which is not used after the call. */
TARN_API enum tarn_status tarn_snapshot_load_memory(const void *bytes, size_t size,
                                                    const struct tarn_read_limits *limits,
                                                    struct tarn_snapshot **snapshot_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

enum tarn_snapshot_format {
    TARN_SNAPSHOT_PICKLE, /* protocol 4: what Python, _memory_viz and the viewer read */
    TARN_SNAPSHOT_JSON    /* one line; larger, and without sharing */
};

/* Writes a snapshot. Everything that was loaded is written, except keys that no version of PyTorch
 * has (each gave a warning). Fails with what the writer returns, or with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_snapshot_write(const struct tarn_snapshot *snapshot,
                                              enum tarn_snapshot_format format,
                                              const struct tarn_writer *writer,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* The format for a file of that name: JSON when it ends in ".json", also before the ending of a
 * compression, such as ".json.gz"; else a pickle. */
TARN_API enum tarn_snapshot_format tarn_snapshot_format_of(const char *path);

/* Writes a file in the format and compression that its name implies. The file appears whole or not
 * at all, and replaces an existing one as tarn_file_finish does (tarn/writer.h). TARN_ERR_IO,
 * TARN_ERR_HOST_MEMORY, TARN_ERR_INVALID_ARGUMENT for a path that is empty or too long. */
TARN_API enum tarn_status tarn_snapshot_save(const struct tarn_snapshot *snapshot, const char *path,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_snapshot_destroy(struct tarn_snapshot *snapshot);

/* Counts. The device count is the highest number of a device with a segment or a trace, plus 1. */
TARN_API size_t tarn_snapshot_segment_count(const struct tarn_snapshot *snapshot);
TARN_API size_t tarn_snapshot_device_count(const struct tarn_snapshot *snapshot);

/* Number of events in one device's trace, 0 for a device without one; and in all traces. */
TARN_API uint64_t tarn_snapshot_trace_length(const struct tarn_snapshot *snapshot, size_t device);
TARN_API uint64_t tarn_snapshot_entry_count(const struct tarn_snapshot *snapshot);

/* Whether the file has traces at all: a bare list of segments has none. */
TARN_API bool tarn_snapshot_has_traces(const struct tarn_snapshot *snapshot);

/* Whether the input ended early and the snapshot is incomplete. */
TARN_API bool tarn_snapshot_is_partial(const struct tarn_snapshot *snapshot);

/* An anomaly in the file that did not stop the reader. */
struct tarn_snapshot_warning {
    const char *text; /* one line; borrowed from the snapshot */
    uint64_t count;   /* number of occurrences */
    uint64_t offset;  /* of the first one, in the uncompressed input */
};

/* Calls `visit` for each kind of warning in order of first occurrence, until it returns false.
 * Returns the number of kinds. `visit` may be NULL. */
TARN_API size_t tarn_snapshot_walk_warnings(
    const struct tarn_snapshot *snapshot,
    bool (*visit)(void *context, const struct tarn_snapshot_warning *warning), void *context);

#ifdef __cplusplus
}
#endif

#endif
