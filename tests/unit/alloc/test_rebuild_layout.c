/* SPDX-License-Identifier: MIT */
/* Segments that are made as if a run had allocated them: what replays begin with. */
#include "support/test.h"

#include "alloc/engine/rebuild_layout.h"
#include "support/rig.h"

static const struct tn_layout_block pieces[] = {
    {.size = 20 * MIB, .requested = 20 * MIB, .allocated = true},
    {.size = 20 * MIB, .unmapped = true},
    {.size = 8 * MIB, .requested = 8 * MIB, .allocated = true},
    {.size = 12 * MIB},
    {.size = 20 * MIB, .unmapped = true},
    {.size = 20 * MIB, .requested = 20 * MIB, .allocated = true},
};

enum {
    PIECES = sizeof pieces / sizeof pieces[0]
};

static const struct tn_layout_segment segment = {
    .size = 100 * MIB, .stream = 1, .expandable = true};

static void free_pieces(struct rig *rig, tarn_ptr at)
{
    for (int i = 0; i < PIECES; i++) {
        if (pieces[i].allocated) {
            rig_free(rig, at);
        }
        at += pieces[i].size;
    }
}

static void an_expandable_segment_has_holes(void **state)
{
    tarn_ptr at = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(
        tn_rebuild_segment(rig_engine(rig.allocator), &segment, pieces, PIECES, &at, &rig.error),
        TARN_OK);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 48 * MIB);
    free_pieces(&rig, at);
    rig_close(&rig);
}

/* Each call that makes holes fails once: what is allocated is there, and so are the holes that were
 * not made. */
static void a_hole_that_cannot_be_made_is_reported(void **state)
{
    enum tarn_status st = TARN_ERR_DEVICE;
    unsigned failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_ptr at = 0;
        struct rig rig;

        rig_open(&rig, GIB, "expandable_segments:True");
        tarn_sim_fail_nth(rig.device, TARN_SIM_STREAM_WAIT, n, TARN_ERR_DEVICE);
        st = tn_rebuild_segment(rig_engine(rig.allocator), &segment, pieces, PIECES, &at,
                                &rig.error);
        tarn_sim_fail_nth(rig.device, TARN_SIM_STREAM_WAIT, 0, TARN_OK);
        assert_true(st == TARN_OK || st == TARN_ERR_DEVICE);
        rig_check(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), (n == 1 ? 68 : 48) * MIB);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), (n == 1   ? 100
                                                                   : n == 2 ? 80
                                                                            : 60) *
                                                                      MIB);
        failures += st != TARN_OK;
        if (n == 1) {
            rig_free(&rig, at + 60 * MIB); /* the second one */
        }
        free_pieces(&rig, at);
        rig_close(&rig);
    }
    assert_int_equal(failures, 2); /* one for each hole */
}

static void expect_no_stack(void *context, const struct tarn_trace_event *event)
{
    (*(unsigned *)context)++;
    assert_int_equal(event->stack, 0);
}

static uint64_t no_stack(void *context, enum tarn_context_level level)
{
    (void)context;
    (void)level;
    fail_msg("a replay is no call of the program's");
    return 0;
}

static void keep_stack(void *context, uint64_t stack)
{
    (void)context;
    assert_int_equal(stack, 0);
}

/* What is rebuilt comes from no call: its events have no stack. */
static void what_is_rebuilt_has_no_stack(void **state)
{
    unsigned events = 0;
    const struct tarn_sink sink = {.context = &events,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = no_stack,
                                   .receive = expect_no_stack,
                                   .retain = keep_stack,
                                   .release = keep_stack};
    tarn_ptr at = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    assert_int_equal(
        tn_rebuild_segment(rig_engine(rig.allocator), &segment, pieces, PIECES, &at, &rig.error),
        TARN_OK);
    assert_true(events > PIECES);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &events, &rig.error), TARN_OK);
    free_pieces(&rig, at);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expandable_segment_has_holes),
        cmocka_unit_test(what_is_rebuilt_has_no_stack),
        cmocka_unit_test(a_hole_that_cannot_be_made_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
