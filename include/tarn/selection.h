/* SPDX-License-Identifier: MIT */
/*
 * What a report on a trace looks at: which blocks, which part of the trace, which frames of stacks,
 * which moment, and by what blocks are put together. The same for every report. Plain values: the
 * caller owns them and every text they point to until the report returns.
 */
#ifndef TARN_SELECTION_H
#define TARN_SELECTION_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a row of a table stands for. */
enum tarn_grouping {
    TARN_BY_STACK,
    TARN_BY_FRAME,      /* the frame that asked: function, file and line */
    TARN_BY_FUNCTION,   /* its function */
    TARN_BY_FILE,       /* its file */
    TARN_BY_LINE,       /* its file and line */
    TARN_BY_CATEGORY,   /* what the rules make of the stack */
    TARN_BY_STREAM,     /* by its handle */
    TARN_BY_POOL,       /* default, or the number of a private one */
    TARN_BY_SEGMENT,    /* the address of the segment */
    TARN_BY_SIZE,       /* up to a power of two */
    TARN_BY_ANNOTATION, /* the innermost that was open when the block was asked for */
    TARN_BY_METADATA,   /* what the program said of the block: `user_metadata` */
    TARN_BY_COMPILE,    /* `compile_context` */
    TARN_BY_MODULE      /* the module that the tracker's labels name, in `user_metadata` */
};

enum tarn_frames {
    TARN_FRAMES_ALL,
    TARN_FRAMES_PYTHON, /* of files that end in .py, and of the interpreter: <string> */
    TARN_FRAMES_CPP     /* all others */
};

enum tarn_pools {
    TARN_POOLS_ALL,
    TARN_POOLS_DEFAULT,
    TARN_POOLS_PRIVATE,
    TARN_POOLS_ONE /* tarn_selection.pool */
};

/* A moment is right after an entry of the trace. */
enum tarn_instant_kind {
    TARN_AT_UNSAID, /* the report's own choice */
    TARN_AT_PEAK,   /* most in use; the first of equals */
    TARN_AT_RESERVED_PEAK,
    TARN_AT_START, /* before the first entry */
    TARN_AT_END,
    TARN_AT_OOM,   /* `number`, from 1: a request that failed */
    TARN_AT_ENTRY, /* `number`, from 0 */
    TARN_AT_TIME,  /* `number`: microseconds from the first entry that has a time */
    TARN_AT_STEP   /* `number`, from 1: the end of a step */
};

struct tarn_instant {
    enum tarn_instant_kind kind;
    uint64_t number;
};

/* A part of the trace, both ends in it. */
struct tarn_span {
    bool is_given;
    uint64_t first;
    uint64_t last; /* UINT64_MAX: to the end */
};

/* An expression that picks blocks. Read only once made; any number of threads may use it. */
struct tarn_where;

/* Zero bytes select everything. What limits blocks is combined with "and". Of a part of a trace
 * that does not begin with it, blocks in use just before it are those "from before". */
struct tarn_selection {
    uint32_t struct_size; /* sizeof(struct tarn_selection) */

    bool one_stream;
    uint64_t stream;
    enum tarn_pools pools;
    uint64_t pool[2];
    uint64_t size_min;      /* bytes asked for */
    uint64_t size_max;      /* 0 = no limit */
    const char *match;      /* POSIX regular expression: some frame of the stack matches */
    const char *annotation; /* an annotation of that name, or NAME#..., was open when the block was
                               asked for, or the program gave the block that name */

    const struct tarn_where *where; /* it holds for the block; NULL: no limit */

    enum tarn_frames frames; /* others are not shown, and stacks that differ in them are one */
    const char *hide;        /* POSIX regular expression: neither are frames that match */
    uint32_t depth;          /* so many frames are kept, the innermost; 0 = all */

    struct tarn_span entries; /* numbers from 0 */
    struct tarn_span time_us; /* microseconds from the first entry that has a time */
    struct tarn_span steps;   /* numbers from 1 */

    struct tarn_instant at;
};

