/* SPDX-License-Identifier: MIT */
/* Each figure of layouts, of segments whose figures are easy to work out by hand. */
#include "support/report.h"
#include "support/trace.h"

#include "analysis/layout.h"
#include "snapshot/snapshot.h"

/* At 1 GiB: 30 MiB, large, with 12 MiB at its front whose free is requested and 5 MiB at 20 MiB.
 * At 2 GiB: two pieces of 40 MiB of an expandable segment with 1 MiB at 10 and at 70 MiB; behind
 * them 20 MiB of another stream's. At 3 GiB: 2 MiB of a private pool with 700 bytes. At 4 GiB: 6
 * MiB of an expandable segment of small blocks with 512 bytes at 3 MiB. At 6 GiB: 2 MiB of another
 * private pool with 512 bytes from before the trace. Blocks of 100 bytes are before, between and
 * behind all segments. */
static const char segments[] =
    "{'segments': ["
    "{'address': 6442450944, 'total_size': 2097152, 'stream': 0, 'segment_type': 'small',"
    " 'segment_pool_id': [1, 0], 'blocks': []},"
    "{'address': 4294967296, 'total_size': 6291456, 'stream': 0, 'segment_type': 'small',"
    " 'is_expandable': true, 'blocks': []},"
    "{'address': 3221225472, 'total_size': 2097152, 'stream': 0, 'segment_type': 'small',"
    " 'segment_pool_id': [0, 5], 'blocks': []},"
    "{'address': 2231369728, 'total_size': 20971520, 'stream': 3, 'segment_type': 'large',"
    " 'is_expandable': true, 'blocks': []},"
    "{'address': 2189426688, 'total_size': 41943040, 'stream': 0, 'segment_type': 'large',"
    " 'is_expandable': true, 'blocks': []},"
    "{'address': 2147483648, 'total_size': 41943040, 'stream': 0, 'segment_type': 'large',"
    " 'is_expandable': true, 'blocks': []},"
    "{'address': 1073741824, 'total_size': 31457280, 'stream': 0, 'segment_type': 'large',"
    " 'blocks': []}], 'device_traces': [["
    "{'action': 'alloc', 'addr': 4096, 'size': 100, 'stream': 0},"
    "{'action': 'alloc', 'addr': 8589934592, 'size': 100, 'stream': 0},"
    "{'action': 'alloc', 'addr': 1610612736, 'size': 100, 'stream': 0},"
    "{'action': 'alloc', 'addr': 1073741824, 'size': 12582912, 'stream': 0},"
    "{'action': 'alloc', 'addr': 1094713344, 'size': 5242880, 'stream': 0},"
    "{'action': 'alloc', 'addr': 2157969408, 'size': 1048576, 'stream': 0},"
    "{'action': 'alloc', 'addr': 2220883968, 'size': 1048576, 'stream': 0},"
    "{'action': 'alloc', 'addr': 3221225472, 'size': 700, 'stream': 0},"
    "{'action': 'alloc', 'addr': 4298113024, 'size': 512, 'stream': 0},"
    "{'action': 'free_requested', 'addr': 1073741824, 'size': 12582912, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 1073741824, 'size': 12582912, 'stream': 0},"
    "{'action': 'segment_free', 'addr': 5368709120, 'size': 2097152, 'stream': 0},"
    "{'action': 'free_requested', 'addr': 6442450944, 'size': 512, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 6442450944, 'size': 512, 'stream': 0}]]}";

enum {
    WAITS = 9,    /* the entry that requests the first free */
    COMPLETE = 10 /* the one that completes it */
};

static void row_is(const struct tn_layout_row *row, const struct tn_layout_row *wanted)
{
    assert_int_equal(row->pool.id[0], wanted->pool.id[0]);
    assert_int_equal(row->pool.id[1], wanted->pool.id[1]);
    assert_int_equal(row->stream, wanted->stream);
    assert_int_equal(row->is_large, wanted->is_large);
    assert_int_equal(row->segments, wanted->segments);
    assert_int_equal(row->reserved, wanted->reserved);
    assert_int_equal(row->used, wanted->used);
    assert_int_equal(row->by_settings, wanted->by_settings);
    assert_int_equal(row->waiting, wanted->waiting);
    assert_int_equal(row->slack, wanted->slack);
    assert_int_equal(row->free, wanted->free);
    assert_int_equal(row->free_runs, wanted->free_runs);
    assert_int_equal(row->largest_free, wanted->largest_free);
    assert_int_equal(row->whole, wanted->whole);
    assert_int_equal(row->releasable, wanted->releasable);
    assert_int_equal(row->stuck_runs, wanted->stuck_runs);
    assert_int_equal(row->largest_stuck, wanted->largest_stuck);
    assert_int_equal(row->reserved, row->used + row->slack + row->free);
}

