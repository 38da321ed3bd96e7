/* SPDX-License-Identifier: MIT */
/*
 * Reports on a snapshot: as data, and as text, JSON, JSON lines or CSV to a writer.
 *
 * tarn_<report>_compute gives the numbers as a struct, tarn_report_<report> writes them. What was
 * allocated at the peak takes a few lines:
 *
 *     struct tarn_peak_result *peak;
 *     size_t count;
 *
 *     if (tarn_peak_compute(snapshot, NULL, &peak, &count, &error) == TARN_OK) {
 *         const struct tarn_holders *holders = &peak->requested_peak.holders;
 *
 *         for (size_t i = 0; i < holders->row_count; i++) {
 *             printf("%llu  %s\n", (unsigned long long)holders->rows[i].bytes,
 *                    holders->rows[i].group.text);
 *         }
 *         tarn_report_destroy(peak);
 *     }
 *
 * The texts of tarn_report_stats, _summary, _trace, _flame and _compare are those of PyTorch's
 * tools, byte for byte; the command line of _memory_viz prints one newline more at the end.
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

/* What `_memory_viz stats` prints: one line of letters per segment of 20 MiB or more, then totals;
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

/* Zero bytes mean: every device, with a correct total. */
struct tarn_trace_text_options {
    uint32_t struct_size; /* sizeof(struct tarn_trace_text_options) */
    bool one_device;      /* only `device` */
    int device;
    bool compat; /* end each device as PyTorch does, with a TOTAL MEM that means nothing */
    enum tarn_units units;
};

/* What `_memory_viz trace` prints: a trace as lines that look like Python. The total of a device is
 * what is allocated at the end of the trace, in requested bytes. `options` may be NULL. Fails with
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

/* The stack of event number `event` of a device's trace in one line, as the tables show stacks: the
 * frame that asked, then up to three callers that are neither PyTorch's nor the interpreter's.
 * TARN_ERR_NOT_FOUND when there is no such event, or what the writer returned. */
TARN_API enum tarn_status tarn_report_stack(const struct tarn_snapshot *snapshot, int device,
                                            uint64_t event,
                                            const struct tarn_writer *writer) TARN_MUST_CHECK;

enum tarn_top_order {
    TARN_TOP_BY_PEAK,      /* bytes held at the peak of requested bytes */
    TARN_TOP_BY_END,       /* bytes held at the end */
    TARN_TOP_BY_REQUESTED, /* bytes requested in the trace */
    TARN_TOP_BY_COUNT      /* allocations in the trace */
};

enum tarn_answer {
    TARN_ANSWER_UNKNOWN,
    TARN_ANSWER_NO,
    TARN_ANSWER_YES
};

enum tarn_report_format {
    TARN_REPORT_TEXT,  /* for people */
    TARN_REPORT_JSON,  /* a document {"schema", "tool", "data"} */
    TARN_REPORT_JSONL, /* the rows of all tables, one JSON object per line */
    TARN_REPORT_CSV    /* the same as CSV; the first line has the names of the columns */
};

/* Of tarn_report_leaks; see tarn_suppressions_load. */
struct tarn_suppressions;

enum {
    TARN_OOM_CONF_MAX = 256
};

/* Settings under which a run that failed finishes, or the memory that it needs. */
struct tarn_oom_remedy {
    char conf[TARN_OOM_CONF_MAX]; /* settings, "" the defaults */
    const char *text;             /* the same; set by the report */
    uint64_t memory;              /* bytes that it may reserve */
    uint64_t peak_reserved;       /* bytes; 0: unknown */
};

/* Options of the reports on traces below. Zero bytes mean: text, every device, tables of ten rows.
 */
struct tarn_report_options {
    uint32_t struct_size; /* sizeof(struct tarn_report_options) */
    bool one_device;      /* only `device` */
    int device;
    enum tarn_report_format format;
    uint64_t rows;         /* of each table; one more row sums up the others; 0 = 10 */
    uint64_t device_total; /* bytes of the device, which snapshots do not contain; 0 = unknown */

    /* Called for a request that failed: would the run have got past that event with `settings`
     * added to its own (tarn/config.h), on a device of `capacity` bytes? On TARN_ANSWER_UNKNOWN the
     * report does not mention it. A replay (tarn/replay.h) can answer. NULL: not called. */
    enum tarn_answer (*would_fit)(void *context, int device, uint64_t event, uint64_t capacity,
                                  const char *settings);
    void *context;

