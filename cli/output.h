/* SPDX-License-Identifier: MIT */
/* Writing results to standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "tarn/writer.h"

/* A writer to stdout. */
struct tarn_writer cli_output_writer(void);

/* Writes what is still buffered. False if anything could not be written, with errno, 0 if the
 * reason is no longer known. */
bool cli_output_finish(void);

struct cli_command;
struct tarn_error;
struct tarn_file;

/* Destination of a command's result: a file that appears whole or not at all, or stdout. */
struct cli_output {
    struct tarn_writer writer;
    struct tarn_file *file; /* NULL: stdout */
    const char *path;
};

/* Whether the path of -o means stdout: NULL, "-" or "/dev/stdout", which may be a link to a
 * file. */
bool cli_output_is_stdout(const char *path);

/* Start and finish it, the latter after a report that returned `status`: as tarn_file_create and
 * tarn_file_finish. */
enum tarn_status cli_output_begin(struct cli_output *output, const char *path,
                                  struct tarn_error *error);
enum tarn_status cli_output_end(struct cli_output *output, enum tarn_status status,
                                struct tarn_error *error);

/* As tarn_snapshot_save, with stdout as well. */
struct tarn_snapshot;
enum tarn_status cli_snapshot_save(const struct tarn_snapshot *snapshot, const char *path,
                                   struct tarn_error *error);

/* The same for a command: opens it, and reports a failure on stderr. */
int cli_output_open(struct cli_output *output, const struct cli_command *command, const char *path);

/* Closes it after a report that returned `status`, and reports a failure on stderr. `error` may be
 * NULL if `status` is TARN_OK. Returns `code`, or the exit code of the failure. */
int cli_output_close(struct cli_output *output, const struct cli_command *command,
                     enum tarn_status status, struct tarn_error *error, int code);

/* Options for loading snapshots; applies to all later loads. */
struct cli_load_rules {
    bool strict;        /* warnings are errors */
    bool partial;       /* accept truncated input */
    bool quiet;         /* no notes, errors only */
    bool verbose;       /* more notes */
    uint64_t mem_limit; /* per snapshot; 0 = from its size */
};

void cli_load_configure(const struct cli_load_rules *rules);

/* Prints "tarn: ..." as one line to stderr, unless --quiet. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* Whether --quiet was given. */
bool cli_is_quiet(void);

/* Loads a snapshot for a command and reports problems of the file on stderr, even when part of it
 * is usable. NULL with *exit_out set if nothing is usable; otherwise *exit_out is the code that the
 * command should finally return: CLI_EXIT_OK, or that of a partial snapshot. */
struct tarn_snapshot *cli_load_snapshot(const struct cli_command *command, const char *path,
                                        int *exit_out);

/* The same for one of many files: messages name it. */
struct tarn_snapshot *cli_load_one_of(const struct cli_command *command, const char *path,
                                      int *exit_out);

#endif
