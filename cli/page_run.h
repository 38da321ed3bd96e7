/* SPDX-License-Identifier: MIT */
/* Shared code of the commands that write pages. */
#ifndef CLI_PAGE_RUN_H
#define CLI_PAGE_RUN_H

#include "command.h"
#include "tarn/viewer.h"

struct cli_page_values {
    uint64_t device;
    const char *output; /* NULL: named after the snapshot */
    const char *title;  /* NULL: the snapshot's name */
    int redact;         /* enum tarn_view_redact */
    uint64_t max_bytes;
    const char *rules; /* NULL: the default ones */
    bool force;        /* PyTorch's commands replace files */
    bool names_output; /* a note says which file was written; PyTorch's commands are silent */
    bool answers;      /* of long recordings as well */
    bool no_answers;
    bool is_empty;     /* only view has the option */
    bool segments;     /* only trace_plot has the option */
    bool filter_freed; /* the same */
    /* Only view has these, of a page of many ranks. */
    bool ranks;
    const char *pages; /* folder with the ranks' own pages */
    const char *labels;
    uint64_t device_total;
    uint64_t since_step;
};

extern const struct cli_page_values cli_page_defaults; /* for PyTorch's commands */
extern const struct cli_page_values cli_view_defaults;

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_view view);

/* Of the file's name what its page is named after: "dump" of "folder/dump.pickle.gz". Returns its
 * length; *stem_out points into the path. */
size_t cli_page_stem(const char *path, const char **stem_out);

/* A page that reads snapshots itself. */
enum cli_exit cli_page_run_empty(const struct cli_call *call);

#define CLI_PAGE_OUTPUT_OPT                                                                        \
    {                                                                                              \
        .name = "output", .letter = 'o', .kind = CLI_OPT_TEXT,                                     \
        .at = offsetof(struct cli_page_values, output), .value = "FILE",                           \
        .help = "output file (default: output.html); - is standard output"                         \
    }

#define CLI_PAGE_TITLE_OPT                                                                         \
    {                                                                                              \
        .name = "title", .kind = CLI_OPT_TEXT, .at = offsetof(struct cli_page_values, title),      \
        .value = "TEXT", .help = "title of the page (default: the snapshot's name)"                \
    }

extern const char *const cli_page_redact_choices[];

#define CLI_PAGE_REDACT_OPT                                                                        \
    {                                                                                              \
        .name = "redact", .kind = CLI_OPT_CHOICE, .at = offsetof(struct cli_page_values, redact),  \
        .choices = cli_page_redact_choices,                                                        \
        .help = "what to remove: directories of source files, or all text of the snapshot"         \
    }

#endif
