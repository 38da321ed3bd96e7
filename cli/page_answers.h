/* SPDX-License-Identifier: MIT */
/* What the program finds out about a recording for the page of `tarn view`: each part is what its
 * own command shows. */
#ifndef CLI_PAGE_ANSWERS_H
#define CLI_PAGE_ANSWERS_H

#include "answering.h"
#include "tarn/viewer.h"

enum {
    CLI_PAGE_ANSWERS_REASON_MAX = 160
};

struct cli_page_settings; /* of one device */

struct cli_page_answers {
    struct tarn_view_answers view; /* for the page; points into the rest */
    struct cli_answering answering;
    struct tarn_oom_result *ooms;
    struct tarn_frag_result *frag;
    struct tarn_steps_result *steps;
    struct tarn_findings findings;
    struct cli_page_settings *devices;
    struct tarn_view_settings *settings;
    size_t device_count;
    char reason[CLI_PAGE_ANSWERS_REASON_MAX];
};

enum cli_page_answers_wanted {
    CLI_PAGE_ANSWERS_OF_SHORT, /* unless the recording is long */
    CLI_PAGE_ANSWERS_ALWAYS,
    CLI_PAGE_ANSWERS_NEVER
};

/* Finds out what there is to know; what cannot be known is left out with the reason.
 * TARN_ERR_HOST_MEMORY. Release in any case. */
enum tarn_status cli_page_answers_gather(struct cli_page_answers *answers,
                                         const struct tarn_snapshot *snapshot, bool one_device,
                                         int device, enum cli_page_answers_wanted wanted,
                                         struct tarn_error *error);
void cli_page_answers_release(struct cli_page_answers *answers);

#endif
