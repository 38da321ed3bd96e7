/* SPDX-License-Identifier: MIT */
/*
 * Reports on a snapshot, as text to a writer. The texts are those of PyTorch's _memory_viz tool,
 * byte for byte; its command line prints one newline more at the end.
 */
#ifndef TARN_REPORT_H
#define TARN_REPORT_H

#include "findings.h"
#include "selection.h"
#include "snapshot.h"
#include "stats.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What `_memory_viz stats` prints: one line of letters a segment of 20 MiB and more, then totals;
 * with TARN_UNITS_IEC byte for byte.
 * Fails with what the writer returned, with TARN_ERR_MISMATCH when the blocks of a segment do not
 * add up to its size (written so far: the lines before), or with TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_report_stats(const struct tarn_snapshot *snapshot,
                                            enum tarn_units units, const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* What `torch.cuda.memory_summary` prints for these counters, its final newline included.
 * Abbreviated: without the rows of each pool. */
TARN_API enum tarn_status tarn_report_summary(const struct tarn_stats *stats, int device,
                                              bool abbreviated,
                                              const struct tarn_writer *writer) TARN_MUST_CHECK;

/* Zero bytes mean: every device, the total made right. */
struct tarn_trace_text_options {
    uint32_t struct_size; /* sizeof(struct tarn_trace_text_options) */
    bool one_device;      /* only `device` */
    int device;
    bool compat; /* end each device as PyTorch does, with a TOTAL MEM that means nothing */
    enum tarn_units units;
};

/* What `_memory_viz trace` prints: a trace as lines that look like Python. The total of a device is
 * what is in use at the end of the trace, in bytes asked for. `options` may be NULL. Fails with
 * TARN_ERR_NOT_SUPPORTED when the file has no traces, with TARN_ERR_NOT_FOUND when it has none of
 * that device, with TARN_ERR_HOST_MEMORY, or with what the writer returned. */
TARN_API enum tarn_status tarn_report_trace(const struct tarn_snapshot *snapshot,
                                            const struct tarn_trace_text_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

enum tarn_flame_view {
    TARN_FLAME_SEGMENTS, /* stream, segment, state of the block, stack */
    TARN_FLAME_MEMORY    /* the same without the segment */
};

/* Zero bytes mean: an SVG picture of every device. */
struct tarn_flame_options {
    uint32_t struct_size; /* sizeof(struct tarn_flame_options) */
    bool one_device;      /* only `device` */
    int device;
    bool folded; /* the folded lines that PyTorch hands to flamegraph.pl */
    enum tarn_units units;
};

/* A flame graph of the blocks at the time of the snapshot, in bytes. The picture needs no other
 * file and no network; text of the snapshot is shown in it and never becomes markup. `options` may
 * be NULL. TARN_ERR_HOST_MEMORY, or what the writer returned. */
TARN_API enum tarn_status tarn_report_flame(const struct tarn_snapshot *snapshot,
                                            enum tarn_flame_view view,
                                            const struct tarn_flame_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* The same of the segments (address and size) that only one of two snapshots has. */
TARN_API enum tarn_status tarn_report_compare(const struct tarn_snapshot *before,
                                              const struct tarn_snapshot *after,
                                              const struct tarn_flame_options *options,
                                              const struct tarn_writer *writer,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Segments of two snapshots. */
struct tarn_compare_counts {
    uint64_t before; /* all */
    uint64_t after;
    uint64_t only_before; /* address and size */
    uint64_t only_after;
    uint64_t common_addresses; /* 0 where both have segments: they are of different runs */
};

/* The two lines that `_memory_viz compare` prints, addresses in order. `options` and `counts_out`
 * may be NULL. Fails as tarn_report_compare. */
TARN_API enum tarn_status tarn_report_compare_lists(const struct tarn_snapshot *before,
                                                    const struct tarn_snapshot *after,
                                                    const struct tarn_flame_options *options,
                                                    const struct tarn_writer *writer,
                                                    struct tarn_compare_counts *counts_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* The stack of entry number `entry` of a device's trace in one line, as the tables show stacks: the
 * frame that asked, then up to three callers that are neither PyTorch's nor the interpreter's.
 * TARN_ERR_NOT_FOUND when there is no such entry, or what the writer returned. */
TARN_API enum tarn_status tarn_report_stack(const struct tarn_snapshot *snapshot, int device,
                                            uint64_t entry,
                                            const struct tarn_writer *writer) TARN_MUST_CHECK;

enum tarn_top_order {
    TARN_TOP_BY_PEAK,      /* bytes held when most was in use */
    TARN_TOP_BY_END,       /* bytes held at the end */
    TARN_TOP_BY_ALLOCATED, /* bytes asked for in the trace */
    TARN_TOP_BY_COUNT      /* allocations in the trace */
};

enum tarn_answer {
    TARN_ANSWER_UNKNOWN,
    TARN_ANSWER_NO,
    TARN_ANSWER_YES
};

/* Of tarn_report_leaks; see tarn_suppressions_load. */
struct tarn_suppressions;

/* Of the reports on traces below. Zero bytes mean: text, every device, tables of ten rows. */
struct tarn_report_options {
    uint32_t struct_size; /* sizeof(struct tarn_report_options) */
    bool one_device;      /* only `device` */
    int device;
    bool json;             /* a JSON document {"schema", "tool", "data"} instead of text */
    uint64_t rows;         /* of each table; the others are one row more. 0 = 10 */
    uint64_t device_total; /* bytes of the device, which snapshots do not say; 0 = unknown */

    /* Asked for a request that failed: would the run have got past that entry with growing
     * ("expandable") segments, on a device of `capacity` bytes? TARN_ANSWER_UNKNOWN says nothing.
     * NULL: is not asked. tarn/replay.h can tell. */
    enum tarn_answer (*would_fit)(void *context, int device, uint64_t entry, uint64_t capacity);
    void *context;

    enum tarn_top_order order; /* of the rows of tarn_report_top */

    const struct tarn_selection *selection; /* NULL: everything */
    enum tarn_grouping by;                  /* what rows stand for */
    const struct tarn_rules *rules;         /* for TARN_BY_CATEGORY; NULL: the default ones */

    enum tarn_units units; /* of sizes in text */

    /* Of tarn_report_peak, _live and _top: stacks as a tree of calls, callers first, instead of a
     * table (in JSON besides it). A row with less than `min_share` percent of the total, or beyond
     * `rows` of its caller, is among its caller's others; so what is below a row adds up to it. */
    bool tree;
    double min_share;

    uint64_t life_max; /* of tarn_report_churn: entries that a short life has at most; 0 = 64 */

    /* Of tarn_report_leaks. */
    uint64_t parts; /* equal parts to cut the trace into; 0: at steps, else where stacks repeat */
    const struct tarn_suppressions *suppressions; /* NULL: none */
    uint64_t *leaks_out;                          /* how many were found, of all devices, or NULL */
};

/* All of these take `options` NULL, and fail with TARN_ERR_NOT_SUPPORTED when the file has no
 * trace, with TARN_ERR_NOT_FOUND when it has none of that device or not what is selected, with
 * TARN_ERR_INVALID_ARGUMENT for a pattern that is none, with TARN_ERR_HOST_MEMORY, or with what the
 * writer returned. Sums of their tables equal the totals they print; with a selection they say what
 * it leaves out. */

/* What memory was made of when most was in use and when most was reserved, or at the instant of the
 * selection, with what was there before the trace began. In use are bytes asked for, as
 * `requested_bytes` counts them. */
TARN_API enum tarn_status tarn_report_peak(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Why each request that failed did: what was asked for, what was free where, who held the rest, and
 * a verdict. Without a failed request it says so. */
TARN_API enum tarn_status tarn_report_oom(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Stacks by what they held and asked for over the whole trace, most first. The life of a block is
 * the number of entries from its allocation to its free. */
TARN_API enum tarn_status tarn_report_top(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* What memory is made of at the instant of the selection, else at the end. */
TARN_API enum tarn_status tarn_report_live(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Who gives memory back at once: allocations freed within `life_max` entries, by how many. */
TARN_API enum tarn_status tarn_report_churn(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Where reserved memory is lost at the instant of the selection, else when most was reserved:
 * inside of blocks, between them, and in segments that few small blocks pin; and how that was over
 * the trace. Segments are shared, so a selection of blocks does not limit what is counted. */
TARN_API enum tarn_status tarn_report_frag(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Who holds more and more, from step to step. `options->leaks_out` says how many. */
TARN_API enum tarn_status tarn_report_leaks(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Stacks that are known and no leaks, in the form of LeakSanitizer: lines "leak:pattern", where a
 * pattern is part of the name of a function or file, '*' stands for anything, and '^' and '$' for
 * its ends. "-" is standard input. Caller owns *suppressions_out, destroy with
 * tarn_suppressions_destroy. Fails as tarn_rules_load. */
TARN_API enum tarn_status tarn_suppressions_load(const char *path,
                                                 struct tarn_suppressions **suppressions_out,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_suppressions_destroy(struct tarn_suppressions *suppressions);

/* Zero bytes mean: stacks with their lines, both at the same instant. */
struct tarn_diff_options {
    uint32_t struct_size;     /* sizeof(struct tarn_diff_options) */
    bool ignore_lines;        /* frames that differ in their line are the same */
    const char *strip_prefix; /* of names of files, or NULL */
    bool folded;              /* lines "outermost;...;innermost BEFORE AFTER", for other tools */
    struct tarn_instant to;   /* of the second; unsaid: that of the selection, else the peak */
};

struct tarn_diff_counts {
    uint64_t before_bytes; /* in use, of all devices that were compared */
    uint64_t after_bytes;
    double growth_bytes;   /* the most that one device grew by; 0: none did */
    double growth_percent; /* the same in percent of what it had before; of nothing 1e9 */
};

/* What changed between two snapshots, or two instants of one: what each stack, or other group, held
 * and holds, what is new, what went. Groups are told by name, so the two may be of different runs.
 * `options`, `how` and `counts_out` may be NULL. Fails like the reports above. */
TARN_API enum tarn_status
tarn_report_diff(const struct tarn_snapshot *before, const struct tarn_snapshot *after,
                 const struct tarn_report_options *options, const struct tarn_diff_options *how,
                 const struct tarn_writer *writer, struct tarn_diff_counts *counts_out,
                 struct tarn_error *error) TARN_MUST_CHECK;

/* Many snapshots side by side, one at a time in memory: which rank stands out, and what it holds
 * that the others do not. Guarded by its owner. */
struct tarn_ranks;

/* `options` may be NULL; what they point to is borrowed until the end. Caller owns *ranks_out,
 * destroy with tarn_ranks_destroy. TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_ranks_create(const struct tarn_report_options *options,
                                            struct tarn_ranks **ranks_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Adds the devices of a snapshot, each as a rank; `name` tells it. The snapshot is not used after
 * the call. Fails like the reports above; nothing was added then. */
TARN_API enum tarn_status tarn_ranks_add(struct tarn_ranks *ranks,
                                         const struct tarn_snapshot *snapshot, const char *name,
                                         struct tarn_error *error) TARN_MUST_CHECK;

/* The peaks of all ranks, those that stand out first, and how these differ from the median one.
 * TARN_ERR_STATE when nothing was added, TARN_ERR_HOST_MEMORY, or what the writer returned. */
TARN_API enum tarn_status tarn_ranks_report(struct tarn_ranks *ranks,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_ranks_destroy(struct tarn_ranks *ranks);

/* Zero bytes mean: an SVG picture with the root on top, of what is in use. */
struct tarn_flame_at_options {
    uint32_t struct_size;     /* sizeof(struct tarn_flame_at_options) */
    bool folded;              /* lines "outermost;...;innermost BYTES" instead of a picture */
    bool is_inverted;         /* stacks begin with the frame that asked */
    bool root_below;          /* the classic flame graph */
    struct tarn_instant from; /* said: what is held more at the selection's instant than then */
};

/* A flame graph of what is in use at the instant of the selection, else at the peak, or of what
 * grew until then. With a grouping other than by stack its groups come first. `options` and `how`
 * may be NULL. Fails like the reports above. */
TARN_API enum tarn_status tarn_report_flame_at(const struct tarn_snapshot *snapshot,
                                               const struct tarn_report_options *options,
                                               const struct tarn_flame_at_options *how,
                                               const struct tarn_writer *writer,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* What is in the file and what is not: its form, settings, devices, entries by action, whether the
 * trace begins in mid-run, and what was odd when it was read. Does not need a trace. */
TARN_API enum tarn_status tarn_report_info(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Adds to `findings` where a snapshot contradicts itself: blocks that do not add up, segments that
 * overlap, a trace that allocates what is in use or frees what is free, time that runs backwards.
 * TARN_ERR_HOST_MEMORY; findings are none of its failures. */
TARN_API enum tarn_status tarn_snapshot_check(const struct tarn_snapshot *snapshot,
                                              struct tarn_findings *findings,
                                              struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