static const struct tn_layout_row *rows_of(const struct tn_layout *layout)
{
    return layout->rows.items;
}

/* By pool, stream and size class: small and large of the default pool, another stream, another
 * pool. At the entry that requests the free of the first block. */
static void rows_add_up(void **state)
{
    static const struct tn_layout_row wanted[] = {
        {.segments = 2,
         .reserved = 8 * MIB,
         .used = 512,
         .free = 8 * MIB - 512,
         .free_runs = 3,
         .largest_free = 3 * MIB,
         .whole = 2 * MIB,
         .releasable = 2 * MIB + 2 * MIB + 2 * MIB,
         .stuck_runs = 2,
         .largest_stuck = MIB},
        {.is_large = true,
         .segments = 3,
         .reserved = 110 * MIB,
         .used = 19 * MIB,
         .waiting = 12 * MIB,
         .free = 91 * MIB,
         .free_runs = 5,
         .largest_free = 59 * MIB,
         .releasable = 40 * MIB,
         .stuck_runs = 6,
         .largest_stuck = 10 * MIB},
        {.stream = 3,
         .is_large = true,
         .segments = 1,
         .reserved = 20 * MIB,
         .free = 20 * MIB,
         .free_runs = 1,
         .largest_free = 20 * MIB,
         .whole = 20 * MIB,
         .releasable = 20 * MIB},
        {.pool = {{0, 5}},
         .segments = 1,
         .reserved = 2 * MIB,
         .used = 1024,
         .free = 2 * MIB - 1024,
         .free_runs = 1,
         .largest_free = 2 * MIB - 1024,
         .stuck_runs = 1,
         .largest_stuck = 2 * MIB - 1024},
        {.pool = {{1, 0}},
         .segments = 1,
         .reserved = 2 * MIB,
         .used = 512,
         .free = 2 * MIB - 512,
         .free_runs = 1,
         .largest_free = 2 * MIB - 512,
         .stuck_runs = 1,
         .largest_stuck = 2 * MIB - 512},
    };
    static const struct tn_layout_row total = {
        .segments = 8,
        .reserved = 142 * MIB,
        .used = 19 * MIB + 512 + 1024 + 512,
        .waiting = 12 * MIB,
        .free = 123 * MIB - 512 - 1024 - 512,
        .free_runs = 11,
        .largest_free = 59 * MIB,
        .whole = 22 * MIB,
        .releasable = 66 * MIB,
        .stuck_runs = 10,
        .largest_stuck = 10 * MIB,
    };
    struct tarn_snapshot *snapshot = report_parse(segments);
    struct tn_timeline timeline;
    struct tn_layout layout;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    assert_true(tn_layout_collect_at(&layout, &timeline, WAITS));
    assert_int_equal(layout.rows.count, 5);
    for (size_t i = 0; i < 5; i++) {
        row_is(&rows_of(&layout)[i], &wanted[i]);
    }
    row_is(&layout.total, &total);
    assert_int_equal(layout.outside, 300);
    assert_int_equal(layout.pieces.count, 7);
    assert_int_equal(layout.blocks.count, 10);
    tn_layout_fini(&layout);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* One walk visits moments in any order. A block waits from the request of its free on; what is
 * complete is free. Before the first entry there is nothing but segments. */
static void moments_differ(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(segments);
    struct tn_timeline timeline;
    struct tn_layout_walk walk;
    const struct {
        uint64_t entry;
        uint64_t used; /* of the default pool's large blocks */
        uint64_t waiting;
        uint64_t reserved; /* of all */
        uint64_t outside;
    } moments[] = {
        {COMPLETE, 7 * MIB, 0, 142 * MIB, 300},
        {WAITS, 19 * MIB, 12 * MIB, 142 * MIB, 300},
        {WAITS - 1, 19 * MIB, 0, 142 * MIB, 300},
        {3, 12 * MIB, 0, 142 * MIB, 300},
        {COMPLETE + 1, 7 * MIB, 0, 140 * MIB, 300},
        {0, 0, 0, 142 * MIB, 100},
        {TN_NEVER, 0, 0, 142 * MIB, 0},
        {COMPLETE, 7 * MIB, 0, 142 * MIB, 300},
        {COMPLETE + 1, 7 * MIB, 0, 140 * MIB, 300}, /* the next one */
    };

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    assert_true(tn_layout_walk_init(&walk, &timeline));
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        struct tn_layout layout;

        assert_true(tn_layout_collect(&layout, &walk, moments[i].entry));
        const struct tn_layout_row *row = &rows_of(&layout)[1];

        assert_true(row->is_large);
        assert_int_equal(row->used, moments[i].used);
        assert_int_equal(row->waiting, moments[i].waiting);
        assert_int_equal(layout.total.waiting, moments[i].waiting);
        assert_int_equal(layout.total.reserved, moments[i].reserved);
        assert_int_equal(layout.outside, moments[i].outside);
        tn_layout_fini(&layout);
    }
    tn_layout_walk_fini(&walk);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void layout_of(struct trace_model *made, struct tn_layout *layout,
                      const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segment)
{
    struct tn_timeline timeline;

    trace_open(made, rows, count, segment, 1);
    assert_true(tn_timeline_init(&timeline, &made->model, 0));
    assert_true(tn_layout_collect_at(layout, &timeline, count - 1));
    tn_timeline_fini(&timeline);
}

/* Blocks that overlap, as only a damaged file has them, count once; none ends behind its
 * segment. */
static void overlaps_count_once(void **state)
{
    static const struct tn_model_segment segment = {.address = A, .total_size = 2 * MIB};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 4096, 0},
        {TN_TRACE_ALLOC, A + 2048, 1024, 0},
        {TN_TRACE_ALLOC, A + 2 * MIB - 512, 4096, 0},
    };
    struct trace_model made;
    struct tn_layout layout;

    (void)state;
    layout_of(&made, &layout, rows, 3, &segment);
    assert_int_equal(layout.total.used, 2048 + 1024 + 512);
    assert_int_equal(layout.total.slack, 0);
    assert_int_equal(layout.total.free, 2 * MIB - 2048 - 1024 - 512);
    assert_int_equal(layout.total.free_runs, 1);
    tn_layout_fini(&layout);
    trace_close(&made);
}

