/* SPDX-License-Identifier: MIT */
/* Requests with options, tries that fail cheaply, explanations. */
#include "support/test.h"

#include "support/rig.h"
#include "support/scarce.h"
#include "tarn/block.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

#include <stdio.h>

#include <time.h>

static const char *const settings[] = {"", "expandable_segments:True", "policy:compact",
                                       "rules:2.14"};

#define SETTINGS (sizeof settings / sizeof settings[0])

static tarn_ptr try_alloc(struct rig *rig, uint64_t size, unsigned flags)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_alloc_try(rig->allocator, size, 0, flags, &ptr), TARN_OK);
    rig_check(rig);
    return ptr;
}

static void try_fails(struct rig *rig, uint64_t size, unsigned flags)
{
    tarn_ptr ptr = 0x123;

    assert_int_equal(tarn_alloc_try(rig->allocator, size, 0, flags, &ptr), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(ptr, 0x123);
    rig_check(rig);
}

static struct tarn_alloc_options options_of(struct tarn_alloc_options options)
{
    options.struct_size = sizeof options;
    return options;
}

/* ---- tries ---- */

static void a_try_takes_free_blocks_or_grows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr ptr = try_alloc(&rig, 30 * MIB, 0);

        rig_free(&rig, ptr);
        assert_int_equal(try_alloc(&rig, 30 * MIB, TARN_ALLOC_NEVER_GROW), ptr);
        try_fails(&rig, 30 * MIB, TARN_ALLOC_NEVER_GROW);
        const tarn_ptr other = try_alloc(&rig, 30 * MIB, TARN_ALLOC_TRY);

        assert_int_not_equal(other, ptr);
        assert_int_equal(try_alloc(&rig, 0, 0), 0);
        rig_free(&rig, ptr);
        rig_free(&rig, other);
        rig_close(&rig);
    }
}

static void a_try_stays_within_the_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 200 * MIB, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 100 * MIB, &rig.error),
                         TARN_OK);
        const tarn_ptr first = try_alloc(&rig, 100 * MIB, TARN_ALLOC_WITHIN_BUDGET);

        try_fails(&rig, 20 * MIB, TARN_ALLOC_WITHIN_BUDGET);
        const tarn_ptr second = try_alloc(&rig, 100 * MIB, 0);

        try_fails(&rig, 20 * MIB, 0);
        rig_free(&rig, first);
        rig_free(&rig, try_alloc(&rig, 80 * MIB, 0));
        rig_free(&rig, second);
        rig_close(&rig);
    }
}

static void a_try_of_a_pool_stays_within_its_limit(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 100 * MIB};

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct tarn_pool *pool = NULL;
        tarn_ptr ptr = 0;
        tarn_ptr more = 0x123;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_pool_alloc_try(pool, 80 * MIB, 0, 0, &ptr), TARN_OK);
        assert_int_equal(tarn_pool_alloc_try(pool, 40 * MIB, 0, 0, &more), TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(tarn_pool_alloc_try(pool, 40 * MIB, 0, 16, &more),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_int_equal(more, 0x123);
        rig_free(&rig, ptr);
        assert_int_equal(tarn_pool_alloc_try(pool, 40 * MIB, 0, TARN_ALLOC_NEVER_GROW, &more),
                         TARN_OK);
        rig_free(&rig, more);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void count_oom(void *context, const struct tarn_oom *oom)
{
    (void)oom;
    ++*(int *)context;
}

static bool count_miss(void *context, struct tarn_allocator *allocator, uint64_t size,
                       tarn_stream stream)
{
    (void)allocator;
    (void)size;
    (void)stream;
    ++*(int *)context;
    return false;
}

static uint64_t count_pressure(void *context, const struct tarn_pressure *pressure)
{
    (void)pressure;
    ++*(int *)context;
    return 0;
}

static void count_events(void *context, const struct tarn_trace_event *event)
{
    (void)event;
    ++*(int *)context;
}

/* Nothing is counted, given back or sent, nobody is called, the device is not asked how much is
 * free; and it is not asked for memory where a limit says no. */
static void a_failed_try_leaves_no_trace(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        int called = 0;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        rig_free(&rig, rig_alloc(&rig, 100 * MIB, 1)); /* cached on another stream */
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 160 * MIB, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, count_oom, &called),
                         TARN_OK);
        assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, count_miss, &called),
                         TARN_OK);
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, count_pressure, &called), TARN_OK);
        assert_int_equal(tarn_allocator_add_sink(
                             rig.allocator,
                             &(struct tarn_sink){.context = &called, .receive = count_events},
                             &rig.error),
                         TARN_OK);
        const struct tarn_stats before = rig_stats(&rig);
        const struct tarn_sim_counters calls = sim_counters(rig.device);

        try_fails(&rig, 200 * MIB, 0);
        try_fails(&rig, 200 * MIB, TARN_ALLOC_WITHIN_BUDGET);
        try_fails(&rig, 20 * MIB, TARN_ALLOC_NEVER_GROW);
        const struct tarn_stats after = rig_stats(&rig);
        const struct tarn_sim_counters now = sim_counters(rig.device);

        assert_int_equal(called, 0);
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(now.calls[TARN_SIM_ALLOC], calls.calls[TARN_SIM_ALLOC]);
        assert_int_equal(now.calls[TARN_SIM_MEMORY_INFO], calls.calls[TARN_SIM_MEMORY_INFO]);
        assert_int_equal(now.used_bytes, calls.used_bytes);
        assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &called, &rig.error), TARN_OK);
        rig_close(&rig);
    }
}

