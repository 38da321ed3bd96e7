/* SPDX-License-Identifier: MIT */
/* Sizes of blocks from what a trace says of their neighbours. That they are right on recorded runs
 * is tests/cli/figures.py's. */
#include "support/trace.h"

#include "analysis/block_extent.h"
#include "tarn/host.h"

enum {
    USED = TN_BLOCK_ACTIVE_ALLOCATED,
    UNUSED = TN_BLOCK_INACTIVE
};

struct made {
    struct trace_model trace;
    struct tn_block_extents extents;
};

static void made_open(struct made *made, const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segments, size_t segment_count,
                      const struct tn_model_settings *settings)
{
    trace_open(&made->trace, rows, count, segments, segment_count);
    if (settings) {
        made->trace.model.settings = *settings;
    }
    const struct tn_trace_source source = tn_source_of_device(&made->trace.model, 0);

    assert_true(tn_block_extents_init(&made->extents, &source));
}

static void made_close(struct made *made)
{
    tn_block_extents_fini(&made->extents);
    trace_close(&made->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static uint64_t size_of(const struct made *made, const struct trace_row *rows, uint64_t entry)
{
    return tn_block_extent_of(&made->extents, entry, rows[entry].address, rows[entry].size);
}

/* In the order of the trace each block is found without a search, too. */
static void next_ones_are_the_same(const struct made *made, const struct trace_row *rows,
                                   size_t count)
{
    size_t next = 0;

    for (size_t i = 0; i < count; i++) {
        if (rows[i].action == TN_TRACE_ALLOC) {
            assert_int_equal(tn_block_extent_next(&made->extents, &next, i, rows[i].size),
                             size_of(made, rows, i));
        }
    }
}

#define FREE(address, size)                                                                        \
    {TN_TRACE_FREE_REQUESTED, address, size, 0},                                                   \
    {                                                                                              \
        TN_TRACE_FREE_COMPLETED, address, size, 0                                                  \
    }

/* 1 MiB behind a block belongs to it when it was all that was free there, and not when more was. */
static void a_remainder_depends_on_what_was_free(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},
        {TN_TRACE_ALLOC, A, 2 * MIB, 0},           /* 18 MiB are split off */
        {TN_TRACE_ALLOC, A + 2 * MIB, 3 * MIB, 0}, /* so are 15 MiB */
        {TN_TRACE_ALLOC, A + 5 * MIB, 14 * MIB, 0} /* but not the last one */,
        FREE(A, 2 * MIB),
        {TN_TRACE_ALLOC, A, MIB + 512, 0}, /* of 2 MiB */
        FREE(A + 2 * MIB, 3 * MIB),        /* free memory behind it now */
        FREE(A + 5 * MIB, 14 * MIB),
        FREE(A, MIB + 512),
        {TN_TRACE_SEGMENT_FREE, A, 20 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, NULL, 0, NULL);
    assert_int_equal(size_of(&made, rows, 1), 2 * MIB);
    assert_int_equal(size_of(&made, rows, 2), 3 * MIB);
    assert_int_equal(size_of(&made, rows, 3), 15 * MIB);
    assert_int_equal(size_of(&made, rows, 6), 2 * MIB);
    assert_int_equal(made.extents.allocated.count, 2); /* those with more than their request */
    assert_int_equal(made.extents.before.count, 0);
    next_ones_are_the_same(&made, rows, sizeof rows / sizeof *rows);
    made_close(&made);
}

static void settings_change_the_rule(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},
        {TN_TRACE_ALLOC, A, 5 * MIB, 0},
        {TN_TRACE_ALLOC, A + 6 * MIB, MIB / 2, 0}, /* contradicts; not in the large pool */
        {TN_TRACE_ALLOC, A + 7 * MIB, 12 * MIB, 0},
    };
    struct tn_model_settings settings = {.present = true, .max_split_size = 4 << 20};
    struct made made;

    (void)state;
    made_open(&made, rows, 4, NULL, 0, &settings); /* no final segment: not in memory */
    assert_int_equal(size_of(&made, rows, 1), 5 * MIB);
    made_close(&made);

    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true};

    made_open(&made, rows, 4, &segment, 1, &settings);
    assert_int_equal(size_of(&made, rows, 1), 20 * MIB); /* from max_split_size on: all of it */
    assert_int_equal(size_of(&made, rows, 3), 13 * MIB);
    made_close(&made);

    settings.expandable_segments = true;
    made_open(&made, rows, 4, &segment, 1, &settings);
    assert_int_equal(size_of(&made, rows, 1), 5 * MIB);
    assert_int_equal(size_of(&made, rows, 3), 12 * MIB);
    made_close(&made);

    settings = (struct tn_model_settings){.max_split_size = -1, .has_roundup = true};
    settings.roundup_power2_divisions[2] = 2; /* [4, 8) MiB */
    made_open(&made, rows, 4, &segment, 1, &settings);
    assert_int_equal(size_of(&made, rows, 1), 6 * MIB);
    made_close(&made);
}