    enum tarn_top_order order; /* of the rows of tarn_report_top */

    const struct tarn_selection *selection; /* NULL: everything */
    enum tarn_grouping by;                  /* what rows stand for */
    const struct tarn_rules *rules;         /* for TARN_BY_CATEGORY; NULL: the default ones */

    enum tarn_units units; /* of sizes in text */

    /* Of tarn_report_peak, _live and _top: stacks as a tree of calls, callers first, instead of a
     * table (in JSON in addition to it). A row with less than `min_share` percent of the total, or
     * beyond `rows` of its caller, is among its caller's others; so what is below a row adds up to
     * it. */
    bool tree;
    double min_share;

    uint64_t
        lifetime_max; /* of tarn_report_churn: longest lifetime that counts, in events; 0 = 64 */

    /* Of tarn_report_leaks. */
    uint64_t parts; /* equal parts to cut the trace into; 0: at steps, else where stacks repeat */
    const struct tarn_suppressions *suppressions; /* NULL: none */
    uint64_t *leaks_out; /* receives their number over all devices; or NULL */

    /* Of tarn_report_oom, called once for a device with failed requests: with which settings, or
     * with how much memory, would the run have finished? *memory is what it could reserve, as far
     * as the report can tell, and may be corrected. Writes at most `count` remedies, settings that
     * do with that memory first, and returns their number; SIZE_MAX: unknown, and the report does
     * not mention it. A replay can answer. NULL: not called. */
    size_t (*find_remedies)(void *context, int device, uint64_t *memory,
                            struct tarn_oom_remedy *remedies_out, size_t count);

    bool full_stacks; /* lines of text have all frames of a stack, not those that say most */

    unsigned columns; /* of a line of text: longer labels of stacks lose outer frames, as long as
                         rows still differ, and bars stand behind shares where there is room; 0: no
                         limit, and no bars */
    bool color;       /* of headings and what stands out in text: escape sequences of a terminal */
    bool is_utf8;     /* the terminal shows UTF-8: bars in parts of a character, else of ASCII */
};

/* ---- results ----
 *
 * Sizes are bytes; counts, and numbers of events from 0, are plain. The rows of a table and its
 * `others` add up to its `total`. A result depends on all options except `format`, with one
 * exception: only with TARN_REPORT_TEXT are sizes in names of groups in `units`.
 *
 * tarn_<report>_compute sets *results_out to an array with one result for each device that has a
 * trace, or for the one that the options name, and *count_out to their number. If the file has no
 * traces, those on a time point (frag, live, top) have the state of each device that has segments,
 * with 0 events and TARN_NONE for the time point; the others fail. The caller owns the array,
 * destroy with tarn_report_destroy. Results are read only; any number of threads may read them.
 * They borrow texts from the snapshot, which must outlive them. */

/* In place of the number of an event: before the first event, or there is none. In place of the
 * number of a row: there is none. */
#define TARN_NONE UINT64_MAX

struct tarn_report_frame {
    const char *name; /* as in the file: not safe to print; ends with a 0 byte */
    size_t name_length;
    const char *filename;
    size_t filename_length;
    int64_t line;
};

/* The group of a row: a stack, or what the blocks have in common by tarn_report_options.by. */
struct tarn_group {
    uint64_t key;     /* tells the groups of one result apart; of a stack its number in the file */
    const char *text; /* one line, as tables show it; safe to print */
    const char *name; /* the same in full; NULL when there are frames instead */
    const struct tarn_report_frame *frames; /* by stack: innermost first */
    size_t frame_count;
};

enum tarn_call_kind {
    TARN_CALL_CHAIN,  /* of calls; the first row is the root, without frames */
    TARN_CALL_ITSELF, /* what the caller allocated itself */
    TARN_CALL_OTHERS  /* callees that have no row of their own */
};

/* Where a row of a tree of calls is. The rows below a row add up to it. Its `group` has the frames
 * of the chain, outermost first. */
struct tarn_call {
    enum tarn_call_kind kind;
    uint64_t id; /* number of the row, from 0 */
    uint32_t depth;
    uint64_t parent; /* number of the caller's row, which comes before; of the root TARN_NONE */
    uint64_t others; /* how many callees TARN_CALL_OTHERS stands for */
};

