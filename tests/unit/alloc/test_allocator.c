/* SPDX-License-Identifier: MIT */
/* The public interface: what single calls promise. Names in comments are PyTorch's tests. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/child.h"
#include "support/rig.h"

#include <stdio.h>

static void stat_is(const struct tarn_stat *stat, int64_t current, int64_t peak, int64_t allocated,
                    int64_t freed)
{
    assert_int_equal(stat->current, current);
    assert_int_equal(stat->peak, peak);
    assert_int_equal(stat->allocated, allocated);
    assert_int_equal(stat->freed, freed);
}

static bool same_stats(struct rig *rig, const struct tarn_stats *before)
{
    const struct tarn_stats now = rig_stats(rig);

    /* Both were zeroed as a whole before they were filled. */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    return memcmp(&now, before, sizeof now) == 0;
}

static void size_zero_is_pointer_zero(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(rig_alloc(&rig, 0, 0), 0);
    rig_free(&rig, 0);
    rig_record(&rig, 0, 5);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_ALLOC], 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 0);
    rig_close(&rig);
}

/* test_memory_allocation, test_memory_stats, test_cachingAllocator_raw_alloc */
static void counters_follow_one_block(void **state)
{
    struct rig rig;
    struct tarn_stats stats;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 1000, 0);

    stats = rig_stats(&rig);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 1024, 1024, 1024, 0);
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_SMALL_POOL], 1024, 1024, 1024, 0);
    stat_is(&stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL], 1000, 1000, 1000, 0);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 1, 1, 1, 0);
    stat_is(&stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_SMALL_POOL], (int64_t)(2 * MIB),
            (int64_t)(2 * MIB), (int64_t)(2 * MIB), 0);
    stat_is(&stats.by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL], 1, 1, 1, 0);
    stat_is(&stats.by_pool[TARN_STAT_INACTIVE_SPLIT_BYTES][TARN_STAT_ALL],
            (int64_t)(2 * MIB) - 1024, (int64_t)(2 * MIB) - 1024, (int64_t)(2 * MIB) - 1024, 0);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_LARGE_POOL], 0, 0, 0, 0);
    rig_free(&rig, ptr);
    stats = rig_stats(&rig);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 0, 1024, 1024, 1024);
    stat_is(&stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL], 0, 1000, 1000, 1000);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 1, 1, 1, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].current, 0);
    rig_empty_cache(&rig);
    stats = rig_stats(&rig);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 0, 1, 1, 1);
    assert_int_equal(stats.num_device_alloc, 1);
    assert_int_equal(stats.num_device_free, 1);
    assert_int_equal(stats.num_sync_all_streams, 1);
    rig_close(&rig);
}

static void a_freed_block_is_the_next_one_handed_out(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 512, 0);
    const tarn_ptr b = rig_alloc(&rig, 512, 0);

    assert_int_equal(b, a + 512);
    rig_free(&rig, a);
    assert_int_equal(rig_alloc(&rig, 100, 0), a);
    assert_int_not_equal(rig_alloc(&rig, 100, 1), b + 512); /* memory belongs to its stream */
    assert_int_equal(rig_totals(&rig).segments, 2);
    rig_close(&rig);
}

