/* SPDX-License-Identifier: MIT */
/* Pools as handles: kept apart, limited, given back by priority, and no capture is assumed. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/draw.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pages.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"
#include "tarn/sleep.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static const char *const settings[] = {"", "expandable_segments:True", "policy:compact",
                                       "rules:2.14"};

#define SETTINGS (sizeof settings / sizeof settings[0])

static struct tarn_pool *pool_open(struct rig *rig, struct tarn_pool_options options)
{
    struct tarn_pool *pool = NULL;

    options.struct_size = sizeof options;
    if (tarn_pool_create(rig->allocator, &options, &pool, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
    return pool;
}

static tarn_ptr pool_alloc(struct rig *rig, struct tarn_pool *pool, uint64_t size,
                           tarn_stream stream)
{
    tarn_ptr ptr = 0;

    if (tarn_pool_alloc(pool, size, stream, &ptr, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
    return ptr;
}

static void pool_alloc_oom(struct rig *rig, struct tarn_pool *pool, uint64_t size)
{
    tarn_ptr ptr = 0x123;

    assert_int_equal(tarn_pool_alloc(pool, size, 0, &ptr, &rig->error), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(ptr, 0x123);
    rig_check(rig);
}

static struct tarn_pool_stats pool_stats(struct tarn_pool *pool)
{
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    return stats;
}

/* ---- apart ---- */

static void free_memory_of_a_pool_serves_only_its_own_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *a = pool_open(&rig, (struct tarn_pool_options){.name = "a"});
        struct tarn_pool *b = pool_open(&rig, (struct tarn_pool_options){.name = "b"});
        const tarn_ptr of_a = pool_alloc(&rig, a, 30 * MIB, 0);

        rig_free(&rig, of_a);
        const tarn_ptr of_b = pool_alloc(&rig, b, 30 * MIB, 0);
        const tarn_ptr of_all = rig_alloc(&rig, 30 * MIB, 0);

        assert_int_not_equal(of_b, of_a);
        assert_int_not_equal(of_all, of_a);
        assert_int_equal(pool_alloc(&rig, a, 30 * MIB, 0), of_a);
        assert_int_equal(pool_stats(a).allocated, 30 * MIB);
        assert_int_equal(pool_stats(b).allocated, 30 * MIB);
        rig_free(&rig, of_a);
        rig_free(&rig, of_b);
        rig_free(&rig, of_all);
        tarn_pool_destroy(a);
        tarn_pool_destroy(b);
        rig_close(&rig);
    }
}

/* ---- the same decisions ---- */

static tarn_ptr routed_alloc(struct rig *rig, struct tarn_pool_id id, uint64_t size,
                             tarn_stream stream)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, stream);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, NULL), TARN_OK);
    return ptr;
}

static tarn_ptr handle_alloc(struct tarn_pool *pool, uint64_t size, tarn_stream stream, bool tries)
{
    tarn_ptr ptr = 0;

    if (!tries || tarn_pool_alloc_try(pool, size, stream, TARN_ALLOC_NEVER_GROW, &ptr) != TARN_OK) {
        assert_int_equal(tarn_pool_alloc(pool, size, stream, &ptr, NULL), TARN_OK);
    }
    return ptr;
}

enum {
    SAME_POOLS = 2
};

/* One call at random, without a look at counters in between, which would end the postponed work of
 * the fast path: the same for both, from one of the pools or not. */
static void same_call(struct rig *rigs, struct tarn_pool *pools[2][SAME_POOLS], uint64_t *seed,
                      tarn_ptr *live)
{
    static const uint64_t sizes[] = {512, 4096, MIB, 3 * MIB, 12 * MIB, 30 * MIB};
    const uint64_t size = sizes[draw(seed) % 6];
    const tarn_stream stream = draw(seed) % 2 * 7;
    tarn_ptr *slot = &live[draw(seed) % (draw(seed) % 4 == 0 ? 64 : 3)];

    if (*slot) {
        rig_free(&rigs[0], *slot);
        rig_free(&rigs[1], *slot);
        *slot = 0;
    } else if (draw(seed) % 2 == 0) {
        *slot = rig_alloc(&rigs[0], size, stream);
        assert_int_equal(rig_alloc(&rigs[1], size, stream), *slot);
    } else {
        const unsigned p = draw(seed) % SAME_POOLS;

        *slot = routed_alloc(&rigs[0], tarn_pool_get_id(pools[0][p]), size, stream);
        assert_int_equal(handle_alloc(pools[1][p], size, stream, draw(seed) % 2 == 0), *slot);
    }
}

/* A request to a handle finds the block that a routed one finds. */
static void a_handle_decides_as_a_route(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* the exact policy */
        uint64_t seed = i;
        struct rig rigs[2];
        struct tarn_pool *pools[2][SAME_POOLS];
        tarn_ptr live[64] = {0};

        for (int k = 0; k < 2; k++) {
            rig_open(&rigs[k], 8 * GIB, settings[i]);
            for (int p = 0; p < SAME_POOLS; p++) {
                pools[k][p] = pool_open(&rigs[k], (struct tarn_pool_options){0});
            }
        }
        for (int step = 0; step < 20000; step++) {
            same_call(rigs, pools, &seed, live);
        }
        struct tarn_stats stats[2] = {{.struct_size = sizeof stats[0]},
                                      {.struct_size = sizeof stats[0]}};

        tarn_allocator_get_stats(rigs[0].allocator, &stats[0]);
        tarn_allocator_get_stats(rigs[1].allocator, &stats[1]);
        assert_memory_equal(&stats[0], &stats[1], sizeof stats[0]);
        for (int k = 0; k < 2; k++) {
            for (size_t n = 0; n < sizeof live / sizeof live[0]; n++) {
                rig_free(&rigs[k], live[n]);
            }
            for (int p = 0; p < SAME_POOLS; p++) {
                tarn_pool_destroy(pools[k][p]);
            }
        }
        tarn_allocator_destroy(rigs[0].allocator);
        sim_close(rigs[0].device);
        rigs[1].host_bytes = rigs[0].host_bytes;
        rig_close(&rigs[1]);
    }
}

static bool is_stream_7(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 7;
}

/* 900 MiB are cached on stream 0 in pieces; a request of 500 MiB needs them given back. */
static void leave_900_mib(struct rig *rig)
{
    tarn_ptr ptrs[9];

    for (int i = 0; i < 9; i++) {
        ptrs[i] = rig_alloc(rig, 100 * MIB, 0);
    }
    for (int i = 0; i < 9; i++) {
        rig_free(rig, ptrs[i]);
    }
}