/* Every result of one device begins with this. */
struct tarn_report_head {
    int device;
    enum tarn_grouping by; /* what rows stand for */
    uint64_t events;       /* of the trace */
    uint64_t first_event;  /* of the selected part */
    uint64_t last_event;
    uint64_t blocks; /* that are selected, over the part of the trace */
    bool is_part;    /* of the blocks or of the trace: something is selected */
};

/* The device right after an event. */
struct tarn_time_point {
    uint64_t event; /* TARN_NONE: before the first */
    uint64_t reserved;
    uint64_t requested; /* of allocated blocks that are selected */
    uint64_t left_out;  /* of those that are not */
};

/* Releases what a function of this header computed; NULL is allowed. */
TARN_API void tarn_report_destroy(const void *results);

/* All of these take `options` NULL, and fail with TARN_ERR_NOT_SUPPORTED when the file has no
 * trace, with TARN_ERR_NOT_FOUND when it has none of that device or not what is selected, with
 * TARN_ERR_INVALID_ARGUMENT for an invalid pattern, with TARN_ERR_HOST_MEMORY, or with what the
 * writer returned. Sums of their tables equal the totals they print; with a selection they say what
 * it leaves out. */

/* A group and the allocated blocks it holds at a time point. */
struct tarn_holder {
    struct tarn_group group;
    struct tarn_call call; /* in a tree */
    uint64_t bytes;        /* requested; what rows are sorted by */
    uint64_t blocks;
    uint64_t bytes_before; /* of those that were there before the first event */
};

/* Who holds memory at a time point. */
struct tarn_holders {
    enum tarn_grouping by;
    size_t row_count;
    const struct tarn_holder *rows; /* most bytes first */
    uint64_t other_count;           /* groups that have no row */
    struct tarn_holder others;      /* their sum */
    struct tarn_holder total;
    struct tarn_holder unclassified; /* by category: no rule matches; also in a row or the others */
    size_t tree_count;
    const struct tarn_holder *tree; /* the same as a tree of calls, if the options say so */
    uint64_t bytes_without_frames;  /* of the total: allocated in the trace with an empty stack */
};

struct tarn_composition {
    struct tarn_time_point at;
    struct tarn_holders holders;
    uint64_t unallocated; /* reserved but not requested: cached, between blocks, lost to rounding;
                             TARN_NONE: the selection leaves that open */
};

/* One device: memory by owner at the peak of requested and at the peak of reserved bytes. The
 * selection's instant is ignored. */
struct tarn_peak_result {
    struct tarn_report_head head;
    struct tarn_composition requested_peak;
    struct tarn_composition reserved_peak;
    struct tarn_time_point whole_peak; /* of requested bytes, whatever is selected */
    uint64_t allocated_peak;           /* of all blocks, whole, as max_memory_allocated() */
    uint64_t whole_reserved_peak;      /* bytes, whatever is selected */
};

