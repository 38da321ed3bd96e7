/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <string.h>

#include "alloc/pool/counters.h"
#include "tarn/config.h"

static void stat_is(const struct tarn_stat *stat, int64_t current, int64_t peak, int64_t allocated,
                    int64_t freed)
{
    assert_int_equal(stat->current, current);
    assert_int_equal(stat->peak, peak);
    assert_int_equal(stat->allocated, allocated);
    assert_int_equal(stat->freed, freed);
}

static struct tarn_stats read_stats(const struct tn_counters *counters)
{
    struct tarn_stats stats;

    tn_counters_read(counters, &stats);
    return stats;
}

static const enum tarn_stat_kind live_kinds[] = {TARN_STAT_ALLOCATED_BYTES, TARN_STAT_ACTIVE_BYTES};

/* 1024 bytes come and go beside others (numbers of PyTorch's test_memory_stats). */
static void every_change_counts_twice(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_allocate(&counters, TN_SMALL, 1024, 1000);
    tn_counters_allocate(&counters, TN_LARGE, 4096, 4096);
    tn_counters_free(&counters, TN_SMALL, 1024);
    const struct tarn_stats stats = read_stats(&counters);

    for (int i = 0; i < 2; i++) {
        const struct tarn_stat *bytes = stats.by_pool[live_kinds[i]];

        stat_is(&bytes[TARN_STAT_ALL], 4096, 5120, 5120, 1024);
        stat_is(&bytes[TARN_STAT_SMALL_POOL], 0, 1024, 1024, 1024);
        stat_is(&bytes[TARN_STAT_LARGE_POOL], 4096, 4096, 4096, 0);
    }
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL], 1, 2, 2, 1);
    stat_is(&stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL], 5096, 5096, 5096, 0);
    stat_is(&stats.by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL], 0, 0, 0, 0);
    assert_int_equal(tn_counter_all(&counters.bytes.out), 4096);
    assert_int_equal(tn_counters_active_bytes(&counters), 4096);
}

static void a_change_goes_by_its_sign(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counter_change(&counters.split, TN_SMALL, 3);
    tn_counter_change(&counters.split, TN_SMALL, 0);
    tn_counter_change(&counters.split, TN_SMALL, -2);
    const struct tarn_stats stats = read_stats(&counters);
    const struct tarn_stat *split = stats.by_pool[TARN_STAT_INACTIVE_SPLIT];

    stat_is(&split[TARN_STAT_ALL], 1, 3, 3, 2);
    stat_is(&split[TARN_STAT_SMALL_POOL], 1, 3, 3, 2);
    stat_is(&split[TARN_STAT_LARGE_POOL], 0, 0, 0, 0);
}

/* The peak of a sum is neither the sum of the peaks nor the larger of them. */
static void the_peak_of_all_is_that_of_the_sum(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_allocate(&counters, TN_SMALL, 700, 700);
    tn_counters_free(&counters, TN_SMALL, 700);
    tn_counters_allocate(&counters, TN_LARGE, 500, 500);
    tn_counters_allocate(&counters, TN_SMALL, 300, 300);
    const struct tarn_stats stats = read_stats(&counters);
    const struct tarn_stat *bytes = stats.by_pool[TARN_STAT_ALLOCATED_BYTES];

    assert_int_equal(bytes[TARN_STAT_ALL].peak, 800);
    assert_int_equal(bytes[TARN_STAT_SMALL_POOL].peak, 700);
    assert_int_equal(bytes[TARN_STAT_LARGE_POOL].peak, 500);
}