static void a_pool_in_use_does_not_keep_the_cache_of_other_streams(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    leave_900_mib(&rig);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, is_stream_7, NULL, NULL),
                     TARN_OK);
    rig_alloc_oom(&rig, 500 * MIB, 0); /* a route may be a capture's */
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);

    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.name = "seven"});
    const tarn_ptr seven = pool_alloc(&rig, pool, 4 * MIB, 7);

    rig_free(&rig, rig_alloc(&rig, 500 * MIB, 0));
    rig_free(&rig, seven);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void blocks_that_other_streams_use_are_not_deferred(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
    const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 1);

    rig_record(&rig, ptr, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, ptr);
    assert_int_equal(pool_stats(pool).active, 30 * MIB);
    assert_int_equal(pool_stats(pool).allocated, 0);
    assert_int_not_equal(pool_alloc(&rig, pool, 30 * MIB, 1), ptr);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 2), TARN_OK);
    assert_int_equal(pool_alloc(&rig, pool, 30 * MIB, 1), ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* ---- what is known ---- */

static void a_pool_has_counters_a_name_and_an_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *pool =
            pool_open(&rig, (struct tarn_pool_options){.name = "kv cache", .priority = 3});
        const tarn_ptr first = pool_alloc(&rig, pool, 30 * MIB, 0);
        const tarn_ptr second = pool_alloc(&rig, pool, 1000, 5);

        rig_free(&rig, first);
        const struct tarn_pool_stats stats = pool_stats(pool);

        assert_int_equal(stats.priority, 3);
        assert_true(stats.limit == TARN_SIZE_UNLIMITED);
        assert_int_equal(stats.allocated, 1024);
        assert_int_equal(stats.active, 1024);
        assert_int_equal(stats.requested, 1000);
        assert_int_equal(stats.blocks, 1);
        assert_int_equal(stats.segments, 2);
        assert_int_equal(stats.reserved, rig_now(&rig, TARN_STAT_RESERVED_BYTES));
        assert_int_equal(stats.reserved_peak, stats.reserved);
        assert_string_equal(tarn_pool_get_name(pool), "kv cache");
        assert_ptr_equal(tarn_pool_get_allocator(pool), rig.allocator);

        struct rig_totals totals = {0};
        const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

        assert_int_equal(tarn_allocator_walk_pool(rig.allocator, tarn_pool_get_id(pool), &walker),
                         TARN_OK);
        assert_int_equal(totals.segments, 2);
        rig_free(&rig, second);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void an_older_program_gets_fewer_counters(void **state)
{
    struct tarn_pool_stats stats;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    memset(&stats, 0xA5, sizeof stats);
    stats.struct_size = offsetof(struct tarn_pool_stats, allocated);
    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    assert_int_equal(stats.reserved, 0);
    assert_int_equal(((const unsigned char *)&stats.allocated)[0], 0xA5);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* ---- limits ---- */

static void a_pool_at_its_limit_gives_its_own_memory_back_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 100 * MIB});
        tarn_ptr ptr = pool_alloc(&rig, pool, 40 * MIB, 0);
        const tarn_ptr kept = rig_alloc(&rig, 40 * MIB, 0);

        rig_free(&rig, kept); /* cached: not the pool's to give back */
        pool_alloc_oom(&rig, pool, 70 * MIB);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 40 * MIB);
        rig_free(&rig, ptr);
        ptr = pool_alloc(&rig, pool, 90 * MIB, 0);
        assert_true(pool_stats(pool).reserved <= 100 * MIB);
        pool_alloc_oom(&rig, pool, 101 * MIB);
        rig_free(&rig, rig_alloc(&rig, 500 * MIB, 0)); /* others may */
        assert_int_equal(tarn_pool_set_limit(pool, 0, &rig.error), TARN_OK);
        rig_free(&rig, pool_alloc(&rig, pool, 101 * MIB, 0));
        rig_free(&rig, ptr);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* What a pool has free goes first; only if that is not enough it waits for other streams. */
static void trimming_a_pool_waits_only_if_needed(void **state)
{
    uint64_t reserved = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.pages_stay = true});
    const tarn_ptr used = pool_alloc(&rig, pool, 30 * MIB, 0);

    rig_free(&rig, pool_alloc(&rig, pool, 100 * MIB, 0));
    rig_record(&rig, used, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, used);
    assert_int_equal(tarn_pool_trim(pool, 30 * MIB, &reserved, &rig.error), TARN_OK);
    assert_int_equal(reserved, 30 * MIB);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    assert_int_equal(tarn_pool_trim(pool, 0, &reserved, &rig.error), TARN_OK);
    assert_int_equal(reserved, 0);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 1);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void trimming_a_pool_leaves_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        uint64_t reserved = 0;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *a = pool_open(&rig, (struct tarn_pool_options){.pages_stay = true});
        struct tarn_pool *b = pool_open(&rig, (struct tarn_pool_options){.pages_stay = true});
        const tarn_ptr of_a = pool_alloc(&rig, a, 40 * MIB, 0);
        const tarn_ptr more_of_a = pool_alloc(&rig, a, 60 * MIB, 0);

        rig_free(&rig, pool_alloc(&rig, b, 40 * MIB, 0));
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
        rig_free(&rig, more_of_a);
        assert_int_equal(tarn_pool_trim(a, 100 * MIB, &reserved, &rig.error), TARN_OK);
        assert_int_equal(reserved, 100 * MIB);
        assert_int_equal(tarn_pool_trim(a, 0, &reserved, &rig.error), TARN_OK);
        assert_int_equal(reserved, 40 * MIB);
        assert_int_equal(pool_stats(b).reserved, 40 * MIB);
        rig_check(&rig);
        rig_free(&rig, of_a);
        tarn_pool_destroy(a);
        tarn_pool_destroy(b);
        rig_close(&rig);
    }
}

/* ---- short of memory ---- */

