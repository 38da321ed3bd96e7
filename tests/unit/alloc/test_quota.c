/* SPDX-License-Identifier: MIT */
/* Quotas, cell by cell: every counter, for both pools and for each. */
#include "support/test.h"

#include "alloc/fast/quota.h"

/* Calls a function for every cell. */
#define EACH_CELL(c, stat)                                                                         \
    for (int c = 0; (c) < TN_QUOTA_COUNTERS; (c)++)                                                \
        for (int stat = 0; (stat) < TARN_STAT_POOLS; (stat)++)

static struct tn_quota filled(int64_t first)
{
    struct tn_quota quota;

    EACH_CELL(c, stat)
    {
        quota.of[c][stat] = first + (int64_t)10 * c + stat;
    }
    return quota;
}

static void changes_are_of_one_pool(void **state)
{
    struct tn_block block = {.size = 1024};
    const struct tn_undo_entry entry = {.block = &block,
                                        .requested = 900,
                                        .split_bytes = -1024,
                                        .split_blocks = -1,
                                        .pool = TN_LARGE};
    const struct tn_quota_change done = tn_quota_entry(&entry, 1);
    const struct tn_quota_change undone = tn_quota_entry(&entry, -1);
    const int64_t wanted[] = {1, 1024, 900, -1, -1024};
    struct tn_quota quota = filled(7);

    (void)state;
    assert_int_equal(done.pool, TN_LARGE);
    tn_quota_add(&quota, &done);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        const struct tn_quota before = filled(7);

        assert_int_equal(done.of[c], wanted[c]);
        assert_int_equal(undone.of[c], -wanted[c]);
        assert_int_equal(quota.of[c][TARN_STAT_ALL], before.of[c][TARN_STAT_ALL] + wanted[c]);
        assert_int_equal(quota.of[c][TARN_STAT_LARGE_POOL],
                         before.of[c][TARN_STAT_LARGE_POOL] + wanted[c]);
        assert_int_equal(quota.of[c][TARN_STAT_SMALL_POOL], before.of[c][TARN_STAT_SMALL_POOL]);
    }
}

static void quotas_are_compared_cell_by_cell(void **state)
{
    (void)state;
    EACH_CELL(c, stat)
    {
        const struct tn_quota quota = filled(100);
        struct tn_quota used = filled(100);
        struct tn_quota most = filled(100);

        assert_true(tn_quota_covers(&quota, &used));
        used.of[c][stat]++;
        assert_false(tn_quota_covers(&quota, &used));
        tn_quota_raise(&most, &used);
        assert_memory_equal(&most, &used, sizeof most);
        used.of[c][stat] -= 2;
        assert_true(tn_quota_covers(&quota, &used));
        tn_quota_raise(&most, &used);
        assert_int_equal(most.of[c][stat], quota.of[c][stat] + 1);
    }
}

/* Peaks of 1000 more than the cell's number, current values of 1 and 2. */
static void counters_fill(struct tn_counters *counters)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    *counters = (struct tn_counters){.totals = {.struct_size = 0}};
    tn_quota_list(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        list[c]->current[TN_SMALL] = 1;
        list[c]->current[TN_LARGE] = 2;
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] = 1000 + 10 * c + stat;
        }
    }
}

static void room_is_up_to_the_peaks(void **state)
{
    struct tn_counters counters;
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    (void)state;
    counters_fill(&counters);
    const struct tn_quota used = tn_quota_used(&counters);
    const struct tn_quota room = tn_quota_room(&counters);

    tn_quota_list(&counters, list);
    EACH_CELL(c, stat)
    {
        const int64_t now = stat == TARN_STAT_ALL ? 3 : stat == TARN_STAT_SMALL_POOL ? 1 : 2;

        assert_int_equal(used.of[c][stat], now);
        assert_int_equal(room.of[c][stat], 1000 + 10 * c + stat - now);
    }
    const struct tn_quota quota = filled(50);

    tn_quota_move_peaks(&quota, &counters, -1);
    EACH_CELL(c, stat)
    {
        assert_int_equal(list[c]->peak[stat], 950);
    }
    tn_quota_move_peaks(&quota, &counters, 1);
    EACH_CELL(c, stat)
    {
        assert_int_equal(list[c]->peak[stat], 1000 + 10 * c + stat);
    }
}

static void a_fold_moves_everything(void **state)
{
    struct tn_counters counters;
    struct tn_counters of_cache = {.totals = {.oversize_allocations = {.allocated = 3}}};
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    struct tn_counter *from[TN_QUOTA_COUNTERS];

    (void)state;
    counters_fill(&counters);
    tn_quota_list(&counters, list);
    tn_quota_list(&of_cache, from);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        from[c]->current[TN_SMALL] = 2000 + c;
        from[c]->current[TN_LARGE] = -1;
        from[c]->allocated[TN_SMALL] = 5000;
        from[c]->allocated[TN_LARGE] = 6000;
        list[c]->allocated[TN_SMALL] = 50;
        list[c]->allocated[TN_LARGE] = 60;
    }
    tn_quota_fold(&counters, &of_cache);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        assert_int_equal(list[c]->current[TN_SMALL], 2001 + c);
        assert_int_equal(list[c]->current[TN_LARGE], 1);
        assert_int_equal(list[c]->allocated[TN_SMALL], 5050);
        assert_int_equal(list[c]->allocated[TN_LARGE], 6060);
        assert_int_equal(list[c]->peak[TARN_STAT_SMALL_POOL], 2001 + c);
        assert_int_equal(list[c]->peak[TARN_STAT_ALL], 2002 + c);
        assert_int_equal(list[c]->peak[TARN_STAT_LARGE_POOL], /* no new one */
                         1000 + 10 * c + TARN_STAT_LARGE_POOL);
        for (unsigned pool = 0; pool < TN_POOLS; pool++) {
            assert_int_equal(from[c]->current[pool], 0);
            assert_int_equal(from[c]->allocated[pool], 0);
        }
    }
    assert_int_equal(counters.totals.oversize_allocations.allocated, 3);
    assert_int_equal(counters.totals.oversize_allocations.current, 3);
    assert_int_equal(of_cache.totals.oversize_allocations.allocated, 0);
}

/* A call may use all of a quota, and no more: neither its pool's nor that of both. */
static void a_quota_allows_what_it_has(void **state)
{
    const struct tn_quota_change change = {.of = {1, 1, 1, 1, 1}, .pool = TN_SMALL};
    struct tn_counters counters;
    struct tn_quota quota;

    (void)state;
    counters_fill(&counters);
    EACH_CELL(c, stat)
    {
        quota.of[c][stat] = stat == TARN_STAT_ALL ? 4 : stat == TARN_STAT_SMALL_POOL ? 2 : 0;
    }
    assert_true(tn_quota_allows(&quota, &counters, &change)); /* the other pool's is not asked */
    EACH_CELL(c, stat)
    {
        quota.of[c][stat]--;
        assert_int_equal(tn_quota_allows(&quota, &counters, &change), stat == TARN_STAT_LARGE_POOL);
        quota.of[c][stat]++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_of_one_pool),
        cmocka_unit_test(quotas_are_compared_cell_by_cell),
        cmocka_unit_test(room_is_up_to_the_peaks),
        cmocka_unit_test(a_fold_moves_everything),
        cmocka_unit_test(a_quota_allows_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
