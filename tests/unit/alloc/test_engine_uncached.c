/* SPDX-License-Identifier: MIT */
/* No caching, and the caching engine switched off and on. */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/allocator.h"
#include "alloc/engine/direct_memory.h"
#include "support/sim.h"

#include <pthread.h>
#include <string.h>

static struct tarn_allocator *allocator_open(struct tarn_device *device, bool no_caching)
{
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    tarn_config_init(&config);
    config.no_caching = no_caching;
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
    return allocator;
}

static void expect_sound(struct tarn_allocator *allocator)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(allocator, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static tarn_ptr take(struct tarn_allocator *allocator, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_alloc(allocator, size, 1, &ptr, NULL), TARN_OK);
    assert_true(ptr != 0);
    return ptr;
}

static void give(struct tarn_allocator *allocator, tarn_ptr ptr)
{
    assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
    expect_sound(allocator);
}

static int64_t allocated_bytes(struct tarn_allocator *allocator)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(allocator, &stats);
    return stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].allocated;
}

static void oom_observer(void *context, const struct tarn_oom *oom)
{
    (void)oom;
    fail_msg("called with %p", context);
}

static bool memory_callback(void *context, struct tarn_allocator *allocator, uint64_t size,
                            tarn_stream stream)
{
    (void)context;
    (void)allocator;
    (void)size;
    (void)stream;
    return false;
}