/* The trace frees a block that is there at its end all the same: of `freed` bytes, and `kept`. */
static void blocks_at_one_address(int freed, int kept)
{
    char text[1024];
    const uint64_t most = (uint64_t)(freed > kept ? freed : kept);

    (void)snprintf(
        text, sizeof text,
        "{'segments': [{'address': 1073741824, 'total_size': 2097152, 'stream': 0,"
        " 'segment_type': 'small', 'blocks': [{'size': %d, 'state': 'active_allocated',"
        " 'requested_size': %d}, {'size': %d, 'state': 'inactive'}]}], 'device_traces': [["
        "{'action': 'alloc', 'addr': 1073741824, 'size': %d, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 1073741824, 'size': %d, 'stream': 0},"
        "{'action': 'free_completed', 'addr': 1073741824, 'size': %d, 'stream': 0}]]}",
        kept, kept, 2097152 - kept, freed, freed, freed);
    struct tarn_snapshot *snapshot = report_parse(text);
    struct tn_timeline timeline;
    struct tn_layout layout;

    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    for (uint64_t entry = 0; entry < 3; entry++) {
        const uint64_t used = entry < 2 ? most : (uint64_t)kept;

        assert_true(tn_layout_collect_at(&layout, &timeline, entry));
        assert_int_equal(layout.blocks.count, entry < 2 ? 2 : 1);
        assert_int_equal(layout.total.used, used);
        assert_int_equal(layout.total.slack, 0);
        assert_int_equal(layout.total.free, 2 * MIB - used);
        tn_layout_fini(&layout);
    }
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

static void two_blocks_at_one_address_count_once(void **state)
{
    (void)state;
    blocks_at_one_address(512, 4096);
    blocks_at_one_address(4096, 512);
}

/* Of adjacent segments only expandable ones of one stream are one piece. */
static void only_expandable_ranges_join(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 8; way++) {
        const struct tn_model_segment both[] = {
            {.address = A, .total_size = 2 * MIB, .is_expandable = way & 1},
            {.address = A + 2 * MIB,
             .total_size = 2 * MIB,
             .is_expandable = way & 2,
             .stream = way & 4}};
        struct trace_model made;
        struct tn_timeline timeline;
        struct tn_layout layout;

        trace_open(&made, NULL, 0, both, 2);
        assert_true(tn_timeline_init(&timeline, &made.model, 0));
        assert_true(tn_layout_collect_at(&layout, &timeline, TN_NEVER));
        assert_int_equal(layout.pieces.count, way == 3 ? 1 : 2);
        assert_int_equal(layout.total.segments, 2);
        assert_int_equal(layout.total.reserved, 4 * MIB);
        tn_layout_fini(&layout);
        tn_timeline_fini(&timeline);
        trace_close(&made);
    }
}