/* A request of max_split_size bytes has all of its segment, one of less does not. */
static void the_largest_that_is_split(void **state)
{
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 4 * MIB, 0},
        FREE(A + 5 * MIB, 3 * MIB), /* contradicts the first size */
    };
    struct tn_model_settings settings = {.present = true, .max_split_size = 4 << 20};
    struct made made;

    (void)state;
    made_open(&made, rows, 3, &segment, 1, &settings);
    assert_int_equal(size_of(&made, rows, 0), 20 * MIB);
    made_close(&made);
    settings.max_split_size++;
    made_open(&made, rows, 3, &segment, 1, &settings);
    assert_int_equal(size_of(&made, rows, 0), 5 * MIB);
    made_close(&made);
}

/* The least request of the large pool is one byte more than 1 MiB. In expandable segments nothing
 * is left to it either. */
static void the_least_request_with_more(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .is_large = true},
        {.address = A + 20 * MIB, .total_size = 2 * MIB, .is_large = true, .is_expandable = true},
    };
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, MIB + 1, 0},
        {TN_TRACE_ALLOC, A + 20 * MIB, MIB + 1, 0},
        FREE(A, MIB + 1),
        {TN_TRACE_ALLOC, A, MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, segments, 2, NULL);
    assert_int_equal(size_of(&made, rows, 0), 2 * MIB);
    assert_int_equal(size_of(&made, rows, 1), MIB + 512);
    assert_int_equal(size_of(&made, rows, 4), MIB);
    made_close(&made);
}

/* What the snapshot says of a block holds, whatever the rule. */
static void final_blocks_have_their_sizes(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 2 * MIB, .requested_size = 512, .state = USED},
        {.address = A + 2 * MIB, .size = 3 * MIB, .requested_size = 2 * MIB, .state = USED},
        {.address = A + 5 * MIB, .size = 15 * MIB, .state = UNUSED},
    };
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true, .blocks = blocks, .block_count = 3};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 512, 0},
        FREE(A, 512),
        {TN_TRACE_ALLOC, A, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 4, &segment, 1, NULL);
    assert_int_equal(size_of(&made, rows, 0), 512);
    assert_int_equal(size_of(&made, rows, 3), 2 * MIB);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 2 * MIB, 2 * MIB), 3 * MIB);
    made_close(&made);
}

/* That holds of the blocks of this device, in a file that is not truncated, and when nobody in the
 * trace could have more than the request. */
static void final_blocks_count_where_they_belong(void **state)
{
    static const struct tn_model_block odd = {
        .address = A, .size = 4096, .requested_size = 512, .state = USED};
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .blocks = &odd, .block_count = 1},
        {.address = A, .total_size = 2 * MIB, .blocks = &odd, .block_count = 1, .device = 1},
    };
    static const struct trace_row rows[] = {{TN_TRACE_ALLOC, A, 512, 0}};
    struct trace_model made;
    struct tn_block_extents extents;
    struct tn_trace_source source;

    (void)state;
    trace_open(&made, rows, 1, segments, 1);
    source = tn_source_of_device(&made.model, 0);
    source.request_limit = 513;
    assert_true(tn_block_extents_init(&extents, &source));
    assert_int_equal(tn_block_extent_of(&extents, 0, A, 512), 4096);
    assert_int_equal(extents.before.count, 0);
    tn_block_extents_fini(&extents);

    made.model.is_partial = true;
    source = tn_source_of_device(&made.model, 0);
    assert_true(tn_block_extents_init(&extents, &source));
    assert_int_equal(tn_block_extent_of(&extents, 0, A, 512), 512);
    tn_block_extents_fini(&extents);

    made.model.is_partial = false;
    made.model.segments = &segments[1];
    source = tn_source_of_device(&made.model, 0);
    assert_true(tn_block_extents_init(&extents, &source));
    assert_int_equal(tn_block_extent_of(&extents, 0, A, 512), 512);
    tn_block_extents_fini(&extents);
    trace_close(&made);
}

/* Whatever the rule says, also of a large block: one that the trace allocated, one from before, and
 * others at the same addresses before them. */
