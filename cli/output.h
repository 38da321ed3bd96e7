/* SPDX-License-Identifier: MIT */
/* Writing results to standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "tarn/writer.h"

/* A writer to stdout. */
struct tarn_writer cli_output_writer(void);

struct cli_command;
struct tarn_error;
struct tarn_file;

/* Where the result of a command goes: a file that appears whole or not at all, or stdout. */
struct cli_output {
    struct tarn_writer writer;
    struct tarn_file *file; /* NULL: stdout */
    const char *path;
};

/* Whether the path of -o means stdout: NULL, "-" or "/dev/stdout", which may be a link to a file.
 */
bool cli_output_is_stdout(const char *path);

/* Begins it, and ends it after a report that returned `status`: as tarn_file_create and
 * tarn_file_finish. */
enum tarn_status cli_output_begin(struct cli_output *output, const char *path,
                                  struct tarn_error *error);
enum tarn_status cli_output_end(struct cli_output *output, enum tarn_status status,
                                struct tarn_error *error);

/* As tarn_snapshot_save, with stdout as well. */
struct tarn_snapshot;
enum tarn_status cli_snapshot_save(const struct tarn_snapshot *snapshot, const char *path,
                                   struct tarn_error *error);

/* The same for a command: opens it; what fails is said on stderr, and CLI_EXIT_OK not returned. */
int cli_output_open(struct cli_output *output, const struct cli_command *command, const char *path);

/* Ends it after a report that returned `status` (`error` may be NULL then), with a line on stderr
 * if it failed. Returns `code`, the code so far, or that of the failure. */
int cli_output_close(struct cli_output *output, const struct cli_command *command,
                     enum tarn_status status, struct tarn_error *error, int code);

/* What options say about reading snapshots; counts for all that are loaded afterwards. */
struct cli_load_rules {
    bool strict;        /* what is unknown or odd makes it no snapshot */
    bool partial;       /* a missing end is fine */
    bool quiet;         /* no notes, errors only */
    bool verbose;       /* more notes */
    uint64_t mem_limit; /* of a snapshot; 0 = by its size */
};

void cli_load_configure(const struct cli_load_rules *rules);

/* Prints "tarn: ..." as one line to stderr, unless the user wants to hear nothing. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* Whether that is printed. */
bool cli_is_quiet(void);

/* Loads a snapshot for a command: says on stderr what is wrong with the file, also when a part of
 * it can be used. NULL with *exit_out set when there is nothing to show; with a partial snapshot
 * *exit_out is what the command should return in the end, else CLI_EXIT_OK. */
struct tarn_snapshot *cli_load_snapshot(const struct cli_command *command, const char *path,
                                        int *exit_out);

#endif