static void pools_give_back_by_priority(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *low =
            pool_open(&rig, (struct tarn_pool_options){.priority = -5, .pages_stay = true});
        struct tarn_pool *same = pool_open(&rig, (struct tarn_pool_options){.pages_stay = true});
        struct tarn_pool *high =
            pool_open(&rig, (struct tarn_pool_options){.priority = 5, .pages_stay = true});

        rig_free(&rig, pool_alloc(&rig, low, 200 * MIB, 0));
        rig_free(&rig, pool_alloc(&rig, same, 200 * MIB, 0));
        rig_free(&rig, pool_alloc(&rig, high, 200 * MIB, 0));
        const tarn_ptr first = rig_alloc(&rig, 600 * MIB, 0);

        assert_int_equal(pool_stats(low).reserved, 0);
        assert_int_equal(pool_stats(same).reserved, 200 * MIB);
        const tarn_ptr second = rig_alloc(&rig, 200 * MIB, 0);

        assert_int_equal(pool_stats(same).reserved, 0);
        rig_alloc_oom(&rig, 100 * MIB, 0);
        pool_alloc_oom(&rig, low, 100 * MIB);
        assert_int_equal(pool_stats(high).reserved, 200 * MIB);
        pool_alloc_oom(&rig, high, 300 * MIB); /* but its own is its own */
        assert_int_equal(pool_stats(high).reserved, 0);
        rig_free(&rig, first);
        pool_alloc_oom(&rig, low, 900 * MIB);
        rig_free(&rig, pool_alloc(&rig, high, 800 * MIB, 0)); /* takes the default pools' cache */
        rig_free(&rig, second);
        tarn_pool_destroy(low);
        tarn_pool_destroy(same);
        tarn_pool_destroy(high);
        rig_close(&rig);
    }
}

static void the_cache_of_pools_is_emptied_with_all(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.priority = 5});

    rig_free(&rig, pool_alloc(&rig, pool, 200 * MIB, 0));
    rig_empty_cache(&rig);
    assert_int_equal(pool_stats(pool).reserved, 0);
    rig_free(&rig, pool_alloc(&rig, pool, 200 * MIB, 0));
    assert_int_equal(tarn_allocator_trim(rig.allocator, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(pool_stats(pool).reserved, 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A graph may know the addresses. */
static void memory_of_a_pool_that_was_routed_to_stays(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
    const struct tarn_pool_id id = tarn_pool_get_id(pool);

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, is_stream_7, NULL, NULL),
                     TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 200 * MIB, 7));
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    assert_int_equal(pool_stats(pool).reserved, 200 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(pool_stats(pool).reserved, 200 * MIB);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    tarn_pool_destroy(pool);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

/* ---- the end ---- */

static void blocks_outlive_their_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
        const tarn_ptr kept = pool_alloc(&rig, pool, 40 * MIB, 0);

        rig_free(&rig, pool_alloc(&rig, pool, 100 * MIB, 0));
        tarn_pool_destroy(pool);
        rig_check(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 40 * MIB);
        rig_free(&rig, kept);
        rig_empty_cache(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
        rig_close(&rig);
    }
    tarn_pool_destroy(NULL);
}

/* What a pool that is gone had cached is anybody's, however high its priority was. */
static void the_cache_of_a_pool_that_is_gone_goes_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, 128 * MIB, settings[i]);
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.priority = 5});
        const tarn_ptr kept = pool_alloc(&rig, pool, 60 * MIB, 0);

        tarn_pool_destroy(pool);
        rig_free(&rig, kept);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
        rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
        rig_close(&rig);
    }
}

/* As torch.cuda.MemPool(use_on_oom=True): before a request fails for want of memory, it is served
 * from the pool. */
static void a_pool_may_serve_others_before_they_fail(void **state)
{
    (void)state;
    for (int use = 0; use < 2; use++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, 128 * MIB, "");
        struct tarn_pool *pool =
            pool_open(&rig, (struct tarn_pool_options){.priority = 5, .use_on_oom = use});
        const tarn_ptr first = pool_alloc(&rig, pool, 100 * MIB, 0);

        rig_free(&rig, first);
        const enum tarn_status st =
            tarn_allocator_alloc(rig.allocator, 100 * MIB, 0, &ptr, &rig.error);

        assert_int_equal(st, use ? TARN_OK : TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(ptr, use ? first : 0);
        rig_free(&rig, ptr);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* ---- events ---- */

/* Stacks that a sink has given out and not had back, and the stack of the last event. */
struct stacks {
    int64_t out;
    uint64_t given;
    uint64_t last;
};

static uint64_t stack_capture(void *context, enum tarn_context_level level)
{
    struct stacks *stacks = context;

    (void)level;
    stacks->out++;
    return ++stacks->given;
}

static void stack_receive(void *context, const struct tarn_trace_event *event)
{
    ((struct stacks *)context)->last = event->stack;
}

static void stack_retain(void *context, uint64_t stack)
{
    (void)stack;
    ((struct stacks *)context)->out++;
}

static void stack_release(void *context, uint64_t stack)
{
    (void)stack;
    ((struct stacks *)context)->out--;
}

/* Events of a pool's blocks have the stacks of the calls that they come from, and a call is done
 * with its stack when it returns. */
static void calls_have_stacks(void **state)
{
    struct stacks stacks = {0};
    const struct tarn_sink sink = {.context = &stacks,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = stack_capture,
                                   .receive = stack_receive,
                                   .retain = stack_retain,
                                   .release = stack_release};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    for (int i = 0; i < 3; i++) {
        const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 0);

        assert_int_equal(stacks.last, stacks.given);
        assert_int_equal(stacks.given, 2 * i + 1);
        if (i == 1) {
            rig_record(&rig, ptr, 3);
        }
        rig_free(&rig, ptr);
        assert_int_equal(stacks.last, stacks.given);
        assert_int_equal(stacks.given, 2 * i + 2);
    }
    assert_int_equal(stacks.out, 1); /* the segment's */
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(stacks.out, 0);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(stacks.out, 0);
    assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error), TARN_OK);
    assert_int_equal(stacks.out, 0);
    tarn_pool_destroy(pool);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &stacks, &rig.error), TARN_OK);
    rig_close(&rig);
}

/* Somebody else released the pool by its id. */
static void a_handle_outlives_its_id(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    assert_int_equal(tarn_allocator_release_pool(rig.allocator, tarn_pool_get_id(pool), &rig.error),
                     TARN_OK);
    rig_empty_cache(&rig);
    rig_free(&rig, pool_alloc(&rig, pool, 30 * MIB, 0));
    tarn_pool_destroy(pool);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

/* ---- a source ---- */

struct source {
    struct tarn_device *device;
    int gone;
};

static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    const struct source *source = context;
    tarn_ptr ptr = 0;

    (void)stream;
    return source->device->ops->alloc(source->device, size, &ptr) ? 0 : ptr;
}

static void source_free(void *context, tarn_ptr ptr)
{
    const struct source *source = context;

    assert_int_equal(source->device->ops->free(source->device, ptr), TARN_OK);
}

