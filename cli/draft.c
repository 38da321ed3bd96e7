/* SPDX-License-Identifier: MIT */
#include "draft.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    DRAFT_PATH_MAX = 4096
};

/* Read by signal handlers. */
static char draft_path[DRAFT_PATH_MAX]; /* while `is_there` */
static volatile sig_atomic_t is_there;
static volatile sig_atomic_t is_changing; /* its name is not what `draft_path` says */
static volatile sig_atomic_t kept_signal; /* 0: none */

static void change_end(void)
{
    is_changing = 0;
    if (kept_signal) {
        (void)raise((int)kept_signal);
    }
}

enum tarn_status cli_draft_create(const char *path, struct tarn_file **file_out,
                                  struct tarn_error *error)
{
    is_changing = 1;
    const enum tarn_status status = tarn_file_create(path, file_out, error);

    if (status == TARN_OK && tarn_file_draft(*file_out)[0] != '\0') {
        (void)snprintf(draft_path, sizeof draft_path, "%s", tarn_file_draft(*file_out));
        is_there = 1;
    }
    change_end();
    return status;
}

enum tarn_status cli_draft_finish(struct tarn_file *file, enum tarn_status status,
                                  struct tarn_error *error)
{
    is_changing = 1;
    status = tarn_file_finish(file, status, error);
    is_there = 0;
    change_end();
    return status;
}

bool cli_draft_interrupted(int signal_number)
{
    if (is_changing && !kept_signal) { /* a second signal is not delayed: opening a pipe blocks
                                          without a reader */
        kept_signal = signal_number;
        return false;
    }
    if (is_there) {
        (void)unlink(draft_path);
    }
    return true;
}
