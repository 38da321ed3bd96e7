/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status steps(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_steps(asked->snapshot, &asked->options, writer, error);
}

enum {
    STEPS = 6,
    LARGE = 3 /* the step that takes more, from 0 */
};

/* A run of 6 steps. In each, `work` takes and frees a block, the fourth time a large one, and
 * `keep` keeps 100 bytes more. The first step takes a segment, the fourth one maps, unmaps, frees
 * one and fails once. Two events follow the last step. `annotated`: the program says what steps
 * are. */
static struct tarn_snapshot *run(bool annotated)
{
    static char json[32768];
    size_t used = (size_t)snprintf(json, sizeof json,
                                   "{'segments': [], 'device_traces': [["
                                   "{'action': 'segment_alloc', 'addr': 512, 'size': 2097152, "
                                   "'stream': 0, 'time_us': 999}");

    for (int i = 0; i < STEPS; i++) {
        const int time = 1000 + i * 100;
        const int size = i == LARGE ? 50000 : 1000 + i;

        used += (size_t)snprintf(
            json + used, sizeof json - used,
            ",{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'time_us': %d, 'frames': ["
            " {'name': 'work', 'filename': 'w.py', 'line': 1}]},"
            "{'action': 'free_completed', 'addr': 512, 'size': %d, 'stream': 0, 'time_us': %d},"
            "{'action': 'alloc', 'addr': %d, 'size': 100, 'stream': 0, 'time_us': %d, 'frames': ["
            " {'name': 'keep', 'filename': 'k.py', 'line': 2}]}",
            size, time, size, time + 10, 524288 + i * 512, time + 20);
        if (i == LARGE) {
            used += (size_t)snprintf(
                json + used, sizeof json - used,
                ",{'action': 'segment_map', 'addr': 8388608, 'size': 2097152, 'stream': 0,"
                " 'time_us': %d},"
                "{'action': 'segment_unmap', 'addr': 8388608, 'size': 2097152, 'stream': 0,"
                " 'time_us': %d},"
                "{'action': 'segment_alloc', 'addr': 16777216, 'size': 2097152, 'stream': 0,"
                " 'time_us': %d},"
                "{'action': 'segment_free', 'addr': 16777216, 'size': 2097152, 'stream': 0,"
                " 'time_us': %d},"
                "{'action': 'oom', 'size': 4194304, 'device_free': 0, 'stream': 0, 'time_us': %d}",
                time + 22, time + 24, time + 26, time + 28, time + 30);
        }
    }
    used += (size_t)snprintf(json + used, sizeof json - used,
                             ",{'action': 'alloc', 'addr': 1048576, 'size': 7, 'stream': 0,"
                             " 'time_us': 1590},"
                             "{'action': 'free_completed', 'addr': 1048576, 'size': 7,"
                             " 'stream': 0, 'time_us': 1595}]]");
    if (annotated) {
        used += (size_t)snprintf(json + used, sizeof json - used, ",'external_annotations': [");
        for (int i = 0; i < STEPS; i++) {
            used += (size_t)snprintf(
                json + used, sizeof json - used,
                "%s{'stage': 'START', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d},"
                "{'stage': 'END', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d}",
                i > 0 ? "," : "", 1040 + i * 100, 1050 + i * 100);
        }
        used += (size_t)snprintf(json + used, sizeof json - used, "]");
    }
    (void)snprintf(json + used, sizeof json - used, "}");
    return report_parse(json);
}

static struct tarn_steps_result *compute(const struct report_asked *asked)
{
    struct tarn_steps_result *results;
    struct tarn_error error;
    size_t count;

    assert_int_equal(tarn_steps_compute(asked->snapshot, &asked->options, &results, &count, &error),
                     TARN_OK);
    assert_int_equal(count, 1);
    return results;
}