static void pointer_is_refused(struct rig *rig, tarn_ptr ptr)
{
    const struct tarn_stats before = rig_stats(rig);
    char text[200];
    tarn_ptr base = 1;
    uint64_t size = 1;

    (void)snprintf(text, sizeof text, "invalid device pointer: 0x%llx ", (unsigned long long)ptr);
    assert_int_equal(tarn_allocator_free(rig->allocator, ptr, &rig->error),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(rig->error.status, TARN_ERR_INVALID_POINTER);
    assert_non_null(strstr(rig->error.text, text));
    assert_int_equal(tarn_allocator_record_stream(rig->allocator, ptr, 1, &rig->error),
                     TARN_ERR_INVALID_POINTER);
    assert_non_null(strstr(rig->error.text, text));
    assert_int_equal(tarn_allocator_base_allocation(rig->allocator, ptr, &base, &size, &rig->error),
                     TARN_ERR_INVALID_POINTER);
    assert_non_null(strstr(rig->error.text, text));
    assert_int_equal(base, 1);
    assert_int_equal(size, 1);
    assert_int_equal(tarn_allocator_free(rig->allocator, ptr, NULL), TARN_ERR_INVALID_POINTER);
    assert_true(same_stats(rig, &before));
    rig_check(rig);
}

static void pointers_that_are_not_handed_out_are_named(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    pointer_is_refused(&rig, 0xdead0000);
    const tarn_ptr a = rig_alloc(&rig, 5 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 5 * MIB, 0);

    pointer_is_refused(&rig, a + 512);     /* inside a block */
    pointer_is_refused(&rig, a + 1);       /* not even aligned */
    pointer_is_refused(&rig, b + 5 * MIB); /* a free block */
    pointer_is_refused(&rig, UINT64_MAX);
    rig_free(&rig, a);
    pointer_is_refused(&rig, a); /* freed already */
    rig_empty_cache(&rig);
    pointer_is_refused(&rig, a);
    rig_free(&rig, b);
    rig_empty_cache(&rig);
    pointer_is_refused(&rig, b);
    rig_close(&rig);
}

static void a_waiting_block_is_not_handed_out(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 512, 0);

    rig_record(&rig, a, 3);
    rig_free(&rig, a);
    pointer_is_refused(&rig, a);
    rig_close(&rig);
}

static void two_allocators_share_a_device(void **state)
{
    struct tarn_device *device = sim_open(64 * MIB);
    struct tarn_allocator *one = NULL;
    struct tarn_allocator *two = NULL;
    tarn_ptr a = 0;
    tarn_ptr b = 0;
    tarn_ptr none = 0;

    (void)state;
    assert_int_equal(tarn_allocator_create(device, NULL, &one, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(device, NULL, &two, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(one, 30 * MIB, 0, &a, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(two, 30 * MIB, 0, &b, NULL), TARN_OK);
    assert_true(a + 30 * MIB <= b || b + 30 * MIB <= a);
    /* One does not know the other's blocks. */
    assert_int_equal(tarn_allocator_free(one, b, NULL), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_allocator_alloc(one, 30 * MIB, 0, &none, NULL), TARN_ERR_OUT_OF_MEMORY);
    /* What the other caches is not to be had either, until it gives it back. */
    assert_int_equal(tarn_allocator_free(two, b, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(one, 30 * MIB, 0, &none, NULL), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_empty_cache(two, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(one, 30 * MIB, 0, &none, NULL), TARN_OK);
    tarn_allocator_destroy(two);
    assert_int_equal(sim_counters(device).used_bytes, 60 * MIB);
    tarn_allocator_destroy(one);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    sim_close(device);
}

/* rig_close checks that nothing is left. */
static void destroying_gives_live_blocks_back(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        const struct tarn_pool_id id = {0, 1};

        rig_open_manual(&rig, GIB, confs[i]);
        for (uint64_t k = 1; k < 40; k++) {
            const tarn_ptr ptr = rig_alloc(&rig, k * 300 * KIB, k % 3);

            if (k % 4 == 0) {
                rig_record(&rig, ptr, 7);
            }
            if (k % 2 == 0) {
                rig_free(&rig, ptr);
            }
        }
        assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, &rig.error),
                         TARN_OK);
        (void)rig_alloc(&rig, 30 * MIB, 0);
        const tarn_ptr deferred = rig_alloc(&rig, 30 * MIB, 0);

        rig_record(&rig, deferred, 9);
        rig_free(&rig, deferred);
        rig_close(&rig);
    }
    tarn_allocator_destroy(NULL);
}

static void base_allocation_is_the_segment(void **state)
{
    struct rig rig;
    tarn_ptr base = 0;
    uint64_t size = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 3 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 4 * MIB, 0);

    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, b, &base, &size, NULL), TARN_OK);
    assert_int_equal(base, a);
    assert_int_equal(size, 20 * MIB);
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, a, NULL, NULL, NULL), TARN_OK);
    rig_close(&rig);
    /* Of a expandable segment it is the whole range: 9/8 of the device, in pages. */
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr c = rig_alloc(&rig, 3 * MIB, 0);

    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, c, &base, &size, NULL), TARN_OK);
    assert_int_equal(base, c);
    assert_int_equal(size, 1160 * MIB); /* 1152 MiB, to a multiple of 20 */
    rig_close(&rig);
}

