/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "tarn/host.h"

/* The model: value by key, for keys that are small numbers; 0 = not there. */
enum {
    KEYS = 4000
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % bound;
}

/* A key that looks like an address: they differ in their middle bits only. */
static uint64_t key_of(uint64_t number)
{
    return 0x7f0000000000 + (number << 9);
}

static void map_put(struct tn_map *map, uint64_t key, uint64_t value)
{
    assert_true(tn_map_reserve(map, 1));
    tn_map_insert(map, key, value);
}

static void map_equals(const struct tn_map *map, const uint64_t *model)
{
    uint64_t count = 0;

    for (uint64_t i = 1; i < KEYS; i++) {
        const uint64_t *value = tn_map_find(map, key_of(i));

        assert_int_equal(value != NULL, model[i] != 0);
        if (value) {
            assert_int_equal(*value, model[i]);
            count++;
        }
    }
    assert_int_equal(map->count, count);
}

static void an_empty_map_finds_nothing(void **state)
{
    struct tn_map map = {0};
    uint64_t value = 7;

    (void)state;
    assert_null(tn_map_find(&map, 1));
    assert_null(tn_map_find(&map, 0));
    assert_false(tn_map_take(&map, 1, &value));
    assert_int_equal(value, 7);
    assert_int_equal(map.capacity, 0);
    tn_map_fini(&map);
}

static void zero_is_never_a_key(void **state)
{
    struct tn_map map = {0};
    uint64_t value = 7;

    (void)state;
    map_put(&map, 1, 2);
    assert_null(tn_map_find(&map, 0));
    assert_null(tn_map_find_fast(&map, 0));
    assert_false(tn_map_take(&map, 0, &value));
    tn_map_fini(&map);
}

static void a_value_can_be_changed_in_place(void **state)
{
    struct tn_map map = {0};
    uint64_t value = 0;

    (void)state;
    map_put(&map, UINT64_MAX, 1);
    *tn_map_find(&map, UINT64_MAX) = 99;
    assert_true(tn_map_take(&map, UINT64_MAX, &value));
    assert_int_equal(value, 99);
    tn_map_fini(&map);
}

/* Phases of growing and shrinking, so that the table is resized both ways many times. */
static void random_operations_equal_the_model(void **state)
{
    static uint64_t model[KEYS];
    struct tn_map map = {0};

    (void)state;
    random_state = 1;
    memset(model, 0, sizeof model);
    for (uint64_t step = 0; step < 200000; step++) {
        const uint64_t i = 1 + random_below(KEYS - 1);
        const bool growing = (step / 20000) % 2 == 0;
        uint64_t value = 0;

        if (model[i] == 0 && (growing || random_below(4) == 0)) {
            model[i] = step + 1;
            map_put(&map, key_of(i), model[i]);
        } else if (model[i] != 0 && (!growing || random_below(4) == 0)) {
            assert_true(tn_map_take(&map, key_of(i), &value));
            assert_int_equal(value, model[i]);
            model[i] = 0;
        }
        if (step % 5000 == 0) {
            map_equals(&map, model);
        }
        assert_true(map.count * 8 <= map.capacity * 5);
    }
    map_equals(&map, model);
    tn_map_fini(&map);
}

static void a_map_that_empties_becomes_small(void **state)
{
    struct tn_map map = {0};
    uint64_t value;

    (void)state;
    for (uint64_t i = 1; i <= 100000; i++) {
        map_put(&map, key_of(i), i);
    }
    assert_true(map.capacity >= 100000);
    for (uint64_t i = 1; i <= 100000; i++) {
        assert_true(tn_map_take(&map, key_of(i), &value));
        assert_int_equal(value, i);
        assert_true(map.capacity == 64 || map.count * 8 >= map.capacity);
    }
    assert_int_equal(map.count, 0);
    assert_true(map.capacity <= 64);
    tn_map_fini(&map);
}

static uint64_t home_of(const struct tn_map *map, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> map->shift;
}

/* Keys whose home is `slot` of a table of 64. */
static void keys_at_home(const struct tn_map *map, uint64_t slot, uint64_t *keys, int count)
{
    int found = 0;

    for (uint64_t key = 1; found < count; key++) {
        if (home_of(map, key) == slot) {
            keys[found++] = key;
        }
    }
}

