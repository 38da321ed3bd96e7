/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of a process that runs, in memory. The process writes it to a file, as for `tarn
 * dump`, in a folder that exists for it alone and is removed at once.
 */
#ifndef CLI_LIVE_SNAPSHOT_H
#define CLI_LIVE_SNAPSHOT_H

#include "tarn/snapshot.h"

/* Asks the process for a snapshot and loads it. `runtime` is the value of XDG_RUNTIME_DIR, or NULL.
 * Caller owns *snapshot_out, free with tarn_snapshot_destroy. Waits for the process at most
 * `timeout_ms` milliseconds; signals that end the program are delayed until the file is gone.
 * Errors are those of tarn_control_snapshot and tarn_snapshot_load, always with a text. One thread
 * at a time. */
enum tarn_status cli_live_snapshot_take(const char *runtime, int64_t process, uint32_t timeout_ms,
                                        struct tarn_snapshot **snapshot_out,
                                        struct tarn_error *error);

#endif
