/* SPDX-License-Identifier: MIT */
/*
 * The trace and the segments of one source as sections of the page. Entries are stored in
 * columns, each of one kind of number, and a column in planes: the lowest bytes of all its numbers,
 * then the next ones, as many as the largest needs. They deflate to one or two bytes per entry;
 * entries are packed in chunks, so that neither side needs them all at once.
 *
 * The blocks whose size does not follow from the request are a section after the trace.
 *
 * A guessed category (analysis/category.h) is one byte per block, in a section after the trace:
 * it is known when the block is freed.
 *
 * Borrows the source and the tables. Host memory: 9 bytes per block, and a chunk.
 */
#ifndef TN_PAGE_RECORD_H
#define TN_PAGE_RECORD_H

#include "analysis/gradient.h"
#include "analysis/pool_stream.h"
#include "page/block_sizes.h"
#include "page/lifetime_ids.h"
#include "page/names.h"
#include "page/pool_stream_table.h"
#include "page/size_table.h"
#include "page/view_span.h"

enum {
    TN_RECORD_CHUNK = 1 << 18, /* entries */
    TN_OVERVIEW = 1024         /* columns of the first picture */
};

/* Of a column of the first picture in which no entry is. */
#define TN_OVERVIEW_NONE ((uint64_t)INT64_MIN)

/* One number of the column of kinds. Numbers are those of viewer/trace.js. */
enum tn_record_kind {
    TN_RECORD_ALLOC,
    TN_RECORD_FREE_REQUESTED,
    TN_RECORD_FREE_COMPLETED,
    TN_RECORD_FREE,               /* both, one after the other: two entries */
    TN_RECORD_OLD_FREE_REQUESTED, /* of a block from before the trace, at its first mention */
    TN_RECORD_OLD_FREE_COMPLETED,
    TN_RECORD_OLD_FREE,
    TN_RECORD_LOST_FREE_REQUESTED, /* of a block that is free already */
    TN_RECORD_LOST_FREE_COMPLETED,
    TN_RECORD_SEGMENT_ALLOC,
    TN_RECORD_SEGMENT_FREE,
    TN_RECORD_SEGMENT_MAP,
    TN_RECORD_SEGMENT_UNMAP,
    TN_RECORD_SNAPSHOT,
    TN_RECORD_OOM,
    TN_RECORD_ANNOTATE,
    TN_RECORD_USER_DEFINED,
    TN_RECORD_OTHER,
    TN_RECORD_ALLOC_AGAIN /* of an allocated address: the free of its block is missing */
};

enum tn_record_column {
    TN_COLUMN_KIND,
    TN_COLUMN_TIME,        /* step from the entry before, microseconds */
    TN_COLUMN_STACK,       /* number of names.h */
    TN_COLUMN_FREE_STACK,  /* of a free: 0: that of the allocation, otherwise one more */
    TN_COLUMN_REUSE,       /* of an allocation, lifetime_ids.h: an address that was freed */
    TN_COLUMN_ADDRESS,     /* step from the last one in this column, in units */
    TN_COLUMN_SIZE,        /* number of size_table.h */
    TN_COLUMN_BEHIND,      /* lifetime_ids.h: the lifetime it refers to */
    TN_COLUMN_POOL_STREAM, /* number of pool_stream_table.h */
    TN_COLUMN_EXTRA,       /* number of names.h */
    TN_COLUMN_PLAIN,       /* numbers as they are */
    TN_COLUMN_COUNT
};

struct tn_record {
    const struct tn_trace_source *source;
    struct tn_names *names;
    struct tn_pool_stream_table *pool_streams;
    struct tn_size_table *sizes;
    struct tn_entry_pools pools;
    struct tn_lifetime_ids lifetimes;
    struct tn_block_sizes block_sizes;
    struct tn_vec spans;    /* struct tn_view_span */
    struct tn_vec origin;   /* by lifetime, uint64_t: first entry; bit 63: its free is requested,
                           bit 62: it was there before */
    struct tn_column hints; /* by lifetime, a byte; 0: the category is that of the stack, otherwise
                               that number of the guessed ones, from 1 on */
    struct tn_gradients gradients;
    uint64_t first_step;                    /* entry that ends it */
    struct tn_vec columns[TN_COLUMN_COUNT]; /* uint64_t */
    bool failed;                            /* host memory was missing for a column */
    struct tn_column chunk;
    struct tn_column before;   /* lifetimes from before that are not in the trace */
    uint64_t first;            /* entry that the page begins with */
    uint64_t carried;          /* lifetimes allocated then, numbered first */
    uint64_t survivors;        /* lifetimes that the trace does not mention, numbered last */
    uint64_t unit;             /* divides all addresses; a power of two */
    uint64_t base;             /* the lowest address */
    uint64_t at;               /* address last written, in units from `base` */
    int64_t time;              /* last written */
    int64_t time_first;        /* TN_TIME_NONE: no entry has one */
    int64_t time_last;         /* the greatest */
    int64_t time_begun;        /* of the first entry that has one, also where the page has not */
    uint64_t ooms;             /* failed requests, of those that the page has */
    uint64_t requested;        /* requested bytes less those from before, modulo 2^64 */
    uint64_t requested_before; /* bytes allocated before the first entry */
    uint64_t reserved_before;  /* bytes, the same */
    uint64_t reserved;         /* now */
    uint64_t chunk_entries;    /* in the columns */
    uint64_t pages;            /* of segments, written */
    size_t chunks;             /* written */
    size_t number;             /* of the source, for names of sections */
    uint64_t overview[2][TN_OVERVIEW]; /* most requested, as `requested`, and reserved */
};

/* False when host memory is missing; then there is nothing to release. The page will have the
 * entries from `first` on; the first step of the run ends at entry `first_step`. */
bool tn_record_init(struct tn_record *record, const struct tn_trace_source *source,
                    struct tn_names *names, struct tn_pool_stream_table *pool_streams,
                    struct tn_size_table *sizes, uint64_t first, uint64_t first_step) TN_MUST_CHECK;
void tn_record_fini(struct tn_record *record);

/* Writes the sections of the source, whose names begin with d and `number`. False when host memory
 * is, or was, missing. */
bool tn_record_put(struct tn_record *record, size_t number,
                   const struct tn_section_out *out) TN_MUST_CHECK;

#endif