/* The size class of pages that were given back is a guess, until a block in them says it. */
static void blocks_tell_the_class_of_pages(void **state)
{
    static const struct {
        uint64_t size;
        bool is_large;
    } blocks[] = {{512, false}, {MIB, false}, {MIB + 512, true}};

    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        const struct trace_row rows[] = {
            {TN_TRACE_ALLOC, A, blocks[i].size, 0},
            {TN_TRACE_FREE_COMPLETED, A, blocks[i].size, 0},
            {TN_TRACE_SEGMENT_UNMAP, A, 20 * MIB, 0},
        };
        struct trace_model made;
        struct tn_timeline timeline;
        struct tn_layout layout;

        trace_open(&made, rows, 3, NULL, 0);
        assert_true(tn_timeline_init(&timeline, &made.model, 0));
        assert_true(tn_layout_collect_at(&layout, &timeline, 0));
        assert_int_equal(layout.rows.count, 1);
        assert_int_equal(rows_of(&layout)->is_large, blocks[i].is_large);
        tn_layout_fini(&layout);
        assert_true(tn_layout_collect_at(&layout, &timeline, 1)); /* without the block */
        assert_true(rows_of(&layout)->is_large);
        tn_layout_fini(&layout);
        tn_timeline_fini(&timeline);
        trace_close(&made);
    }
}

/* Whatever has no memory, it is said, and nothing is left behind. */
static void memory_may_be_missing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(segments);
    struct tn_timeline timeline;
    bool good = false;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t n = 0;

    while (!good) {
        const uint64_t calls = tarn_host_get_usage().alloc_calls;
        struct tn_layout layout;

        tarn_host_fail_nth(++n);
        good = tn_layout_collect_at(&layout, &timeline, WAITS);
        tarn_host_fail_nth(0);
        assert_int_equal(good, tarn_host_get_usage().alloc_calls - calls < n);
        if (good) {
            tn_layout_fini(&layout);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(n > 5);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

/* What is free around the end of a page is one piece, unless there is a whole page in it. */
static void pages_go_whole(void **state)
{
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 10 * MIB, .is_expandable = true};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, MIB, 0},                  /* then 2 MiB + 1 without a page */
        {TN_TRACE_ALLOC, A + 3 * MIB + 1, MIB, 0},    /* then the page at 6 MiB */
        {TN_TRACE_ALLOC, A + 8 * MIB + 512, 512, 0},  /* then nothing */
        {TN_TRACE_ALLOC, A + 8 * MIB + 1024, 512, 0}, /* then nearly a page */
        {TN_TRACE_ALLOC, A + 10 * MIB - 512, 512, 0}, /* up to the end */
    };
    struct trace_model made;
    struct tn_layout layout;

    (void)state;
    layout_of(&made, &layout, rows, 5, &segment);
    assert_int_equal(layout.total.free_runs, 3);
    assert_int_equal(layout.total.releasable, 2 * MIB);
    assert_int_equal(layout.total.stuck_runs, 4);
    assert_int_equal(layout.total.largest_stuck, 2 * MIB + 1);
    tn_layout_fini(&layout);
    trace_close(&made);
}

/* roundup_power2_divisions:2 makes 6 MiB of 5. */
static void settings_round_up(void **state)
{
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 20 * MIB, .is_large = true};
    static const struct trace_row row = {TN_TRACE_ALLOC, A, 5 * MIB, 0};
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_layout layout;

    (void)state;
    trace_open(&made, &row, 1, &segment, 1);
    made.model.settings.max_split_size = -1;
    made.model.settings.has_roundup = true;
    made.model.settings.roundup_power2_divisions[2] = 2; /* [4, 8) MiB */
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_true(tn_layout_collect_at(&layout, &timeline, 0));
    assert_int_equal(layout.total.used, 6 * MIB);
    assert_int_equal(layout.total.by_settings, MIB);
    tn_layout_fini(&layout);
    tn_timeline_fini(&timeline);
    trace_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_add_up),
        cmocka_unit_test(moments_differ),
        cmocka_unit_test(overlaps_count_once),
        cmocka_unit_test(two_blocks_at_one_address_count_once),
        cmocka_unit_test(only_expandable_ranges_join),
        cmocka_unit_test(blocks_tell_the_class_of_pages),
        cmocka_unit_test(memory_may_be_missing),
        cmocka_unit_test(pages_go_whole),
        cmocka_unit_test(settings_round_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
