/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdbool.h>

#include "base/vec.h"
#include "tarn/host.h"

struct item {
    uint64_t a;
    uint32_t b;
};

static void pushed_items_are_zero_and_stay_in_order(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_vec vec;

    (void)state;
    tn_vec_init(&vec, sizeof(struct item));
    for (uint64_t i = 0; i < 5000; i++) {
        struct item *item = tn_vec_push(&vec);

        assert_non_null(item);
        assert_int_equal(item->a, 0);
        assert_int_equal(item->b, 0);
        *item = (struct item){.a = i, .b = (uint32_t)(i * 3)};
    }
    assert_int_equal(vec.count, 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        const struct item *item = (const struct item *)vec.items + i;

        assert_int_equal(item->a, i);
        assert_int_equal(item->b, i * 3);
    }
    tn_vec_fini(&vec);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* A place that was used before comes out zero again. */
static void an_item_pushed_again_is_zero(void **state)
{
    struct tn_vec vec;
    uint64_t *item;

    (void)state;
    tn_vec_init(&vec, sizeof *item);
    item = tn_vec_push(&vec);
    assert_non_null(item);
    *item = UINT64_MAX;
    vec.count = 0;
    item = tn_vec_push(&vec);
    assert_non_null(item);
    assert_int_equal(*item, 0);
    tn_vec_fini(&vec);
}

static void added_items_are_copies(void **state)
{
    struct tn_vec vec;

    (void)state;
    tn_vec_init(&vec, sizeof(struct item));
    for (uint32_t i = 0; i < 100; i++) {
        const struct item item = {.a = i, .b = i * 3};

        assert_true(tn_vec_add(&vec, &item));
    }
    assert_int_equal(vec.count, 100);
    assert_int_equal(((const struct item *)vec.items)[99].a, 99);
    assert_int_equal(((const struct item *)vec.items)[99].b, 297);
    tn_vec_fini(&vec);
}

static void reserved_room_needs_no_host_memory(void **state)
{
    struct tn_vec vec;

    (void)state;
    tn_vec_init(&vec, sizeof(uint64_t));
    assert_true(tn_vec_reserve(&vec, 100));
    assert_true(vec.capacity >= 100);
    assert_int_equal(vec.count, 0);
    tarn_host_fail_nth(1);
    for (int i = 0; i < 100; i++) {
        assert_non_null(tn_vec_push(&vec));
    }
    tarn_host_fail_nth(0);
    assert_true(tn_vec_reserve(&vec, 0));
    tn_vec_fini(&vec);
}

static void without_host_memory_nothing_changes(void **state)
{
    struct tn_vec vec;

    (void)state;
    tn_vec_init(&vec, sizeof(uint64_t));
    tarn_host_fail_nth(1);
    assert_null(tn_vec_push(&vec));
    assert_int_equal(vec.count, 0);
    for (uint64_t i = 0; vec.count == 0 || vec.count < vec.capacity; i++) {
        uint64_t *item = tn_vec_push(&vec);

        assert_non_null(item);
        *item = i;
    }
    const size_t full = vec.count;

    tarn_host_fail_nth(1);
    assert_null(tn_vec_push(&vec));
    assert_int_equal(vec.count, full);
    tarn_host_fail_nth(1);
    assert_false(tn_vec_reserve(&vec, 1));
    for (size_t i = 0; i < full; i++) {
        assert_int_equal(((uint64_t *)vec.items)[i], i);
    }
    assert_non_null(tn_vec_push(&vec));
    tn_vec_fini(&vec);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
    struct tn_vec vec;

    (void)state;
    tn_vec_init(&vec, 64);
    assert_non_null(tn_vec_push(&vec));
    assert_false(tn_vec_reserve(&vec, SIZE_MAX));
    assert_false(tn_vec_reserve(&vec, SIZE_MAX - 1)); /* no power of two is as large */
    assert_false(tn_vec_reserve(&vec, SIZE_MAX / 64));
    assert_int_equal(vec.count, 1);
    tn_vec_fini(&vec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_items_are_zero_and_stay_in_order),
        cmocka_unit_test(an_item_pushed_again_is_zero),
        cmocka_unit_test(added_items_are_copies),
        cmocka_unit_test(reserved_room_needs_no_host_memory),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(a_size_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
