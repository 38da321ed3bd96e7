/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/id_table.h"
#include "tarn/host.h"

#include <string.h>

static bool number_equal(const void *owner, uint32_t id, const void *key)
{
    return ((const uint32_t *)owner)[id] == *(const uint32_t *)key;
}

static void numbers_are_found_again(void **state)
{
    static uint32_t things[10000];
    struct tn_budget budget = {0};
    struct tn_id_table table;
    uint32_t id = UINT32_MAX;

    (void)state;
    tn_id_table_init(&table, &budget);
    for (uint32_t i = 0; i < 10000; i++) {
        things[i] = i * 7;
        const uint32_t hash = tn_hash_bytes(&things[i], sizeof things[i]);

        assert_false(tn_id_table_find(&table, hash, number_equal, things, &things[i], &id));
        assert_true(tn_id_table_add(&table, hash, i));
    }
    for (uint32_t i = 0; i < 10000; i++) {
        const uint32_t hash = tn_hash_bytes(&things[i], sizeof things[i]);

        assert_true(tn_id_table_find(&table, hash, number_equal, things, &things[i], &id));
        assert_int_equal(id, i);
    }
    tn_id_table_fini(&table);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void equal_hashes_are_told_apart(void **state)
{
    static const uint32_t things[] = {5, 6, 7};
    static const uint32_t stranger = 8;
    struct tn_budget budget = {0};
    struct tn_id_table table;
    uint32_t id = UINT32_MAX;

    (void)state;
    tn_id_table_init(&table, &budget);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tn_id_table_add(&table, 42, i));
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tn_id_table_find(&table, 42, number_equal, things, &things[i], &id));
        assert_int_equal(id, i);
    }
    assert_false(tn_id_table_find(&table, 42, number_equal, things, &stranger, &id));
    tn_id_table_fini(&table);
}

static void a_failed_growth_changes_nothing(void **state)
{
    static const uint32_t thing = 5;
    struct tn_budget budget = {0};
    struct tn_id_table table;
    uint32_t id = UINT32_MAX;

    (void)state;
    tn_id_table_init(&table, &budget);
    tarn_host_fail_nth(1);
    assert_false(tn_id_table_add(&table, 1, 0));
    tarn_host_fail_nth(0);
    assert_false(tn_id_table_find(&table, 1, number_equal, &thing, &thing, &id));
    assert_true(tn_id_table_add(&table, 1, 0));
    tn_id_table_fini(&table);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* The hash sees every byte and the length. */
static void hashes_differ(void **state)
{
    char bytes[64] = {0};

    (void)state;
    for (size_t size = 1; size < sizeof bytes; size++) {
        const uint32_t zero = tn_hash_bytes(bytes, size);

        assert_int_not_equal(zero, tn_hash_bytes(bytes, size - 1));
        for (size_t i = 0; i < size; i++) {
            bytes[i] = 1;
            assert_int_not_equal(zero, tn_hash_bytes(bytes, size));
            bytes[i] = 0;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_found_again),
        cmocka_unit_test(equal_hashes_are_told_apart),
        cmocka_unit_test(a_failed_growth_changes_nothing),
        cmocka_unit_test(hashes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
