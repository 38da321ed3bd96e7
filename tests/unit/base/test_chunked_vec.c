/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/chunked_vec.h"
#include "tarn/host.h"

static void items_stay_where_they_are(void **state)
{
    struct tn_budget budget = {0};
    struct tn_chunked_vec store;

    (void)state;
    tn_chunked_vec_init(&store, &budget, sizeof(uint32_t));
    const uint32_t *first = NULL;
    for (uint32_t i = 0; i < 50000; i++) {
        uint32_t *item = tn_chunked_vec_push(&store);

        assert_non_null(item);
        if (item) {
            *item = i;
        }
        first = first ? first : item;
    }
    assert_ptr_equal(first, tn_chunked_vec_at(&store, 0));
    for (uint32_t i = 0; i < 50000; i++) {
        assert_int_equal(*(const uint32_t *)tn_chunked_vec_at(&store, i), i);
    }
    tn_chunked_vec_fini(&store);
    assert_int_equal(store.count, 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void a_failed_push_changes_nothing(void **state)
{
    struct tn_budget budget = {0};
    struct tn_chunked_vec store;

    (void)state;
    tn_chunked_vec_init(&store, &budget, 8);
    for (uint64_t n = 1; n <= 2; n++) { /* the list of chunks, then the chunk */
        tarn_host_fail_nth(n);
        assert_null(tn_chunked_vec_push(&store));
        tarn_host_fail_nth(0);
        assert_int_equal(store.count, 0);
        tn_chunked_vec_fini(&store);
    }
    assert_non_null(tn_chunked_vec_push(&store));
    tn_chunked_vec_fini(&store);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay_where_they_are),
        cmocka_unit_test(a_failed_push_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