static void source_gone(void *context)
{
    ((struct source *)context)->gone++;
}

static void segments_come_from_the_pool_s_source(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    struct source source = {.device = rig.device};
    const struct tarn_pool_source from = {sizeof from, &source, source_alloc, source_free,
                                          source_gone};
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.source = &from});

    rig_free(&rig, pool_alloc(&rig, pool, 30 * MIB, 0));
    assert_int_equal(rig_totals(&rig).expandable, 0);
    assert_int_equal(source.gone, 0);
    tarn_pool_destroy(pool);
    assert_int_equal(source.gone, 1);
    rig_close(&rig);
}

/* ---- refused ---- */

static void options_are_checked(void **state)
{
    static const char long_name[] =
        "a name of a pool that is so long that nobody would want to read it in any report";
    const struct tarn_pool_source nothing = {.struct_size = sizeof nothing};
    const struct {
        struct tarn_pool_options options;
        enum tarn_status status;
    } wrong[] = {
        {{.struct_size = 0}, TARN_ERR_INVALID_ARGUMENT},
        {{.struct_size = sizeof(struct tarn_pool_options), .name = long_name}, TARN_ERR_LIMIT},
        {{.struct_size = sizeof(struct tarn_pool_options), .source = &nothing},
         TARN_ERR_INVALID_ARGUMENT},
    };
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tarn_pool_create(rig.allocator, &wrong[i].options, &pool, &rig.error),
                         wrong[i].status);
        assert_null(pool);
    }
    char name[TARN_POOL_NAME_MAX + 1];
    char text[80];
    struct tarn_pool_options options = {.struct_size = sizeof options, .name = name};

    memset(name, 'n', sizeof name);
    name[TARN_POOL_NAME_MAX] = '\0'; /* a byte too long */
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_ERR_LIMIT);
    (void)snprintf(text, sizeof text, "the name of a pool is longer than %d bytes",
                   TARN_POOL_NAME_MAX - 1);
    assert_string_equal(rig.error.text, text);
    name[TARN_POOL_NAME_MAX - 1] = '\0';
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_string_equal(tarn_pool_get_name(pool), name);
    tarn_pool_destroy(pool);
    pool = NULL;
    for (uint64_t n = 1; !pool; n++) { /* the handle, the pool, its record */
        tarn_host_fail_nth(n);
        const enum tarn_status st = tarn_pool_create(rig.allocator, NULL, &pool, &rig.error);

        tarn_host_fail_nth(0);
        assert_int_equal(st, pool ? TARN_OK : TARN_ERR_HOST_MEMORY);
        assert_true(pool ? n > 2 : n < 10);
        rig_check(&rig);
    }
    assert_string_equal(tarn_pool_get_name(pool), "");
    tarn_ptr ptr = 7;

    assert_int_equal(tarn_pool_alloc(pool, 0, 0, &ptr, &rig.error), TARN_OK);
    assert_int_equal(ptr, 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The cache that can be switched off is that of the default pools. */
static void pools_serve_while_the_cache_is_off(void **state)
{
    struct tarn_alloc_options options = {.struct_size = sizeof options};
    struct tarn_block block = {.struct_size = sizeof block};
    tarn_ptr ptrs[3] = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 4 * MIB});

    options.pool = pool;
    assert_int_equal(tarn_allocator_set_enabled(rig.allocator, false, NULL), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 4096, 0, &ptrs[0], NULL), TARN_OK);
    assert_int_equal(tarn_pool_alloc_try(pool, 4096, 0, 0, &ptrs[1]), TARN_OK);
    assert_int_equal(tarn_alloc_with(rig.allocator, 4096, 0, &options, &ptrs[2], NULL), TARN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tarn_allocator_find_block(rig.allocator, ptrs[i], &block, NULL), TARN_OK);
        assert_int_equal(block.pool.second, tarn_pool_get_id(pool).second);
        rig_free(&rig, ptrs[i]);
    }
    assert_int_equal(tarn_pool_alloc_try(pool, 8 * MIB, 0, 0, &ptrs[0]), TARN_ERR_OUT_OF_MEMORY);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void counters_need_their_size(void **state)
{
    struct tarn_pool_stats stats = {.struct_size = 0};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_ERR_INVALID_ARGUMENT);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void other_engines_have_no_pools(void **state)
{
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_string_equal(rig.error.text,
                        "a pool needs the caching allocator, not the engine cudaMallocAsync");
    rig_close(&rig);
}

/* ---- failing ---- */

/* A pool's life with one failure somewhere; what failed works the second time. */
static bool live_with_failure(const char *conf, uint64_t host_nth, enum tarn_sim_call call,
                              uint64_t device_nth)
{
    struct tarn_pool *pool = NULL;
    struct tarn_error error;
    tarn_ptr ptrs[4] = {0};
    bool failed = false;
    struct rig rig;

    rig_open(&rig, 256 * MIB, conf);
    tarn_host_fail_nth(host_nth);
    tarn_sim_fail_nth(rig.device, call, device_nth, TARN_ERR_DEVICE);
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 128 * MIB};

    for (int i = 0; !pool && i < 2; i++) {
        failed = tarn_pool_create(rig.allocator, &options, &pool, &error) != TARN_OK || failed;
    }
    assert_non_null(pool);
    for (int i = 0; i < 4; i++) {
        const uint64_t size = ((uint64_t)i * 20 + 1) * MIB / 2;

        for (int again = 0; !ptrs[i] && again < 2; again++) {
            failed = tarn_pool_alloc(pool, size, 0, &ptrs[i], &error) != TARN_OK || failed;
            rig_check(&rig);
        }
        assert_int_not_equal(ptrs[i], 0);
    }
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, ptrs[i]);
    }
    failed = tarn_pool_trim(pool, 0, NULL, &error) != TARN_OK || failed;
    rig_check(&rig);
    tarn_pool_destroy(pool);
    tarn_host_fail_nth(0);
    tarn_sim_fail_nth(rig.device, call, 0, TARN_OK);
    rig_close(&rig);
    return failed;
}

static void every_failure_is_survived(void **state)
{
    static const enum tarn_sim_call calls[] = {
        TARN_SIM_ALLOC,      TARN_SIM_FREE, TARN_SIM_STREAM_WAIT, TARN_SIM_VA_RESERVE,
        TARN_SIM_VA_RELEASE, TARN_SIM_MAP,  TARN_SIM_UNMAP,       TARN_SIM_PAGE_CREATE,
    };
    uint64_t failures = 0;

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (uint64_t n = 1; n < 40; n++) {
            failures += live_with_failure(settings[i], n, TARN_SIM_ANY, 0);
        }
        for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
            for (uint64_t n = 1; n < 6; n++) {
                failures += live_with_failure(settings[i], 0, calls[k], n);
            }
        }
    }
    assert_true(failures > 40);
}

