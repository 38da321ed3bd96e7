/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <string.h>

#include "alloc/counters.h"
#include "tarn/config.h"

static void stat_is(const struct tarn_stat *stat, int64_t current, int64_t peak, int64_t allocated,
                    int64_t freed)
{
    assert_int_equal(stat->current, current);
    assert_int_equal(stat->peak, peak);
    assert_int_equal(stat->allocated, allocated);
    assert_int_equal(stat->freed, freed);
}

/* Of PyTorch's test_memory_stats: 1024 bytes come and go. */
static void every_change_counts_twice(void **state)
{
    struct tn_counters counters = {0};
    const struct tarn_stat *bytes = counters.stats.by_pool[TARN_STAT_ACTIVE_BYTES];

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_increase(&counters, TARN_STAT_ACTIVE_BYTES, true, 1024);
    tn_counters_increase(&counters, TARN_STAT_ACTIVE_BYTES, false, 4096);
    tn_counters_decrease(&counters, TARN_STAT_ACTIVE_BYTES, true, 1024);
    stat_is(&bytes[TARN_STAT_ALL], 4096, 5120, 5120, 1024);
    stat_is(&bytes[TARN_STAT_SMALL_POOL], 0, 1024, 1024, 1024);
    stat_is(&bytes[TARN_STAT_LARGE_POOL], 4096, 4096, 4096, 0);
    assert_int_equal(tn_counters_current(&counters, TARN_STAT_ACTIVE_BYTES), 4096);
    assert_int_equal(tn_counters_current(&counters, TARN_STAT_SEGMENT), 0);
}

static void a_change_goes_by_its_sign(void **state)
{
    struct tn_counters counters = {0};
    const struct tarn_stat *split = counters.stats.by_pool[TARN_STAT_INACTIVE_SPLIT];

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_change(&counters, TARN_STAT_INACTIVE_SPLIT, true, 3);
    tn_counters_change(&counters, TARN_STAT_INACTIVE_SPLIT, true, 0);
    tn_counters_change(&counters, TARN_STAT_INACTIVE_SPLIT, true, -2);
    stat_is(&split[TARN_STAT_ALL], 1, 3, 3, 2);
    stat_is(&split[TARN_STAT_SMALL_POOL], 1, 3, 3, 2);
    stat_is(&split[TARN_STAT_LARGE_POOL], 0, 0, 0, 0);
}

static void fill(struct tn_counters *counters)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        tn_counters_increase(counters, (enum tarn_stat_kind)kind, true, 10);
        tn_counters_increase(counters, (enum tarn_stat_kind)kind, false, 20);
        tn_counters_decrease(counters, (enum tarn_stat_kind)kind, false, 5);
    }
    tn_stat_increase(&counters->stats.oversize_allocations, 2);
    tn_stat_decrease(&counters->stats.oversize_allocations, 1);
    tn_stat_increase(&counters->stats.oversize_segments, 2);
    tn_stat_decrease(&counters->stats.oversize_segments, 1);
    counters->stats.num_alloc_retries = 1;
    counters->stats.num_ooms = 2;
    counters->stats.num_sync_all_streams = 3;
    counters->stats.num_device_alloc = 4;
    counters->stats.num_device_free = 5;
}

static void resetting_peaks_leaves_the_sums(void **state)
{
    struct tn_counters counters = {0};

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    fill(&counters);
    tn_counters_reset_peaks(&counters);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        stat_is(&counters.stats.by_pool[kind][TARN_STAT_ALL], 25, 25, 30, 5);
        stat_is(&counters.stats.by_pool[kind][TARN_STAT_LARGE_POOL], 15, 15, 20, 5);
    }
    stat_is(&counters.stats.oversize_allocations, 1, 1, 2, 1);
    stat_is(&counters.stats.oversize_segments, 1, 1, 2, 1);
    assert_int_equal(counters.stats.num_ooms, 2);
}

static void resetting_the_sums_leaves_the_peaks(void **state)
{
    struct tn_counters counters = {0};

    (void)state;
    tn_counters_init(&counters, 128 << 20);
    fill(&counters);
    tn_counters_reset_accumulated(&counters);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        stat_is(&counters.stats.by_pool[kind][TARN_STAT_ALL], 25, 30, 0, 0);
    }
    stat_is(&counters.stats.oversize_segments, 1, 2, 0, 0);
    assert_int_equal(counters.stats.num_alloc_retries, 0);
    assert_int_equal(counters.stats.num_ooms, 0);
    assert_int_equal(counters.stats.num_sync_all_streams, 0);
    assert_int_equal(counters.stats.num_device_alloc, 0);
    assert_int_equal(counters.stats.num_device_free, 0);
    assert_int_equal(counters.stats.max_split_size, 128 << 20);
}

static void no_split_limit_is_minus_one(void **state)
{
    struct tn_counters counters = {0};

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    assert_int_equal(counters.stats.max_split_size, -1);
    assert_int_equal(counters.stats.struct_size, sizeof(struct tarn_stats));
}

static void names_are_those_of_memory_stats(void **state)
{
    (void)state;
    assert_string_equal(tarn_stat_kind_name(TARN_STAT_ALLOCATION), "allocation");
    assert_string_equal(tarn_stat_kind_name(TARN_STAT_INACTIVE_SPLIT_BYTES),
                        "inactive_split_bytes");
    assert_string_equal(tarn_stat_kind_name(TARN_STAT_REQUESTED_BYTES), "requested_bytes");
    assert_string_equal(tarn_stat_kind_name(TARN_STAT_KINDS), "unknown");
    assert_string_equal(tarn_stat_pool_name(TARN_STAT_ALL), "all");
    assert_string_equal(tarn_stat_pool_name(TARN_STAT_SMALL_POOL), "small_pool");
    assert_string_equal(tarn_stat_pool_name(TARN_STAT_LARGE_POOL), "large_pool");
    assert_string_equal(tarn_stat_pool_name(TARN_STAT_POOLS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_counts_twice),
        cmocka_unit_test(a_change_goes_by_its_sign),
        cmocka_unit_test(resetting_peaks_leaves_the_sums),
        cmocka_unit_test(resetting_the_sums_leaves_the_peaks),
        cmocka_unit_test(no_split_limit_is_minus_one),
        cmocka_unit_test(names_are_those_of_memory_stats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