static uint64_t asked(struct rig *rig)
{
    const struct tarn_sim_counters counters = sim_counters(rig->device);

    return counters.calls[TARN_SIM_ALLOC] + counters.calls[TARN_SIM_PAGE_CREATE];
}

static void a_full_device_is_not_asked_each_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr most = rig_alloc(&rig, 1000 * MIB, 0);
        const uint64_t before = asked(&rig);

        for (int k = 0; k < 400; k++) {
            tarn_ptr ptr = 0;

            assert_int_equal(tarn_alloc_try(rig.allocator, 100 * MIB, 0, 0, &ptr),
                             TARN_ERR_OUT_OF_MEMORY);
        }
        assert_true(asked(&rig) - before < (uint64_t)15 * 200); /* of up to 15 pages each */
        const struct timespec pause = {.tv_nsec = 12000000};    /* a refusal counts for 10 ms */
        const uint64_t later = asked(&rig);
        tarn_ptr none = 0;

        assert_int_equal(nanosleep(&pause, NULL), 0);
        assert_int_equal(tarn_alloc_try(rig.allocator, 100 * MIB, 0, 0, &none),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_true(asked(&rig) > later);
        rig_free(&rig, try_alloc(&rig, 2 * MIB, 0)); /* smaller ones are asked for */
        rig_free(&rig, most);
        rig_free(&rig, try_alloc(&rig, 100 * MIB, 0));
        rig_close(&rig);
    }
}

/* What a limit refuses says nothing about the device: when the limit goes, the next try is one. */
static void a_limit_is_no_refusal(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, 100 * MIB, &rig.error), TARN_OK);
    assert_int_equal(tarn_alloc_try(rig.allocator, 200 * MIB, 0, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(rig_engine(rig.allocator)->refusal.size, 0);
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, GIB, &rig.error), TARN_OK);
    assert_int_equal(tarn_alloc_try(rig.allocator, 200 * MIB, 0, 0, &ptr), TARN_OK);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* Also when it is beyond a soft limit, which does not count for this try. */
static void a_soft_limit_leaves_the_refusal(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr most = rig_alloc(&rig, 1000 * MIB, 0);

    assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 20 * MIB, &rig.error), TARN_OK);
    const uint64_t before = asked(&rig);

    for (int k = 0; k < 400; k++) {
        try_fails(&rig, 100 * MIB, 0);
    }
    assert_true(asked(&rig) - before < 200);
    rig_free(&rig, most);
    rig_close(&rig);
}

/* What was given back can be had, at once. */
static void memory_given_back_ends_the_refusal(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr most = rig_alloc(&rig, 1000 * MIB, 1);

    try_fails(&rig, 100 * MIB, 0);
    rig_free(&rig, most);
    try_fails(&rig, 100 * MIB, 0); /* cached for another stream */
    rig_empty_cache(&rig);
    rig_free(&rig, try_alloc(&rig, 100 * MIB, 0));
    rig_close(&rig);
}

static void frees_of_other_streams_are_completed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 100 * MIB, 0);

    rig_record(&rig, ptr, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, ptr);
    try_fails(&rig, 100 * MIB, TARN_ALLOC_NEVER_GROW);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 2), TARN_OK);
    assert_int_equal(try_alloc(&rig, 100 * MIB, TARN_ALLOC_NEVER_GROW), ptr);
    rig_close(&rig);
}

/* ---- options ---- */

static void blocks_have_the_alignment_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        tarn_ptr ptrs[40];
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        for (unsigned k = 0; k < 40; k++) {
            const struct tarn_alloc_options options =
                options_of((struct tarn_alloc_options){.alignment = (uint64_t)1 << (k % 23)});
            const uint64_t size = (k * 77777 + 1) % (3 * MIB) + 1;

            ptrs[k] = 0;
            assert_int_equal(
                tarn_alloc_with(rig.allocator, size, k % 2, &options, &ptrs[k], &rig.error),
                TARN_OK);
            assert_int_equal(ptrs[k] % options.alignment, 0);
            assert_true(tarn_allocator_usable_size(rig.allocator, ptrs[k]) >= size);
            rig_check(&rig);
        }
        for (int k = 0; k < 40; k++) {
            rig_free(&rig, ptrs[k]);
        }
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 0);
        rig_empty_cache(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
}