static void table(void **state)
{
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot,
                                 {.struct_size = sizeof asked.options, .units = TARN_UNITS_BYTES}};

    (void)state;
    report_says(steps, &asked,
                "device 0\n"
                "6 annotated steps\n"
                "step 4 stands out: its peak is 48997 above the median, 1303\n\n"
                "   step             peak              end            growth   allocs  calls  "
                "from event\n"
                "      1             1000              100              +100        2      1  0\n"
                "      2             1101              200              +100        2      0  4\n"
                "      3             1202              300              +100        2      0  7\n"
                "      4            50300              400              +100        2      4  "
                "10 outlier 1 OOM\n"
                "      5             1404              500              +100        2      0  18\n"
                "      6             1505              600              +100        2      0  21\n"
                "      -              607              600                +0        1      0  "
                "24 after\n"
                "                   50300              600              +600       13      5  "
                "total\n\n"
                "device calls: segments allocated 2, freed 1; memory mapped 1, unmapped 1\n");
    tarn_snapshot_destroy(snapshot);
}

static void annotated_steps_in_numbers(void **state)
{
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_steps_result *result = compute(&asked);
    const struct tarn_step *row = &result->rows[LARGE];

    (void)state;
    assert_int_equal(result->points_by, TARN_LEAK_POINTS_STEPS);
    assert_int_equal(result->step_count, STEPS);
    assert_int_equal(result->row_count, STEPS + 1);
    for (size_t i = 0; i < STEPS; i++) {
        assert_int_equal(result->rows[i].kind, TARN_STEP_WHOLE);
        assert_int_equal(result->rows[i].number, i + 1);
        assert_int_equal(result->rows[i].peak, (i == LARGE ? 50000 : 1000 + i) + i * 100);
        assert_int_equal(result->rows[i].end, (i + 1) * 100);
        assert_int_equal(result->rows[i].growth, 100);
        assert_int_equal(result->rows[i].allocations, 2);
        assert_int_equal(result->rows[i].is_outlier, i == LARGE);
    }
    assert_int_equal(row->first_event, 10);
    assert_int_equal(row->last_event, 17);
    assert_int_equal(row->peak_event, 10);
    assert_int_equal(row->reserved_peak, 2 * 2097152);
    assert_int_equal(row->allocated, 50100);
    assert_int_equal(row->device_calls, 4);
    assert_int_equal(row->segment_allocs, 1);
    assert_int_equal(row->segment_frees, 1);
    assert_int_equal(row->segment_maps, 1);
    assert_int_equal(row->segment_unmaps, 1);
    assert_int_equal(row->ooms, 1);
    assert_int_equal(result->rows[STEPS].kind, TARN_STEP_AFTER);
    assert_int_equal(result->rows[STEPS].number, TARN_NONE);
    assert_int_equal(result->rows[STEPS].peak, 607);
    assert_int_equal(result->rows[STEPS].growth, 0);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Peaks 1000, 1101, 1202, 50300, 1404 and 1505 of six steps: the median is 1303. */
static void the_outlier_is_named(void **state)
{
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->median_peak, 1303);
    assert_int_equal(result->outlier_count, 1);
    assert_int_equal(result->outlier.number, LARGE + 1);
    assert_int_equal(result->outlier.peak, 50300);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

static void without_annotations_a_stack_tells(void **state)
{
    struct tarn_snapshot *snapshot = run(false);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->points_by, TARN_LEAK_POINTS_STACK);
    assert_string_equal(result->repeated.text, "w.py:1:work");
    assert_int_equal(result->step_count, STEPS);
    assert_int_equal(result->row_count, STEPS + 1);
    assert_int_equal(result->rows[0].kind, TARN_STEP_BEFORE);
    assert_int_equal(result->rows[0].segment_allocs, 1);
    assert_int_equal(result->rows[0].last_event, 0);
    assert_int_equal(result->rows[1].number, 1);
    assert_int_equal(result->rows[1].first_event, 1);
    assert_int_equal(result->rows[STEPS].allocations, 3);
    assert_int_equal(result->outlier.number, LARGE + 1);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

static void equal_parts_have_no_outlier(void **state)
{
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options, .parts = 5}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->points_by, TARN_LEAK_POINTS_PARTS);
    assert_int_equal(result->step_count, 5);
    assert_int_equal(result->row_count, 5);
    assert_int_equal(result->outlier_count, 0);
    assert_int_equal(result->rows[4].last_event, 25);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Of two rows those of highest peak, in the order of the run; the others in one. */
