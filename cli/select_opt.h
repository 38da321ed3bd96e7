/* SPDX-License-Identifier: MIT */
/* The options that select and group, shared by all commands that report on traces. */
#ifndef CLI_SELECT_OPT_H
#define CLI_SELECT_OPT_H

#include "command.h"
#include "device_opt.h"
#include "tarn/report.h"

struct cli_select_values {
    uint64_t device; /* CLI_DEVICE_ALL: not given */
    uint64_t stream; /* UINT64_MAX: not given */
    const char *pool;
    uint64_t min_size;
    uint64_t max_size;
    const char *match;
    const char *annotation;
    const char *where;
    int frames; /* enum tarn_frames */
    const char *hide;
    uint64_t depth;
    bool full_stacks;
    const char *events;
    const char *time;
    const char *step;
    const char *at;
    int by; /* enum tarn_grouping */
    const char *rules;
};

#define CLI_SELECT_DEFAULTS                                                                        \
    {                                                                                              \
        .device = CLI_DEVICE_ALL, .stream = UINT64_MAX                                             \
    }

/* In the order of the enumerations. */
extern const char *const cli_frames_choices[];
extern const char *const cli_by_choices[];

#define CLI_SELECT_ROW(type, member, word, sort, shown, words)                                     \
    {                                                                                              \
        .name = (word), .kind = (sort), .at = offsetof(type, select.member), .value = (shown),     \
        .help = (words)                                                                            \
    }

/* Rows of an option table; `type` has a member `select`. CLI_SELECT_OPTS has all of them; a report
 * that is not about one time point leaves out --at, one without groups --by. */
#define CLI_SELECT_OPTS(type)                                                                      \
    CLI_SELECT_WHICH_OPTS(type), CLI_SELECT_AT_OPT(type), CLI_SELECT_FRAME_OPTS(type),             \
        CLI_SELECT_BY_OPT(type), CLI_SELECT_RULES_OPT(type)

#define CLI_SELECT_WHICH_OPTS(type)                                                                \
    {.name = "device",                                                                             \
     .letter = 'd',                                                                                \
     .kind = CLI_OPT_NUMBER,                                                                       \
     .at = offsetof(type, select.device),                                                          \
     .value = "N",                                                                                 \
     .help = "only this device"},                                                                  \
        CLI_SELECT_ROW(type, stream, "stream", CLI_OPT_NUMBER, "S", "only blocks of this stream"), \
        CLI_SELECT_ROW(type, pool, "pool", CLI_OPT_TEXT, "POOL",                                   \
                       "only blocks of this pool: default, private, or A,B"),                      \
        CLI_SELECT_ROW(type, min_size, "min-size", CLI_OPT_SIZE, "SIZE",                           \
                       "only blocks of at least this size"),                                       \
        CLI_SELECT_ROW(type, max_size, "max-size", CLI_OPT_SIZE, "SIZE",                           \
                       "only blocks of at most this size"),                                        \
        CLI_SELECT_ROW(type, match, "match", CLI_OPT_TEXT, "REGEX",                                \
                       "only blocks with a frame \"file:line:function\" that matches"),            \
        CLI_SELECT_ROW(type, annotation, "annotation", CLI_OPT_TEXT, "NAME",                       \
                       "only blocks allocated within this annotation"),                            \
        CLI_SELECT_ROW(type, where, "where", CLI_OPT_TEXT, "EXPR",                                 \
                       "only blocks for which it is true; \"tarn explain where\" has the syntax"), \
        CLI_SELECT_ROW(type, events, "events", CLI_OPT_TEXT, "A..B",                               \
                       "only these events of the trace, by number"),                               \
        CLI_SELECT_ROW(type, time, "time", CLI_OPT_TEXT, "A..B",                                   \
                       "only this part of the trace, in seconds (or ms, us)"),                     \
        CLI_SELECT_ROW(type, step, "step", CLI_OPT_TEXT, "N..M",                                   \
                       "only these training steps, from 1")

#define CLI_SELECT_AT_OPT(type)                                                                    \
    CLI_SELECT_ROW(                                                                                \
        type, at, "at", CLI_OPT_TEXT, "WHEN",                                                      \
        "time point: peak, reserved-peak, start, end, oom[:N], event:N, time:T, step:N")

#define CLI_SELECT_FRAME_OPTS(type)                                                                \
    {.name = "frames",                                                                             \
     .kind = CLI_OPT_CHOICE,                                                                       \
     .at = offsetof(type, select.frames),                                                          \
     .choices = cli_frames_choices,                                                                \
     .help = "which stack frames to use"},                                                         \
        CLI_SELECT_ROW(type, hide, "hide", CLI_OPT_TEXT, "REGEX", "drop matching frames"),         \
        CLI_SELECT_ROW(type, depth, "depth", CLI_OPT_NUMBER, "N",                                  \
                       "keep only the N innermost frames of a stack"),                             \
    {                                                                                              \
        .name = "full-stacks", .kind = CLI_OPT_FLAG, .at = offsetof(type, select.full_stacks),     \
        .help = "print all frames of stacks"                                                       \
    }

#define CLI_SELECT_BY_OPT(type)                                                                    \
    {                                                                                              \
        .name = "by", .kind = CLI_OPT_CHOICE, .at = offsetof(type, select.by), .value = "KEY",     \
        .choices = cli_by_choices,                                                                 \
        .help = "how to group blocks into rows: stack (default), frame, function, file, line, "    \
                "category, stream, pool, segment, size, annotation, metadata, compile, module"     \
    }

#define CLI_SELECT_RULES_OPT(type)                                                                 \
    CLI_SELECT_ROW(type, rules, "rules", CLI_OPT_TEXT, "FILE",                                     \
                   "rules of categories, lines \"category: pattern\"")

/* The selection in the form that reports take. */
struct cli_selected {
    struct tarn_selection selection; /* points into the values and the members below */
    struct tarn_rules *rules;        /* NULL without --rules */
    struct tarn_where *where;        /* NULL without --where */
};

/* On an invalid option or rules file, reports it and returns an exit code; nothing to release
 * then. */
enum cli_exit cli_select_read(const struct cli_command *command,
                              const struct cli_select_values *values,
                              struct cli_selected *selected_out);
void cli_select_release(struct cli_selected *selected);

/* The rules of --rules, NULL without it. Reports errors in the file. */
enum cli_exit cli_rules_load(const struct cli_command *command, const char *path,
                             struct tarn_rules **rules_out);

/* Whether any of them was given that changes what a report is about; labels are no part of it. */
bool cli_select_narrows(const struct cli_select_values *values);

/* Copies the selection into a report's options. */
void cli_select_apply(const struct cli_selected *selected, const struct cli_select_values *values,
                      struct tarn_report_options *options);

#endif