/* The part in front of an aligned block needs a place in the map for a moment: also where that has
 * room for one more pointer only. */
static void an_aligned_block_needs_room_for_two(void **state)
{
    enum {
        COUNT = 200
    };
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = 2 * MIB});
    unsigned failures = 0;
    tarn_ptr ptrs[COUNT];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
    for (int i = 0; i < COUNT; i++) {
        tarn_ptr ptr = 0;

        ptrs[i] = rig_alloc(&rig, 512, 0);
        tarn_host_fail_nth(1);
        enum tarn_status st = tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error);

        tarn_host_fail_nth(0);
        if (st) {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            assert_int_equal(ptr, 0);
            failures++;
            st = tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error);
        }
        assert_int_equal(st, TARN_OK);
        const struct tn_ptr_map *map = &rig_engine(rig.allocator)->heap.shard.map;

        assert_true(tn_ptr_map_room(map->buckets) > map->count);
        rig_free(&rig, ptr);
    }
    assert_true(failures > 0);
    for (int i = 0; i < COUNT; i++) {
        rig_free(&rig, ptrs[i]);
    }
    rig_close(&rig);
}

/* An alignment costs what a block may have to be moved by, and no more: all addresses are multiples
 * of 512. */
static void an_alignment_takes_no_more_than_it_needs(void **state)
{
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = MIB});
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_alloc_with(rig.allocator, 19 * MIB + 512, 0, &options, &ptr, &rig.error),
                     TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void an_alignment_needs_blocks_that_may_be_split(void **state)
{
    const struct tarn_pool_options whole = {.struct_size = sizeof whole, .no_split = true};
    struct tarn_pool *pool = NULL;
    tarn_ptr shift = 0;
    tarn_ptr ptr = 0x123;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:64");
    shift = rig_alloc(&rig, 20 * MIB, 0);
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = 256 * MIB});

    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(rig.error.text, "needs a block to be split"));
    assert_int_equal(ptr, 0x123);
    rig_check(&rig);
    assert_int_equal(tarn_pool_create(rig.allocator, &whole, &pool, &rig.error), TARN_OK);
    const struct tarn_alloc_options in_pool =
        options_of((struct tarn_alloc_options){.alignment = 128 * MIB, .pool = pool});

    rig_configure(&rig, "");
    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &in_pool, &ptr, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    tarn_pool_destroy(pool);
    rig_free(&rig, shift);
    rig_close(&rig);
}

struct seen {
    char metadata[TARN_LABEL_MAX];
    struct tarn_pool_id pool;
};

static void see_alloc(void *context, const struct tarn_trace_event *event)
{
    struct seen *seen = context;

    if (event->action == TARN_ACTION_ALLOC) {
        (void)snprintf(seen->metadata, sizeof seen->metadata, "%s", event->user_metadata);
        seen->pool = (struct tarn_pool_id){event->pool_id[0], event->pool_id[1]};
    }
}

static void a_name_is_the_metadata_of_the_event(void **state)
{
    struct tarn_pool *pool = NULL;
    struct seen seen;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(
        tarn_allocator_add_sink(
            rig.allocator, &(struct tarn_sink){.context = &seen, .receive = see_alloc}, &rig.error),
        TARN_OK);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.name = "kv block", .pool = pool});

    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error), TARN_OK);
    assert_string_equal(seen.metadata, "kv block");
    assert_int_equal(seen.pool.second, tarn_pool_get_id(pool).second);
    assert_string_equal(tarn_get_user_metadata(), "step 7");
    rig_free(&rig, ptr);
    rig_free(&rig, rig_alloc(&rig, MIB, 0));
    assert_string_equal(seen.metadata, "step 7");

    char long_name[2 * TARN_LABEL_MAX];

    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    options.name = long_name;
    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error),
                     TARN_ERR_LIMIT);
    assert_string_equal(tarn_get_user_metadata(), "step 7");
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &seen, &rig.error), TARN_OK);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* An empty name takes the place of the thread's metadata, which then needs memory to come back:
 * without it the thread has none. The allocation stands. */
static void an_empty_name_is_no_metadata(void **state)
{
    const struct tarn_alloc_options options = options_of((struct tarn_alloc_options){.name = ""});
    bool is_kept = false;
    bool was_lost = false;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, MIB, 0));
    for (uint64_t n = 1; !is_kept; n++) {
        tarn_ptr ptr = 0;

        assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
        tarn_host_fail_nth(n);
        assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &options, &ptr, &rig.error),
                         TARN_OK);
        tarn_host_fail_nth(0);
        is_kept = strcmp(tarn_get_user_metadata(), "step 7") == 0;
        was_lost = was_lost || tarn_get_user_metadata()[0] == '\0';
        rig_free(&rig, ptr);
    }
    assert_true(was_lost);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    rig_close(&rig);
}