static void fewer_rows_keep_the_highest(void **state)
{
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options, .rows = 2}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->row_count, 2);
    assert_int_equal(result->rows[0].number, LARGE + 1);
    assert_int_equal(result->rows[1].number, STEPS);
    assert_int_equal(result->other_count, 5);
    assert_int_equal(result->others.allocations, 9);
    assert_int_equal(result->others.growth, 400);
    assert_int_equal(result->others.peak, 1404);
    assert_int_equal(result->others.device_calls, 1);
    assert_int_equal(result->total.growth, 600);
    assert_int_equal(result->total.end, 600);
    assert_int_equal(result->total.peak, 50300);
    assert_int_equal(result->total.allocations, 13);
    assert_int_equal(result->total.first_event, 0);
    assert_int_equal(result->total.last_event, 25);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* A part that begins in the middle keeps the numbers of its steps. */
static void a_part_has_its_own_numbers(void **state)
{
    const struct tarn_selection selection = {.struct_size = sizeof selection,
                                             .steps = {true, 3, 4}};
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot,
                                 {.struct_size = sizeof asked.options, .selection = &selection}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->row_count, 2);
    assert_int_equal(result->rows[0].number, 3);
    assert_int_equal(result->rows[0].peak, 1202);
    assert_int_equal(result->rows[1].number, 4);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Steps of these peaks: a block that is allocated and freed, and the end of a step. */
static struct tarn_snapshot *steps_of(const int *peaks, int count)
{
    static char json[8192];
    size_t used = (size_t)snprintf(json, sizeof json, "{'segments': [], 'device_traces': [[");

    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(
            json + used, sizeof json - used,
            "%s{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'time_us': %d},"
            "{'action': 'free_completed', 'addr': 512, 'size': %d, 'stream': 0, 'time_us': %d}",
            i > 0 ? "," : "", peaks[i], 1000 + i * 100, peaks[i], 1010 + i * 100);
    }
    used += (size_t)snprintf(json + used, sizeof json - used, "]], 'external_annotations': [");
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(
            json + used, sizeof json - used,
            "%s{'stage': 'START', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d},"
            "{'stage': 'END', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d}",
            i > 0 ? "," : "", 1040 + i * 100, 1050 + i * 100);
    }
    (void)snprintf(json + used, sizeof json - used, "]}");
    return report_parse(json);
}

