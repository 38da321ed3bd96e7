/* SPDX-License-Identifier: MIT */
/*
 * Reserved bytes by private pool, through the public interface: what moves them, what a reset does,
 * and what stays of a pool that is gone. The numbers are worked out by hand: a segment of small
 * requests has 2 MiB, one of requests below 10 MiB has 20 MiB, a larger one its size.
 */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"
#include "tarn/pool.h"
#include "tarn/sleep.h"

static const struct tarn_pool_id graph = {0, 1};
static const struct tarn_pool_id other = {0, 2};

enum {
    SHOWN_MAX = 8
};

struct shown {
    struct tarn_pool_reserved pools[SHOWN_MAX];
    size_t count;
};

static struct shown shown_of(struct rig *rig)
{
    struct shown shown = {.count = 0};

    shown.count = tarn_allocator_get_pool_reserved(rig->allocator, shown.pools, SHOWN_MAX);
    assert_true(shown.count <= SHOWN_MAX);
    return shown;
}

static struct tarn_pool_reserved reserved_of(struct rig *rig, struct tarn_pool_id id)
{
    const struct shown shown = shown_of(rig);
    struct tarn_pool_reserved found = {.id = {0, 0}};

    for (size_t i = 0; i < shown.count; i++) {
        if (shown.pools[i].id.first == id.first && shown.pools[i].id.second == id.second) {
            found = shown.pools[i];
        }
    }
    assert_true(found.id.second == id.second);
    return found;
}

/* In MiB. */
static void stat_is(const struct tarn_stat *stat, int64_t current, int64_t peak, int64_t allocated,
                    int64_t freed)
{
    assert_int_equal(stat->current, current * (int64_t)MIB);
    assert_int_equal(stat->peak, peak * (int64_t)MIB);
    assert_int_equal(stat->allocated, allocated * (int64_t)MIB);
    assert_int_equal(stat->freed, freed * (int64_t)MIB);
}

static tarn_ptr alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, &rig->error),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, 0);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, &rig->error), TARN_OK);
    rig_check(rig);
    return ptr;
}

/* As often as alloc_in was called. */
static void release(struct rig *rig, struct tarn_pool_id id, int uses)
{
    for (int i = 0; i < uses; i++) {
        assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, &rig->error), TARN_OK);
    }
}

static void segments_move_the_counters_of_their_pool(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr outside = rig_alloc(&rig, 512, 0);

    assert_int_equal(shown_of(&rig).count, 0); /* the default pools are not private */
    const tarn_ptr small = alloc_in(&rig, graph, 512);
    const tarn_ptr large = alloc_in(&rig, graph, 30 * MIB);
    const tarn_ptr elsewhere = alloc_in(&rig, other, 3 * MIB);
    const struct shown shown = shown_of(&rig);

    assert_int_equal(shown.count, 2);
    assert_int_equal(shown.pools[0].id.second, graph.second); /* in order of creation */
    assert_false(shown.pools[0].is_gone);
    stat_is(&shown.pools[0].by_pool[TARN_STAT_ALL], 32, 32, 32, 0);
    stat_is(&shown.pools[0].by_pool[TARN_STAT_SMALL_POOL], 2, 2, 2, 0);
    stat_is(&shown.pools[0].by_pool[TARN_STAT_LARGE_POOL], 30, 30, 30, 0);
    stat_is(&shown.pools[1].by_pool[TARN_STAT_ALL], 20, 20, 20, 0);
    stat_is(&shown.pools[1].by_pool[TARN_STAT_SMALL_POOL], 0, 0, 0, 0);

    /* What a block serves without new memory, and its free, move nothing. */
    rig_free(&rig, large);
    rig_free(&rig, alloc_in(&rig, graph, 30 * MIB));
    struct tarn_pool_reserved now = reserved_of(&rig, graph);

    stat_is(&now.by_pool[TARN_STAT_ALL], 32, 32, 32, 0);

    /* Released, its free segment goes, and the pool stays for the other one. */
    release(&rig, graph, 3);
    rig_empty_cache(&rig);
    now = reserved_of(&rig, graph);
    assert_false(now.is_gone);
    stat_is(&now.by_pool[TARN_STAT_ALL], 2, 32, 32, 30);
    stat_is(&now.by_pool[TARN_STAT_LARGE_POOL], 0, 30, 30, 30);
    rig_free(&rig, small);
    rig_free(&rig, elsewhere);
    rig_free(&rig, outside);
    rig_close(&rig);
}