/* Memory by owner at both peaks: one result per device. */
TARN_API enum tarn_status tarn_peak_compute(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            struct tarn_peak_result **results_out,
                                            size_t *count_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Memory by owner at the peaks of allocated and of reserved bytes, or at the selection's instant,
 * and how much of it is from before the trace. Allocated bytes are requested bytes, as PyTorch's
 * `requested_bytes` counts them. */
TARN_API enum tarn_status tarn_report_peak(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* The memory of one pool on one stream at a time point: reserved = used + slack + free. */
struct tarn_pool_row {
    uint64_t pool[2]; /* 0, 0: the default one */
    uint64_t stream;
    const char *size_class; /* "large" or "small" */
    uint64_t reserved;
    uint64_t used;        /* by allocated blocks: their rounded requests */
    uint64_t by_settings; /* of that, what roundup_power2_divisions adds */
    uint64_t waiting;     /* of that, by blocks that are freed and wait for other streams */
    uint64_t slack;       /* remainders of blocks that were not split off */
    uint64_t free;
    uint64_t largest_free;
    uint64_t free_pieces;
    uint64_t free_segments; /* bytes of entirely free segments */
    uint64_t releasable;    /* these, and whole free pages of expandable segments */
    uint64_t stuck;         /* the rest of what is free: beside blocks */
    uint64_t largest_stuck; /* piece of that */
    uint64_t scattered;     /* stuck, but not in the largest piece */
    uint64_t stuck_pieces;
};

/* What a group held before, and holds after. */
struct tarn_change {
    struct tarn_group group; /* `name` is its path: all frames of a stack, joined by ';' */
    const char *kind;        /* "new", "grew", "shrank", "gone" or "same" */
    uint64_t before;         /* bytes */
    uint64_t after;
    int64_t change; /* rows are sorted by its absolute value */
    uint64_t blocks_before;
    uint64_t blocks_after;
    int64_t block_change;
};

/* All changes of one kind. */
struct tarn_change_sum {
    const char *kind;
    uint64_t groups;
    int64_t change;
};

enum {
    TARN_CHANGE_KINDS = 5
};

struct tarn_changes {
    enum tarn_grouping by;
    size_t row_count;
    const struct tarn_change *rows;
    uint64_t other_count;
    struct tarn_change others;
    struct tarn_change total;
    struct tarn_change_sum kinds[TARN_CHANGE_KINDS]; /* they add up to the change of the total */
};

enum tarn_oom_verdict {
    TARN_OOM_FRAGMENTED, /* enough was free for the request, in too small pieces */
    TARN_OOM_ELSEWHERE,  /* enough was free, but for another pool or stream */
    TARN_OOM_FULL,
    TARN_OOM_OUTSIDE, /* what is held outside this allocator would have been enough */
    TARN_OOM_ROUNDED  /* what roundup_power2_divisions adds to blocks would have been enough */
};

/* One request that failed. */
struct tarn_oom_failure {
    uint64_t event;
    uint64_t request; /* rounded; as the trace has it */
    uint64_t segment; /* what was requested from the device */
    uint64_t stream;
    uint64_t device_free;
    uint64_t reserved;
    uint64_t requested; /* of allocated blocks */
    uint64_t room;      /* beyond what was reserved: the device's, or up to the limit */
    uint64_t outside;   /* bytes of the device held outside this allocator; 0: unknown */
    bool is_limited;    /* the device had room: a limit of the allocator refused */
    enum tarn_oom_verdict verdict;
    bool emptying_helps; /* releasing the free segments would have made room */
    enum tarn_answer expandable_helps;
    enum tarn_answer unrounded_helps; /* no roundup_power2_divisions */
    struct tarn_group stack;          /* of the request */
    struct tarn_pool_row own; /* of the request's pool and stream; all zero if it has none */
    size_t pool_count;
    const struct tarn_pool_row *pools;
    struct tarn_pool_row all_pools;
    struct tarn_holders holders;
    uint64_t since;     /* event: what changed after it; TARN_NONE: the trace begins later */
    bool is_since_step; /* it is the end of a step, else the last tenth of the trace begins */
    struct tarn_changes changes;
    bool is_compact; /* recorded under policy:compact: whole free pages serve any pool and stream */
};

/* Failed requests with the same stack. */
struct tarn_oom_requester {
    uint64_t requests;
    uint64_t smallest; /* bytes, rounded */
    uint64_t largest;
    struct tarn_group stack;
};

/* Failed requests with the same verdict, refused by the same side. */
struct tarn_oom_cause {
    enum tarn_oom_verdict verdict;
    bool is_limited;
    uint64_t requests;
    size_t first; /* number of the first in `ooms` */
    uint64_t first_event;
    uint64_t last_event;
    size_t requester_count;
    const struct tarn_oom_requester *requesters; /* most requests first */
};

/* One device. */
struct tarn_oom_result {
    struct tarn_report_head head;
    size_t oom_count;
    const struct tarn_oom_failure *ooms; /* the first ones */
    uint64_t later_ooms;                 /* more that are not examined */
    size_t cause_count;
    const struct tarn_oom_cause *causes; /* of `ooms`, in the order of their first ones */
    bool has_remedies;                   /* find_remedies knew */
    uint64_t memory;                     /* bytes that the run could reserve */
    size_t remedy_count;
    const struct tarn_oom_remedy *remedies;
};

/* The selection's instant, if any, must be TARN_AT_OOM. */
TARN_API enum tarn_status tarn_oom_compute(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           struct tarn_oom_result **results_out, size_t *count_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Why each failed request failed: what was requested, what was free where, memory by owner, and a
 * verdict. Without a failed request the report says so. */
TARN_API enum tarn_status tarn_report_oom(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* A group over the whole trace. */
struct tarn_top_row {
    struct tarn_group group;
    struct tarn_call call; /* in a tree */
    uint64_t rank;         /* what rows are sorted by: the number that the order names */
    uint64_t at_instant;   /* bytes held at the result's instant */
    uint64_t at_end;       /* bytes held at the end */
    uint64_t allocated;    /* bytes requested in the trace */
    uint64_t allocations;
    uint64_t freed;           /* how many of these were freed in the trace */
    uint64_t lifetime_events; /* from allocation to free, summed over those that were freed */
};

/* One device. */
struct tarn_top_result {
    struct tarn_report_head head;
    struct tarn_time_point at;         /* the selection's instant, else its peak */
    struct tarn_time_point whole_peak; /* of requested bytes, whatever is selected */
    uint64_t left_out_at_end;          /* as `at.left_out` */
    size_t row_count;
    const struct tarn_top_row *rows;
    uint64_t other_count;
    struct tarn_top_row others;
    struct tarn_top_row total;
    struct tarn_top_row unclassified; /* by category: no rule matches */
    size_t tree_count;
    const struct tarn_top_row *tree;
    uint64_t bytes_without_frames; /* held at the instant: allocated in the trace with no frames */
};

/* Stacks by what they held and requested over the whole trace: one result per device. */
TARN_API enum tarn_status tarn_top_compute(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           struct tarn_top_result **results_out, size_t *count_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Stacks by what they held and allocated over the whole trace, most first. The lifetime of a
 * block is the number of events from its allocation to its free. */
TARN_API enum tarn_status tarn_report_top(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* One device at the selection's instant, else at the end. */
struct tarn_live_result {
    struct tarn_report_head head;
    struct tarn_composition composition;
};

/* Memory by owner at the selection's instant, else at the end: one result per device. */
TARN_API enum tarn_status tarn_live_compute(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            struct tarn_live_result **results_out,
                                            size_t *count_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Memory by owner at the selection's instant, else at the end. */
TARN_API enum tarn_status tarn_report_live(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* The short-lived allocations of a group. */
struct tarn_churn_row {
    struct tarn_group group;
    uint64_t allocations;     /* what rows are sorted by */
    uint64_t allocated;       /* bytes */
    uint64_t lifetime_events; /* summed over them */
    uint64_t usual_size;      /* the most frequent one, the larger of equals; 0 in sums */
    uint64_t of_usual_size;
};

/* One device. */
struct tarn_churn_result {
    struct tarn_report_head head;
    uint64_t lifetime_max; /* events */
    uint64_t allocations;  /* of the trace */
    uint64_t allocated;
    size_t row_count;
    const struct tarn_churn_row *rows;
    uint64_t other_count;
    struct tarn_churn_row others;
    struct tarn_churn_row total;
};

/* Which stacks free memory right after allocating it: one result per device. */
TARN_API enum tarn_status tarn_churn_compute(const struct tarn_snapshot *snapshot,
                                             const struct tarn_report_options *options,
                                             struct tarn_churn_result **results_out,
                                             size_t *count_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Short-lived allocations, those freed within `lifetime_max` events: groups by their number. */
TARN_API enum tarn_status tarn_report_churn(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* All pools at a time point: reserved = requested + rounding + slack + free. */
struct tarn_frag_state {
    uint64_t event;
    uint64_t reserved;
    uint64_t requested;   /* of blocks in segments */
    uint64_t rounding;    /* blocks are multiples of 512 bytes */
    uint64_t by_settings; /* what roundup_power2_divisions adds to that */
    uint64_t slack;       /* remainders of blocks that were not split off */
    uint64_t free;
    uint64_t largest_free;
    uint64_t free_pieces;

    /* What is free is one of these three. */
    uint64_t releasable; /* segments that can go back to the device at once, and whole pages of
                            expandable ones */
    uint64_t stuck;     /* beside blocks, for requests of the default pool on the main stream, which
                            is the one with the most reserved memory */
    uint64_t elsewhere; /* beside blocks of other streams, or in private pools */

    uint64_t largest_stuck; /* piece */
    uint64_t scattered;     /* stuck, but not in the largest piece */
    uint64_t stuck_pieces;
};

/* A segment of which blocks take at most an eighth. */
struct tarn_pinned_segment {
    struct tarn_group largest_block; /* the group of the largest of its blocks */
    uint64_t address;
    uint64_t unused; /* what rows are sorted by */
    uint64_t used;
    uint64_t blocks;
};

/* One device at the selection's instant, else when most was reserved. */
struct tarn_frag_result {
    struct tarn_report_head head;
    struct tarn_time_point at;
    bool is_of_all_blocks; /* the selection limits blocks, which share segments with all others */
    struct tarn_frag_state state;
    uint64_t outside; /* allocated in no segment that the file knows */
    size_t pool_count;
    const struct tarn_pool_row *pools;
    size_t row_count;
    const struct tarn_pinned_segment *rows;
    uint64_t other_count;
    struct tarn_pinned_segment others;
    struct tarn_pinned_segment total;
    size_t state_count;
    const struct tarn_frag_state *states; /* over the trace: after each tenth of it */
};

/* Where reserved memory is lost: one result per device. */
TARN_API enum tarn_status tarn_frag_compute(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            struct tarn_frag_result **results_out,
                                            size_t *count_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Where reserved memory is lost at the time point of the selection, by default the reserved peak:
 * inside blocks, between them, and in segments that a few small blocks pin; and how this changed
 * over the trace. Segments are shared, so a selection of blocks does not limit what is counted. */
TARN_API enum tarn_status tarn_report_frag(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* A private pool: of a CUDA graph, of several that share it, or a MemPool. */
struct tarn_private_pool {
    uint64_t pool[2];
    uint64_t reserved;
    uint64_t free; /* of that, in no block */
};

/* One device when most was reserved. */
struct tarn_private_pools_result {
    struct tarn_report_head head;
    struct tarn_time_point at;
    uint64_t reserved; /* by all private pools */
    size_t pool_count;
    const struct tarn_private_pool *pools; /* most reserved first */
};

/* The private pools of each device, as far as segments show them that are there at the end of the
 * trace. Selections are ignored. One result per device. */
TARN_API enum tarn_status tarn_private_pools_compute(const struct tarn_snapshot *snapshot,
                                                     const struct tarn_report_options *options,
                                                     struct tarn_private_pools_result **results_out,
                                                     size_t *count_out,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Which time points are compared to find leaks. */
enum tarn_leak_points {
    TARN_LEAK_POINTS_STEPS,  /* ends of steps, by annotations */
    TARN_LEAK_POINTS_STACK,  /* where a stack repeats */
    TARN_LEAK_POINTS_PARTS,  /* ends of equal parts, as the options say */
    TARN_LEAK_POINTS_GUESSED /* the same: nothing marks steps */
};

enum {
    TARN_LEAK_POINTS_MIN = 4 /* with fewer nothing leaks */
};

/* What a group holds at each time point. */
struct tarn_leak_row {
    struct tarn_group group;
    int64_t growth; /* bytes from a time point to the next: the median of the slopes between all
                       pairs of them (Theil-Sen). What rows are sorted by */
    int64_t change; /* from the first time point to the last */
    uint64_t first; /* bytes at the first time point */
    uint64_t last;
    uint64_t blocks; /* at the last time point */
    uint64_t steps;  /* between time points; 0 in sums, as what follows */
    uint64_t steps_grown;
    uint64_t first_growth_event;
    size_t point_count;
    const uint64_t *bytes; /* at each time point */
};

/* One device. `rows`, `more`, `others` and `suppressed` add up to `total`. */
struct tarn_leaks_result {
    struct tarn_report_head head;
    enum tarn_leak_points points_by;
    uint64_t points_found;      /* before some were dropped, if too many */
    struct tarn_group repeated; /* of TARN_LEAK_POINTS_STACK */
    size_t point_count;
    const uint64_t *points; /* numbers of events */
    uint64_t left_out_at_end;
    size_t leak_count; /* groups that leak */
    size_t row_count;
    const struct tarn_leak_row *rows; /* those with the most growth */
    size_t more_count;
    struct tarn_leak_row more; /* the other groups that leak */
    size_t other_count;
    struct tarn_leak_row others; /* that do not */
    uint64_t suppressed_blocks;
    struct tarn_leak_row suppressed;
    struct tarn_leak_row total;
};

/* Which stacks keep growing: one result per device. */
TARN_API enum tarn_status tarn_leaks_compute(const struct tarn_snapshot *snapshot,
                                             const struct tarn_report_options *options,
                                             struct tarn_leaks_result **results_out,
                                             size_t *count_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* The stacks whose memory grows from step to step. `options->leaks_out` receives their number. */
TARN_API enum tarn_status tarn_report_leaks(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Which part of a run a row is. */
enum tarn_step_kind {
    TARN_STEP_WHOLE,
    TARN_STEP_BEFORE, /* what comes before the first step */
    TARN_STEP_AFTER   /* what comes after the last one, or the beginning of one more */
};

/* A step. In sums the peaks are the highest ones, and `end` is that of the last step. */
struct tarn_step {
    enum tarn_step_kind kind;
    uint64_t number; /* from 1; TARN_NONE: it is no whole step */
    uint64_t first_event;
    uint64_t last_event;
    uint64_t peak; /* requested bytes */
    uint64_t peak_event;
    uint64_t end;   /* requested bytes */
    int64_t growth; /* of requested bytes, from the end of the row before to this one's */
    uint64_t reserved_peak;
    uint64_t allocations;  /* of blocks that are selected */
    uint64_t allocated;    /* bytes */
    uint64_t device_calls; /* the sum of these */
    uint64_t segment_allocs;
    uint64_t segment_frees;
    uint64_t segment_maps;
    uint64_t segment_unmaps;
    uint64_t ooms;   /* requests that failed */
    double distance; /* of the peak from the median, in median deviations times 1.4826 */
    bool is_outlier;
};

/* One device. The growths of all rows and the others add up to that of the total. */
struct tarn_steps_result {
    struct tarn_report_head head;
    enum tarn_leak_points points_by; /* what tells steps */
    struct tarn_group repeated;      /* of TARN_LEAK_POINTS_STACK: each step begins with it */
    uint64_t step_count;             /* whole ones */
    uint64_t median_peak;            /* of whole steps */
    size_t row_count;
    const struct tarn_step *rows; /* in the order of the run; if not all, those of highest peak */
    uint64_t other_count;
    struct tarn_step others;
    struct tarn_step total;
    uint64_t outlier_count;
    struct tarn_step outlier; /* the farthest above the median, else below; if there is one */
};

/* The steps of a run: one result per device. Steps are annotated, or begin where a stack repeats;
 * without both, or as `options->parts` says, they are equal parts of the trace, of which none is an
 * outlier. `options->rows` 0: all. */
TARN_API enum tarn_status tarn_steps_compute(const struct tarn_snapshot *snapshot,
                                             const struct tarn_report_options *options,
                                             struct tarn_steps_result **results_out,
                                             size_t *count_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Peak, growth, allocations and device calls of each step, and the step that stands out. */
TARN_API enum tarn_status tarn_report_steps(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Stacks that are known not to leak, in the format of LeakSanitizer: lines "leak:pattern", where a
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
    struct tarn_instant to;   /* of the second; unspecified: the selection's, else the peak */
};

struct tarn_diff_counts {
    uint64_t before_bytes; /* allocated, of all devices that were compared */
    uint64_t after_bytes;
    double growth_bytes;   /* the most that one device grew by; 0: none did */
    double growth_percent; /* the same in percent of what it had before; of nothing 1e9 */
};

/* One of the two. */
struct tarn_diff_side {
    bool has_trace; /* of the device; without it nothing is allocated there */
    struct tarn_report_head head;
    struct tarn_time_point at;
};

/* One device that either has. */
struct tarn_diff_result {
    int device;
    struct tarn_diff_side before;
    struct tarn_diff_side after;
    struct tarn_changes changes;
};

/* What changed between two snapshots, or two instants of one: one result per device. */
TARN_API enum tarn_status
tarn_diff_compute(const struct tarn_snapshot *before, const struct tarn_snapshot *after,
                  const struct tarn_report_options *options, const struct tarn_diff_options *how,
                  struct tarn_diff_result **results_out, size_t *count_out,
                  struct tarn_error *error) TARN_MUST_CHECK;

/* Sums up the devices. */
TARN_API void tarn_diff_count(const struct tarn_diff_result *results, size_t count,
                              struct tarn_diff_counts *counts_out);

/* What changed between two snapshots, or two instants of one: what each stack, or other group, held
 * and holds, what is new, what is gone. Groups are compared by name, so the two may be of different
 * runs. `options`, `how` and `counts_out` may be NULL. Fails like the reports above. */
TARN_API enum tarn_status
tarn_report_diff(const struct tarn_snapshot *before, const struct tarn_snapshot *after,
                 const struct tarn_report_options *options, const struct tarn_diff_options *how,
                 const struct tarn_writer *writer, struct tarn_diff_counts *counts_out,
                 struct tarn_error *error) TARN_MUST_CHECK;

/* Zero bytes mean: an SVG picture with the root on top, of what is allocated. */
struct tarn_flame_at_options {
    uint32_t struct_size;     /* sizeof(struct tarn_flame_at_options) */
    bool folded;              /* lines "outermost;...;innermost BYTES" instead of a picture */
    bool is_inverted;         /* stacks begin with the frame that asked */
    bool root_below;          /* the classic flame graph */
    struct tarn_instant from; /* if specified: what grew from then to the selection's instant */
};

/* A flame graph of what is allocated at the instant of the selection, else at the peak, or of what
 * grew until then. With a grouping other than by stack its groups come first. `options` and `how`
 * may be NULL. Fails like the reports above. */
TARN_API enum tarn_status tarn_report_flame_at(const struct tarn_snapshot *snapshot,
                                               const struct tarn_report_options *options,
                                               const struct tarn_flame_at_options *how,
                                               const struct tarn_writer *writer,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Events of one kind. */
struct tarn_info_action {
    const char *name;
    uint64_t count;
};

/* A device at the time of the snapshot, and its trace. */
struct tarn_info_device {
    struct tarn_report_head head; /* without a trace only the device is set */
    uint64_t segments;
    uint64_t reserved;
    uint64_t allocated;
    uint64_t active; /* allocated, or waiting to be freed */
    uint64_t active_blocks;
    uint64_t requested; /* of active blocks */
    uint64_t events;    /* 0: there is no trace, and what follows is not set */
    bool has_times;
    int64_t first_us;
    int64_t last_us;
    uint64_t with_stack; /* of the events that may have one */
    uint64_t may_have_stack;
    uint64_t reserved_before; /* the first event */
    uint64_t requested_before;
    uint64_t blocks_before;
    size_t action_count;
    const struct tarn_info_action *actions;
    uint64_t selected_allocations;
    uint64_t selected_bytes;
    uint64_t selected_peak;
    uint64_t steps;
    bool trace_overflowed;         /* the oldest events were dropped, as the file says */
    uint64_t allocated_peak;       /* whole blocks, as max_memory_allocated() counts them */
    uint64_t allocated_peak_event; /* TARN_NONE: before the first event */
    uint64_t reserved_peak;
    uint64_t reserved_peak_event;
    uint64_t pages;       /* of policy:compact that are mapped; 0: the file does not say */
    uint64_t page_size;   /* bytes, of the largest */
    uint64_t moved_pages; /* of these, at addresses where other pages were mapped before */
    uint64_t mappings;    /* how often pages were mapped at the addresses of all of them */
};

/* A setting of the allocator as it was in effect; texts are not safe to print. */
struct tarn_info_setting {
    const char *name;
    const char *value; /* as Python prints it; "..." for a list or dict */
    bool is_on;        /* changes something: above 0, True or not empty */
};

struct tarn_info_result {
    const char *format; /* "a snapshot" */
    bool is_partial;    /* the end of the file is missing */
    bool has_settings;
    const char *settings; /* of the allocator, as in the file; not safe to print */
    size_t settings_length;
    uint64_t segments;
    uint64_t stacks;
    uint64_t annotations;
    uint64_t host_segments;
    size_t warning_count;
    const struct tarn_snapshot_warning *warnings; /* of the reader */
    size_t devices_in_file;
    size_t device_count;
    const struct tarn_info_device *devices; /* those that the options name */
    size_t in_effect_count;
    const struct tarn_info_setting *in_effect; /* `settings` is what was requested */
    uint64_t trace_entries_max;                /* of each trace; 0 = the file does not say */
};

/* What is in a snapshot, and what is not. */
TARN_API enum tarn_status tarn_info_compute(const struct tarn_snapshot *snapshot,
                                            const struct tarn_report_options *options,
                                            struct tarn_info_result **result_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* What is in the file and what is missing: format, settings, devices, events by action, whether the
 * trace begins mid-run, and the warnings of the reader. Does not need a trace. */
TARN_API enum tarn_status tarn_report_info(const struct tarn_snapshot *snapshot,
                                           const struct tarn_report_options *options,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Adds to `findings` where a snapshot contradicts itself: blocks that do not add up, segments that
 * overlap, a trace that allocates what is allocated or frees what is free, time that runs
 * backwards. Fails with TARN_ERR_HOST_MEMORY only: findings are no failure. */
TARN_API enum tarn_status tarn_snapshot_check(const struct tarn_snapshot *snapshot,
                                              struct tarn_findings *findings,
                                              struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