/* A step above the others is named before one below, however far that is, and in either order. */
static void the_outlier_above_is_named(void **state)
{
    static const struct {
        int peaks[8];
        uint64_t named;
        const char *text;
    } rows[] = {{{1000, 1001, 2, 1000, 1002, 1100, 1001, 999},
                 6,
                 "step 6 stands out: its peak is 100 B above the median, 1000 B\n"},
                {{1000, 1001, 1100, 1000, 1002, 2, 1001, 999},
                 3,
                 "step 3 stands out: its peak is 100 B above the median, 1000 B\n"},
                {{1000, 1001, 5, 1000, 1002, 2, 1001, 999},
                 6,
                 "step 6 stands out: its peak is 998 B below the median, 1000 B\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_snapshot *snapshot = steps_of(rows[i].peaks, 8);
        const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
        struct tarn_steps_result *result = compute(&asked);

        assert_int_equal(result->outlier_count, 2);
        assert_int_equal(result->outlier.number, rows[i].named);
        char *text = report_text(steps, &asked);

        assert_non_null(strstr(text, rows[i].text));
        free(text);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Only blocks that are selected count. */
static void a_selection_of_blocks(void **state)
{
    const struct tarn_selection selection = {.struct_size = sizeof selection, .match = "keep"};
    struct tarn_snapshot *snapshot = run(true);
    struct report_asked asked = {snapshot,
                                 {.struct_size = sizeof asked.options, .selection = &selection}};
    struct tarn_steps_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->total.allocations, STEPS);
    assert_int_equal(result->rows[LARGE].peak, 100 * (LARGE + 1));
    assert_int_equal(result->rows[LARGE].allocated, 100);
    assert_int_equal(result->total.peak, 100 * STEPS);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Whatever tells steps, the rows of a recorded run add up to what other reports say of it. */
static void recorded_runs_add_up(void **state)
{
    static const char *const names[] = {"tiny", "gpt2_varlen", "multistream", "llama_generate",
                                        "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
        struct tarn_steps_result *result = compute(&asked);
        struct tarn_peak_result *peak;
        struct tarn_live_result *live;
        struct tarn_top_result *top;
        size_t count;

        assert_int_equal(tarn_peak_compute(asked.snapshot, NULL, &peak, &count, NULL), TARN_OK);
        assert_int_equal(tarn_live_compute(asked.snapshot, NULL, &live, &count, NULL), TARN_OK);
        assert_int_equal(tarn_top_compute(asked.snapshot, NULL, &top, &count, NULL), TARN_OK);
        assert_int_equal(result->total.peak, peak->requested_peak.at.requested);
        assert_int_equal(result->total.peak_event, peak->requested_peak.at.event);
        assert_int_equal(result->total.reserved_peak, peak->reserved_peak.at.reserved);
        assert_int_equal(result->total.end, live->composition.at.requested);
        assert_int_equal(result->total.allocations, top->total.allocations);
        assert_int_equal(result->total.allocated, top->total.allocated);
        tarn_report_destroy(top);
        tarn_report_destroy(live);
        tarn_report_destroy(peak);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

/* A part that the trace of one device does not reach. */
static void a_device_without_the_part(void **state)
{
    const struct tarn_selection part = {.struct_size = sizeof part, .events = {true, 3, 5}};
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0}], ["
                     "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0},"
                     "{'action': 'free_completed', 'addr': 512, 'size': 1, 'stream': 0},"
                     "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0},"
                     "{'action': 'free_completed', 'addr': 512, 'size': 1, 'stream': 0},"
                     "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0},"
                     "{'action': 'free_completed', 'addr': 512, 'size': 1, 'stream': 0}]]}");
    struct report_asked asked = {snapshot,
                                 {.struct_size = sizeof asked.options, .selection = &part}};
    struct tarn_steps_result *results = NULL;
    struct tarn_leaks_result *leaks = NULL;
    struct tarn_error error = {.text = ""};
    size_t count = 0;

    (void)state;
    assert_int_equal(tarn_steps_compute(snapshot, &asked.options, &results, &count, &error),
                     TARN_ERR_NOT_FOUND);
    assert_string_equal(error.text, "nothing is selected: the trace of device 0 has events 0 to 0, "
                                    "none of them in that part");
    assert_int_equal(tarn_leaks_compute(snapshot, &asked.options, &leaks, &count, &error),
                     TARN_ERR_NOT_FOUND);
    asked.options.one_device = true;
    asked.options.device = 1;
    assert_int_equal(tarn_steps_compute(snapshot, &asked.options, &results, &count, &error),
                     TARN_OK);
    assert_int_equal(tarn_leaks_compute(snapshot, &asked.options, &leaks, &count, &error), TARN_OK);
    assert_int_equal(results->total.first_event, 3);
    assert_int_equal(results->total.last_event, 5);
    assert_int_equal(leaks->point_count, 3);
    tarn_report_destroy(results);
    tarn_report_destroy(leaks);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(steps, "cudagraph", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(annotated_steps_in_numbers),
        cmocka_unit_test(the_outlier_is_named),
        cmocka_unit_test(without_annotations_a_stack_tells),
        cmocka_unit_test(equal_parts_have_no_outlier),
        cmocka_unit_test(fewer_rows_keep_the_highest),
        cmocka_unit_test(a_part_has_its_own_numbers),
        cmocka_unit_test(a_selection_of_blocks),
        cmocka_unit_test(recorded_runs_add_up),
        cmocka_unit_test(the_outlier_above_is_named),
        cmocka_unit_test(a_device_without_the_part),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
