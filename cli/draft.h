/* SPDX-License-Identifier: MIT */
/*
 * Files that the program writes, and what becomes of their drafts when a signal ends it: they are
 * removed. One file at a time.
 */
#ifndef CLI_DRAFT_H
#define CLI_DRAFT_H

#include "tarn/writer.h"

/* As tarn_file_create and tarn_file_finish. */
enum tarn_status cli_draft_create(const char *path, struct tarn_file **file_out,
                                  struct tarn_error *error);
enum tarn_status cli_draft_finish(struct tarn_file *file, enum tarn_status status,
                                  struct tarn_error *error);

/* For handlers of signals that end the program. False while a draft is being made, which has no
 * known name yet: the signal is kept, and raised again as soon as it has one. */
bool cli_draft_interrupted(int signal_number);

#endif
