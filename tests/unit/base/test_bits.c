/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/bits.h"

/* Of each power of two, its neighbours and what lies between. */
static void powers_and_positions_agree(void **state)
{
    (void)state;
    assert_false(tn_is_pow2(0));
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t power = (uint64_t)1 << bit;

        assert_true(tn_is_pow2(power));
        assert_int_equal(tn_log2_floor(power), bit);
        assert_int_equal(tn_log2_floor(power | (power - 1)), bit);
        assert_true(tn_pow2_floor(power | (power - 1)) == power);
        assert_true(tn_pow2_ceil(power) == power);
        assert_int_equal(tn_lowest_bit(power), bit);
        assert_int_equal(tn_lowest_bit(~(power - 1)), bit);
        if (bit >= 2) {
            assert_false(tn_is_pow2(power - 1));
            assert_false(tn_is_pow2(power + 1));
            assert_true(tn_pow2_ceil(power - 1) == power);
            assert_true(tn_pow2_ceil(power / 2 + 1) == power);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(powers_and_positions_agree)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