static void block_size_is_what_was_allocated(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True",
                                           "roundup_power2_divisions:4"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig rig;
        uint64_t size = 0;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr small = rig_alloc(&rig, 1000, 0);
        const tarn_ptr large = rig_alloc(&rig, 3 * MIB + 1, 0);

        assert_int_equal(tarn_allocator_block_size(rig.allocator, small, &size, NULL), TARN_OK);
        assert_int_equal(size, 1024);
        assert_int_equal(tarn_allocator_block_size(rig.allocator, large, &size, NULL), TARN_OK);
        assert_int_equal(size, i == 2 ? 3 * MIB + MIB / 2 : 3 * MIB + 512);
        rig_free(&rig, small);
        for (tarn_ptr wrong = small; wrong <= small + 512; wrong += 512) { /* freed, and inside */
            assert_int_equal(tarn_allocator_block_size(rig.allocator, wrong, &size, &rig.error),
                             TARN_ERR_INVALID_POINTER);
        }
        rig_close(&rig);
    }
}

static void cache_info_is_the_largest_free_block(void **state)
{
    struct rig rig;
    uint64_t largest = 1;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    const tarn_ptr a = rig_alloc(&rig, 100 * MIB, 0);

    (void)rig_alloc(&rig, 3 * MIB, 0); /* leaves 17 MiB of 20 */
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, NULL), TARN_OK);
    assert_int_equal(largest, 17 * MIB);
    largest = 0; /* the device has more */
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, NULL), TARN_OK);
    assert_int_equal(largest, 136 * MIB);
    rig_free(&rig, a);
    largest = 1;
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, NULL), TARN_OK);
    assert_int_equal(largest, 100 * MIB);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    largest = 0;
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(largest, 0);
    rig_close(&rig);
}

/* test_allocator_backend */
static void the_backend_has_pytorchs_name(void **state)
{
    static const char *const backends[][2] = {{"", "native"},
                                              {"backend:native", "native"},
                                              {"backend:cudaMallocAsync", "cudaMallocAsync"}};

    (void)state;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct rig rig;

        rig_open(&rig, GIB, backends[i][0]);
        assert_string_equal(tarn_allocator_get_backend(rig.allocator), backends[i][1]);
        rig_close(&rig);
    }
}

/* test_set_per_process_memory_fraction, test_get_per_process_memory_fraction */
static void a_fraction_limits_what_is_reserved(void **state)
{
    static const double wrong[] = {-0.1, 1.1, 2.0, -1e300};
    struct rig rig;

    (void)state;
    rig_open(&rig, 1000 * MIB, "");
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), TARN_SIZE_UNLIMITED);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tarn_allocator_set_memory_fraction(rig.allocator, wrong[i], &rig.error),
                         TARN_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), TARN_SIZE_UNLIMITED);
    assert_string_equal(rig.error.text, "invalid fraction:-1e+300. Please set within [0, 1].");
    assert_true(tarn_allocator_get_memory_fraction(rig.allocator) == 1.0);
    rig_limit(&rig, 0.5);
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), 500 * MIB);
    assert_true(tarn_allocator_get_memory_fraction(rig.allocator) == 0.5);
    const tarn_ptr a = rig_alloc(&rig, 498 * MIB, 0);

    rig_free(&rig, a);
    rig_empty_cache(&rig);
    rig_alloc_oom(&rig, 501 * MIB, 0);
    assert_non_null(strstr(rig.error.text, "out of memory. Tried to allocate"));
    rig_free(&rig, rig_alloc(&rig, 500 * MIB, 0));
    rig_limit(&rig, 1.0);
    assert_int_equal(tarn_allocator_get_limit(rig.allocator), TARN_SIZE_UNLIMITED);
    rig_free(&rig, rig_alloc(&rig, 900 * MIB, 0));
    rig_limit(&rig, 0.0);
    rig_alloc_oom(&rig, 901 * MIB, 0);
    rig_close(&rig);
}

