/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "report/result.h"
#include "tarn/host.h"

struct row {
    struct tarn_group group;
    uint64_t count;
};

/* Small keys are in a table, others in a map; who asks sees no difference. */
static void keys_find_their_rows(void **state)
{
    static const uint64_t keys[] = {
        0, 1, 63, 64, 65, 4000, 0xffff, 65536, 1000000, UINT32_MAX, UINT64_MAX - 1};
    enum {
        COUNT = sizeof keys / sizeof *keys
    };
    struct tn_row_set set;

    (void)state;
    tn_row_set_init(&set, sizeof(struct row), offsetof(struct row, count), 1);
    for (size_t i = 0; i < COUNT; i++) {
        assert_null(tn_row_known(&set, keys[i]));
    }
    for (int round = 1; round <= 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            struct row *row = tn_row_get(&set, keys[i]);

            assert_non_null(row);
            assert_int_equal(row->group.key, keys[i]);
            assert_int_equal(++row->count, round);
        }
    }
    assert_null(tn_row_known(&set, 66));
    assert_null(tn_row_known(&set, 65537));
    assert_int_equal(set.rows.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) { /* in the order of their first use */
        assert_int_equal(((const struct row *)set.rows.items)[i].group.key, keys[i]);
    }
    tn_row_set_fini(&set);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void without_host_memory(void **state)
{
    static const uint64_t keys[] = {5, 1000000};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tn_row_set set;

        tn_row_set_init(&set, sizeof(struct row), offsetof(struct row, count), 1);
        tarn_host_fail_nth(1);
        assert_null(tn_row_get(&set, keys[i]));
        tarn_host_fail_nth(0);
        tn_row_set_fini(&set);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_find_their_rows),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
