/* SPDX-License-Identifier: MIT */
/* How much more than what lives the compact policy reserves before pages move. */
#include "support/test.h"

#include "alloc/compact/slack.h"

#include "support/sim.h"

#define LIVE (128 * MIB)

static void it_begins_with_a_128th_of_what_lived_at_most(void **state)
{
    struct tn_slack slack = {0};

    (void)state;
    assert_int_equal(tn_slack_allowed(&slack), 0);
    tn_slack_note_live(&slack, LIVE);
    assert_int_equal(tn_slack_allowed(&slack), LIVE + MIB);
    tn_slack_note_live(&slack, LIVE / 2);
    assert_int_equal(tn_slack_allowed(&slack), LIVE + MIB);
}

static void it_grows_four_times_while_pages_go_on_moving(void **state)
{
    struct tn_slack slack = {0};
    uint64_t reserved = LIVE + 64 * MIB;

    (void)state;
    tn_slack_note_live(&slack, LIVE);
    for (int i = 0; i < 4; i++) {
        const uint64_t before = tn_slack_allowed(&slack);

        tn_slack_note_moved(&slack, reserved, reserved);
        tn_slack_note_moved(&slack, reserved, reserved);
        assert_int_equal(tn_slack_allowed(&slack), before); /* not more than twice of it */
        tn_slack_note_moved(&slack, 1, reserved);
        assert_int_equal(tn_slack_allowed(&slack), reserved + reserved / 64);
        reserved = tn_slack_allowed(&slack);
    }
    tn_slack_note_moved(&slack, 3 * reserved, reserved);
    assert_int_equal(tn_slack_allowed(&slack), reserved);
}

static void it_begins_anew_when_more_lives_than_it_allows(void **state)
{
    struct tn_slack slack = {0};

    (void)state;
    tn_slack_note_live(&slack, LIVE);
    tn_slack_note_moved(&slack, 3 * LIVE, LIVE);
    assert_int_equal(tn_slack_allowed(&slack), LIVE + 2 * MIB);
    tn_slack_note_live(&slack, LIVE + 2 * MIB); /* as far as it was allowed */
    assert_int_equal(tn_slack_allowed(&slack), LIVE + 2 * MIB);
    tn_slack_note_live(&slack, 2 * LIVE);
    assert_int_equal(tn_slack_allowed(&slack), 2 * (LIVE + MIB));
}

/* What moved while less lived says nothing about now. */
static void what_moved_is_forgotten_when_more_lives(void **state)
{
    struct tn_slack slack = {0};

    (void)state;
    tn_slack_note_live(&slack, LIVE);
    tn_slack_note_moved(&slack, 2 * LIVE, LIVE);
    tn_slack_note_live(&slack, LIVE + 1);
    tn_slack_note_moved(&slack, LIVE, LIVE);
    assert_int_equal(slack.grown_to, 0);
}

/* But not when as much lives again. */
static void what_moved_counts_while_as_much_lives(void **state)
{
    struct tn_slack slack = {0};

    (void)state;
    tn_slack_note_live(&slack, LIVE);
    tn_slack_note_moved(&slack, 2 * LIVE, LIVE);
    tn_slack_note_live(&slack, LIVE);
    tn_slack_note_moved(&slack, 1, LIVE);
    assert_int_equal(tn_slack_allowed(&slack), LIVE + 2 * MIB);
}

/* More than ever before has to live for that, also once less is allowed: what lived at most counts,
 * not what is allowed. */
static void it_begins_anew_only_when_more_lives_than_ever(void **state)
{
    struct tn_slack slack = {0};

    (void)state;
    tn_slack_note_live(&slack, LIVE);
    tn_slack_note_moved(&slack, 3 * LIVE, LIVE);
    tn_slack_note_live(&slack, LIVE + 2 * MIB);
    tn_slack_note_moved(&slack, 3 * LIVE, LIVE / 2); /* much was given back */
    tn_slack_note_live(&slack, LIVE + MIB);
    assert_int_equal(tn_slack_allowed(&slack), LIVE / 2 + MIB);
    tn_slack_note_live(&slack, LIVE + 3 * MIB);
    assert_int_equal(tn_slack_allowed(&slack), (LIVE + 3 * MIB) + (LIVE + 3 * MIB) / 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_a_128th_of_what_lived_at_most),
        cmocka_unit_test(it_grows_four_times_while_pages_go_on_moving),
        cmocka_unit_test(it_begins_anew_when_more_lives_than_it_allows),
        cmocka_unit_test(what_moved_is_forgotten_when_more_lives),
        cmocka_unit_test(what_moved_counts_while_as_much_lives),
        cmocka_unit_test(it_begins_anew_only_when_more_lives_than_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