/* test_out_of_memory_retry: cached memory is given back before giving up. */
static void two_halves_fit_one_after_the_other(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, "");
    const tarn_ptr a = rig_alloc(&rig, 50 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 50 * MIB, 0);

    rig_alloc_oom(&rig, 80 * MIB, 0);
    assert_int_equal(rig_stats(&rig).num_ooms, 1);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
    rig_free(&rig, a);
    rig_free(&rig, b);
    (void)rig_alloc(&rig, 80 * MIB, 0);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 2);
    assert_int_equal(rig_stats(&rig).num_ooms, 1);
    rig_close(&rig);
}

static void stats_are_cut_at_the_callers_size(void **state)
{
    struct rig rig;
    struct tarn_stats stats;

    (void)state;
    rig_open(&rig, GIB, "");
    memset(&stats, 0x5a, sizeof stats);
    stats.struct_size = offsetof(struct tarn_stats, num_ooms);
    tarn_allocator_get_stats(rig.allocator, &stats);
    assert_int_equal(stats.struct_size, offsetof(struct tarn_stats, num_ooms));
    assert_int_equal(stats.num_alloc_retries, 0);
    assert_int_equal(stats.num_ooms, 0x5a5a5a5a5a5a5a5a);
    rig_close(&rig);
}

static void settings_are_read_back_and_checked(void **state)
{
    struct rig rig;
    struct tarn_config config;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:64");
    tarn_allocator_get_config(rig.allocator, &config);
    assert_int_equal(config.max_split_size, 64 * MIB);
    assert_int_equal(rig_stats(&rig).max_split_size, 64 * MIB);
    rig_configure(&rig, "expandable_segments:True");
    tarn_allocator_get_config(rig.allocator, &config);
    assert_true(config.expandable_segments);
    assert_int_equal(config.max_split_size, TARN_SIZE_UNLIMITED); /* an update resets it */
    assert_int_equal(rig_stats(&rig).max_split_size, 64 * MIB);   /* of when it was made */
    config.policy = TARN_POLICY_COMPACT;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_CONFIG);
    assert_non_null(strstr(rig.error.text, "it cannot become compact"));
    config.struct_size = 0;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_set_config(rig.allocator, NULL, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_close(&rig);
}

/* The device maps pages of 2 MiB and multiples. Without expandable segments any size will do. */
static void pages_that_the_device_cannot_make_are_refused(void **state)
{
    static const char text[] =
        "expandable_segments:True needs a large_segment_size_mb that is a multiple of the device's "
        "page size of 2 MiB: use 14 instead of 13";
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "large_segment_size_mb:13");
    assert_int_equal(
        tarn_config_parse("large_segment_size_mb:13,expandable_segments:True", &config, &rig.error),
        TARN_OK);
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_CONFIG);
    assert_string_equal(rig.error.text, text);
    tarn_allocator_get_config(rig.allocator, &config);
    assert_false(config.expandable_segments);
    config.expandable_segments = true;
    rig.error.text[0] = '\0';
    assert_int_equal(tarn_allocator_create(rig.device, &config, &allocator, &rig.error),
                     TARN_ERR_CONFIG);
    assert_string_equal(rig.error.text, text);
    assert_null(allocator);
    config.large_segment_size = 14 * MIB;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error), TARN_OK);
    rig_close(&rig);
}

/* Only the native backend's expandable segments of the exact policy are of that size. */
static void other_allocators_take_any_size(void **state)
{
    static const struct {
        const char *text;
        bool no_caching;
    } rows[] = {
        {"large_segment_size_mb:13", false},
        {"large_segment_size_mb:13,expandable_segments:True", true},
        {"large_segment_size_mb:13,expandable_segments:True,policy:compact", false},
        {"large_segment_size_mb:13,expandable_segments:True,backend:cudaMallocAsync", false}};
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tarn_allocator *allocator = NULL;
        struct tarn_config config;

        assert_int_equal(tarn_config_parse(rows[i].text, &config, NULL), TARN_OK);
        config.no_caching = rows[i].no_caching;
        assert_int_equal(tarn_allocator_create(device, &config, &allocator, NULL), TARN_OK);
        tarn_allocator_destroy(allocator);
    }
    sim_close(device);
}

