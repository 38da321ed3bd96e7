/* SPDX-License-Identifier: MIT */
#include "support/trace.h"

#include "analysis/pool_stream.h"
#include "tarn/host.h"

#define KEPT   (A + 2 * MIB)  /* in a private pool */
#define MADE   (A + 64 * MIB) /* in the default pool, allocated in the trace */
#define GONE   (A + 32 * MIB) /* given back in the trace: its pool is unknown */
#define NOT_IN (A + 200 * MIB)

static const struct tn_model_segment segments[] = {
    {.address = KEPT, .total_size = 2 * MIB, .stream = 3, .pool = {{0, 1}}},
    {.address = MADE, .total_size = 20 * MIB, .is_large = true},
};

static const struct trace_row rows[] = {
    {TN_TRACE_FREE_COMPLETED, GONE, 512, 5}, /* a block from before, as the next but one */
    {TN_TRACE_SEGMENT_FREE, GONE, 20 * MIB, 5},
    {TN_TRACE_FREE_COMPLETED, KEPT + 4096, 512, 3},
    {TN_TRACE_ALLOC, KEPT, 512, 3},
    {TN_TRACE_SEGMENT_ALLOC, MADE, 20 * MIB, 0},
    {TN_TRACE_ALLOC, MADE, 4 * MIB, 0},
    {TN_TRACE_ALLOC, NOT_IN, 100, 9},
    {TN_TRACE_ALLOC, MADE + 8 * MIB, 4 * MIB, 0},
};

enum {
    ROWS = sizeof rows / sizeof rows[0]
};

/* `pool` 2: unknown; otherwise the second number of its name. */
static void place_is(const struct tn_pool_streams *all, uint32_t number, uint64_t segment,
                     uint64_t stream, uint64_t pool)
{
    const struct tn_pool_stream *place = tn_pool_stream_at(all, number);

    assert_int_equal(place->segment, segment);
    assert_int_equal(place->stream, stream);
    assert_int_equal(place->pool == 0, pool == 2);
    if (place->pool != 0) {
        assert_int_equal(tn_pool_stream_pool(all, place->pool).id[0], 0);
        assert_int_equal(tn_pool_stream_pool(all, place->pool).id[1], pool);
    }
}

static void blocks_and_entries_have_places(void **state)
{
    static const struct {
        uint64_t start; /* of the lifetimes, in order */
        uint64_t segment;
        uint64_t stream;
        uint64_t pool;
    } wanted[] = {
        {TN_NEVER, GONE, 5, 2}, {TN_NEVER, KEPT, 3, 1}, {3, KEPT, 3, 1},
        {5, MADE, 0, 0},        {6, 0, 9, 2},           {7, MADE, 0, 0},
    };
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_pool_streams all;

    (void)state;
    trace_open(&made, rows, ROWS, segments, 2);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_true(tn_pool_streams_init(&all, &timeline));
    assert_int_equal(timeline.lifetimes.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < timeline.lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &tn_timeline_lifetimes(&timeline)[i];

        assert_true(lifetime->start == wanted[i].start);
        place_is(&all, lifetime->pool_stream, wanted[i].segment, wanted[i].stream, wanted[i].pool);
    }
    assert_int_equal(all.of_entry.count, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        const uint32_t number = ((const uint32_t *)all.of_entry.items)[i];

        if (rows[i].action == TN_TRACE_SEGMENT_FREE) {
            place_is(&all, number, GONE, 5, 2);
        } else if (rows[i].action == TN_TRACE_SEGMENT_ALLOC) {
            place_is(&all, number, MADE, 0, 0);
        } else {
            assert_int_equal(number, 0);
        }
    }
    assert_int_equal(all.pools.count, 3); /* number 0 is not used */
    tn_pool_streams_fini(&all);
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* An address is of one segment until that is given back, and of another later; what follows in the
 * trace, or was there before, does not matter. */
static void places_change_with_time(void **state)
{
    static const struct tn_model_segment final = {
        .address = A, .total_size = 2 * MIB, .stream = 3, .pool = {{0, 1}}};

    (void)state;
    for (uint64_t stream = 3; stream <= 5; stream++) { /* of the earlier segment */
        const struct trace_row entries[] = {
            {TN_TRACE_ALLOC, A, 512, stream},
            {TN_TRACE_FREE_COMPLETED, A, 512, stream},
            {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, stream},
            {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 3},
            {TN_TRACE_ALLOC, A, 512, 3},
        };
        struct trace_model made;
        struct tn_timeline timeline;
        struct tn_pool_streams all;

        trace_open(&made, entries, 5, &final, 1);
        assert_true(tn_timeline_init(&timeline, &made.model, 0));
        assert_true(tn_pool_streams_init(&all, &timeline));
        const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&timeline);
        const uint32_t *of_entry = all.of_entry.items;

        assert_int_equal(timeline.lifetimes.count, 2);
        place_is(&all, lifetimes[0].pool_stream, A, stream, 2);
        place_is(&all, lifetimes[1].pool_stream, A, 3, 1);
        place_is(&all, of_entry[2], A, stream, 2);
        place_is(&all, of_entry[3], A, 3, 1);
        tn_pool_streams_fini(&all);
        tn_timeline_fini(&timeline);
        trace_close(&made);
    }
}

