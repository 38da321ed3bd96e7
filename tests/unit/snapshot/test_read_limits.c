/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "snapshot/read_limits.h"

#include <string.h>

static struct tn_input input_of(int64_t size, enum tn_packing packing)
{
    struct tn_input input;

    memset(&input, 0, sizeof input);
    input.source.size = size;
    input.unpack.packing = packing;
    return input;
}

static uint64_t memory_of(int64_t size, enum tn_packing packing)
{
    const struct tn_input input = input_of(size, packing);
    struct tarn_read_limits limits;

    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    return tn_read_limits_memory(&limits, &input);
}

static void memory_is_in_proportion_to_the_input(void **state)
{
    const uint64_t least = (uint64_t)256 << 20;
    const uint64_t most = memory_of(INT64_MAX, TN_PACKING_NONE);

    (void)state;
    assert_true(most >= least && most < (uint64_t)1 << 56); /* half of any machine's */
    assert_int_equal(memory_of(1, TN_PACKING_NONE), least);
    assert_int_equal(memory_of(17 << 20, TN_PACKING_NONE), 16 * ((uint64_t)17 << 20));
    assert_int_equal(memory_of(123000, TN_PACKING_GZIP), least);
    assert_int_equal(memory_of(600000, TN_PACKING_ZSTD), (uint64_t)512 * 600000);
    assert_int_equal(memory_of(INT64_MAX, TN_PACKING_GZIP), most);
    assert_int_equal(memory_of(-1, TN_PACKING_GZIP), least);
}

static void an_input_of_unknown_size_counts_as_it_comes(void **state)
{
    struct tn_input input = input_of(-1, TN_PACKING_NONE);
    struct tn_budget budget = {.limit = 100};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    tn_read_limits_follow(&limits, &input, &budget);
    assert_int_equal(tn_budget_limit(&budget), 100);
    input.source.taken = 1000;
    assert_int_equal(tn_budget_limit(&budget), 16000);
    tn_read_limits_settle(&budget);
    input.source.taken = 2000;
    assert_int_equal(tn_budget_limit(&budget), 16000);
}

static void a_limit_of_the_callers_is_fixed(void **state)
{
    const struct tarn_read_limits wanted = {.struct_size = sizeof wanted, .max_memory = 4096};
    const struct tn_input input = input_of(-1, TN_PACKING_NONE);
    struct tn_budget budget = {.limit = 100};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(&wanted, &limits, NULL), TARN_OK);
    assert_int_equal(tn_read_limits_memory(&limits, &input), 4096);
    tn_read_limits_follow(&limits, &input, &budget);
    assert_null(budget.input);
}

static void wrong_limits_are_refused(void **state)
{
    const struct tarn_read_limits deep = {.struct_size = sizeof deep, .max_depth = 121};
    const struct tarn_read_limits small = {.struct_size = 4};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(&deep, &limits, NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_read_limits_complete(&small, &limits, NULL), TARN_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_in_proportion_to_the_input),
        cmocka_unit_test(an_input_of_unknown_size_counts_as_it_comes),
        cmocka_unit_test(a_limit_of_the_callers_is_fixed),
        cmocka_unit_test(wrong_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
