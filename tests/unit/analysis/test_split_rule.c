/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "analysis/split_rule.h"

#define MIB ((uint64_t)1 << 20)

static const struct tn_split_rule unset = {.max_split = UINT64_MAX};

static void requests_are_rounded(void **state)
{
    (void)state;
    assert_int_equal(tn_split_rounded(&unset, 0), 512);
    assert_int_equal(tn_split_rounded(&unset, 1), 512);
    assert_int_equal(tn_split_rounded(&unset, 512), 512);
    assert_int_equal(tn_split_rounded(&unset, 513), 1024);
}

/* The settings of a file are those of the rule; a file without any has the defaults. */
static void settings_round_as_well(void **state)
{
    struct tn_model_settings settings = {.max_split_size = -1, .has_roundup = true};

    (void)state;
    settings.roundup_power2_divisions[0] = 4;          /* below 2 MiB */
    settings.roundup_power2_divisions[3] = UINT64_MAX; /* [8, 16) MiB; no file of PyTorch has it */
    struct tn_split_rule rule = tn_split_rule_of(&settings);

    assert_int_equal(tn_split_rounded(&rule, 2000), 2048);
    assert_int_equal(tn_split_rounded(&rule, 2561), 3072); /* more than 4 units */
    assert_int_equal(tn_split_rounded(&rule, 5 * MIB + 1), 5 * MIB + 512);
    assert_int_equal(tn_split_rounded(&rule, 9 * MIB + 1), 9 * MIB + 512);
    assert_int_equal(rule.max_split, UINT64_MAX);
    assert_int_equal(tn_split_rounded(&rule, 17000), 20480);
    settings.has_roundup = false;
    rule = tn_split_rule_of(&settings);
    assert_int_equal(tn_split_rounded(&rule, 17000), 17408);
    settings.present = true;
    settings.max_split_size = 0; /* not a limit either */
    assert_int_equal(tn_split_rule_of(&settings).max_split, UINT64_MAX);
    settings.max_split_size = 20 << 20;
    settings.expandable_segments = true;
    rule = tn_split_rule_of(&settings);
    assert_int_equal(rule.max_split, 20 * MIB);
    assert_true(rule.expandable);
}

static void remainders_are_split_off_by_pool_and_limit(void **state)
{
    const struct tn_split_rule limited = {.max_split = 20 * MIB};
    const struct tn_split_rule expandable = {.max_split = UINT64_MAX, .expandable = true};

    (void)state;
    assert_int_equal(tn_split_block(&unset, 1024, 512, false), 512);
    assert_int_equal(tn_split_block(&unset, 512, 512, false), 512);
    assert_int_equal(tn_split_block(&unset, 256, 512, false), 256);
    assert_int_equal(tn_split_block(&unset, 2 * MIB, MIB, false), MIB);
    assert_int_equal(tn_split_block(&unset, 2 * MIB, MIB + 512, false), 2 * MIB);
    assert_int_equal(tn_split_block(&unset, 3 * MIB, 2 * MIB, false), 3 * MIB);
    assert_int_equal(tn_split_block(&unset, 3 * MIB + 512, 2 * MIB, false), 2 * MIB);
    assert_int_equal(tn_split_block(&unset, 3 * MIB, 2 * MIB, true), 2 * MIB);
    assert_int_equal(tn_split_block(&expandable, 3 * MIB, 2 * MIB, false), 2 * MIB);
    assert_int_equal(tn_split_block(&limited, 28 * MIB, 20 * MIB - 512, false), 20 * MIB - 512);
    assert_int_equal(tn_split_block(&limited, 28 * MIB, 20 * MIB, false), 28 * MIB);
    assert_int_equal(tn_split_block(&limited, 28 * MIB, 20 * MIB, true), 20 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_rounded),
        cmocka_unit_test(settings_round_as_well),
        cmocka_unit_test(remainders_are_split_off_by_pool_and_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