static void a_pool_s_name_is_the_metadata_of_its_events(void **state)
{
    const struct tarn_pool_options named = {.struct_size = sizeof named, .name = "kv cache"};
    struct tarn_pool *pool = NULL;
    struct seen seen;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &named, &pool, &rig.error), TARN_OK);
    assert_int_equal(
        tarn_allocator_add_sink(
            rig.allocator, &(struct tarn_sink){.context = &seen, .receive = see_alloc}, &rig.error),
        TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, MIB, 0, &ptr, &rig.error), TARN_OK);
    assert_string_equal(seen.metadata, "kv cache");
    rig_free(&rig, ptr);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, MIB, 0, &ptr, &rig.error), TARN_OK);
    assert_string_equal(seen.metadata, "step 7");
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    rig_free(&rig, ptr);
    rig_free(&rig, rig_alloc(&rig, MIB, 0));
    assert_string_equal(seen.metadata, "");
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &seen, &rig.error), TARN_OK);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void options_are_checked(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0x123;
    struct tarn_allocator *other = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_create(rig.device, NULL, &other, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_create(other, NULL, &pool, &rig.error), TARN_OK);
    const struct tarn_alloc_options wrong[] = {
        {.struct_size = 0},
        options_of((struct tarn_alloc_options){.flags = 8}),
        options_of((struct tarn_alloc_options){.alignment = 48}),
        options_of((struct tarn_alloc_options){.pool = pool}),
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &wrong[i], &ptr, &rig.error),
                         TARN_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(tarn_alloc_try(rig.allocator, MIB, 0, 8, &ptr), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_alloc_try(rig.allocator, UINT64_MAX, 0, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    const struct tarn_alloc_options huge =
        options_of((struct tarn_alloc_options){.alignment = (uint64_t)1 << 63});

    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &huge, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(ptr, 0x123);
    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, NULL, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    tarn_allocator_destroy(other);
    rig_close(&rig);
}

static void engines_without_a_cache_ask_the_device(void **state)
{
    const struct tarn_alloc_options aligned =
        options_of((struct tarn_alloc_options){.alignment = MIB});
    const struct tarn_alloc_options as_any =
        options_of((struct tarn_alloc_options){.alignment = 512});
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &as_any, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_alloc_try(rig.allocator, MIB, 0, 0, &ptr), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_alloc_try(rig.allocator, 2 * GIB, 0, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_alloc_try(rig.allocator, MIB, 0, TARN_ALLOC_NEVER_GROW, &ptr),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &aligned, &ptr, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_alloc_explain(rig.allocator, MIB, 0, &rig.error), TARN_ERR_NOT_SUPPORTED);
    rig_close(&rig);
}

/* ---- explanations ---- */

static void an_explanation_is_the_message_of_a_failure(void **state)
{
    struct tarn_error failure;
    struct tarn_error explanation;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr most = rig_alloc(&rig, 800 * MIB, 0);

    assert_int_equal(tarn_alloc_explain(rig.allocator, 300 * MIB, 0, &explanation),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 300 * MIB, 0, &ptr, &failure),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(explanation.text, failure.text);
    assert_int_equal(tarn_alloc_explain(rig.allocator, UINT64_MAX, 0, &failure),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_alloc_explain(rig.allocator, TN_MAX_REQUEST, 0, &explanation),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(explanation.text, failure.text); /* more than there can be */
    assert_int_equal(tarn_alloc_explain(rig.allocator, TN_MAX_REQUEST - 1, 0, &explanation),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_not_equal(explanation.text, failure.text);
    rig_free(&rig, most);
    rig_close(&rig);
}

static void write_text(void *context, const struct tarn_oom *oom, char *text, size_t size)
{
    (void)snprintf(text, size, "%s: no room for %d MiB", (const char *)context,
                   (int)(oom->requested / MIB));
}

static void write_nothing(void *context, const struct tarn_oom *oom, char *text, size_t size)
{
    (void)context;
    (void)oom;
    (void)text;
    (void)size;
}

static void write_too_much(void *context, const struct tarn_oom *oom, char *text, size_t size)
{
    (void)context;
    (void)oom;
    memset(text, 'x', size);
}

static void the_text_can_be_the_program_s_own(void **state)
{
    static char name[] = "acme";
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_set_oom_writer(rig.allocator, write_text, name), TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_string_equal(rig.error.text, "acme: no room for 300 MiB");
    assert_int_equal(rig.error.status, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(rig.error.offset, -1);
    assert_int_equal(tarn_allocator_set_oom_writer(rig.allocator, write_nothing, NULL), TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_int_equal(rig.error.status, TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(rig.error.text, tarn_status_text(TARN_ERR_OUT_OF_MEMORY));
    assert_int_equal(tarn_allocator_set_oom_writer(rig.allocator, write_too_much, NULL), TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_int_equal(strlen(rig.error.text), sizeof rig.error.text - 1);
    assert_int_equal(tarn_allocator_set_oom_writer(rig.allocator, NULL, NULL), TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_non_null(strstr(rig.error.text, "CUDA out of memory"));
    rig_close(&rig);
}

/* Nobody wants the report: the device is not asked for its numbers. */
static void without_a_reader_no_report_is_made(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 300 * MIB, 0, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_MEMORY_INFO], 0);
    assert_int_equal(rig_stats(&rig).num_ooms, 1);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_true(sim_counters(rig.device).calls[TARN_SIM_MEMORY_INFO] > 0);
    rig_close(&rig);
}

/* ---- failing ---- */

static bool try_with_failure(const char *conf, uint64_t host_nth, uint64_t alignment)
{
    const struct tarn_alloc_options options = options_of((struct tarn_alloc_options){
        .flags = TARN_ALLOC_TRY, .alignment = alignment, .name = "named"});
    tarn_ptr ptr = 0;
    struct rig rig;

    rig_open(&rig, GIB, conf);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    tarn_host_fail_nth(host_nth);
    const enum tarn_status st =
        tarn_alloc_with(rig.allocator, 3 * MIB, 0, &options, &ptr, &rig.error);

    tarn_host_fail_nth(0);
    rig_check(&rig);
    if (st) {
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        assert_int_equal(ptr, 0);
        assert_int_equal(tarn_alloc_with(rig.allocator, 3 * MIB, 0, &options, &ptr, &rig.error),
                         TARN_OK);
    }
    rig_free(&rig, ptr);
    rig_close(&rig);
    return st != TARN_OK;
}

static void every_failure_is_survived(void **state)
{
    uint64_t failures = 0;

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (uint64_t n = 1; n < 25; n++) {
            failures += try_with_failure(settings[i], n, 0);
            failures += try_with_failure(settings[i], n, 4 * MIB);
        }
    }
    assert_true(failures > 20);
}

/* ---- what was refused ---- */

enum {
    TRIES = 60
};

/* Tries that the device refuses, with a call of `between` after each: whether it was not asked each
 * time, as when its refusal is remembered. */
static bool is_remembered(struct rig *rig, uint64_t size, unsigned flags,
                          void (*between)(struct rig *rig))
{
    const uint64_t before = asked(rig);

    for (int k = 0; k < TRIES; k++) {
        tarn_ptr ptr = 0;

        assert_int_equal(tarn_alloc_try(rig->allocator, size, 0, flags, &ptr),
                         TARN_ERR_OUT_OF_MEMORY);
        if (between) {
            between(rig);
        }
    }
    return asked(rig) - before < TRIES - 1; /* the first may be answered by an earlier one's */
}

static void take_small(struct rig *rig)
{
    (void)rig_alloc(rig, 512, 0);
}

static void take_large(struct rig *rig)
{
    (void)rig_alloc(rig, 2 * MIB, 0);
}

static void take_small_and_reset(struct rig *rig)
{
    take_small(rig);
    tarn_allocator_reset_accumulated_stats(rig->allocator);
}

static void take_large_and_reset(struct rig *rig)
{
    take_large(rig);
    tarn_allocator_reset_accumulated_stats(rig->allocator);
}

/* Blocks from the cache make no room on the device, nor do counters that are set back. */
static void a_refusal_outlasts_allocations(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, "");
    const tarn_ptr most = rig_alloc(&rig, GIB, 0);
    const tarn_ptr large = rig_alloc(&rig, 600 * MIB, 0);

    rig_free(&rig, large);
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    assert_true(is_remembered(&rig, 1100 * MIB, 0, take_small));
    assert_true(is_remembered(&rig, 1100 * MIB, 0, take_large));
    assert_true(is_remembered(&rig, 1100 * MIB, 0, take_small_and_reset));
    assert_true(is_remembered(&rig, 1100 * MIB, 0, take_large_and_reset));
    rig_free(&rig, most);
    rig_close(&rig);
}

/* Limits that just suffice are none: it was the device that refused. */
static void within_every_limit_a_refusal_is_the_device_s(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 150 * MIB, "");
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, 200 * MIB, &rig.error), TARN_OK);
    assert_true(is_remembered(&rig, 200 * MIB, 0, NULL));
    rig_close(&rig);
    for (uint64_t soft = 200 * MIB; soft <= 300 * MIB; soft += 100 * MIB) {
        rig_open(&rig, 150 * MIB, "");
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, soft, &rig.error), TARN_OK);
        assert_true(is_remembered(&rig, 200 * MIB, TARN_ALLOC_WITHIN_BUDGET, NULL));
        rig_close(&rig);
    }
}