/* Two segments of one pool and stream whose blocks take turns. */
static void segments_of_one_pool_are_told_apart(void **state)
{
    static const struct tn_model_segment both[] = {
        {.address = A, .total_size = 2 * MIB, .stream = 3, .pool = {{0, 1}}},
        {.address = MADE, .total_size = 2 * MIB, .stream = 3, .pool = {{0, 1}}}};
    static const struct trace_row entries[] = {
        {TN_TRACE_ALLOC, A, 512, 3},
        {TN_TRACE_ALLOC, MADE, 512, 3},
        {TN_TRACE_ALLOC, A + 512, 512, 3},
        {TN_TRACE_ALLOC, A + 1024, 512, 3},
        {TN_TRACE_ALLOC, NOT_IN, 512, 8}, /* without a segment, it is of its own stream */
        {TN_TRACE_ALLOC, NOT_IN + 512, 512, 9},
    };
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_pool_streams all;

    (void)state;
    trace_open(&made, entries, 6, both, 2);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_true(tn_pool_streams_init(&all, &timeline));
    for (size_t i = 0; i < 4; i++) {
        place_is(&all, tn_timeline_lifetimes(&timeline)[i].pool_stream, i == 1 ? MADE : A, 3, 1);
    }
    place_is(&all, tn_timeline_lifetimes(&timeline)[4].pool_stream, 0, 8, 2);
    place_is(&all, tn_timeline_lifetimes(&timeline)[5].pool_stream, 0, 9, 2);
    assert_int_equal(all.pools.count, 2);
    tn_pool_streams_fini(&all);
    tn_timeline_fini(&timeline);
    trace_close(&made);
}

static void pools_are_chosen(void **state)
{
    const struct tn_pool_id by_default = {{0, 0}};
    const struct tn_pool_id first = {{1, 0}};
    const struct tn_pool_id second = {{0, 1}};
    const uint64_t one[2] = {0, 1};

    (void)state;
    assert_true(tn_pool_is_of(by_default, TARN_POOLS_ALL, one));
    assert_true(tn_pool_is_of(second, TARN_POOLS_ALL, one));
    assert_true(tn_pool_is_of(by_default, TARN_POOLS_DEFAULT, one));
    assert_false(tn_pool_is_of(first, TARN_POOLS_DEFAULT, one));
    assert_false(tn_pool_is_of(second, TARN_POOLS_DEFAULT, one));
    assert_false(tn_pool_is_of(by_default, TARN_POOLS_PRIVATE, one));
    assert_true(tn_pool_is_of(first, TARN_POOLS_PRIVATE, one));
    assert_true(tn_pool_is_of(second, TARN_POOLS_PRIVATE, one));
    assert_false(tn_pool_is_of(by_default, TARN_POOLS_ONE, one));
    assert_false(tn_pool_is_of(first, TARN_POOLS_ONE, one));
    assert_true(tn_pool_is_of(second, TARN_POOLS_ONE, one));
}

static void an_unknown_pool_is_only_of_all(void **state)
{
    static const enum tarn_pools some[] = {TARN_POOLS_DEFAULT, TARN_POOLS_PRIVATE, TARN_POOLS_ONE};
    const uint64_t one[2] = {0, 1};
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_pool_streams all;

    (void)state;
    trace_open(&made, rows, ROWS, segments, 2);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_true(tn_pool_streams_init(&all, &timeline));
    const uint32_t gone = tn_timeline_lifetimes(&timeline)[0].pool_stream;
    const uint32_t kept = tn_timeline_lifetimes(&timeline)[1].pool_stream;

    assert_true(tn_pool_stream_is_of(&all, gone, TARN_POOLS_ALL, one));
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        assert_false(tn_pool_stream_is_of(&all, gone, some[i], one));
        assert_int_equal(tn_pool_stream_is_of(&all, kept, some[i], one),
                         some[i] != TARN_POOLS_DEFAULT);
    }
    tn_pool_streams_fini(&all);
    tn_timeline_fini(&timeline);
    trace_close(&made);
}

