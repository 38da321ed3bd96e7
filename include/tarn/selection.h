/* SPDX-License-Identifier: MIT */
/*
 * What a report on a trace covers: which blocks, which part of the trace, which stack frames, which
 * time point, and how blocks are grouped. The same for every report. Plain values: the caller owns
 * them and every text they point to until the report returns.
 */
#ifndef TARN_SELECTION_H
#define TARN_SELECTION_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What blocks are grouped by. */
enum tarn_grouping {
    TARN_BY_STACK,
    TARN_BY_FRAME,      /* the requesting frame: function, file and line */
    TARN_BY_FUNCTION,   /* its function */
    TARN_BY_FILE,       /* its file */
    TARN_BY_LINE,       /* its file and line */
    TARN_BY_CATEGORY,   /* category of the stack according to the rules */
    TARN_BY_STREAM,     /* by its handle */
    TARN_BY_POOL,       /* default, or the id of a private one */
    TARN_BY_SEGMENT,    /* the address of the segment */
    TARN_BY_SIZE,       /* rounded up to a power of two */
    TARN_BY_ANNOTATION, /* the innermost one open at the request */
    TARN_BY_METADATA,   /* `user_metadata`, the program's own text */
    TARN_BY_COMPILE,    /* `compile_context` */
    TARN_BY_MODULE      /* the module named by the tracker's labels in `user_metadata` */
};

enum tarn_frames {
    TARN_FRAMES_ALL,
    TARN_FRAMES_PYTHON, /* files that end in .py, and the interpreter's such as <string> */
    TARN_FRAMES_CPP,    /* all others */
    TARN_FRAMES_OWN     /* Python's, without those of PyTorch, packages and the interpreter */
};

enum tarn_pools {
    TARN_POOLS_ALL,
    TARN_POOLS_DEFAULT,
    TARN_POOLS_PRIVATE,
    TARN_POOLS_ONE /* tarn_selection.pool */
};

/* A time point is the state right after an event of the trace. */
enum tarn_instant_kind {
    TARN_AT_UNSPECIFIED, /* the report's own choice */
    TARN_AT_PEAK,        /* maximum of requested bytes; the first of equals */
    TARN_AT_RESERVED_PEAK,
    TARN_AT_START, /* before the first event */
    TARN_AT_END,
    TARN_AT_OOM,   /* failed request `number`, from 1 */
    TARN_AT_EVENT, /* event `number`, from 0 */
    TARN_AT_TIME,  /* `number` microseconds after the first event with a timestamp */
    TARN_AT_STEP   /* end of step `number`, from 1 */
};

struct tarn_instant {
    enum tarn_instant_kind kind;
    uint64_t number;
};

/* A part of the trace, inclusive at both ends. */
struct tarn_span {
    bool is_given;
    uint64_t first;
    uint64_t last; /* UINT64_MAX: to the end */
};

/* An expression that selects blocks. Immutable: any number of threads may use it. */
struct tarn_where;

/* Zero bytes select everything. All conditions on blocks must hold. For a part that starts later
 * than the trace, blocks allocated just before it count as "from before the trace". */
struct tarn_selection {
    uint32_t struct_size; /* sizeof(struct tarn_selection) */

    bool one_stream;
    uint64_t stream;
    enum tarn_pools pools;
    uint64_t pool[2];
    uint64_t size_min;      /* requested bytes */
    uint64_t size_max;      /* 0 = no limit */
    const char *match;      /* POSIX regular expression that some frame of the stack matches */
    const char *annotation; /* an annotation of that name, or NAME#..., was open at the request, or
                               the program annotated the block with that name */

    const struct tarn_where *where; /* true for the block; NULL = no condition */

    enum tarn_frames frames; /* other frames are dropped, and stacks that differ only in them are
                                merged */
    const char *hide;        /* POSIX regular expression of further frames to drop */
    uint32_t depth;          /* number of innermost frames to keep; 0 = all */

    struct tarn_span events;  /* numbers from 0 */
    struct tarn_span time_us; /* microseconds after the first event with a timestamp */
    struct tarn_span steps;   /* numbers from 1 */

    struct tarn_instant at;
};

