/* SPDX-License-Identifier: MIT */
/* The files of a fleet: what arguments stand for, and how each is added. */
#ifndef CLI_FLEET_FILES_H
#define CLI_FLEET_FILES_H

#include "command.h"
#include "tarn/fleet.h"

/* Paths in order. Owned. */
struct cli_fleet_files {
    char **paths;
    size_t count;
    size_t capacity;
};

#define CLI_FLEET_DETAILS                                                                          \
    "A folder stands for the snapshots and summaries in it, @LIST for the files\n"                 \
    "that a list names, one a line. Files that cannot be used are named, the others\n"             \
    "are used, and the exit code is that of the first one.\n"

/* Whether an argument stands for more than one snapshot: a folder, a list, or a summary. */
bool cli_fleet_is_many(const char *argument);

/* Expands arguments: folders, lists and files. Reports a folder or list that cannot be read, sets
 * *code_out to the first failure, and goes on. False without memory. */
bool cli_fleet_files_collect(struct cli_fleet_files *files, const struct cli_call *call,
                             int *code_out);
void cli_fleet_files_release(struct cli_fleet_files *files);

/* Adds a summary, or summarises a snapshot; `name` NULL: its path. Reports a failure, sets *code to
 * the first one, and the fleet is then as before. `narrows` says that the options select, which
 * only snapshots can answer. */
void cli_fleet_add_file(const struct cli_command *command, struct tarn_fleet *fleet,
                        const char *path, const char *name,
                        const struct tarn_summary_options *options, bool narrows, int *code);

#endif