/* A block that waits for streams is active and not allocated; the peaks go their own ways. */
static void waiting_blocks_are_active(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_allocate(&counters, TN_LARGE, 100, 100);
    tn_counters_free(&counters, TN_LARGE, 100);
    tn_counters_begin_wait(&counters, TN_LARGE, 100);
    tn_counters_allocate(&counters, TN_LARGE, 60, 60);
    struct tarn_stats stats = read_stats(&counters);

    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL], 60, 100, 160, 100);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 160, 160, 160, 0);
    assert_int_equal(tn_counters_active_bytes(&counters), 160);
    tn_counters_end_wait(&counters, TN_LARGE, 100);
    tn_counters_allocate(&counters, TN_LARGE, 90, 90);
    stats = read_stats(&counters);
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL], 150, 150, 250, 100);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 150, 160, 250, 100);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE][TARN_STAT_LARGE_POOL], 2, 2, 3, 1);
    tn_counters_allocate(&counters, TN_SMALL, 40, 40);
    tn_counters_free(&counters, TN_SMALL, 40);
    tn_counters_begin_wait(&counters, TN_SMALL, 40);
    assert_int_equal(tn_counters_active_bytes(&counters), 190);
}

/* Requests are below 2^60, so what is twice as large in either direction is an error. */
static void what_cannot_be_counted(void **state)
{
    const int64_t end = (int64_t)1 << 61;

    (void)state;
    assert_true(tn_counter_is_small(0));
    assert_true(tn_counter_is_small(end - 1));
    assert_false(tn_counter_is_small(end));
    assert_false(tn_counter_is_small(INT64_MAX));
    assert_true(tn_counter_is_small(1 - end));
    assert_false(tn_counter_is_small(-end));
    assert_false(tn_counter_is_small(INT64_MIN));
}

/* Live: 10 small, 20 large that wait. Of everything else 10 small and 15 large. */
static void fill(struct tn_counters *counters)
{
    struct tn_counter *others[] = {&counters->split, &counters->split_bytes, &counters->segments,
                                   &counters->reserved};
    struct tarn_stats *plain = &counters->totals;

    tn_counters_allocate(counters, TN_SMALL, 10, 10);
    tn_counters_allocate(counters, TN_LARGE, 20, 20);
    tn_counters_free(counters, TN_LARGE, 20);
    tn_counters_begin_wait(counters, TN_LARGE, 20);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        tn_counter_increase(others[i], TN_SMALL, 10);
        tn_counter_increase(others[i], TN_LARGE, 20);
        tn_counter_decrease(others[i], TN_LARGE, 5);
    }
    tn_stat_increase(&plain->oversize_allocations, 2);
    tn_stat_decrease(&plain->oversize_allocations, 1);
    tn_stat_increase(&plain->oversize_segments, 2);
    tn_stat_decrease(&plain->oversize_segments, 1);
    plain->num_alloc_retries = 1;
    plain->num_ooms = 2;
    plain->num_sync_all_streams = 3;
    plain->num_device_alloc = 4;
    plain->num_device_free = 5;
}

static const enum tarn_stat_kind filled_kinds[] = {TARN_STAT_INACTIVE_SPLIT, TARN_STAT_SEGMENT,
                                                   TARN_STAT_INACTIVE_SPLIT_BYTES,
                                                   TARN_STAT_RESERVED_BYTES};

static void resetting_peaks_leaves_the_sums(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    fill(&counters);
    tn_counters_reset_peaks(&counters);
    const struct tarn_stats stats = read_stats(&counters);

    for (size_t i = 0; i < sizeof filled_kinds / sizeof filled_kinds[0]; i++) {
        stat_is(&stats.by_pool[filled_kinds[i]][TARN_STAT_ALL], 25, 25, 30, 5);
        stat_is(&stats.by_pool[filled_kinds[i]][TARN_STAT_LARGE_POOL], 15, 15, 20, 5);
    }
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL], 10, 10, 30, 20);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 30, 30, 30, 0);
    stat_is(&stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL], 30, 30, 30, 0);
    stat_is(&stats.oversize_allocations, 1, 1, 2, 1);
    stat_is(&stats.oversize_segments, 1, 1, 2, 1);
    assert_int_equal(stats.num_ooms, 2);
}