/* As c10/core/CachingDeviceAllocator.h says. */
static void counters_outlast_their_pool_until_they_are_reset(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, alloc_in(&rig, graph, 30 * MIB));
    release(&rig, graph, 1);
    rig_empty_cache(&rig);
    struct tarn_pool_reserved now = reserved_of(&rig, graph);

    assert_true(now.is_gone);
    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 30, 30, 30);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    now = reserved_of(&rig, graph);
    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 30, 0, 0);
    rig_check(&rig);

    /* The next pool with this id goes on with them. */
    rig_free(&rig, alloc_in(&rig, graph, 512));
    now = reserved_of(&rig, graph);
    assert_false(now.is_gone);
    stat_is(&now.by_pool[TARN_STAT_ALL], 2, 30, 2, 0);
    tarn_allocator_reset_peak_stats(rig.allocator);
    now = reserved_of(&rig, graph);
    stat_is(&now.by_pool[TARN_STAT_ALL], 2, 2, 2, 0);
    stat_is(&now.by_pool[TARN_STAT_LARGE_POOL], 0, 0, 0, 0);

    /* A reset in between: what was reserved then counts as freed later. */
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    release(&rig, graph, 1);
    rig_empty_cache(&rig);
    now = reserved_of(&rig, graph);
    assert_true(now.is_gone);
    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 2, 0, 2);
    tarn_allocator_reset_peak_stats(rig.allocator);
    now = reserved_of(&rig, graph);
    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 0, 0, 2);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    assert_int_equal(shown_of(&rig).count, 0);
    rig_close(&rig);
}

/* A process that makes pools for days does not grow. */
static void only_so_many_are_kept(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr kept = alloc_in(&rig, graph, 512);

    for (uint64_t i = 0; i < TARN_POOL_RESERVED_MAX + 10; i++) {
        const struct tarn_pool_id id = {1, i + 1};

        rig_free(&rig, alloc_in(&rig, id, 512));
        release(&rig, id, 1);
        rig_empty_cache(&rig);
    }
    rig_check(&rig);
    const size_t count = tarn_allocator_get_pool_reserved(rig.allocator, NULL, 0);
    struct tarn_pool_reserved *shown = calloc(count, sizeof *shown);

    assert_int_equal(count, TARN_POOL_RESERVED_MAX);
    assert_non_null(shown);
    assert_int_equal(tarn_allocator_get_pool_reserved(rig.allocator, shown, count), count);
    assert_int_equal(shown[0].id.second, graph.second); /* it exists */
    assert_int_equal(shown[1].id.second, 12);           /* ten and one went */
    assert_int_equal(shown[count - 1].id.second, TARN_POOL_RESERVED_MAX + 10);
    free(shown);
    rig_free(&rig, kept);
    rig_close(&rig);
}