/* The pool of an entry without a word on it is that of the segment at the end. */
static void entries_are_in_pools(void **state)
{
    struct trace_model made;
    struct tn_entry_pools pools;
    struct tn_pool_id pool;
    const struct tn_segment_range *by;

    (void)state;
    trace_open(&made, rows, ROWS, segments, 2);
    const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

    assert_true(tn_entry_pools_init(&pools, &source));
    assert_true(pools.has_private);
    assert_true(tn_entry_pool(&pools, tn_trace_at(&made.model, &made.traces[0], 3), &pool, &by));
    assert_int_equal(pool.id[1], 1);
    assert_int_equal(by->segment, KEPT);
    assert_true(tn_entry_pool(&pools, tn_trace_at(&made.model, &made.traces[0], 5), &pool, &by));
    assert_int_equal(pool.id[1], 0);
    assert_int_equal(by->segment, MADE);
    assert_false(tn_entry_pool(&pools, tn_trace_at(&made.model, &made.traces[0], 6), &pool, &by));
    assert_null(by);
    tn_entry_pools_fini(&pools);

    made.model.segments = &segments[1]; /* no private pool: it is the default one everywhere */
    made.model.segment_count = 1;
    const struct tn_trace_source plain = tn_source_of_device(&made.model, 0);

    assert_true(tn_entry_pools_init(&pools, &plain));
    assert_false(pools.has_private);
    assert_true(tn_entry_pool(&pools, tn_trace_at(&made.model, &made.traces[0], 6), &pool, &by));
    assert_int_equal(pool.id[0] + pool.id[1], 0);
    assert_null(by);
    tn_entry_pools_fini(&pools);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* The word of an entry takes precedence, wherever its address is. */
static void entries_may_say_their_pool(void **state)
{
    static const struct tn_trace_extra extra = {.has_pool = true, .pool = {{4, 9}}};
    struct trace_model made;
    struct tn_entry_pools pools;
    struct tn_pool_id pool;
    const struct tn_segment_range *by;
    uint32_t number;

    (void)state;
    trace_open(&made, rows, ROWS, segments, 2);
    const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

    assert_int_equal(tn_model_add_extra(&made.model, &extra, &number), TARN_OK);
    assert_true(tn_entry_pools_init(&pools, &source));
    for (uint64_t i = 3; i < ROWS; i++) { /* in the private pool, in the default one, in none */
        struct tn_trace_entry entry = *tn_trace_at(&made.model, &made.traces[0], i);

        entry.extra = number & 0x7ffffff;
        assert_true(tn_entry_pool(&pools, &entry, &pool, &by));
        assert_int_equal(pool.id[0], 4);
        assert_int_equal(pool.id[1], 9);
        assert_null(by);
    }
    tn_entry_pools_fini(&pools);
    trace_close(&made);
}

/* Only a segment of the device itself makes it have private pools, by either number. */
static void private_pools_are_of_the_device(void **state)
{
    static const struct {
        int32_t device;
        struct tn_pool_id pool;
        bool has_private;
    } cases[] = {{0, {{0, 0}}, false}, {0, {{0, 1}}, true},  {0, {{1, 0}}, true},
                 {0, {{2, 3}}, true},  {1, {{0, 1}}, false}, {1, {{1, 0}}, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tn_model_segment segment = {
            .address = A, .total_size = 2 * MIB, .device = cases[i].device, .pool = cases[i].pool};
        struct trace_model made;
        struct tn_entry_pools pools;

        trace_open(&made, rows, ROWS, &segment, 1);
        const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

        assert_true(tn_entry_pools_init(&pools, &source));
        assert_int_equal(pools.has_private, cases[i].has_private);
        tn_entry_pools_fini(&pools);
        trace_close(&made);
    }
}

static void memory_fails(const struct trace_row *entries, size_t count,
                         const struct tn_model_segment *final, size_t final_count, uint64_t least)
{
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_pool_streams all;
    uint64_t failures = 0;
    bool good = false;

    trace_open(&made, entries, count, final, final_count);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_pool_streams_init(&all, &timeline);
        tarn_host_fail_nth(0);
        failures += !good;
        assert_true(good || tarn_host_get_usage().live_bytes == live);
    }
    assert_true(failures >= least);
    assert_int_equal(all.of_entry.count, count);
    tn_pool_streams_fini(&all);
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Where the trace gives all segments back, and where it makes many. */
static void memory_may_be_missing(void **state)
{
    enum {
        MANY = 40
    };
    static const struct trace_row gone[] = {
        {TN_TRACE_ALLOC, GONE, 512, 5},
        {TN_TRACE_FREE_COMPLETED, GONE, 512, 5},
        {TN_TRACE_SEGMENT_FREE, GONE, 20 * MIB, 5},
    };
    struct trace_row many[MANY];
    struct tn_model_segment final[MANY];

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        many[i] = (struct trace_row){TN_TRACE_SEGMENT_ALLOC, A + i * 4 * MIB, 2 * MIB, i};
        final[i] = (struct tn_model_segment){
            .address = A + i * 4 * MIB, .total_size = 2 * MIB, .stream = i, .pool = {{0, i}}};
    }
    memory_fails(gone, 3, NULL, 0, 4);
    memory_fails(many, MANY, final, MANY, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_entries_have_places),
        cmocka_unit_test(places_change_with_time),
        cmocka_unit_test(segments_of_one_pool_are_told_apart),
        cmocka_unit_test(entries_may_say_their_pool),
        cmocka_unit_test(private_pools_are_of_the_device),
        cmocka_unit_test(pools_are_chosen),
        cmocka_unit_test(an_unknown_pool_is_only_of_all),
        cmocka_unit_test(entries_are_in_pools),
        cmocka_unit_test(memory_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
