/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "analysis/split_rule.h"

static void requests_are_rounded(void **state)
{
    (void)state;
    assert_int_equal(tn_split_rounded(0), 0);
    assert_int_equal(tn_split_rounded(1), 512);
    assert_int_equal(tn_split_rounded(512), 512);
    assert_int_equal(tn_split_rounded(513), 1024);
}

static void remainders_are_split_off_by_pool_and_limit(void **state)
{
    const uint64_t mib = (uint64_t)1 << 20;

    (void)state;
    assert_false(tn_splits_off(0, 512, false, TN_SPLIT_UNLIMITED));
    assert_true(tn_splits_off(512, 512, false, TN_SPLIT_UNLIMITED));
    assert_false(tn_splits_off(mib, 2 * mib, true, TN_SPLIT_UNLIMITED));
    assert_true(tn_splits_off(mib + 512, 2 * mib, true, TN_SPLIT_UNLIMITED));
    assert_true(tn_splits_off(8 * mib, 20 * mib - 512, true, 20 * mib));
    assert_false(tn_splits_off(8 * mib, 20 * mib, true, 20 * mib));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_rounded),
        cmocka_unit_test(remainders_are_split_off_by_pool_and_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