/* The same of records alone: those of pools that exist stay, however old they are. */
static void the_oldest_without_a_pool_goes(void **state)
{
    static const struct tarn_pool_id living = {2, 1};
    static const struct tarn_pool_id oldest = {2, 2};
    struct tn_pool_records records = {0};
    static struct tn_private_pool pool; /* that all of them have */
    const uint64_t live = tarn_host_get_usage().live_bytes;

    (void)state;
    for (uint64_t i = 1; i <= TARN_POOL_RESERVED_MAX + 1; i++) {
        struct tn_pool_record *record =
            tn_pool_record_acquire(&records, (struct tarn_pool_id){2, i});

        assert_non_null(record);
        assert_int_equal(records.count, i);
        record->pool = &pool;
        tn_counter_increase(&record->reserved, TN_LARGE, 512);
        assert_true(i == 1 || tn_pool_record_find(&records, oldest));
        if (i > 1) {
            tn_pool_record_leave(&records, record);
        }
    }
    assert_int_equal(records.count, TARN_POOL_RESERVED_MAX);
    assert_non_null(tn_pool_record_find(&records, living));
    assert_null(tn_pool_record_find(&records, oldest));
    tn_pool_records_fini(&records);
    assert_int_equal(records.count, 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* A pool that never had memory leaves nothing, and one that exists is shown without any. */
static void pools_without_memory(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_acquire_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(shown_of(&rig).count, 1);
    tarn_allocator_reset_peak_stats(rig.allocator);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    const struct tarn_pool_reserved now = reserved_of(&rig, graph);

    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 0, 0, 0);
    release(&rig, graph, 1);
    rig_empty_cache(&rig);
    assert_int_equal(shown_of(&rig).count, 0);
    rig_close(&rig);
}

/* Records are removed from the front, the middle and the end, and found again. */
static void many_pools_come_and_go(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 1; i <= 5; i++) {
        rig_free(&rig, alloc_in(&rig, (struct tarn_pool_id){0, i}, i * 20 * MIB));
    }
    for (uint64_t i = 1; i <= 5; i += 2) {
        release(&rig, (struct tarn_pool_id){0, i}, 1);
    }
    rig_empty_cache(&rig);
    assert_int_equal(shown_of(&rig).count, 5);
    tarn_allocator_reset_peak_stats(rig.allocator);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    const struct shown shown = shown_of(&rig);

    assert_int_equal(shown.count, 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(shown.pools[i].id.second, 2 * i + 2);
        stat_is(&shown.pools[i].by_pool[TARN_STAT_ALL], (int64_t)i * 40 + 40, (int64_t)i * 40 + 40,
                0, 0);
    }
    rig_free(&rig, alloc_in(&rig, graph, 512));
    assert_int_equal(shown_of(&rig).count, 3);

    /* What there is no room for is counted and not written. */
    struct tarn_pool_reserved few[2] = {{.id = {0, 0}}, {.id = {7, 7}}};

    assert_int_equal(tarn_allocator_get_pool_reserved(rig.allocator, NULL, 0), 3);
    assert_int_equal(tarn_allocator_get_pool_reserved(rig.allocator, few, 1), 3);
    assert_int_equal(few[0].id.second, 2);
    assert_int_equal(few[1].id.first, 7);
    rig_close(&rig);
}

/* Pages of 2 MiB for small requests, of 20 MiB for others: they are mapped and unmapped. */
static void pages_move_the_counters_of_their_pool(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr small = alloc_in(&rig, graph, 512);

    rig_free(&rig, alloc_in(&rig, graph, 50 * MIB));
    struct tarn_pool_reserved now = reserved_of(&rig, graph);

    stat_is(&now.by_pool[TARN_STAT_ALL], 62, 62, 62, 0);
    stat_is(&now.by_pool[TARN_STAT_SMALL_POOL], 2, 2, 2, 0);
    stat_is(&now.by_pool[TARN_STAT_LARGE_POOL], 60, 60, 60, 0);
    release(&rig, graph, 2);
    rig_empty_cache(&rig);
    now = reserved_of(&rig, graph);
    stat_is(&now.by_pool[TARN_STAT_ALL], 2, 62, 62, 60);
    rig_free(&rig, small);
    rig_empty_cache(&rig);
    now = reserved_of(&rig, graph);
    assert_true(now.is_gone);
    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 62, 62, 62);
    rig_close(&rig);
}