/* Parses an expression such as `size >= 64MiB && (frame ~ "attention" || lifetime > 2s)`:
 * comparisons combined with && (binds tighter), ||, ! and parentheses.
 *
 *   size                       requested bytes: 512, 64MiB, 1.5GB
 *   lifetime (or age)          from the allocation to the free, both clipped to the trace: events,
 *                              or a time in us, ms, s, min or h
 *   start, end                 of the lifetime: events from 0, or a time since the first event
 *   address, segment, stream, device    numbers, also 0x...
 *   pool                       default, private, or A,B; only == and !=
 *   category, annotation (the innermost), metadata, compile    texts
 *   frame ("file:line:function"), function, file    texts; true if some frame of the stack matches
 *   freed, before              without a value: freed in the trace; allocated before it
 *
 * Numbers have == != < <= > >=. Texts have == and != (the whole text, or all of it before a '#';
 * for a file also the part after a '/'), and ~ and !~ for POSIX extended regular expressions; quote
 * texts unless they are one word. "=" means "==". Comparing an unknown value with == ~ < <= > >= is
 * false; != and !~ negate == and ~.
 *
 * Caller owns *where_out, destroy with tarn_where_destroy. TARN_ERR_INVALID_ARGUMENT with the
 * column and what was expected there, and the byte in error->offset; TARN_ERR_LIMIT beyond 4,096
 * bytes, 256 comparisons or 32 nested parentheses; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_where_parse(const char *text, struct tarn_where **where_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_where_destroy(struct tarn_where *where);

/* Frames are matched as "file:line:function", cut off at 4096 bytes. Annotations delimit steps:
 * from one ProfilerStep#... to the next, or else from the end of one Optimizer.step#... to the end
 * of the next; the first step starts with the trace. */

/* Rules that assign a category to a stack: lines "category: pattern"; blank lines and lines that
 * start with '#' are ignored. A pattern is a POSIX extended regular expression on
 * "file:line:function". Frames are searched from the outermost inwards; the first frame that any
 * rule matches decides, with the first rule that matches it. "A > B: pattern" refines category A,
 * or "unclassified": a stack whose innermost frame outside PyTorch matches is of B; in a file with
 * training only within functions generate... Immutable: any number of threads may
 * use them. */
struct tarn_rules;

/* Loads rules from a file; "-" is standard input. Caller owns *rules_out, destroy with
 * tarn_rules_destroy. TARN_ERR_IO; TARN_ERR_INVALID_ARGUMENT with the number of a malformed line;
 * TARN_ERR_LIMIT beyond 10,000 rules or 4,096 bytes per line; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_rules_load(const char *path, struct tarn_rules **rules_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* The default rules of reports, written for PyTorch. */
TARN_API enum tarn_status tarn_rules_create_default(struct tarn_rules **rules_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* The text of the default rules, as a starting point. Static storage. */
TARN_API const char *tarn_rules_default_text(void);

/* NULL is allowed. */
TARN_API void tarn_rules_destroy(struct tarn_rules *rules);

/* The category of each request in one device's trace, as in reports by category: from the rules, or
 * else from how the block is used. A failed request has no lifetime, only its stack. Immutable: any
 * number of threads may use it. */
struct tarn_categories;
struct tarn_snapshot;

/* `rules` NULL: the default ones. Borrows the snapshot and the rules until it is destroyed. Caller
 * owns *categories_out, destroy with tarn_categories_destroy. TARN_ERR_NOT_FOUND when the device
 * has no trace; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_categories_create(const struct tarn_snapshot *snapshot, int device,
                                                 const struct tarn_rules *rules,
                                                 struct tarn_categories **categories_out,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_categories_destroy(struct tarn_categories *categories);

/* Name of an event's category; "unclassified" also for events that are not requests. NULL past the
 * trace. Borrowed until the categories are destroyed. */
TARN_API const char *tarn_categories_get(const struct tarn_categories *categories, uint64_t entry);

/* Whether a category of that name exists: those of the rules, "unclassified", and the guessed
 * categories "parameter", "temporary" and "gradient". */
TARN_API bool tarn_categories_have(const struct tarn_categories *categories, const char *name);

#ifdef __cplusplus
}
#endif

#endif