/* ---- threads ---- */

struct worker {
    struct rig *rig;
    struct tarn_pool *pool;
    tarn_stream stream;
    int failures;
};

static void *work(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < 2000; i++) {
        tarn_ptr ptrs[2] = {0};
        const uint64_t size = (uint64_t)(i % 7 + 1) * 300 * KIB;

        worker->failures +=
            tarn_pool_alloc(worker->pool, size, worker->stream, &ptrs[0], NULL) != TARN_OK;
        worker->failures += tarn_allocator_alloc(worker->rig->allocator, size, worker->stream,
                                                 &ptrs[1], NULL) != TARN_OK;
        for (int k = 0; k < 2; k++) {
            worker->failures +=
                tarn_allocator_free(worker->rig->allocator, ptrs[k], NULL) != TARN_OK;
        }
    }
    return NULL;
}

static void threads_share_pools(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct worker workers[4];
        pthread_t threads[4];
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *pools[2] = {pool_open(&rig, (struct tarn_pool_options){0}),
                                      pool_open(&rig, (struct tarn_pool_options){0})};

        for (unsigned t = 0; t < 4; t++) {
            workers[t] = (struct worker){&rig, pools[t % 2], t / 2, 0};
            assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
        }
        for (int t = 0; t < 4; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_int_equal(workers[t].failures, 0);
        }
        assert_int_equal(pool_stats(pools[0]).blocks, 0);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 0);
        tarn_pool_destroy(pools[0]);
        tarn_pool_destroy(pools[1]);
        rig_close(&rig);
    }
}

/* ---- pages that move ---- */

static void open_backed(struct rig *rig)
{
    rig_open_with(rig, (struct tarn_sim_options){.capacity = GIB, .backed = true},
                  "policy:compact");
}

static uint64_t reserved(struct rig *rig)
{
    return (uint64_t)rig_now(rig, TARN_STAT_RESERVED_BYTES);
}

static uint64_t moved(struct rig *rig)
{
    return rig_engine(rig->allocator)->compact.pages_moved;
}

static unsigned char *memory_of(struct rig *rig, tarn_ptr ptr, uint64_t size)
{
    unsigned char *memory = tarn_sim_host_memory(rig->device, ptr, size);

    assert_non_null(memory);
    return memory;
}

static void check_contents(struct rig *rig, tarn_ptr ptr, uint64_t size, unsigned char value)
{
    const unsigned char *memory = memory_of(rig, ptr, size);

    assert_int_equal(memory[0], value);
    assert_memory_equal(memory, memory + 1, size - 1);
}

enum {
    HELD = 5
};

/* Every other block of a pool is freed, and its pages serve the default pools, and come back. */
static void free_pages_of_a_pool_move_beside_blocks_with_contents(void **state)
{
    const uint64_t size = 7 * MIB;
    tarn_ptr ptrs[HELD];
    struct rig rig;

    (void)state;
    open_backed(&rig);
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    for (int i = 0; i < HELD; i++) {
        ptrs[i] = pool_alloc(&rig, pool, size, 0);
        memset(memory_of(&rig, ptrs[i], size), i + 1, size);
    }
    const uint64_t before = reserved(&rig);

    rig_free(&rig, ptrs[1]);
    rig_free(&rig, ptrs[3]);
    const tarn_ptr outside = rig_alloc(&rig, 10 * MIB, 0);

    memset(memory_of(&rig, outside, 10 * MIB), 77, 10 * MIB);
    assert_int_equal(moved(&rig), 5);
    assert_int_equal(reserved(&rig), before);
    assert_int_equal(pool_stats(pool).reserved, before - 10 * MIB);
    rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0)); /* pages for the pool */
    ptrs[1] = pool_alloc(&rig, pool, size, 0);
    ptrs[3] = pool_alloc(&rig, pool, size, 0);
    memset(memory_of(&rig, ptrs[1], size), 2, size);
    memset(memory_of(&rig, ptrs[3], size), 4, size);
    assert_true(moved(&rig) > 5);
    check_contents(&rig, outside, 10 * MIB, 77);
    for (int i = 0; i < HELD; i++) {
        check_contents(&rig, ptrs[i], size, (unsigned char)(i + 1));
    }
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void pages_of_a_pool_stay_if_its_user_needs_them(void **state)
{
    struct rig rig;

    (void)state;
    open_backed(&rig);
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.pages_stay = true});
    const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 0);

    memset(memory_of(&rig, ptr, 30 * MIB), 9, 30 * MIB);
    rig_free(&rig, ptr);
    const tarn_ptr outside = rig_alloc(&rig, 40 * MIB, 0);

    memset(memory_of(&rig, outside, 40 * MIB), 77, 40 * MIB);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 70 * MIB);
    assert_int_equal(pool_alloc(&rig, pool, 30 * MIB, 0), ptr);
    check_contents(&rig, ptr, 30 * MIB, 9); /* the same physical memory */
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Free blocks serve a capture like any request, and a graph then knows their addresses. */
static void pages_stay_once_a_capture_has_used_them(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,rules:2.14");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
    const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 1);

    rig_free(&rig, ptr);
    assert_int_equal(tarn_sim_set_capturing(rig.device, 1, true), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(rig.device, 1, 1), TARN_OK); /* there is a node */
    assert_int_equal(pool_alloc(&rig, pool, 30 * MIB, 1), ptr);
    assert_int_equal(tarn_sim_set_capturing(rig.device, 1, false), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(reserved(&rig), 70 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Also if the driver does not say whether there is a capture. */
static void pages_stay_where_a_capture_is_possible(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact,rules:2.14");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    tarn_sim_fail_nth(rig.device, TARN_SIM_CAPTURE_INFO, 1, TARN_ERR_DEVICE);
    const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 1);

    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static bool no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

/* A capture of other streams is not the pool's: its pages move afterwards. */
static void pages_move_after_a_capture_of_others(void **state)
{
    const struct tarn_pool_id graph = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, graph, no_stream, NULL, &rig.error),
                     TARN_OK);
    const tarn_ptr ptr = pool_alloc(&rig, pool, 30 * MIB, 1);

    assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_true(moved(&rig) > 0);
    assert_int_equal(reserved(&rig), 40 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Only the compact policy needs to know. */
static void the_exact_policy_does_not_ask_for_captures(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});

    rig_free(&rig, pool_alloc(&rig, pool, 30 * MIB, 1));
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_CAPTURE_INFO], 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Its free blocks have no memory. */
static void nothing_is_allocated_from_a_sleeping_pool(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) { /* plain segments cannot sleep */
        struct rig rig;
        tarn_ptr ptr = 0x123;

        rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true},
                      settings[i]);
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
        const struct tarn_pool_id id = tarn_pool_get_id(pool);
        const tarn_ptr one = pool_alloc(&rig, pool, 30 * MIB, 0);
        const tarn_ptr other = pool_alloc(&rig, pool, 30 * MIB, 0);

        assert_int_equal(tarn_allocator_sleep(rig.allocator, id, NULL, &rig.error), TARN_OK);
        rig_free(&rig, one);
        assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 0, &ptr, &rig.error), TARN_ERR_STATE);
        assert_int_equal(tarn_pool_alloc_try(pool, 30 * MIB, 0, 0, &ptr), TARN_ERR_STATE);
        assert_int_equal(ptr, 0x123);
        assert_int_equal(tarn_allocator_wake(rig.allocator, id, &rig.error), TARN_OK);
        rig_free(&rig, pool_alloc(&rig, pool, 30 * MIB, 0));
        rig_free(&rig, other);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* An older program does not know of the option. */
