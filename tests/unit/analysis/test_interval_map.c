/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "analysis/interval_map.h"
#include "tarn/host.h"

enum {
    RANGES = 60,
    SPACE = 200
};

static int64_t label_at(const struct tn_interval_map *cover, uint64_t address)
{
    const struct tn_range *range = tn_interval_map_find(cover, address);

    return range ? (int64_t)range->label : -1;
}

static void the_first_range_wins(void **state)
{
    struct tn_interval_map cover;

    (void)state;
    tn_interval_map_init(&cover);
    assert_true(tn_interval_map_add(&cover, 100, 10, 1));
    assert_true(tn_interval_map_add(&cover, 120, 10, 2));
    assert_true(tn_interval_map_add(&cover, 90, 100, 3));
    assert_int_equal(label_at(&cover, 89), -1);
    assert_int_equal(label_at(&cover, 90), 3);
    assert_int_equal(label_at(&cover, 100), 1);
    assert_int_equal(label_at(&cover, 109), 1);
    assert_int_equal(label_at(&cover, 110), 3);
    assert_int_equal(label_at(&cover, 129), 2);
    assert_int_equal(label_at(&cover, 189), 3);
    assert_int_equal(label_at(&cover, 190), -1);
    assert_int_equal(tn_interval_map_find(&cover, 150)->start, 90);
    tn_interval_map_fini(&cover);
}

/* Ranges that touch are one stretch, from either side; one of no bytes is none. */
static void ranges_that_touch_are_one(void **state)
{
    struct tn_interval_map cover;

    (void)state;
    tn_interval_map_init(&cover);
    assert_true(tn_interval_map_add(&cover, 150, 0, 1));
    assert_int_equal(cover.runs.count, 0);
    assert_true(tn_interval_map_add(&cover, 100, 10, 1));
    assert_true(tn_interval_map_add(&cover, 110, 10, 2));
    assert_int_equal(cover.runs.count, 1);
    assert_true(tn_interval_map_add(&cover, 90, 10, 3));
    assert_int_equal(cover.runs.count, 1);
    assert_true(tn_interval_map_add(&cover, 121, 10, 4)); /* a byte behind it */
    assert_int_equal(cover.runs.count, 2);
    tn_interval_map_fini(&cover);
}

/* Against a search through the whole list. */
static void same_as_a_list(void **state)
{
    struct {
        uint64_t start, size;
    } ranges[RANGES];
    struct tn_interval_map cover;
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 50; round++) {
        tn_interval_map_init(&cover);
        for (int i = 0; i < RANGES; i++) {
            seed = seed * 1664525u + 1013904223u;
            ranges[i].start = (seed >> 8) % SPACE;
            ranges[i].size = (seed >> 20) % 40;
            assert_true(tn_interval_map_add(&cover, ranges[i].start, ranges[i].size, (uint64_t)i));
        }
        for (uint64_t at = 0; at < SPACE + 50; at++) {
            int first = 0;

            while (first < RANGES &&
                   !(at >= ranges[first].start && at - ranges[first].start < ranges[first].size)) {
                first++;
            }
            assert_int_equal(label_at(&cover, at), first < RANGES ? first : -1);
        }
        tn_interval_map_fini(&cover);
    }
}

/* Each has a piece, and none looks at those of the others. */
static void many_ranges_may_overlap(void **state)
{
    enum {
        MANY = 300000
    };
    struct tn_interval_map cover;

    (void)state;
    tn_interval_map_init(&cover);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_true(tn_interval_map_add(&cover, 4096 * i, (uint64_t)1 << 40, i));
    }
    assert_int_equal(cover.pieces.count, MANY);
    assert_int_equal(cover.runs.count, 1);
    assert_int_equal(label_at(&cover, 4096 * (uint64_t)(MANY - 1)), 0);
    assert_int_equal(label_at(&cover, ((uint64_t)1 << 40) + 5), 1);
    tn_interval_map_fini(&cover);
}

static void ranges_end_with_the_space(void **state)
{
    struct tn_interval_map cover;

    (void)state;
    tn_interval_map_init(&cover);
    assert_true(tn_interval_map_add(&cover, UINT64_MAX - 5, 100, 7));
    assert_true(tn_interval_map_add(&cover, 0, 0, 8));
    assert_int_equal(label_at(&cover, UINT64_MAX - 1), 7);
    assert_int_equal(label_at(&cover, 0), -1);
    tn_interval_map_fini(&cover);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* A part of a range may have no room: the first stretch, a gap between two, or what is behind them.
 */
static void memory_may_be_missing(void **state)
{
    (void)state;
    for (uint64_t room = 0; room < 5; room++) {
        struct tn_interval_map cover;

        tn_interval_map_init(&cover);
        assert_true(tn_interval_map_add(&cover, 100, 1, 1));
        assert_true(tn_interval_map_add(&cover, 110, 1, 2));
        while (cover.items.count < TN_CHUNKED_VEC_CHUNK - room) {
            assert_true(tn_interval_map_add(&cover, 100, 1, 3));
        }
        tarn_host_fail_nth(1);
        assert_int_equal(tn_interval_map_add(&cover, 100, 20, 4), room >= 3);
        tarn_host_fail_nth(0);
        assert_int_equal(label_at(&cover, 100), 1);
        assert_int_equal(label_at(&cover, 105), room >= 2 ? 4 : -1);
        assert_int_equal(label_at(&cover, 110), 2);
        assert_int_equal(label_at(&cover, 115), room >= 3 ? 4 : -1);
        tn_interval_map_fini(&cover);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_range_wins),
        cmocka_unit_test(ranges_that_touch_are_one),
        cmocka_unit_test(same_as_a_list),
        cmocka_unit_test(many_ranges_may_overlap),
        cmocka_unit_test(ranges_end_with_the_space),
        cmocka_unit_test(memory_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