static void every_block_is_the_devices(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, true);

    assert_string_equal(tarn_allocator_get_backend(allocator), "native"); /* as in PyTorch */
    tarn_ptr base = 0;
    uint64_t size = 0;
    uint64_t largest = 0;

    (void)state;
    const tarn_ptr a = take(allocator, 1000);
    assert_int_equal(sim_counters(device).used_bytes, 1000);
    assert_int_equal(sim_counters(device).live_allocations, 1);
    assert_int_equal(tarn_allocator_record_stream(allocator, a, 7, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_base_allocation(allocator, a, &base, &size, NULL), TARN_OK);
    assert_true(base == a && size == 1000);
    assert_int_equal(tarn_allocator_base_allocation(allocator, a, NULL, NULL, NULL), TARN_OK);
    size = 0;
    assert_int_equal(tarn_allocator_block_size(allocator, a, &size, NULL), TARN_OK);
    assert_int_equal(size, 1000);
    give(allocator, a);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_int_equal(allocated_bytes(allocator), 0);
    assert_int_equal(tarn_allocator_empty_cache(allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_cache_info(allocator, &largest, NULL), TARN_OK);
    assert_int_equal(largest, GIB);
    largest = 5;
    assert_int_equal(tarn_allocator_cache_info(allocator, &largest, NULL), TARN_OK);
    assert_int_equal(largest, 5);
    tarn_allocator_reset_peak_stats(allocator);
    tarn_allocator_reset_accumulated_stats(allocator);
    (void)take(allocator, 512); /* left to destroy */
    tarn_allocator_destroy(allocator);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    sim_close(device);
}

static void wrong_pointers_and_full_devices_are_told(void **state)
{
    struct tarn_device *device = sim_open(MIB);
    struct tarn_allocator *allocator = allocator_open(device, true);
    struct tarn_error error = {0};
    tarn_ptr ptr = 0;

    (void)state;
    const tarn_ptr a = take(allocator, 1000);
    give(allocator, a);
    assert_int_equal(tarn_allocator_free(allocator, a, &error), TARN_ERR_INVALID_POINTER);
    assert_string_equal(error.text,
                        "invalid device pointer: 0x7f0000000000 is not allocated here (never "
                        "allocated, freed already, or inside a block)");
    assert_int_equal(tarn_allocator_record_stream(allocator, a, 1, NULL), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_allocator_base_allocation(allocator, a, NULL, NULL, NULL),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_allocator_alloc(allocator, 2 * MIB, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_alloc(allocator, UINT64_MAX, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(error.text, "CUDA out of memory. Tried to allocate more than 1EB memory.");
    assert_int_equal(ptr, 0);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

static void look_begin(void *context)
{
    unsigned *steps = context;

    *steps = *steps * 10 + 1;
}

static bool look_end(void *context)
{
    unsigned *steps = context;

    *steps = *steps * 10 + 2;
    return true;
}

static void settings_are_kept_and_checkpoints_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, true);
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_walker walker = {0};
    const struct tarn_sink sink = {0};
    unsigned steps = 0;
    const struct tn_look look = {.context = &steps, .begin = look_begin, .end = look_end};
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_config config;
    bool live = false;

    (void)state;
    assert_true(tarn_allocator_get_limit(allocator) == TARN_SIZE_UNLIMITED);
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 0.5, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_get_limit(allocator), GIB / 2);
    give(allocator, take(allocator, GIB / 2 + 1)); /* not enforced */
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 1.0, NULL), TARN_OK);
    assert_true(tarn_allocator_get_limit(allocator) == TARN_SIZE_UNLIMITED);
    assert_int_equal(tarn_allocator_set_memory_fraction(allocator, 2.0, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    tarn_allocator_get_config(allocator, &config);
    config.max_split_size = 64 * MIB;
    assert_int_equal(tarn_allocator_set_config(allocator, &config, NULL), TARN_OK);
    config.no_caching = false;
    assert_int_equal(tarn_allocator_set_config(allocator, &config, NULL), TARN_ERR_CONFIG);
    tarn_allocator_get_config(allocator, &config);
    assert_true(config.no_caching);
    assert_int_equal(config.max_split_size, 64 * MIB);
    assert_false(tarn_allocator_is_enabled(allocator));
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_set_enabled(allocator, true, NULL), TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_walk(allocator, &walker), TARN_OK);
    assert_int_equal(tarn_allocator_add_sink(allocator, &sink, NULL), TARN_OK);
    /* There is nothing to record: a history of it is empty. */
    assert_int_equal(
        tarn_allocator_switch_sink(allocator, sink.context, false, TARN_CONTEXT_ALL, NULL),
        TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(allocator, sink.context, NULL), TARN_OK);
    const tarn_ptr ptr = take(allocator, 512);

    assert_int_equal(tarn_allocator_annotate(allocator, ptr, "text", NULL), TARN_OK);
    assert_int_equal(tarn_allocator_annotate(allocator, ptr + 1, "text", NULL),
                     TARN_ERR_INVALID_POINTER);
    give(allocator, ptr);
    tn_allocator_mark_snapshot(allocator);
    assert_int_equal(tn_allocator_look(allocator, NULL, &look, NULL), TARN_OK);
    assert_int_equal(steps, 12); /* it began, and then it ended */
    assert_int_equal(tarn_allocator_add_oom_observer(allocator, oom_observer, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_add_memory_callback(allocator, memory_callback, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_get_checkpoint(allocator, id, &checkpoint, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_checkpoint(allocator, checkpoint, &delta, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_check_pool_live(allocator, id, NULL, 0, &live, NULL),
                     TARN_ERR_NOT_SUPPORTED);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    (void)context;
    (void)size;
    (void)stream;
    fail_msg("a pool without a cache asks nobody for memory");
    return 0;
}

static void source_free(void *context, tarn_ptr ptr)
{
    (void)context;
    (void)ptr;
}

static void source_gone(void *context)
{
    ++*(int *)context;
}

/* As a torch.cuda.MemPool: made, used twice, its uses counted, released. */
static void pools_come_and_go(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tarn_allocator *allocator = allocator_open(device, true);
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_pool_id own = {0, 2};
    int gone = 0;
    const struct tarn_pool_source source = {.struct_size = sizeof source,
                                            .context = &gone,
                                            .alloc = source_alloc,
                                            .free = source_free,
                                            .gone = source_gone};

    (void)state;
    assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_set_pool_no_split(allocator, id, true), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_acquire_pool(allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_set_pool_no_split(allocator, id, true), TARN_OK);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(allocator, id, true), TARN_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tarn_allocator_begin_pool(allocator, id, any_stream, NULL, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_begin_pool(allocator, id, any_stream, NULL, NULL),
                         TARN_ERR_STATE);
        give(allocator, take(allocator, MIB));
        assert_int_equal(tarn_allocator_pool_use_count(allocator, id), 2);
        assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_OK);
    }
    assert_int_equal(tarn_allocator_pool_use_count(allocator, id), 1);
    assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_pool_use_count(allocator, id), 0);
    assert_int_equal(tarn_allocator_begin_pool(allocator, id, any_stream, NULL, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_OK); /* too early */
    assert_int_equal(tarn_allocator_acquire_pool(allocator, id, NULL), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_acquire_pool(allocator, id, NULL), TARN_OK); /* a new one */

    assert_int_equal(tarn_allocator_create_pool_from(allocator, own, &source, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create_pool_from(allocator, own, &source, NULL),
                     TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_begin_pool(allocator, own, any_stream, NULL, NULL), TARN_OK);
    give(allocator, take(allocator, MIB));
    assert_int_equal(tarn_allocator_end_pool(allocator, own, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(allocator, own, NULL), TARN_OK);
    assert_int_equal(gone, 0);
    assert_int_equal(tarn_allocator_release_pool(allocator, own, NULL), TARN_OK);
    assert_int_equal(gone, 1);
    assert_int_equal(tarn_allocator_begin_capture(allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_end_capture(allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_end_capture(allocator, NULL), TARN_ERR_STATE);
    expect_sound(allocator);
    tarn_allocator_destroy(allocator); /* with a pool that nobody released */
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    sim_close(device);
}

/* PyTorch looks at the variable in the caching allocator only. */
static void the_other_backend_wins(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    (void)state;
    assert_int_equal(tarn_config_parse("backend:cudaMallocAsync", &config, NULL), TARN_OK);
    config.no_caching = true;
    assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
    give(allocator, take(allocator, 1000));
    assert_int_equal(sim_counters(device).calls[TARN_SIM_POOL_ALLOC], 1);
    assert_int_equal(sim_counters(device).calls[TARN_SIM_ALLOC], 0);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

static void switched_off_the_cache_is_gone_round(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, false);
    struct tarn_error error = {0};
    tarn_ptr base = 0;
    tarn_ptr ptr = 0;
    uint64_t size = 0;

    (void)state;
    assert_true(tarn_allocator_is_enabled(allocator));
    const tarn_ptr cached = take(allocator, 1000);
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, NULL), TARN_OK);
    assert_false(tarn_allocator_is_enabled(allocator));
    const tarn_ptr plain = take(allocator, 1000);
    assert_int_equal(sim_counters(device).used_bytes, 2 * MIB + 1000);
    assert_int_equal(allocated_bytes(allocator), 1024);
    assert_int_equal(tarn_allocator_record_stream(allocator, plain, 2, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_base_allocation(allocator, plain, &base, &size, NULL), TARN_OK);
    assert_true(base == plain && size == 1000);
    assert_int_equal(tarn_allocator_base_allocation(allocator, cached, &base, &size, NULL),
                     TARN_OK);
    assert_int_equal(size, 2 * MIB);
    give(allocator, cached); /* to the cache */
    assert_int_equal(sim_counters(device).used_bytes, 2 * MIB + 1000);
    assert_int_equal(tarn_allocator_alloc(allocator, UINT64_MAX, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_set_enabled(allocator, true, NULL), TARN_OK);
    assert_true(take(allocator, 1000) == cached);
    give(allocator, plain); /* to the device, whatever holds now */
    assert_int_equal(sim_counters(device).used_bytes, 2 * MIB);
    assert_int_equal(tarn_allocator_free(allocator, plain, &error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, NULL), TARN_OK);
    (void)take(allocator, 77); /* left to destroy */
    tarn_allocator_destroy(allocator);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    sim_close(device);
}

static int64_t requested_in_all(struct tarn_allocator *allocator)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(allocator, &stats);
    return stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL].allocated;
}

/* test_cachingAllocator_raw_alloc: 1 MiB is not counted while the cache is switched off, and is
 * counted when it is on again. */
static void requests_count_only_while_switched_on(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, false);

    (void)state;
    for (int on = 0; on < 2; on++) {
        assert_int_equal(tarn_allocator_set_enabled(allocator, on, NULL), TARN_OK);
        const int64_t start = requested_in_all(allocator);
        const tarn_ptr ptr = take(allocator, MIB);

        assert_int_equal(requested_in_all(allocator) - start, on ? (int64_t)MIB : 0);
        give(allocator, ptr);
    }
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

/* Allocates and frees past the cache; true when nothing failed. */
static bool scenario(struct tarn_device *device, bool no_caching)
{
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;
    tarn_ptr ptr[20] = {0};
    bool good = true;

    tarn_config_init(&config);
    config.no_caching = no_caching;
    if (tarn_allocator_create(device, &config, &allocator, NULL) != TARN_OK) {
        return false;
    }
    if (!no_caching) {
        assert_int_equal(tarn_allocator_set_enabled(allocator, false, NULL), TARN_OK);
    }
    for (int i = 0; i < 20; i++) {
        good &= tarn_allocator_alloc(allocator, 100, 0, &ptr[i], NULL) == TARN_OK;
    }
    for (int i = 0; i < 20; i++) {
        if (tarn_allocator_free(allocator, ptr[i], NULL) != TARN_OK) {
            good = false;
            give(allocator, ptr[i]);
        }
    }
    expect_sound(allocator);
    tarn_allocator_destroy(allocator);
    return good;
}

static void nth_failure_leaks_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const bool host = kind % 2 != 0;
        struct tarn_device *device = sim_open(GIB);
        bool good = false;
        uint64_t n = 0;

        while (!good) {
            const struct tarn_host_usage before = tarn_host_get_usage();

            n++;
            tarn_host_fail_nth(host ? n : 0);
            tarn_sim_fail_nth(device, TARN_SIM_ANY, host ? 0 : n, TARN_ERR_DEVICE);
            good = scenario(device, kind < 2);
            tarn_host_fail_nth(0);
            assert_int_equal(sim_counters(device).used_bytes, 0);
            if (host) {
                assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
            }
        }
        assert_true(n > 3);
        sim_close(device);
    }
}

enum {
    THREADS = 4,
    ROUNDS = 1000
};

static void *thread_body(void *argument)
{
    struct tarn_allocator *allocator = argument;

    for (unsigned i = 0; i < ROUNDS; i++) {
        tarn_ptr ptr = 0;

        if (i % 10 == 0 && tarn_allocator_set_enabled(allocator, i % 20 == 0, NULL) &&
            tarn_allocator_is_enabled(allocator)) {
            return allocator;
        }
        if (tarn_allocator_alloc(allocator, 1000 + i, i % 2, &ptr, NULL) ||
            tarn_allocator_record_stream(allocator, ptr, i % 2, NULL) ||
            tarn_allocator_free(allocator, ptr, NULL)) {
            return allocator;
        }
    }
    return NULL;
}

static void threads_share_them(void **state)
{
    (void)state;
    for (int no_caching = 0; no_caching < 2; no_caching++) {
        struct tarn_device *device = sim_open(GIB);
        struct tarn_allocator *allocator = allocator_open(device, no_caching != 0);
        pthread_t thread[THREADS];

        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, thread_body, allocator), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            void *result = allocator;

            assert_int_equal(pthread_join(thread[i], &result), 0);
            assert_null(result);
        }
        expect_sound(allocator);
        tarn_allocator_destroy(allocator);
        assert_int_equal(sim_counters(device).used_bytes, 0);
        sim_close(device);
    }
}

/* The check counts every block, and says when one of the three counts is another. */
static void blocks_are_counted(void **state)
{
    enum {
        MANY = 300
    };
    struct tarn_device *device = sim_open(GIB);
    struct tn_direct_memory direct;
    tarn_ptr blocks[MANY];
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    tn_direct_memory_init(&direct, device);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(tn_direct_memory_alloc(&direct, 512, &blocks[i], NULL), TARN_OK);
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 0);
    }
    for (int difference = -1; difference <= 1; difference += 2) {
        atomic_fetch_add(&direct.count, (uint64_t)difference);
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 1);
        direct.sizes.count += (uint64_t)difference; /* both, but not the table */
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 1);
        atomic_fetch_sub(&direct.count, (uint64_t)difference);
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 1);
        direct.sizes.count -= (uint64_t)difference;
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 0);
    }
    assert_int_equal(findings.count, 6);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(tn_direct_memory_free(&direct, blocks[i], NULL), TARN_OK);
        assert_int_equal(tn_direct_memory_check(&direct, &findings), 0);
    }
    for (int i = 0; i < MANY; i++) { /* what is left goes back at the end */
        assert_int_equal(tn_direct_memory_alloc(&direct, 512, &blocks[i], NULL), TARN_OK);
    }
    tn_direct_memory_fini(&direct);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    sim_close(device);
}