/* A run of neighbours that wraps around the end of the table; each of its entries is removed first
 * once, and all others must still be found. */
static void removing_closes_the_gap_in_every_run(void **state)
{
    enum {
        RUN = 9
    };

    (void)state;
    for (int gone = 0; gone < RUN; gone++) {
        struct tn_map map = {0};
        uint64_t keys[RUN];
        uint64_t value;

        assert_true(tn_map_reserve(&map, RUN));
        assert_int_equal(map.capacity, 64);
        keys_at_home(&map, 62, keys, 3); /* in 62, 63, 0 */
        keys_at_home(&map, 63, keys + 3, 3);
        keys_at_home(&map, 1, keys + 6, 3);
        for (int i = 0; i < RUN; i++) {
            tn_map_insert(&map, keys[i], (uint64_t)i);
        }
        assert_true(tn_map_take(&map, keys[gone], &value));
        assert_int_equal(value, gone);
        for (int i = 0; i < RUN; i++) {
            const uint64_t *found = tn_map_find(&map, keys[i]);

            assert_int_equal(found != NULL, i != gone);
            assert_true(!found || *found == (uint64_t)i);
        }
        tn_map_fini(&map);
    }
}

static void without_host_memory_nothing_changes(void **state)
{
    struct tn_map map = {0};
    const uint64_t live = tarn_host_get_usage().live_bytes;

    (void)state;
    tarn_host_fail_nth(1);
    assert_false(tn_map_reserve(&map, 1));
    assert_int_equal(map.capacity, 0);
    for (uint64_t i = 1; i <= 40; i++) {
        map_put(&map, i, i);
    }
    tarn_host_fail_nth(1);
    assert_false(tn_map_reserve(&map, 1));
    assert_int_equal(map.count, 40);
    assert_int_equal(map.capacity, 64);
    for (uint64_t i = 1; i <= 40; i++) {
        assert_int_equal(*tn_map_find(&map, i), i);
    }
    assert_true(tn_map_reserve(&map, 1));
    tn_map_fini(&map);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* Numbers whose sizes pass 2^64 on the way are refused without asking for memory. */
static void room_that_cannot_be_is_refused(void **state)
{
    static const uint64_t numbers[] = {
        UINT64_MAX,         UINT64_MAX - 1,     UINT64_MAX - 3,      UINT64_MAX / 8 + 1,
        UINT64_MAX / 8,     UINT64_MAX / 8 - 3, (uint64_t)1 << 63,   (uint64_t)1 << 61,
        (uint64_t)1 << 60,  (uint64_t)1 << 59,  UINT64_MAX / 16 + 1, UINT64_MAX / 5,
        UINT64_MAX / 8 * 5,
    };
    struct tn_map map = {0};

    (void)state;
    for (int filled = 0; filled < 2; filled++) {
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            assert_false(tn_map_reserve(&map, numbers[i]));
        }
        assert_int_equal(tarn_host_get_usage().alloc_calls, calls);
        assert_int_equal(map.count, filled ? 3 : 0);
        assert_int_equal(map.capacity, filled ? 64 : 0);
        for (uint64_t key = 1; key <= 3 && !filled; key++) {
            map_put(&map, key, key + 10);
        }
    }
    for (uint64_t key = 1; key <= 3; key++) {
        assert_int_equal(*tn_map_find(&map, key), key + 10);
    }
    tn_map_fini(&map);
}

/* Taking never fails: without host memory the table stays large. */
static void taking_needs_no_host_memory(void **state)
{
    struct tn_map map = {0};
    uint64_t value;

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) {
        map_put(&map, i, i);
    }
    for (uint64_t i = 1; i <= 1000; i++) {
        tarn_host_fail_nth(1);
        assert_true(tn_map_take(&map, i, &value));
        assert_int_equal(value, i);
    }
    tarn_host_fail_nth(0);
    assert_int_equal(map.count, 0);
    assert_true(map.capacity >= 1024);
    tn_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(zero_is_never_a_key),
        cmocka_unit_test(a_value_can_be_changed_in_place),
        cmocka_unit_test(random_operations_equal_the_model),
        cmocka_unit_test(a_map_that_empties_becomes_small),
        cmocka_unit_test(removing_closes_the_gap_in_every_run),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(room_that_cannot_be_is_refused),
        cmocka_unit_test(taking_needs_no_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