static void large_final_blocks_have_their_sizes(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 2 * MIB, .requested_size = 2 * MIB, .state = USED},
        {.address = A + 2 * MIB, .size = MIB, .state = UNUSED},
        {.address = A + 3 * MIB, .size = 2 * MIB + 512, .requested_size = 2 * MIB, .state = USED},
        {.address = A + 5 * MIB + 512, .size = 3 * MIB - 512, .state = UNUSED},
        {.address = A + 8 * MIB, .size = 1024, .requested_size = 100, .state = USED},
        {.address = A + 8 * MIB + 1024, .size = 12 * MIB - 1024, .state = UNUSED},
    };
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true, .blocks = blocks, .block_count = 6};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A + 10 * MIB, 2 * MIB, 0}, /* more than 1 MiB behind it is free */
        {TN_TRACE_ALLOC, A + 12 * MIB + 4096, 512, 0}, FREE(A + 12 * MIB + 4096, 512),
        {TN_TRACE_ALLOC, A + 3 * MIB, 2 * MIB, 0},     {TN_TRACE_ALLOC, A + 8 * MIB, 100, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, &segment, 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 2 * MIB);
    assert_int_equal(size_of(&made, rows, 4), 2 * MIB + 512);
    assert_int_equal(size_of(&made, rows, 5), 1024);
    assert_int_equal(size_of(&made, rows, 1), 512);
    assert_int_equal(size_of(&made, rows, 0), 2 * MIB);
    assert_int_equal(made.extents.allocated.count, 2);
    assert_int_equal(made.extents.before.count, 0);
    made_close(&made);
}

/* Blocks of the snapshot that the trace does not mention, with other sizes than the rule's, are all
 * found, and nothing else is. */
static void odd_blocks_of_before_are_all_found(void **state)
{
    enum {
        BLOCKS = 300
    };
    static struct tn_model_block blocks[BLOCKS];
    const struct tn_model_segment segment = {
        .address = A, .total_size = 2 * MIB, .blocks = blocks, .block_count = BLOCKS};
    static const struct trace_row rows[] = {{TN_TRACE_ALLOC, A + MIB, 512, 0}, FREE(A + MIB, 512)};
    struct made made;

    (void)state;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks[i] = (struct tn_model_block){
            .address = A + i * 1024, .size = 1024, .requested_size = 512, .state = USED};
    }
    made_open(&made, rows, 3, &segment, 1, NULL);
    assert_int_equal(made.extents.before.count, BLOCKS);
    assert_int_equal(made.extents.allocated.count, 0);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + i * 1024, 512), 1024);
    }
    assert_int_equal(size_of(&made, rows, 0), 512);
    made_close(&made);
}

/* A block from before the trace ended where the next allocation behind it began. */
static void blocks_of_before_end_where_others_begin(void **state)
{
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A + 3 * MIB, 2 * MIB, 0},
        FREE(A, 2 * MIB),            /* 1 MiB less to the block behind it */
        FREE(A + 3 * MIB, 2 * MIB),  /* of the trace */
        FREE(A + 8 * MIB, 2 * MIB),  /* unknown: 1.5 MiB behind it can be free */
        FREE(A + 12 * MIB, 8 * MIB), /* up to the end */
    };
    struct made made;

    (void)state;
    made_open(&made, rows, sizeof rows / sizeof *rows, &segment, 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 3 * MIB);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 8 * MIB, 2 * MIB), 2 * MIB);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 12 * MIB, 8 * MIB), 8 * MIB);
    made_close(&made);
}

/* Whether that is in the same MiB, or right at the end of the request, or in another segment, and
 * only if there was memory before the trace. */
static void ends_are_of_the_same_segment(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 20 * MIB, .is_large = true},
        {.address = A + 20 * MIB, .total_size = 20 * MIB, .is_large = true},
    };
    static const struct trace_row near[] = {
        {TN_TRACE_ALLOC, A + 2 * MIB + MIB / 2, 2 * MIB, 0},
        FREE(A, 2 * MIB),
    };
    static const struct trace_row at_once[] = {
        FREE(A + 3 * MIB, 2 * MIB), /* so 1 MiB was free behind A + 2 MiB */
        {TN_TRACE_ALLOC, A + 2 * MIB, 3 * MIB, 0},
        FREE(A, 2 * MIB),
    };
    static const struct trace_row beyond[] = {
        {TN_TRACE_ALLOC, A + 20 * MIB + MIB / 4, 3 * MIB, 0},
        FREE(A + 17 * MIB + MIB / 2, 2 * MIB),
    };
    static const struct trace_row nothing[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},
        {TN_TRACE_ALLOC, A + 3 * MIB, 2 * MIB, 0},
        FREE(A, 2 * MIB), /* contradicts */
    };
    struct made made;

    (void)state;
    made_open(&made, near, 3, segments, 2, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 2 * MIB + MIB / 2);
    made_close(&made);
    made_open(&made, at_once, 5, segments, 2, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 2 * MIB);
    made_close(&made);
    made_open(&made, beyond, 3, segments, 2, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 17 * MIB + MIB / 2, 2 * MIB),
                     2 * MIB + MIB / 2);
    made_close(&made);
    made_open(&made, nothing, 4, segments, 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 2 * MIB);
    made_close(&made);
}