/* Of a device that is full, and nothing is cached, there is nothing. */
static void a_full_device_has_no_largest_block(void **state)
{
    uint64_t largest = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 64 * MIB, 0);

    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 0);
    rig_free(&rig, ptr);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 64 * MIB);
    rig_close(&rig);
}

/* ---- streams ---- */

static struct {
    const struct tn_device_ops *inner;
    unsigned checks;
} checked;

static enum tarn_status check_stream(struct tarn_device *device, tarn_stream stream)
{
    checked.checks++;
    return checked.inner->stream_check(device, stream);
}

/* The default stream is every device's; others are asked for once. */
static void streams_are_checked_once(void **state)
{
    struct tn_device_ops ops;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 5);

    ops = *rig.device->ops;
    ops.stream_check = check_stream;
    checked.inner = rig.device->ops;
    checked.checks = 0;
    rig.device->ops = &ops;
    rig_record(&rig, ptr, 0);
    assert_int_equal(checked.checks, 0);
    rig_record(&rig, ptr, 1);
    rig_record(&rig, ptr, 1);
    assert_int_equal(checked.checks, 1);
    rig_record(&rig, ptr, 0);
    assert_int_equal(checked.checks, 1);
    rig.device->ops = checked.inner;
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* ---- forked children ---- */

static void child_uses_allocator(void *context)
{
    struct tarn_allocator *allocator = context;
    const struct tn_look look = {0};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_config defaults;
    struct tarn_config config;
    struct tarn_error error;
    uint64_t reserved = 7;

    CHILD_REQUIRE(tarn_allocator_trim(allocator, 0, &reserved, &error) == TARN_ERR_STATE);
    CHILD_REQUIRE(tn_allocator_look(allocator, NULL, &look, &error) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_record_stream(allocator, 512, 99, &error) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_check(allocator, &findings) == 0);
    tarn_allocator_get_config(allocator, &config);
    tarn_config_init(&defaults);
    CHILD_REQUIRE(config.max_split_size == defaults.max_split_size &&
                  strcmp(config.text, defaults.text) == 0);
}

static void a_forked_child_is_refused(void **state)
{
    static const char *const texts[] = {"max_split_size_mb:30", "backend:cudaMallocAsync"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, GIB, texts[i]);
        child_run(child_uses_allocator, rig.allocator);
        rig_close(&rig);
    }
}

static void an_allocator_needs_a_device(void **state)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_allocator_create(NULL, NULL, &allocator, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_null(allocator);
}

/* A failing device call is reported with the device's words and changes nothing. */
static void device_errors_are_passed_on(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 7;

    (void)state;
    rig_open(&rig, GIB, "");
    tarn_sim_fail_nth(rig.device, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 512, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(ptr, 7);
    assert_non_null(strstr(rig.error.text, "allocating memory on device 0 failed"));
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 1);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 0);
    rig_close(&rig);
}

/* What a reset does. */
static void peaks_and_sums_are_reset_apart(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    tarn_allocator_reset_peak_stats(rig.allocator);
    struct tarn_stats stats = rig_stats(&rig);

    stat_is(&stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL], 0, 0, 1, 1);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 1, 1, 1, 0);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    stats = rig_stats(&rig);
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL], 0, 0, 0, 0);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 1, 1, 0, 0);
    assert_int_equal(stats.num_device_alloc, 0);
    rig_close(&rig);
}