/* Without device calls: whole free pages serve the default pools, and count for them. */
static void pages_that_move_to_others_leave_their_pool(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "policy:compact");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 40 * MIB, 0, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    const struct tarn_pool_id id = tarn_pool_get_id(pool);
    struct tarn_pool_reserved now = reserved_of(&rig, id);

    stat_is(&now.by_pool[TARN_STAT_ALL], 40, 40, 40, 0);
    ptr = rig_alloc(&rig, 60 * MIB, 0); /* all pages but two */
    rig_check(&rig);
    assert_int_equal(sim_counters(rig.device).used_bytes, rig_now(&rig, TARN_STAT_RESERVED_BYTES));
    now = reserved_of(&rig, id);
    assert_true(now.by_pool[TARN_STAT_ALL].current <= 4 * (int64_t)MIB);
    assert_int_equal(now.by_pool[TARN_STAT_ALL].peak, 40 * MIB);
    assert_int_equal(now.by_pool[TARN_STAT_ALL].freed,
                     40 * (int64_t)MIB - now.by_pool[TARN_STAT_ALL].current);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void memory_that_sleeps_is_not_reserved(void **state)
{
    const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr small = alloc_in(&rig, graph, 512);
    const tarn_ptr large = alloc_in(&rig, graph, 30 * MIB);

    assert_int_equal(tarn_allocator_sleep(rig.allocator, graph, &discard, &rig.error), TARN_OK);
    rig_check(&rig);
    struct tarn_pool_reserved now = reserved_of(&rig, graph);

    stat_is(&now.by_pool[TARN_STAT_ALL], 0, 32, 32, 32);
    assert_int_equal(tarn_allocator_wake(rig.allocator, graph, &rig.error), TARN_OK);
    rig_check(&rig);
    now = reserved_of(&rig, graph);
    stat_is(&now.by_pool[TARN_STAT_ALL], 32, 32, 64, 32);
    stat_is(&now.by_pool[TARN_STAT_SMALL_POOL], 2, 2, 4, 2);
    stat_is(&now.by_pool[TARN_STAT_LARGE_POOL], 30, 30, 60, 30);
    rig_free(&rig, small);
    rig_free(&rig, large);
    rig_close(&rig);
}

/* As PyTorch's cudaMallocAsync and its allocator without a cache, which count nothing here. */
static void engines_without_such_pools_show_nothing(void **state)
{
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        struct tarn_device *device = sim_open(GIB);
        struct rig rig = {.device = device};
        struct tarn_config config;

        tarn_config_init(&config);
        config.no_caching = !cached;
        config.backend = cached ? TARN_BACKEND_ASYNC : TARN_BACKEND_NATIVE;
        assert_int_equal(tarn_allocator_create(device, &config, &rig.allocator, NULL), TARN_OK);
        rig_free(&rig, alloc_in(&rig, graph, 3 * MIB));
        assert_int_equal(shown_of(&rig).count, 0);
        tarn_allocator_reset_peak_stats(rig.allocator);
        tarn_allocator_destroy(rig.allocator);
        sim_close(device);
    }
}

/* A pool that the host has no memory for: as it was, whether its id had one before or not. */
static void without_host_memory_nothing_changes(void **state)
{
    const struct tarn_pool_id ids[] = {graph, other};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, alloc_in(&rig, graph, 30 * MIB));
    release(&rig, graph, 1);
    rig_empty_cache(&rig);
    for (size_t i = 0; i < 2; i++) {
        const struct shown before = shown_of(&rig);
        enum tarn_status st = TARN_ERR_HOST_MEMORY;
        uint64_t failed = 0;

        for (uint64_t n = 1; st != TARN_OK; n++) {
            tarn_host_fail_nth(n);
            st = tarn_allocator_acquire_pool(rig.allocator, ids[i], &rig.error);
            tarn_host_fail_nth(0);
            rig_check(&rig);
            if (st) {
                const struct shown after = shown_of(&rig);

                assert_int_equal(st, TARN_ERR_HOST_MEMORY);
                assert_int_equal(after.count, before.count);
                assert_memory_equal(after.pools, before.pools, sizeof after.pools);
                failed++;
            }
        }
        assert_int_equal(failed, i == 0 ? 1 : 2); /* the pool, and the record of a new id */
        assert_false(reserved_of(&rig, ids[i]).is_gone);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_move_the_counters_of_their_pool),
        cmocka_unit_test(counters_outlast_their_pool_until_they_are_reset),
        cmocka_unit_test(only_so_many_are_kept),
        cmocka_unit_test(the_oldest_without_a_pool_goes),
        cmocka_unit_test(pools_without_memory),
        cmocka_unit_test(many_pools_come_and_go),
        cmocka_unit_test(pages_move_the_counters_of_their_pool),
        cmocka_unit_test(pages_that_move_to_others_leave_their_pool),
        cmocka_unit_test(memory_that_sleeps_is_not_reserved),
        cmocka_unit_test(engines_without_such_pools_show_nothing),
        cmocka_unit_test(without_host_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