static tarn_ptr give_nothing(void *context, uint64_t size, tarn_stream stream)
{
    (void)context;
    (void)size;
    (void)stream;
    return 0;
}

static void take_nothing(void *context, tarn_ptr ptr)
{
    (void)context;
    (void)ptr;
}

/* What a pool's limit or its source refuses the device may have, as may one that failed once. */
static void only_a_full_device_is_a_refusal(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 100 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc_try(pool, 200 * MIB, 0, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    rig_free(&rig, try_alloc(&rig, 200 * MIB, 0));
    tarn_pool_destroy(pool);
    const struct tarn_pool_source source = {
        .struct_size = sizeof source, .alloc = give_nothing, .free = take_nothing};
    const struct tarn_pool_options with_source = {.struct_size = sizeof with_source,
                                                  .source = &source};

    assert_int_equal(tarn_pool_create(rig.allocator, &with_source, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc_try(pool, 250 * MIB, 0, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    rig_free(&rig, try_alloc(&rig, 250 * MIB, 0));
    tarn_sim_fail_nth(rig.device, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_alloc_try(rig.allocator, 300 * MIB, 0, 0, &ptr), TARN_ERR_DEVICE);
    rig_free(&rig, try_alloc(&rig, 300 * MIB, 0));
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A try that never grows takes what any request would, and leaves what is too large for it. */
static void a_try_leaves_oversize_blocks(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:40");
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
    try_fails(&rig, 30 * MIB, TARN_ALLOC_NEVER_GROW);
    try_fails(&rig, 60 * MIB, TARN_ALLOC_NEVER_GROW);
    rig_close(&rig);
}

/* ---- running out, with options ---- */

static void a_request_with_options_runs_out_as_any(void **state)
{
    const struct tarn_alloc_options aligned =
        options_of((struct tarn_alloc_options){.alignment = 2 * MIB});
    const struct tarn_alloc_options plain = options_of((struct tarn_alloc_options){.name = "x"});
    const struct tarn_alloc_options *const options[] = {&plain, &aligned};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tarn_ptr ptr = 0x123;
        struct rig rig;

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_alloc_with(rig.allocator, 2 * GIB, 0, options[i], &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_non_null(strstr(rig.error.text, "CUDA out of memory. Tried to allocate 2.00 GiB"));
        assert_int_equal(rig_stats(&rig).num_ooms, 1);
        rig_configure(&rig, "throw_on_cudamalloc_oom:True");
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 100 * MIB, &rig.error), TARN_OK);
        assert_int_equal(tarn_alloc_with(rig.allocator, 200 * MIB, 0, options[i], &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(rig_stats(&rig).num_ooms, 1);
        assert_int_equal(rig_stats(&rig).num_oom_rejections, 1);
        assert_int_equal(ptr, 0x123);
        rig_close(&rig);
    }
}

/* Sizes and alignments that no device can have. */
static void what_cannot_be_is_refused_by_name(void **state)
{
    const struct tarn_alloc_options huge =
        options_of((struct tarn_alloc_options){.alignment = TN_MAX_REQUEST / 2});
    tarn_ptr ptr = 0x123;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_alloc_with(rig.allocator, TN_MAX_REQUEST, 0, NULL, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rig.error.text, "more than 1EB"));
    rig.error.text[0] = 0;
    assert_int_equal(tarn_alloc_with(rig.allocator, MIB, 0, &huge, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rig.error.text, "more than 1EB"));
    assert_int_equal(ptr, 0x123);
    rig_close(&rig);
}

static void nothing_has_the_address_zero(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0x123;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_alloc_try(rig.allocator, 0, 0, 0, &ptr), TARN_OK);
    assert_int_equal(ptr, 0);
    ptr = 0x123;
    assert_int_equal(tarn_pool_alloc_try(pool, 0, 0, 0, &ptr), TARN_OK);
    assert_int_equal(ptr, 0);
    ptr = 0x123;
    assert_int_equal(tarn_alloc_with(rig.allocator, 0, 0, NULL, &ptr, &rig.error), TARN_OK);
    assert_int_equal(ptr, 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A report that nobody reads has no text to write to. */
static void a_writer_needs_a_place_for_its_text(void **state)
{
    tarn_ptr ptr = 0;
    int called = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_set_oom_writer(rig.allocator, write_too_much, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, count_oom, &called), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 300 * MIB, 0, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(called, 1);
    rig_close(&rig);
}

/* ---- alignments ---- */

static tarn_ptr alloc_aligned(struct rig *rig, struct tarn_pool *pool, uint64_t size,
                              uint64_t alignment)
{
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = alignment, .pool = pool});
    tarn_ptr ptr = 0;

    if (tarn_alloc_with(rig->allocator, size, 0, &options, &ptr, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
    assert_int_equal(ptr % alignment, 0);
    rig_check(rig);
    return ptr;
}

/* All blocks have 512. */
static void an_alignment_of_512_is_none(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
    const tarn_ptr ptr = alloc_aligned(&rig, NULL, 20 * MIB - UINT64_C(512) * 1024, 512);

    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 20 * MIB); /* not split for that */
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* Only a block that has to be split at its front is refused where that is forbidden. */
static void what_lies_well_needs_no_split_in_front(void **state)
{
    static const uint64_t at = 256 * MIB;
    struct rig rig;

    (void)state;
    for (unsigned off = 0; off < 2; off++) {
        for (int no_split = 0; no_split < 2; no_split++) {
            const struct tarn_pool_options whole = {.struct_size = sizeof whole,
                                                    .no_split = no_split != 0};
            const struct tarn_alloc_options options =
                options_of((struct tarn_alloc_options){.alignment = 4 * MIB});
            struct tarn_alloc_options in_pool = options;
            tarn_ptr ptr = 0;

            rig_open(&rig, GIB, "");
            assert_int_equal(tarn_pool_create(rig.allocator, &whole, &in_pool.pool, &rig.error),
                             TARN_OK);
            const tarn_ptr address = SIM_BASE + at - SIM_BASE % (4 * MIB) + (uint64_t)off * 2 * MIB;

            assert_int_equal(tarn_sim_script_alloc(rig.device, address), TARN_OK);
            const enum tarn_status st =
                tarn_alloc_with(rig.allocator, 20 * MIB, 0, &in_pool, &ptr, &rig.error);

            assert_int_equal(st, off && no_split ? TARN_ERR_NOT_SUPPORTED : TARN_OK);
            assert_int_equal(ptr, st ? 0 : address + (uint64_t)off * 2 * MIB);
            rig_check(&rig);
            if (ptr) {
                rig_free(&rig, ptr);
            }
            tarn_pool_destroy(in_pool.pool);
            rig_close(&rig);
        }
    }
}

/* Blocks of max_split_size are not split, those below are. */
static void max_split_size_forbids_a_split_in_front(void **state)
{
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = 4 * MIB});

    (void)state;
    for (uint64_t size = 58 * MIB; size <= 60 * MIB; size += 2 * MIB) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "max_split_size_mb:64");
        const tarn_ptr address = SIM_BASE + 256 * MIB - SIM_BASE % (4 * MIB) + 2 * MIB;

        assert_int_equal(tarn_sim_script_alloc(rig.device, address), TARN_OK);
        assert_int_equal(tarn_alloc_with(rig.allocator, size + 512, 0, &options, &ptr, &rig.error),
                         size < 60 * MIB ? TARN_OK : TARN_ERR_NOT_SUPPORTED);
        rig_check(&rig);
        rig_close(&rig);
    }
}

/* Without the nodes that are kept ahead: whichever allocation of the host fails, the request is
 * served or refused, and nothing is lost. */
static void without_nodes_a_request_is_refused_or_served(void **state)
{
    static const struct {
        uint64_t size;
        uint64_t alignment;
    } kinds[] = {{40 * MIB, 0}, {10 * MIB, 4 * MIB}, {5 * MIB, 0}, {512, 0}};

    unsigned failures = 0;

    (void)state;
    for (size_t i = 0; i < 4 * SETTINGS; i++) {
        const struct tarn_alloc_options options = options_of((struct tarn_alloc_options){
            .flags = TARN_ALLOC_TRY, .alignment = kinds[i % 4].alignment});
        bool failed = true;

        for (uint64_t n = 1; failed; n++) {
            tarn_ptr ptr = 0;
            struct rig rig;

            rig_open(&rig, GIB, settings[i / 4]);
            const tarn_ptr first = rig_alloc(&rig, 22 * MIB, 0);

            if (kinds[i % 4].alignment) {
                rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
            }
            scarce_begin(rig.allocator);
            const uint64_t before = tarn_host_get_usage().alloc_calls;

            tarn_host_fail_nth(n);
            const enum tarn_status st =
                tarn_alloc_with(rig.allocator, kinds[i % 4].size, 0, &options, &ptr, NULL);

            tarn_host_fail_nth(0);
            failed = tarn_host_get_usage().alloc_calls - before >= n;
            scarce_end();
            assert_true(st == TARN_OK || (failed && st == TARN_ERR_HOST_MEMORY));
            assert_int_equal(ptr != 0, st == TARN_OK);
            failures += st != TARN_OK;
            rig_check(&rig);
            if (ptr) {
                rig_free(&rig, ptr);
            }
            rig_free(&rig, first);
            rig_close(&rig);
        }
    }
    assert_true(failures > 2 * SETTINGS);
}

/* ---- stacks ---- */

/* References to a stack that are out. */
struct stacks {
    int64_t held;
    uint64_t of_alloc; /* in the last event */
};

static uint64_t capture_stack(void *context, enum tarn_context_level level)
{
    struct stacks *stacks = context;

    (void)level;
    stacks->held++;
    return 77;
}

static void retain_stack(void *context, uint64_t stack)
{
    struct stacks *stacks = context;

    assert_int_equal(stack, 77);
    stacks->held++;
}

static void release_stack(void *context, uint64_t stack)
{
    struct stacks *stacks = context;

    assert_int_equal(stack, 77);
    stacks->held--;
}

static void see_stack(void *context, const struct tarn_trace_event *event)
{
    struct stacks *stacks = context;

    if (event->action == TARN_ACTION_ALLOC) {
        stacks->of_alloc = event->stack;
    }
}

/* Requests of every kind have the stack of their caller, and hold no other. */
static void requests_with_options_have_the_caller_s_stack(void **state)
{
    const struct tarn_alloc_options kinds[] = {
        options_of((struct tarn_alloc_options){.alignment = MIB}),
        options_of((struct tarn_alloc_options){.flags = TARN_ALLOC_TRY}),
        options_of((struct tarn_alloc_options){.name = "x"}),
    };
    struct stacks stacks = {0};
    const struct tarn_sink sink = {&stacks,   TARN_CONTEXT_ALL, capture_stack,
                                   see_stack, retain_stack,     release_stack};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    for (size_t i = 0; i < 3; i++) {
        tarn_ptr ptr = 0;

        stacks.of_alloc = 0;
        assert_int_equal(tarn_alloc_with(rig.allocator, 30 * MIB, 0, &kinds[i], &ptr, &rig.error),
                         TARN_OK);
        assert_int_equal(stacks.of_alloc, 77);
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
        assert_int_equal(stacks.held, 0);
        assert_int_equal(tarn_alloc_with(rig.allocator, 2 * GIB, 0, &kinds[i], &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(stacks.held, 0);
    }
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &stacks, &rig.error), TARN_OK);
    rig_close(&rig);
}

/* An aligned block is cut at both ends, for which it needs two nodes: also where one is left. */
static void an_aligned_block_needs_two_nodes(void **state)
{
    const struct tarn_alloc_options options =
        options_of((struct tarn_alloc_options){.alignment = 4 * MIB});
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr address = SIM_BASE + 256 * MIB - SIM_BASE % (4 * MIB) + 2 * MIB;

    assert_int_equal(tarn_sim_script_alloc(rig.device, address), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
    rig_free(&rig,
             rig_alloc(&rig, 20 * MIB, 0)); /* there is room for its pointer, and for events */
    scarce_begin(rig.allocator);
    scarce_count--; /* but one */
    scarce_held[scarce_count].slab->live++;
    tn_block_destroy(scarce_held[scarce_count].node);
    tarn_host_fail_nth(1);
    const enum tarn_status st =
        tarn_alloc_with(rig.allocator, 10 * MIB, 0, &options, &ptr, &rig.error);

    tarn_host_fail_nth(0);
    scarce_end();
    assert_int_equal(st, TARN_ERR_HOST_MEMORY);
    assert_int_equal(ptr, 0);
    rig_check(&rig);
    assert_int_equal(tarn_alloc_with(rig.allocator, 10 * MIB, 0, &options, &ptr, &rig.error),
                     TARN_OK);
    assert_int_equal(ptr, address + 2 * MIB);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_takes_free_blocks_or_grows),
        cmocka_unit_test(a_try_stays_within_the_limits),
        cmocka_unit_test(a_try_of_a_pool_stays_within_its_limit),
        cmocka_unit_test(a_failed_try_leaves_no_trace),
        cmocka_unit_test(a_full_device_is_not_asked_each_time),
        cmocka_unit_test(a_limit_is_no_refusal),
        cmocka_unit_test(a_soft_limit_leaves_the_refusal),
        cmocka_unit_test(memory_given_back_ends_the_refusal),
        cmocka_unit_test(frees_of_other_streams_are_completed),
        cmocka_unit_test(blocks_have_the_alignment_asked_for),
        cmocka_unit_test(an_aligned_block_needs_room_for_two),
        cmocka_unit_test(an_alignment_takes_no_more_than_it_needs),
        cmocka_unit_test(an_alignment_needs_blocks_that_may_be_split),
        cmocka_unit_test(a_name_is_the_metadata_of_the_event),
        cmocka_unit_test(an_empty_name_is_no_metadata),
        cmocka_unit_test(a_pool_s_name_is_the_metadata_of_its_events),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(engines_without_a_cache_ask_the_device),
        cmocka_unit_test(an_explanation_is_the_message_of_a_failure),
        cmocka_unit_test(the_text_can_be_the_program_s_own),
        cmocka_unit_test(without_a_reader_no_report_is_made),
        cmocka_unit_test(every_failure_is_survived),
        cmocka_unit_test(a_refusal_outlasts_allocations),
        cmocka_unit_test(within_every_limit_a_refusal_is_the_device_s),
        cmocka_unit_test(only_a_full_device_is_a_refusal),
        cmocka_unit_test(a_try_leaves_oversize_blocks),
        cmocka_unit_test(a_request_with_options_runs_out_as_any),
        cmocka_unit_test(what_cannot_be_is_refused_by_name),
        cmocka_unit_test(nothing_has_the_address_zero),
        cmocka_unit_test(a_writer_needs_a_place_for_its_text),
        cmocka_unit_test(an_alignment_of_512_is_none),
        cmocka_unit_test(what_lies_well_needs_no_split_in_front),
        cmocka_unit_test(max_split_size_forbids_a_split_in_front),
        cmocka_unit_test(without_nodes_a_request_is_refused_or_served),
        cmocka_unit_test(requests_with_options_have_the_caller_s_stack),
        cmocka_unit_test(an_aligned_block_needs_two_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
