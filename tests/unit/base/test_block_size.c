/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/block_size.h"

#define MIB ((uint64_t)1 << 20)

static void requests_are_multiples_of_a_unit(void **state)
{
    (void)state;
    assert_int_equal(tn_block_round(0, 0), 512);
    assert_int_equal(tn_block_round(511, 64), 512);
    assert_int_equal(tn_block_round(512, 1), 512);
    assert_int_equal(tn_block_round(513, 0), 1024);
    assert_int_equal(tn_block_round(((uint64_t)1 << 62) - 1, 0), (uint64_t)1 << 62);
}

/* Divisions are of the range between two powers of two, and never finer than the unit. */
static void divisions_round_further(void **state)
{
    (void)state;
    assert_int_equal(tn_block_round(2048, 4), 2048); /* not more than 4 units */
    assert_int_equal(tn_block_round(2049, 4), 2560);
    assert_int_equal(tn_block_round(9 * MIB, 4), 10 * MIB);
    assert_int_equal(tn_block_round(9 * MIB, 1), 9 * MIB);
    assert_int_equal(tn_block_round(8 * MIB, 2), 8 * MIB);
    assert_int_equal(tn_block_round_to_division(1200, 4), 1280);
    assert_int_equal(tn_block_round_to_division(5, 8), 8); /* steps of less than a byte */
}

static void intervals_begin_at_powers_of_two(void **state)
{
    (void)state;
    assert_int_equal(tn_block_interval(1), 0);
    assert_int_equal(tn_block_interval(2 * MIB - 1), 0);
    assert_int_equal(tn_block_interval(2 * MIB), 1);
    assert_int_equal(tn_block_interval(MIB << 15), 15);
    assert_int_equal(tn_block_interval(UINT64_MAX), 15);
}

static void remainders_are_split_off(void **state)
{
    (void)state;
    assert_false(tn_block_splits(0, 512, true, UINT64_MAX));
    assert_true(tn_block_splits(512, 512, true, 0));
    assert_false(tn_block_splits(MIB, 2 * MIB, false, UINT64_MAX));
    assert_true(tn_block_splits(MIB + 512, 2 * MIB, false, UINT64_MAX));
    assert_true(tn_block_splits(8 * MIB, 20 * MIB - 512, false, 20 * MIB));
    assert_false(tn_block_splits(8 * MIB, 20 * MIB, false, 20 * MIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_multiples_of_a_unit),
        cmocka_unit_test(divisions_round_further),
        cmocka_unit_test(intervals_begin_at_powers_of_two),
        cmocka_unit_test(remainders_are_split_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
