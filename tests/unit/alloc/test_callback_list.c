/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "alloc/engine/callback_list.h"

static void one(void)
{
}

static void two(void)
{
}

static void the_most_recent_of_equals_is_removed(void **state)
{
    struct tn_callback_list list = {.count = 0};
    int a;
    int b;

    (void)state;
    assert_int_equal(tn_callback_add(&list, one, &a), TARN_OK);
    assert_int_equal(tn_callback_add(&list, two, &a), TARN_OK);
    assert_int_equal(tn_callback_add(&list, one, &a), TARN_OK);
    assert_int_equal(tn_callback_add(&list, one, &b), TARN_OK);
    assert_int_equal(tn_callback_remove(&list, two, &b), TARN_ERR_NOT_FOUND);
    assert_int_equal(tn_callback_remove(&list, one, &a), TARN_OK);
    assert_int_equal(list.count, 3);
    assert_ptr_equal(list.items[0].call, one);
    assert_ptr_equal(list.items[1].call, two);
    assert_ptr_equal(list.items[2].context, &b);
    assert_int_equal(tn_callback_remove(&list, one, &a), TARN_OK);
    assert_int_equal(tn_callback_remove(&list, one, &a), TARN_ERR_NOT_FOUND);
    assert_int_equal(list.count, 2);
}

static void a_full_list_refuses(void **state)
{
    struct tn_callback_list list = {.count = 0};

    (void)state;
    for (int i = 0; i < TARN_OBSERVERS_MAX; i++) {
        assert_int_equal(tn_callback_add(&list, one, NULL), TARN_OK);
    }
    assert_int_equal(tn_callback_add(&list, two, NULL), TARN_ERR_LIMIT);
    assert_int_equal(tn_callback_remove(&list, one, NULL), TARN_OK);
    assert_int_equal(tn_callback_add(&list, two, NULL), TARN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_recent_of_equals_is_removed),
        cmocka_unit_test(a_full_list_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