static void pages_move_unless_the_option_is_given(void **state)
{
    struct tarn_pool_options options = {.pages_stay = true};
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    options.struct_size = offsetof(struct tarn_pool_options, pages_stay);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    rig_free(&rig, pool_alloc(&rig, pool, 30 * MIB, 0));
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(reserved(&rig), 40 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void pages_move_to_requests_of_the_same_or_a_higher_priority(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *low = pool_open(&rig, (struct tarn_pool_options){.priority = -5});
    struct tarn_pool *high = pool_open(&rig, (struct tarn_pool_options){.priority = 5});

    rig_free(&rig, pool_alloc(&rig, high, 20 * MIB, 0));
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_equal(pool_stats(high).reserved, 20 * MIB);
    rig_free(&rig, ptr);
    rig_free(&rig, pool_alloc(&rig, low, 40 * MIB, 0));
    assert_int_equal(reserved(&rig), 90 * MIB);
    (void)pool_alloc(&rig, high, 60 * MIB, 0); /* its own, then those of the lowest priority */
    assert_int_equal(pool_stats(low).reserved, 0);
    assert_int_equal(pool_stats(high).reserved, 60 * MIB);
    assert_int_equal(reserved(&rig), 90 * MIB);
    (void)pool_alloc(&rig, high, 30 * MIB, 0);
    assert_int_equal(reserved(&rig), 90 * MIB);
    tarn_pool_destroy(low);
    tarn_pool_destroy(high);
    rig_close(&rig);
}

/* At the limit, too. */
static void pages_of_a_higher_priority_are_not_had_by_waiting(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, "policy:compact");
    struct tarn_pool *high = pool_open(&rig, (struct tarn_pool_options){.priority = 5});

    rig_free(&rig, pool_alloc(&rig, high, 60 * MIB, 1));
    rig_alloc_oom(&rig, 60 * MIB, 0);
    assert_int_equal(pool_stats(high).reserved, 60 * MIB);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
    rig_free(&rig, pool_alloc(&rig, high, 90 * MIB, 1));
    tarn_pool_destroy(high);
    rig_close(&rig);
}

/* Every other of `count` blocks of 4 MiB is freed again. */
static void leave_gaps(struct rig *rig, struct tarn_pool *pool, tarn_ptr *ptrs, int count)
{
    for (int i = 0; i < count; i++) {
        ptrs[i] = pool_alloc(rig, pool, 4 * MIB, 1);
    }
    for (int i = 0; i < count; i += 2) {
        rig_free(rig, ptrs[i]);
    }
}

/* Within the limit, without a call that gives memory back or waits for the device. */
static void a_pool_at_its_limit_moves_its_own_pages(void **state)
{
    tarn_ptr ptrs[10];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool =
        pool_open(&rig, (struct tarn_pool_options){.limit = 40 * MIB, .priority = 5});

    leave_gaps(&rig, pool, ptrs, 10);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 1)); /* others' pages would exceed the limit */
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    const int64_t waits = rig_stats(&rig).num_sync_all_streams;

    (void)pool_alloc(&rig, pool, 20 * MIB, 1);
    assert_int_equal(pool_stats(pool).reserved, 40 * MIB);
    assert_int_equal(pool_stats(pool).reserved_peak, 40 * MIB);
    assert_int_equal(reserved(&rig), 80 * MIB);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    assert_int_equal(rig_stats(&rig).num_sync_all_streams, waits);
    pool_alloc_oom(&rig, pool, 2 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Pages of its small requests serve large ones, too. */
static void a_pool_at_its_limit_moves_small_and_large_pages(void **state)
{
    tarn_ptr small[2];
    tarn_ptr large[8];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 34 * MIB});

    for (int i = 0; i < 2; i++) {
        small[i] = pool_alloc(&rig, pool, MIB, 1);
    }
    leave_gaps(&rig, pool, large, 8);
    rig_free(&rig, small[0]);
    rig_free(&rig, small[1]);
    assert_int_equal(pool_stats(pool).reserved, 34 * MIB);
    assert_int_equal(tarn_pool_alloc_try(pool, 18 * MIB, 1, 0, &ptr), TARN_OK);
    assert_int_equal(moved(&rig), 9);
    assert_int_equal(pool_stats(pool).reserved, 34 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A device that fails meanwhile is reported: other ways to the pages are not tried then. */
static void a_failure_at_a_pools_limit_is_reported(void **state)
{
    tarn_ptr ptrs[10];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 40 * MIB});

    leave_gaps(&rig, pool, ptrs, 10);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 2, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 1, &ptr, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(moved(&rig), 0);
    rig_check(&rig);
    (void)pool_alloc(&rig, pool, 20 * MIB, 1);
    assert_int_equal(moved(&rig), 10);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Another stream waits for them on the device, and nobody on the host. */
static void a_pool_at_its_limit_has_streams_wait_for_each_other(void **state)
{
    tarn_ptr ptrs[10];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 40 * MIB});

    leave_gaps(&rig, pool, ptrs, 10);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)pool_alloc(&rig, pool, 20 * MIB, 2);
    assert_int_equal(moved(&rig), 10);
    assert_int_equal(reserved(&rig), 40 * MIB);
    assert_int_equal(sim_counters(rig.device).forced_unblocks, 0);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A request that cannot be served leaves the pool's free pages in it. */