/* Files may say what cannot be: of two blocks that are too near, the one that the walk back meets
 * first counts; a block that begins right behind another one ends that, though it reaches out of
 * the segment. */
static void blocks_may_contradict_each_other(void **state)
{
    static const struct tn_model_block final = {
        .address = A + 512, .size = 3 * MIB, .requested_size = 2 * MIB, .state = USED};
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 20 * MIB, .blocks = &final, .block_count = 1},
        {.address = A, .total_size = 4 * MIB + MIB / 2, .is_large = true},
        {.address = A, .total_size = 20 * MIB, .is_large = true},
        {.address = MIB, .total_size = 20 * MIB, .is_large = true},
    };
    static const struct trace_row same_start[] = {{TN_TRACE_ALLOC, A, 2 * MIB, 0}};
    static const struct trace_row same_end[] = {
        FREE(A, 4 * MIB),
        FREE(A + 2 * MIB, 2 * MIB),
    };
    static const struct trace_row overlapped[] = {
        {TN_TRACE_ALLOC, A + 3 * MIB + 512, 2 * MIB, 0},
        FREE(A, 2 * MIB + 512),
        FREE(A + MIB, 2 * MIB), /* the nearer one of two that may have ended there */
    };
    static const struct trace_row out[] = {
        {TN_TRACE_ALLOC, A + 2 * MIB, 2 * MIB, 0},
        FREE(A + 4 * MIB, 2 * MIB),
    };
    static const struct trace_row lowest[] = {
        {TN_TRACE_ALLOC, 4 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, MIB, 2 * MIB, 0},
        FREE(4 * MIB, 2 * MIB),
        FREE(MIB, 2 * MIB),
    };
    struct made made;

    (void)state;
    made_open(&made, same_start, 1, &segments[0], 1, NULL);
    assert_int_equal(size_of(&made, same_start, 0), 2 * MIB);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 512, 2 * MIB), 3 * MIB);
    made_close(&made);
    made_open(&made, same_end, 4, &segments[1], 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 4 * MIB), 4 * MIB);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + 2 * MIB, 2 * MIB),
                     2 * MIB + MIB / 2);
    made_close(&made);
    made_open(&made, overlapped, 5, &segments[2], 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB + 512), 2 * MIB + 512);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A + MIB, 2 * MIB), 2 * MIB + 512);
    made_close(&made);
    made_open(&made, out, 3, &segments[1], 1, NULL);
    assert_int_equal(size_of(&made, out, 0), 2 * MIB);
    made_close(&made);
    made_open(&made, lowest, 6, &segments[3], 1, NULL);
    assert_int_equal(size_of(&made, lowest, 1), 3 * MIB);
    made_close(&made);
}

/* Blocks that overlap, that are farther apart than a remainder can be large, or that have the first
 * addresses there are. */
static void neighbours_may_be_none(void **state)
{
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true};
    static const struct tn_model_segment first = {
        .address = 4096, .total_size = 20 * MIB, .is_large = true};
    static const struct trace_row overlapped[] = {
        {TN_TRACE_ALLOC, A, 2 * MIB + 512, 0},
        FREE(A + 2 * MIB, 2 * MIB), /* begins before the other one ends */
    };
    static const struct trace_row overlapping[] = {
        {TN_TRACE_ALLOC, A + 2 * MIB, 2 * MIB, 0}, FREE(A, 2 * MIB + 512), /* from before */
    };
    static const struct trace_row distant[] = {
        {TN_TRACE_ALLOC, A + 3 * MIB + 512, 2 * MIB, 0},
        FREE(A, 2 * MIB), /* ends more than 1 MiB before, but in the MiB before */
    };
    static const struct trace_row lowest[] = {
        {TN_TRACE_ALLOC, 8192, 2 * MIB, 0},
        FREE(4 * MIB, 2 * MIB),
    };
    struct made made;

    (void)state;
    made_open(&made, overlapped, 3, &segment, 1, NULL);
    assert_int_equal(size_of(&made, overlapped, 0), 2 * MIB + 512);
    made_close(&made);
    made_open(&made, overlapping, 3, &segment, 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB + 512), 2 * MIB + 512);
    made_close(&made);
    made_open(&made, distant, 3, &segment, 1, NULL);
    assert_int_equal(tn_block_extent_of(&made.extents, TN_NEVER, A, 2 * MIB), 2 * MIB);
    made_close(&made);
    made_open(&made, lowest, 3, &first, 1, NULL);
    assert_int_equal(size_of(&made, lowest, 0), 2 * MIB);
    made_close(&made);
}