/* Each failure has its status and says what failed; afterwards all is as it was. */
static void failures_say_what_failed(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, true);
    struct tarn_error error;
    tarn_ptr ptr = 7;

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_alloc(allocator, 512, 0, &ptr, &error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(error.status, TARN_ERR_HOST_MEMORY);
    tarn_sim_fail_nth(device, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(allocator, 512, 0, &ptr, &error), TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, "allocating memory on device 0 failed"));
    assert_int_equal(tarn_allocator_alloc(allocator, TN_MAX_REQUEST, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(error.text, "CUDA out of memory. Tried to allocate more than 1EB memory.");
    assert_int_equal(ptr, 7);
    ptr = take(allocator, 512);
    tarn_sim_fail_nth(device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_free(allocator, ptr, &error), TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, "freeing memory on device 0 failed"));
    expect_sound(allocator);
    give(allocator, ptr);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

/* The same of a cache that is switched off, whose checker looks at the device's blocks too. */
static void a_cache_that_is_off_refuses_the_same(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, false);
    struct tn_native_allocator *native = (struct tn_native_allocator *)(void *)allocator;
    struct tarn_error error;
    tarn_ptr ptr = 7;

    (void)state;
    assert_int_equal(tarn_allocator_set_enabled(allocator, false, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(allocator, TN_MAX_REQUEST, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(error.text, "CUDA out of memory. Tried to allocate more than 1EB memory.");
    assert_int_equal(ptr, 7);
    atomic_fetch_add(&native->direct.count, 1);
    assert_int_equal(tarn_allocator_check(allocator, NULL), 1);
    atomic_fetch_sub(&native->direct.count, 1);
    expect_sound(allocator);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

/* A lock of a table of allocators may be held around every call. */
static void their_lock_is_behind_those_of_tables(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_allocator *allocator = allocator_open(device, true);
    struct tn_lock table;

    (void)state;
    tn_lock_init(&table, TN_LOCK_DEVICES);
    tn_lock_acquire(&table);
    give(allocator, take(allocator, 512));
    tn_lock_release(&table);
    tn_lock_fini(&table);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_the_devices),
        cmocka_unit_test(wrong_pointers_and_full_devices_are_told),
        cmocka_unit_test(settings_are_kept_and_checkpoints_refused),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(the_other_backend_wins),
        cmocka_unit_test(requests_count_only_while_switched_on),
        cmocka_unit_test(switched_off_the_cache_is_gone_round),
        cmocka_unit_test(nth_failure_leaks_nothing),
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(failures_say_what_failed),
        cmocka_unit_test(a_cache_that_is_off_refuses_the_same),
        cmocka_unit_test(their_lock_is_behind_those_of_tables),
        cmocka_unit_test(threads_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