static void a_request_beyond_a_pools_limit_moves_nothing(void **state)
{
    tarn_ptr ptrs[10];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.limit = 40 * MIB});

    leave_gaps(&rig, pool, ptrs, 10);
    assert_int_equal(tarn_pool_alloc_try(pool, 22 * MIB, 1, 0, &ptr), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(pool_stats(pool).reserved, 40 * MIB);
    assert_int_equal(tarn_pool_alloc_try(pool, 20 * MIB, 1, 0, &ptr), TARN_OK);
    assert_int_equal(moved(&rig), 10);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A request as large as the limit needs all of the pool's memory, and that of no other. */
static void a_request_of_the_whole_limit_takes_only_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        struct tarn_pool *low =
            pool_open(&rig, (struct tarn_pool_options){.priority = -1, .pages_stay = true});
        struct tarn_pool *pool =
            pool_open(&rig, (struct tarn_pool_options){.limit = 60 * MIB, .pages_stay = true});

        rig_free(&rig, pool_alloc(&rig, low, 20 * MIB, 0));
        rig_free(&rig, pool_alloc(&rig, pool, 60 * MIB, 1));
        rig_free(&rig, pool_alloc(&rig, pool, 60 * MIB, 0));
        assert_int_equal(pool_stats(pool).reserved, 60 * MIB);
        assert_int_equal(pool_stats(low).reserved, 20 * MIB);
        tarn_pool_destroy(low);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

/* A request that failed leaves nothing that keeps its pool. */
static void a_pool_goes_after_a_request_that_failed(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct rig rig;

        rig_open(&rig, 128 * MIB, settings[i]);
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){0});
        const tarn_ptr most = rig_alloc(&rig, 60 * MIB, 0);

        pool_alloc_oom(&rig, pool, 100 * MIB);
        tarn_pool_destroy(pool);
        rig_free(&rig, most);
        rig_empty_cache(&rig);
        assert_null(rig_engine(rig.allocator)->heap.private_pools.first);
        rig_close(&rig);
    }
}

/* Free memory of graphs that are gone: of as many as it takes. Their pages do not move. */
static void memory_of_graphs_that_are_gone_serves_others(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 101}, {0, 102}};

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (int failing = 0; failing < 2; failing++) {
            struct rig rig;
            tarn_ptr ptr = 0;

            rig_open(&rig, 128 * MIB, settings[i]);
            for (size_t k = 0; k < 2; k++) {
                assert_int_equal(
                    tarn_allocator_begin_pool(rig.allocator, ids[k], any_stream, NULL, NULL),
                    TARN_OK);
                rig_free(&rig, rig_alloc(&rig, 60 * MIB, 1));
                assert_int_equal(tarn_allocator_end_pool(rig.allocator, ids[k], NULL), TARN_OK);
                assert_int_equal(tarn_allocator_release_pool(rig.allocator, ids[k], NULL), TARN_OK);
            }
            if (failing) {
                tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
                tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
                assert_int_equal(
                    tarn_allocator_alloc(rig.allocator, 100 * MIB, 1, &ptr, &rig.error),
                    TARN_ERR_DEVICE);
                rig_check(&rig);
                tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 0, TARN_OK);
                tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 0, TARN_OK);
            }
            rig_free(&rig, rig_alloc(&rig, 100 * MIB, 1));
            rig_close(&rig);
        }
    }
}

/* A graph that is gone and had no memory is no reason to wait. */
static void a_graph_without_memory_is_not_waited_for(void **state)
{
    const struct tarn_pool_id id = {0, 101};
    int64_t waits[2];

    (void)state;
    for (int with = 0; with < 2; with++) {
        struct rig rig;

        rig_open(&rig, 128 * MIB, "policy:compact");
        if (with) {
            assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL),
                             TARN_OK);
            assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
            assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
        }
        const tarn_ptr most = rig_alloc(&rig, 60 * MIB, 1);

        rig_alloc_oom(&rig, 100 * MIB, 1);
        rig_free(&rig, most);
        waits[with] = rig_stats(&rig).num_sync_all_streams;
        rig_close(&rig);
    }
    assert_int_equal(waits[0], waits[1]);
}

/* The device does not take back what is cached for another stream. */
static void a_failing_flush_ends_the_request(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 1));
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 100 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    rig_check(&rig);
    rig_free(&rig, rig_alloc(&rig, 100 * MIB, 0));
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
    rig_close(&rig);
}

/* Borrowing needs a list of the stream's blocks, for which there may be no memory. */
static void without_host_memory_nothing_is_borrowed(void **state)
{
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_ERR_OUT_OF_MEMORY; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, 128 * MIB, "");
        struct tarn_pool *pool = pool_open(&rig, (struct tarn_pool_options){.use_on_oom = true});
        const tarn_ptr most = rig_alloc(&rig, 100 * MIB, 0);
        const tarn_ptr first = rig_alloc(&rig, 12 * MIB, 5); /* all that the stream itself needs */

        rig_free(&rig, first);
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        st = tarn_allocator_alloc(rig.allocator, 60 * MIB, 5, &ptr, NULL);
        tarn_host_fail_nth(0);
        assert_int_equal(st, tarn_host_get_usage().alloc_calls - calls >= n
                                 ? TARN_ERR_HOST_MEMORY
                                 : TARN_ERR_OUT_OF_MEMORY);
        failures += st == TARN_ERR_HOST_MEMORY;
        rig_check(&rig);
        rig_free(&rig, most);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
    assert_true(failures > 0);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct tarn_page_stats page_stats(struct rig *rig)
{
    struct tarn_page_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_page_stats(rig->allocator, &stats);
    return stats;
}

static bool free_when_missed(void *context, struct tarn_allocator *allocator, uint64_t size,
                             tarn_stream stream)
{
    (void)size;
    (void)stream;
    assert_int_equal(tarn_allocator_free(allocator, *(tarn_ptr *)context, NULL), TARN_OK);
    return true;
}