/* Fails at each host allocation in turn, then opens; returns how often it failed. */
static uint64_t open_in_the_end(struct tn_block_extents *extents, const struct trace_model *made)
{
    const struct tn_trace_source source = tn_source_of_device(&made->model, 0);
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t failures = 0;

    for (bool good = false; !good; failures += !good) {
        tarn_host_fail_nth(failures + 1);
        good = tn_block_extents_init(extents, &source);
        tarn_host_fail_nth(0);
        assert_true(good || tarn_host_get_usage().live_bytes == live);
    }
    return failures;
}

/* Of a block from before, in a segment that only the first entries know. */
static void without_memory_for_what_was_before(void **state)
{
    static const struct trace_row rows[] = {
        FREE(A, 2 * MIB),
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB + MIB / 2, 0},
    };
    struct trace_model made;
    struct tn_block_extents extents;

    (void)state;
    trace_open(&made, rows, 3, NULL, 0);
    assert_true(open_in_the_end(&extents, &made) >= 4);
    assert_int_equal(tn_block_extent_of(&extents, TN_NEVER, A, 2 * MIB), 2 * MIB + MIB / 2);
    tn_block_extents_fini(&extents);
    trace_close(&made);
}

/* Of a block of the snapshot that has another size than the rule gives. */
static void without_memory_for_an_odd_block(void **state)
{
    static const struct tn_model_block block = {
        .address = A, .size = 4096, .requested_size = 512, .state = USED};
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 2 * MIB, .blocks = &block, .block_count = 1};
    static const struct trace_row rows[] = {{TN_TRACE_ALLOC, A, 512, 0}};
    struct trace_model made;
    struct tn_block_extents extents;

    (void)state;
    trace_open(&made, rows, 1, &segment, 1);
    assert_true(open_in_the_end(&extents, &made) >= 1);
    assert_int_equal(tn_block_extent_of(&extents, 0, A, 512), 4096);
    tn_block_extents_fini(&extents);
    trace_close(&made);
}

static void every_host_failure_is_reported(void **state)
{
    enum {
        BLOCKS = 2000 /* more than a chunk */
    };
    static struct trace_row rows[2 * BLOCKS];
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 3 * MIB * BLOCKS, .is_large = true};
    struct trace_model made;
    struct tn_block_extents extents;

    (void)state;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        rows[i] = (struct trace_row){TN_TRACE_ALLOC, A + 3 * MIB * (BLOCKS - 1 - i), 2 * MIB, 0};
        rows[BLOCKS + i] = (struct trace_row){TN_TRACE_FREE_COMPLETED, rows[i].address, 2 * MIB, 0};
    }
    trace_open(&made, rows, sizeof rows / sizeof *rows, &segment, 1);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    assert_true(open_in_the_end(&extents, &made) >= 5);
    assert_int_equal(extents.allocated.count, BLOCKS);
    tn_block_extents_fini(&extents);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    trace_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_remainder_depends_on_what_was_free),
        cmocka_unit_test(settings_change_the_rule),
        cmocka_unit_test(the_largest_that_is_split),
        cmocka_unit_test(the_least_request_with_more),
        cmocka_unit_test(final_blocks_have_their_sizes),
        cmocka_unit_test(final_blocks_count_where_they_belong),
        cmocka_unit_test(large_final_blocks_have_their_sizes),
        cmocka_unit_test(odd_blocks_of_before_are_all_found),
        cmocka_unit_test(blocks_of_before_end_where_others_begin),
        cmocka_unit_test(ends_are_of_the_same_segment),
        cmocka_unit_test(blocks_may_contradict_each_other),
        cmocka_unit_test(neighbours_may_be_none),
        cmocka_unit_test(without_memory_for_what_was_before),
        cmocka_unit_test(without_memory_for_an_odd_block),
        cmocka_unit_test(every_host_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