/* Makes one of a text such as `size >= 64MiB && (frame ~ "attention" || life > 2s)`: comparisons,
 * joined by && (first) and ||, turned round by !, with parentheses.
 *
 *   size                       bytes asked for: 512, 64MiB, 1.5GB
 *   life (or age)              from the allocation to the free, both cut to the trace: entries, or
 *                              a time with us, ms, s, min or h
 *   start, end                 of that: entries from 0, or a time from the first one on
 *   address, segment, stream, device    numbers, also 0x...
 *   pool                       default, private, or A,B; only == and !=
 *   category, annotation (the innermost), metadata, compile    texts
 *   frame ("file:line:function"), function, file    texts; some frame of the stack is so
 *   freed, before              alone: freed in the trace; in use before it
 *
 * Numbers have == != < <= > >=. Texts have == and != (all of it, or all before a '#'; of a file
 * also what follows a '/'), and ~ and !~ for POSIX extended regular expressions; they stand in
 * quotes unless they are one word. "=" is "==". What is not known of a block is equal to nothing,
 * neither more nor less, and matches nothing; != and !~ are the opposites of == and ~.
 *
 * Caller owns *where_out, destroy with tarn_where_destroy. TARN_ERR_INVALID_ARGUMENT with the
 * column and what was expected there, error->offset is the byte; TARN_ERR_LIMIT beyond 4,096 bytes,
 * 256 comparisons or 32 parentheses in parentheses; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_where_parse(const char *text, struct tarn_where **where_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_where_destroy(struct tarn_where *where);

/* Frames are matched as "file:line:function", cut off at 4096 bytes. Steps are told by annotations:
 * from one ProfilerStep#... to the next, else from the end of one Optimizer.step#... to that of the
 * next; the first begins with the trace. */

/* Rules that tell a category from a stack: lines "category: pattern", blank lines and lines that
 * begin with '#' aside. A pattern is a POSIX extended regular expression on "file:line:function".
 * From the outermost frame inwards, the first frame that a rule matches decides, by the first rule
 * that matches it. Read only once loaded; any number of threads may use it. */
struct tarn_rules;

/* From a file, "-" is standard input. Caller owns *rules_out, destroy with tarn_rules_destroy.
 * TARN_ERR_IO; TARN_ERR_INVALID_ARGUMENT with the number of a line that is no rule;
 * TARN_ERR_LIMIT beyond 10,000 rules or 4,096 bytes a line; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_rules_load(const char *path, struct tarn_rules **rules_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* The rules that reports use when they are given none, made for PyTorch. */
TARN_API enum tarn_status tarn_rules_create_default(struct tarn_rules **rules_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Their text, as a file to start from. Static storage. */
TARN_API const char *tarn_rules_default_text(void);

/* NULL is allowed. */
TARN_API void tarn_rules_destroy(struct tarn_rules *rules);

/* The category of what each entry of one device's trace asked for, as reports by category have it:
 * by the rules, else by how long the block lived. A request that failed has its stack only. Read
 * only once made; any number of threads may use it. */
struct tarn_categories;
struct tarn_snapshot;

/* `rules` NULL: the default ones. Borrows the snapshot and the rules until its end. Caller owns
 * *categories_out, destroy with tarn_categories_destroy. TARN_ERR_NOT_FOUND when the device has no
 * trace; TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_categories_create(const struct tarn_snapshot *snapshot, int device,
                                                 const struct tarn_rules *rules,
                                                 struct tarn_categories **categories_out,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_categories_destroy(struct tarn_categories *categories);

/* Name of an entry's category; "unclassified" for one that asks for nothing, too. NULL beyond the
 * trace. Lives as long as the categories. */
TARN_API const char *tarn_categories_get(const struct tarn_categories *categories, uint64_t entry);

/* Whether the rules know a category of that name; "unclassified" is one, and so are those told by
 * lifetime, "parameter" and "temporary". */
TARN_API bool tarn_categories_have(const struct tarn_categories *categories, const char *name);

#ifdef __cplusplus
}
#endif

#endif
