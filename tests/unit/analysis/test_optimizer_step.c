/* SPDX-License-Identifier: MIT */
/* Where optimizer steps begin, by annotations and by stacks. */
#include "support/report.h"

#include "analysis/optimizer_step.h"
#include "snapshot/snapshot.h"

#define EMPTY   "[]"
#define FORWARD "[{'filename': 'model.py', 'line': 1, 'name': 'forward'}]"
#define ADAM    "[{'filename': '/torch/optim/adam.py', 'line': 2, 'name': 'step'}]"
#define ZERO_GRAD                                                                                  \
    "[{'filename': '/torch/nn/modules/module.py', 'line': 3, 'name': 'zero_grad'},"                \
    " {'filename': 'model.py', 'line': 4, 'name': 'train'}]"

#define ENTRY(action, address, time, frames)                                                       \
    "{'action': '" action "', 'addr': " address ", 'size': 512, 'stream': 0, 'time_us': " time     \
    ", 'frames': " frames "}"

/* Entries by number: 0 and 5 are gradients, 3 is one inside of a step, 6 is a free without frames. */
static const char trace[] =
    "'device_traces': [[" ENTRY("alloc", "4096", "10", EMPTY) "," ENTRY("alloc", "8192", "20", FORWARD) "," ENTRY("alloc", "12288", "30", ADAM) "," ENTRY(
        "alloc", "16384", "35",
        EMPTY) "," ENTRY("alloc", "20480", "45",
                         ADAM) "," ENTRY("alloc", "24576", "60",
                                         EMPTY) "," ENTRY("alloc", "28672", "70",
                                                          ADAM) "," ENTRY("free_requested", "4096",
                                                                          "80",
                                                                          EMPTY) "," ENTRY("alloc",
                                                                                           "32768",
                                                                                           "90",
                                                                                           ZERO_GRAD) "," ENTRY("alloc",
                                                                                                                "36864",
                                                                                                                "95",
                                                                                                                EMPTY) "," ENTRY("alloc",
                                                                                                                                 "40960",
                                                                                                                                 "99",
                                                                                                                                 ZERO_GRAD) "]]}";

/* Steps around entries 2 and 3, 4, 6 and 8, and a phase that is none around all of them. */
static const char annotations[] =
    "'external_annotations': ["
    "{'stage': 'START', 'name': 'ProfilerStep#1', 'device': 0, 'time_us': 5},"
    "{'stage': 'START', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 25},"
    "{'stage': 'END', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 38},"
    "{'stage': 'START', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 40},"
    "{'stage': 'END', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 50},"
    "{'stage': 'START', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 65},"
    "{'stage': 'END', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 75},"
    "{'stage': 'START', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 85},"
    "{'stage': 'END', 'name': 'Optimizer.step#Adam.step', 'device': 0, 'time_us': 92},"
    "{'stage': 'END', 'name': 'ProfilerStep#1', 'device': 0, 'time_us': 98}],";

struct stepping {
    struct tarn_snapshot *snapshot;
    struct tn_timeline timeline;
    struct tn_phases phases;
    struct tn_categories categories;
    struct tn_optimizer_steps steps;
};

static void stepping_open(struct stepping *made, const char *more)
{
    char json[8192];
    const int length = snprintf(json, sizeof json, "{'segments': [], %s%s", more, trace);

    assert_true(length > 0 && (size_t)length < sizeof json);
    made->snapshot = report_parse(json);
    const struct tn_model *model = tn_snapshot_model(made->snapshot);

    assert_true(tn_timeline_init(&made->timeline, model, 0));
    assert_true(tn_phases_init(&made->phases, &made->timeline));
    assert_int_equal(tn_categories_init(&made->categories, NULL, model, NULL), TARN_OK);
    assert_true(tn_optimizer_steps_init(&made->steps, &made->phases, &made->categories));
}

static void stepping_close(struct stepping *made)
{
    tn_optimizer_steps_fini(&made->steps);
    tn_categories_fini(&made->categories);
    tn_phases_fini(&made->phases);
    tn_timeline_fini(&made->timeline);
    tarn_snapshot_destroy(made->snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void begins_are(const struct stepping *made, const uint64_t *wanted, size_t count)
{
    size_t before = 0;

    assert_int_equal(made->steps.begins.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(((const uint64_t *)made->steps.begins.items)[i], wanted[i]);
    }
    for (uint64_t entry = 0; entry <= made->timeline.trace->count; entry++) {
        assert_int_equal(tn_optimizer_steps_before(&made->steps, entry), before);
        before += before < count && wanted[before] == entry;
    }
}

/* A step that follows another without a gradient between belongs to it; what is allocated inside
 * of a step is none, and neither is a free. */
static void by_annotations(void **state)
{
    struct stepping made;

    (void)state;
    stepping_open(&made, annotations);
    begins_are(&made, (const uint64_t[]){2, 6}, 2);
    stepping_close(&made);
}

static void by_stacks(void **state)
{
    static const bool in_optimizer[] = {false, false, true, false, true, false,
                                        true,  false, true, false, true};
    struct stepping made;

    (void)state;
    stepping_open(&made, "");
    begins_are(&made, (const uint64_t[]){2, 4, 6, 10}, 4);
    for (uint64_t i = 0; i < sizeof in_optimizer / sizeof in_optimizer[0]; i++) {
        assert_int_equal(tn_optimizer_steps_has(&made.steps, i), in_optimizer[i]);
    }
    stepping_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_annotations),
        cmocka_unit_test(by_stacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