/* test_allocator_settings: 84 MiB exactly, then with 4 divisions, then 8 of a list. */
static void requests_are_rounded_as_the_settings_say(void **state)
{
    static const struct {
        const char *conf;
        uint64_t request;
        uint64_t active;
    } rows[] = {
        {"", 84 * MIB, 84 * MIB},
        {"roundup_power2_divisions:4", 84 * MIB, 96 * MIB},
        {"roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]", 84 * MIB, 88 * MIB},
        {"roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]", 400 * MIB, 512 * MIB},
        {"expandable_segments:False", 84 * MIB, 84 * MIB}, /* without divisions: reset */
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * GIB, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_configure(&rig, rows[i].conf);
        const tarn_ptr ptr = rig_alloc(&rig, rows[i].request, 0);

        if ((uint64_t)rig_now(&rig, TARN_STAT_ACTIVE_BYTES) != rows[i].active) {
            fail_msg("row %zu: %lld", i, (long long)rig_now(&rig, TARN_STAT_ACTIVE_BYTES));
        }
        assert_int_equal(rig_now(&rig, TARN_STAT_REQUESTED_BYTES), rows[i].request);
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
    }
    rig_close(&rig);
}

/* test_device_memory_used: 512 MiB more. */
static void the_device_shows_what_was_taken(void **state)
{
    struct rig rig;
    uint64_t before;
    uint64_t after;
    uint64_t total;

    (void)state;
    rig_open(&rig, 4 * GIB, "");
    assert_int_equal(tarn_device_memory_info(rig.device, &before, &total), TARN_OK);
    (void)rig_alloc(&rig, 512 * MIB, 0);
    rig_empty_cache(&rig);
    assert_int_equal(tarn_device_memory_info(rig.device, &after, &total), TARN_OK);
    assert_int_equal(before - after, 512 * MIB);
    rig_close(&rig);
}

/* ---- contents ---- */

enum {
    FUZZ_BLOCKS = 64
};

struct fuzz {
    struct rig rig;
    uint64_t random;
    struct {
        tarn_ptr ptr;
        uint64_t size;
        uint32_t value; /* all of its memory */
    } live[FUZZ_BLOCKS];
    int count;
    uint64_t total;
    uint32_t next_value;
};

static uint64_t fuzz_below(struct fuzz *fuzz, uint64_t bound)
{
    fuzz->random = fuzz->random * 6364136223846793005u + 1442695040888963407u;
    return (fuzz->random >> 33) % bound;
}

/* A word of a block; one every 256 KiB is looked at. */
static uint32_t *fuzz_word(struct fuzz *fuzz, int i, uint64_t at)
{
    char *memory = tarn_sim_host_memory(fuzz->rig.device, fuzz->live[i].ptr, fuzz->live[i].size);

    assert_non_null(memory);
    return (uint32_t *)(void *)(memory + at);
}

static void fuzz_alloc(struct fuzz *fuzz)
{
    const uint64_t words = 2 * MIB / 4 + fuzz_below(fuzz, 18 * MIB / 4);
    const int i = fuzz->count++;

    assert_true(i < FUZZ_BLOCKS);
    fuzz->live[i].size = words * 4;
    fuzz->live[i].ptr = rig_alloc(&fuzz->rig, words * 4, 0);
    fuzz->live[i].value = fuzz->next_value++;
    fuzz->total += words;
    for (uint64_t at = 0; at < words * 4; at += 256 * KIB) {
        *fuzz_word(fuzz, i, at) = fuzz->live[i].value;
    }
}

static void fuzz_free(struct fuzz *fuzz)
{
    const int i = (int)fuzz_below(fuzz, (uint64_t)fuzz->count);

    for (uint64_t at = 0; at < fuzz->live[i].size; at += 256 * KIB) {
        assert_int_equal(*fuzz_word(fuzz, i, at), fuzz->live[i].value);
    }
    rig_free(&fuzz->rig, fuzz->live[i].ptr);
    fuzz->total -= fuzz->live[i].size / 4;
    fuzz->live[i] = fuzz->live[--fuzz->count];
}

/* test_allocator_fuzz: 10,000 times one of allocating 2 to 20 MiB, freeing and emptying the cache,
 * with weights of 10, 10 and 1 and about 100 MiB in use at most; contents are intact. */
