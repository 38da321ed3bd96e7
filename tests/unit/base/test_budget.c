/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/budget.h"
#include "tarn/host.h"

static void the_limit_is_exact(void **state)
{
    struct tn_budget budget = {.limit = 100};

    (void)state;
    void *a = tn_budget_alloc(&budget, 60);
    assert_non_null(a);
    assert_null(tn_budget_alloc(&budget, 41));
    assert_int_equal(tn_budget_status(&budget), TARN_ERR_LIMIT);
    void *b = tn_budget_alloc(&budget, 40);
    assert_non_null(b);
    assert_int_equal(budget.used, 100);
    tn_budget_free(&budget, a, 60);
    tn_budget_free(&budget, b, 40);
    tn_budget_free(&budget, NULL, 40);
    assert_int_equal(budget.used, 0);
}

static void no_limit_fails_only_for_want_of_memory(void **state)
{
    struct tn_budget budget = {0};

    (void)state;
    tarn_host_fail_nth(1);
    assert_null(tn_budget_alloc(&budget, 10));
    tarn_host_fail_nth(0);
    assert_int_equal(tn_budget_status(&budget), TARN_ERR_HOST_MEMORY);
    assert_int_equal(budget.used, 0);
}

static void a_charge_is_never_given_back(void **state)
{
    struct tn_budget budget = {.limit = 100};
    struct tn_budget none = {0};

    (void)state;
    assert_true(tn_budget_charge(&budget, 60));
    assert_false(tn_budget_charge(&budget, 41));
    assert_int_equal(tn_budget_status(&budget), TARN_ERR_LIMIT);
    assert_int_equal(budget.used, 60);
    assert_null(tn_budget_alloc(&budget, 41));
    assert_true(tn_budget_charge(&budget, 40));
    assert_true(tn_budget_charge(&none, UINT64_MAX));
}

static void the_limit_grows_with_the_input(void **state)
{
    uint64_t input = 0;
    struct tn_budget budget = {.limit = 100, .input = &input, .per_byte = 10, .most = 300};

    (void)state;
    assert_true(tn_budget_charge(&budget, 100));
    input = 10;
    assert_false(tn_budget_charge(&budget, 1));
    input = 20;
    assert_true(tn_budget_charge(&budget, 100));
    assert_int_equal(tn_budget_limit(&budget), 200);
    input = 40; /* which would be 400 */
    assert_int_equal(tn_budget_limit(&budget), 300);
    input = UINT64_MAX;
    assert_int_equal(tn_budget_limit(&budget), 300);
    assert_false(tn_budget_charge(&budget, 101));
    budget.input = NULL;
    assert_true(tn_budget_charge(&budget, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(no_limit_fails_only_for_want_of_memory),
        cmocka_unit_test(a_charge_is_never_given_back),
        cmocka_unit_test(the_limit_grows_with_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