/* Those that took pages, and those that failed; how long they took is no more than it can be. */
static void requests_that_need_pages_are_measured(void **state)
{
    const uint64_t begin_ns = clock_ns();
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "policy:compact");
    tarn_ptr ptr = rig_alloc(&rig, 60 * MIB, 0);

    assert_int_equal(page_stats(&rig).requests, 1);
    rig_free(&rig, ptr);
    assert_int_equal(rig_alloc(&rig, 60 * MIB, 0), ptr);
    assert_int_equal(page_stats(&rig).requests, 1); /* it was free */
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, 60 * MIB, &rig.error), TARN_OK);
    const uint64_t created = page_stats(&rig).created;

    rig_alloc_oom(&rig, 60 * MIB, 0);
    assert_int_equal(page_stats(&rig).created, created);
    assert_int_equal(page_stats(&rig).requests, 2);
    assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, free_when_missed, &ptr),
                     TARN_OK);
    assert_int_equal(rig_alloc(&rig, 60 * MIB, 0), ptr);
    const struct tarn_page_stats stats = page_stats(&rig);

    assert_int_equal(stats.requests, 2); /* it was made free */
    assert_true(stats.longest_ns > 0 && stats.longest_ns <= stats.request_ns);
    assert_true(stats.request_ns <= clock_ns() - begin_ns);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* Of a pool with a source of its own: its segments are no pages, and stay. */
static void segments_of_a_source_are_no_pages(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "policy:compact");
    struct source source = {.device = rig.device};
    const struct tarn_pool_source from = {sizeof from, &source, source_alloc, source_free,
                                          source_gone};
    struct tarn_pool *pool =
        pool_open(&rig, (struct tarn_pool_options){.source = &from, .priority = -1});
    struct tarn_pool *asking = pool_open(&rig, (struct tarn_pool_options){.priority = 1});

    rig_free(&rig, pool_alloc(&rig, pool, 60 * MIB, 0));
    rig_free(&rig, pool_alloc(&rig, asking, 100 * MIB, 0));
    assert_int_equal(pool_stats(pool).reserved, 0);
    tarn_pool_destroy(pool);
    tarn_pool_destroy(asking);
    rig_close(&rig);
}

static bool is_no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

/* A full device is asked again only after something went back to it: where nothing can, as often as
 * in a capture, in which nothing may, and once after completing frees. */
static void a_full_device_is_not_asked_in_vain(void **state)
{
    const struct tarn_pool_id id = {0, 101};
    uint64_t refusals[2];

    (void)state;
    for (int captured = 0; captured < 2; captured++) {
        struct rig rig;

        rig_open(&rig, 64 * MIB, "policy:compact");
        const tarn_ptr most = rig_alloc(&rig, 64 * MIB, 0);

        if (captured) {
            assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, is_no_stream, NULL, NULL),
                             TARN_OK);
        }
        const uint64_t before = sim_counters(rig.device).calls[TARN_SIM_PAGE_CREATE];

        rig_alloc_oom(&rig, 2 * MIB, 0);
        refusals[captured] = sim_counters(rig.device).calls[TARN_SIM_PAGE_CREATE] - before;
        if (captured) {
            assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
        }
        rig_free(&rig, most);
        rig_close(&rig);
    }
    assert_true(refusals[0] > 0);
    assert_true(refusals[0] <= refusals[1] + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_of_a_pool_serves_only_its_own_requests),
        cmocka_unit_test(a_handle_decides_as_a_route),
        cmocka_unit_test(a_pool_in_use_does_not_keep_the_cache_of_other_streams),
        cmocka_unit_test(blocks_that_other_streams_use_are_not_deferred),
        cmocka_unit_test(a_pool_has_counters_a_name_and_an_id),
        cmocka_unit_test(an_older_program_gets_fewer_counters),
        cmocka_unit_test(a_pool_at_its_limit_gives_its_own_memory_back_first),
        cmocka_unit_test(trimming_a_pool_leaves_the_others),
        cmocka_unit_test(trimming_a_pool_waits_only_if_needed),
        cmocka_unit_test(pools_give_back_by_priority),
        cmocka_unit_test(the_cache_of_pools_is_emptied_with_all),
        cmocka_unit_test(memory_of_a_pool_that_was_routed_to_stays),
        cmocka_unit_test(blocks_outlive_their_pool),
        cmocka_unit_test(the_cache_of_a_pool_that_is_gone_goes_first),
        cmocka_unit_test(a_pool_may_serve_others_before_they_fail),
        cmocka_unit_test(calls_have_stacks),
        cmocka_unit_test(a_handle_outlives_its_id),
        cmocka_unit_test(segments_come_from_the_pool_s_source),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(pools_serve_while_the_cache_is_off),
        cmocka_unit_test(counters_need_their_size),
        cmocka_unit_test(other_engines_have_no_pools),
        cmocka_unit_test(free_pages_of_a_pool_move_beside_blocks_with_contents),
        cmocka_unit_test(pages_of_a_pool_stay_if_its_user_needs_them),
        cmocka_unit_test(pages_move_unless_the_option_is_given),
        cmocka_unit_test(pages_stay_once_a_capture_has_used_them),
        cmocka_unit_test(pages_stay_where_a_capture_is_possible),
        cmocka_unit_test(pages_move_after_a_capture_of_others),
        cmocka_unit_test(the_exact_policy_does_not_ask_for_captures),
        cmocka_unit_test(a_pool_at_its_limit_moves_its_own_pages),
        cmocka_unit_test(a_pool_at_its_limit_moves_small_and_large_pages),
        cmocka_unit_test(a_failure_at_a_pools_limit_is_reported),
        cmocka_unit_test(a_pool_at_its_limit_has_streams_wait_for_each_other),
        cmocka_unit_test(a_request_beyond_a_pools_limit_moves_nothing),
        cmocka_unit_test(nothing_is_allocated_from_a_sleeping_pool),
        cmocka_unit_test(pages_move_to_requests_of_the_same_or_a_higher_priority),
        cmocka_unit_test(pages_of_a_higher_priority_are_not_had_by_waiting),
        cmocka_unit_test(every_failure_is_survived),
        cmocka_unit_test(threads_share_pools),
        cmocka_unit_test(a_request_of_the_whole_limit_takes_only_its_own),
        cmocka_unit_test(a_pool_goes_after_a_request_that_failed),
        cmocka_unit_test(memory_of_graphs_that_are_gone_serves_others),
        cmocka_unit_test(a_graph_without_memory_is_not_waited_for),
        cmocka_unit_test(a_failing_flush_ends_the_request),
        cmocka_unit_test(without_host_memory_nothing_is_borrowed),
        cmocka_unit_test(requests_that_need_pages_are_measured),
        cmocka_unit_test(segments_of_a_source_are_no_pages),
        cmocka_unit_test(a_full_device_is_not_asked_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