static void resetting_the_sums_leaves_the_peaks(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, 128 << 20);
    fill(&counters);
    tn_counters_reset_accumulated(&counters);
    struct tarn_stats stats = read_stats(&counters);

    for (size_t i = 0; i < sizeof filled_kinds / sizeof filled_kinds[0]; i++) {
        stat_is(&stats.by_pool[filled_kinds[i]][TARN_STAT_ALL], 25, 30, 0, 0);
    }
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL], 10, 30, 0, 0);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL], 30, 30, 0, 0);
    stat_is(&stats.oversize_allocations, 1, 2, 0, 0);
    stat_is(&stats.oversize_segments, 1, 2, 0, 0);
    assert_int_equal(stats.num_alloc_retries, 0);
    assert_int_equal(stats.num_ooms, 0);
    assert_int_equal(stats.num_sync_all_streams, 0);
    assert_int_equal(stats.num_device_alloc, 0);
    assert_int_equal(stats.num_device_free, 0);
    assert_int_equal(stats.max_split_size, 128 << 20);
    tn_counters_end_wait(&counters, TN_LARGE, 20); /* it was active at the reset */
    stats = read_stats(&counters);
    stat_is(&stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_LARGE_POOL], 0, 20, 0, 20);
    stat_is(&stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_LARGE_POOL], 0, 20, 0, 0);
}

static void no_split_limit_is_minus_one(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    const struct tarn_stats stats = read_stats(&counters);

    assert_int_equal(stats.max_split_size, -1);
    assert_int_equal(stats.struct_size, sizeof(struct tarn_stats));
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

/* Of every kind, also what waits for other streams. */
static void resetting_peaks_leaves_what_is_current(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    tn_counters_allocate(&counters, TN_LARGE, 30, 30);
    tn_counters_allocate(&counters, TN_LARGE, 50, 50);
    tn_counters_free(&counters, TN_LARGE, 30);
    tn_counters_begin_wait(&counters, TN_LARGE, 30);
    tn_counters_free(&counters, TN_LARGE, 50);
    tn_counters_reset_peaks(&counters);
    const struct tarn_stats stats = read_stats(&counters);

    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            const struct tarn_stat *stat = &stats.by_pool[kind][pool];

            assert_int_equal(stat->peak, stat->current);
        }
    }
    assert_int_equal(stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].peak, 30);
}

static void resetting_the_sums_clears_all_totals(void **state)
{
    struct tn_counters counters;

    (void)state;
    tn_counters_init(&counters, TARN_SIZE_UNLIMITED);
    struct tarn_stats *totals = &counters.totals;

    totals->num_alloc_retries = 1;
    totals->num_ooms = 2;
    totals->num_sync_all_streams = 3;
    totals->num_device_alloc = 4;
    totals->num_device_free = 5;
    totals->num_oom_rejections = 6;
    tn_counters_reset_accumulated(&counters);
    assert_int_equal(totals->num_alloc_retries, 0);
    assert_int_equal(totals->num_ooms, 0);
    assert_int_equal(totals->num_sync_all_streams, 0);
    assert_int_equal(totals->num_device_alloc, 0);
    assert_int_equal(totals->num_device_free, 0);
    assert_int_equal(totals->num_oom_rejections, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_counts_twice),
        cmocka_unit_test(a_change_goes_by_its_sign),
        cmocka_unit_test(the_peak_of_all_is_that_of_the_sum),
        cmocka_unit_test(waiting_blocks_are_active),
        cmocka_unit_test(what_cannot_be_counted),
        cmocka_unit_test(resetting_peaks_leaves_the_sums),
        cmocka_unit_test(resetting_the_sums_leaves_the_peaks),
        cmocka_unit_test(resetting_peaks_leaves_what_is_current),
        cmocka_unit_test(resetting_the_sums_clears_all_totals),
        cmocka_unit_test(no_split_limit_is_minus_one),
        cmocka_unit_test(names_are_those_of_memory_stats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
