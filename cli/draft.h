/* SPDX-License-Identifier: MIT */
/*
 * Output files, whose drafts are removed when a signal ends the program. One file at a time.
 */
#ifndef CLI_DRAFT_H
#define CLI_DRAFT_H

#include "tarn/writer.h"

/* As tarn_file_create and tarn_file_finish. */
enum tarn_status cli_draft_create(const char *path, struct tarn_file **file_out,
                                  struct tarn_error *error);
enum tarn_status cli_draft_finish(struct tarn_file *file, enum tarn_status status,
                                  struct tarn_error *error);

/* For handlers of fatal signals: removes the draft. False while a draft is being created or gets
 * its final name: the signal is stored, and raised again afterwards. */
bool cli_draft_interrupted(int signal_number);

#endif