static void contents_stay_intact(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct fuzz fuzz = {.random = 123};

        rig_open_with(&fuzz.rig, (struct tarn_sim_options){.capacity = GIB, .backed = true},
                      confs[c]);
        for (int i = 0; i < 10000; i++) {
            while (fuzz.total >= GIB / 40) {
                fuzz_free(&fuzz);
            }
            const uint64_t choice = fuzz_below(&fuzz, fuzz.count > 0 ? 21 : 11);

            if (choice == 0) {
                rig_empty_cache(&fuzz.rig);
            } else if (choice <= 10) {
                fuzz_alloc(&fuzz);
            } else {
                fuzz_free(&fuzz);
            }
        }
        rig_close(&fuzz.rig);
    }
}

/* Settings and counters of a program whose structs end earlier. */
static void structs_of_an_older_program_are_understood(void **state)
{
    enum {
        OLDER = offsetof(struct tarn_config, policy),
        FEWER = offsetof(struct tarn_stats, room)
    };
    struct tarn_config config;
    struct tarn_stats stats;
    struct tarn_allocator *other = NULL;
    struct rig rig;

    (void)state;
    memset(&config, 0xA5, sizeof config);
    memset(&stats, 0xA5, sizeof stats);
    rig_open(&rig, 64 * MIB, "");
    assert_int_equal(tarn_config_parse_sized("max_split_size_mb:64", &config, OLDER, &rig.error),
                     TARN_OK);
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig.device, &config, &other, &rig.error), TARN_OK);
    tarn_allocator_destroy(other);
    assert_int_equal(tarn_allocator_get_config_sized(rig.allocator, &config, OLDER), TARN_OK);
    assert_int_equal(config.max_split_size, 64 * MIB);
    assert_int_equal(((const unsigned char *)&config)[OLDER], 0xA5);
    assert_int_equal(tarn_allocator_get_config_sized(rig.allocator, &config, 0),
                     TARN_ERR_INVALID_ARGUMENT);

    config.struct_size = 0;
    assert_int_equal(tarn_allocator_set_config(rig.allocator, &config, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_create(rig.device, &config, &other, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);

    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    stats.struct_size = FEWER;
    tarn_allocator_get_stats(rig.allocator, &stats);
    assert_int_equal(stats.struct_size, FEWER);
    assert_int_equal(stats.num_device_alloc, 1);
    assert_int_equal(((const unsigned char *)&stats)[FEWER], 0xA5);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void a_check_needs_no_findings(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, MIB, 0);

    assert_int_equal(tarn_allocator_check(rig.allocator, NULL), 0);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_of_an_older_program_are_understood),
        cmocka_unit_test(size_zero_is_pointer_zero),
        cmocka_unit_test(counters_follow_one_block),
        cmocka_unit_test(a_freed_block_is_the_next_one_handed_out),
        cmocka_unit_test(pointers_that_are_not_handed_out_are_named),
        cmocka_unit_test(a_waiting_block_is_not_handed_out),
        cmocka_unit_test(two_allocators_share_a_device),
        cmocka_unit_test(destroying_gives_live_blocks_back),
        cmocka_unit_test(base_allocation_is_the_segment),
        cmocka_unit_test(block_size_is_what_was_allocated),
        cmocka_unit_test(cache_info_is_the_largest_free_block),
        cmocka_unit_test(the_backend_has_pytorchs_name),
        cmocka_unit_test(a_fraction_limits_what_is_reserved),
        cmocka_unit_test(two_halves_fit_one_after_the_other),
        cmocka_unit_test(stats_are_cut_at_the_callers_size),
        cmocka_unit_test(settings_are_read_back_and_checked),
        cmocka_unit_test(pages_that_the_device_cannot_make_are_refused),
        cmocka_unit_test(other_allocators_take_any_size),
        cmocka_unit_test(a_full_device_has_no_largest_block),
        cmocka_unit_test(streams_are_checked_once),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(an_allocator_needs_a_device),
        cmocka_unit_test(device_errors_are_passed_on),
        cmocka_unit_test(peaks_and_sums_are_reset_apart),
        cmocka_unit_test(requests_are_rounded_as_the_settings_say),
        cmocka_unit_test(the_device_shows_what_was_taken),
        cmocka_unit_test(contents_stay_intact),
        cmocka_unit_test(a_check_needs_no_findings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
