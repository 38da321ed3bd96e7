/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "analysis/lifetime_walk.h"
#include "tarn/host.h"

static struct tn_lifetime_step step_of(struct tn_lifetime_walk *walk, enum tn_trace_action action,
                                       uint64_t address)
{
    const struct tn_trace_entry entry = {.address = address, .action = action};
    struct tn_lifetime_step step;

    assert_true(tn_lifetime_walk_step(walk, &entry, &step));
    return step;
}

static void blocks_are_numbered_as_they_appear(void **state)
{
    struct tn_lifetime_walk walk = {.count = 0};
    struct tn_lifetime_step step;

    (void)state;
    step = step_of(&walk, TN_TRACE_ALLOC, 512);
    assert_true(step.is_new && step.lifetime == 0 && step.ended == TN_LIFETIME_NONE);
    step = step_of(&walk, TN_TRACE_FREE_REQUESTED, 1024); /* from before */
    assert_true(step.is_new && step.lifetime == 1);
    step = step_of(&walk, TN_TRACE_FREE_COMPLETED, 1024);
    assert_true(!step.is_new && step.lifetime == 1);
    step = step_of(&walk, TN_TRACE_FREE_COMPLETED, 1024); /* free already */
    assert_true(!step.is_new && step.lifetime == TN_LIFETIME_NONE);
    step = step_of(&walk, TN_TRACE_ALLOC, 512); /* in use: its free is missing */
    assert_true(step.is_new && step.lifetime == 2 && step.ended == 0);
    step = step_of(&walk, TN_TRACE_ANNOTATE, 512);
    assert_true(!step.is_new && step.lifetime == 2);
    (void)step_of(&walk, TN_TRACE_ALLOC, 1024); /* free again, so not from before */
    step = step_of(&walk, TN_TRACE_FREE_COMPLETED, 1024);
    assert_true(!step.is_new && step.lifetime == 3);
    step = step_of(&walk, TN_TRACE_SEGMENT_ALLOC, 4096);
    assert_true(!step.is_new && step.lifetime == TN_LIFETIME_NONE);
    (void)step_of(&walk, TN_TRACE_ALLOC, UINT64_MAX);
    assert_int_equal(tn_lifetime_walk_at(&walk, UINT64_MAX), 4);
    assert_int_equal(walk.count, 5);
    tn_lifetime_walk_fini(&walk);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void failures_change_nothing(void **state)
{
    const struct tn_trace_entry entry = {.address = 512, .action = TN_TRACE_ALLOC};
    struct tn_lifetime_walk walk = {.count = 0};
    struct tn_lifetime_step step;

    (void)state;
    tarn_host_fail_nth(1);
    assert_false(tn_lifetime_walk_step(&walk, &entry, &step));
    tarn_host_fail_nth(0);
    assert_int_equal(walk.count, 0);
    assert_true(tn_lifetime_walk_step(&walk, &entry, &step));
    tn_lifetime_walk_fini(&walk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_numbered_as_they_appear),
        cmocka_unit_test(failures_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
