/* SPDX-License-Identifier: MIT */
/* Where optimizer steps begin, by annotations and by stacks. */
#include "support/report.h"

#include "analysis/optimizer_step.h"
#include "snapshot/snapshot.h"

static const char none[] = "";
static const char forward[] = "{'filename': 'model.py', 'line': 1, 'name': 'forward'}";
static const char adam[] = "{'filename': '/torch/optim/adam.py', 'line': 2, 'name': 'step'}";
static const char zero_grad[] =
    "{'filename': '/torch/nn/modules/module.py', 'line': 3, 'name': 'zero_grad'},"
    "{'filename': 'model.py', 'line': 4, 'name': 'train'}";

static const struct {
    const char *action;
    const char *frames;
    unsigned time;
} entries[] = {
    {"alloc", none, 10},          {"alloc", forward, 20},   {"alloc", adam, 30},
    {"alloc", none, 35}, /* inside of a step */
    {"alloc", adam, 45},          {"alloc", none, 60},      {"alloc", adam, 70},
    {"free_requested", none, 80}, {"alloc", zero_grad, 90}, {"alloc", none, 95},
    {"alloc", zero_grad, 99},
};

/* Around entries 2 and 3, 4, 6 and 8; and one that is no step, around most. */
static const struct {
    const char *name;
    unsigned begin;
    unsigned end;
} phases[] = {
    {"ProfilerStep#1", 5, 98},
    {"Optimizer.step#Adam.step", 25, 38},
    {"Optimizer.step#Adam.step", 40, 50},
    {"Optimizer.step#Adam.step", 65, 75},
    {"Optimizer.step#Adam.step", 85, 92},
};

enum {
    ENTRIES = sizeof entries / sizeof entries[0],
    PHASES = sizeof phases / sizeof phases[0],
    JSON_MAX = 8192
};

static size_t phase_put(char *json, size_t length, const char *stage, size_t i, unsigned time)
{
    return (size_t)snprintf(json + length, JSON_MAX - length,
                            "%s{'stage': '%s', 'name': '%s', 'device': 0, 'time_us': %u}",
                            json[length - 1] == '[' ? "" : ",", stage, phases[i].name, time);
}

/* As a snapshot; annotations are in the order of time. */
static void trace_put(char *json, bool annotated)
{
    size_t length = (size_t)snprintf(json, JSON_MAX, "{'segments': [], 'external_annotations': [");

    for (unsigned time = 0; annotated && time < 100; time++) {
        for (size_t i = 0; i < PHASES; i++) {
            length += phases[i].begin == time ? phase_put(json, length, "START", i, time) : 0;
            length += phases[i].end == time ? phase_put(json, length, "END", i, time) : 0;
        }
    }
    length += (size_t)snprintf(json + length, JSON_MAX - length, "], 'device_traces': [[");
    for (size_t i = 0; i < ENTRIES; i++) {
        length += (size_t)snprintf(
            json + length, JSON_MAX - length,
            "%s{'action': '%s', 'addr': %zu, 'size': 512, 'stream': 0, 'time_us': %u,"
            " 'frames': [%s]}",
            i > 0 ? "," : "", entries[i].action,
            entries[i].action[0] == 'f' ? 4096 : 4096 * (i + 1), entries[i].time,
            entries[i].frames);
    }
    length += (size_t)snprintf(json + length, JSON_MAX - length, "]]}");
    assert_true(length < JSON_MAX);
}

struct stepping {
    struct tarn_snapshot *snapshot;
    struct tn_timeline timeline;
    struct tn_phases phases;
    struct tn_categories categories;
    struct tn_optimizer_steps steps;
};

static void stepping_parse(struct stepping *made, const char *json)
{
    made->snapshot = report_parse(json);
    const struct tn_model *model = tn_snapshot_model(made->snapshot);

    assert_true(tn_timeline_init(&made->timeline, model, 0));
    assert_true(tn_phases_init(&made->phases, &made->timeline));
    assert_int_equal(tn_categories_init(&made->categories, NULL, model, NULL), TARN_OK);
    assert_true(tn_optimizer_steps_init(&made->steps, &made->phases, &made->categories));
}

static void stepping_open(struct stepping *made, bool annotated)
{
    char json[JSON_MAX];

    trace_put(json, annotated);
    stepping_parse(made, json);
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
    stepping_open(&made, true);
    begins_are(&made, (const uint64_t[]){2, 6}, 2);
    stepping_close(&made);
}

static void by_stacks(void **state)
{
    static const bool in_optimizer[] = {false, false, true, false, true, false,
                                        true,  false, true, false, true};
    struct stepping made;

    (void)state;
    stepping_open(&made, false);
    begins_are(&made, (const uint64_t[]){2, 4, 6, 10}, 4);
    for (uint64_t i = 0; i < sizeof in_optimizer / sizeof in_optimizer[0]; i++) {
        assert_int_equal(tn_optimizer_steps_has(&made.steps, i), in_optimizer[i]);
    }
    stepping_close(&made);
}

#define ADAM                                                                                       \
    "'stream': 0, 'size': 512, 'frames': [{'filename': '/torch/optim/adam.py', 'line': 2,"         \
    " 'name': 'step'}]}"
#define NO_FRAMES "'stream': 0, 'size': 512, 'frames': []}"

/* The first annotation may be a step, and what is allocated with its first entry is inside of it.
 */
static void a_step_has_its_first_entry(void **state)
{
    struct stepping made;

    (void)state;
    stepping_parse(&made,
                   "{'segments': [], 'external_annotations': ["
                   "{'stage': 'START', 'name': 'Optimizer.step', 'device': 0, 'time_us': 5},"
                   "{'stage': 'END', 'name': 'Optimizer.step', 'device': 0, 'time_us': 25},"
                   "{'stage': 'START', 'name': 'Optimizer.step', 'device': 0, 'time_us': 25},"
                   "{'stage': 'END', 'name': 'Optimizer.step', 'device': 0, 'time_us': 45}],"
                   "'device_traces': [["
                   "{'action': 'alloc', 'addr': 4096, 'time_us': 10," ADAM
                   ",{'action': 'alloc', 'addr': 8192, 'time_us': 20," ADAM
                   ",{'action': 'alloc', 'addr': 12288, 'time_us': 30," NO_FRAMES
                   ",{'action': 'alloc', 'addr': 16384, 'time_us': 40," ADAM "]]}");
    begins_are(&made, (const uint64_t[]){0}, 1);
    stepping_close(&made);

    /* One that ended before the trace began. */
    stepping_parse(&made,
                   "{'segments': [], 'external_annotations': ["
                   "{'stage': 'START', 'name': 'Optimizer.step', 'device': 0, 'time_us': 5},"
                   "{'stage': 'END', 'name': 'Optimizer.step', 'device': 0, 'time_us': 8},"
                   "{'stage': 'START', 'name': 'Optimizer.step', 'device': 0, 'time_us': 15},"
                   "{'stage': 'END', 'name': 'Optimizer.step', 'device': 0, 'time_us': 45}],"
                   "'device_traces': [["
                   "{'action': 'alloc', 'addr': 4096, 'time_us': 10," NO_FRAMES
                   ",{'action': 'alloc', 'addr': 8192, 'time_us': 20," ADAM "]]}");
    begins_are(&made, (const uint64_t[]){0, 1}, 2);
    stepping_close(&made);
}

static void every_host_failure_is_reported(struct stepping *made, const uint64_t *wanted,
                                           size_t count)
{
    uint64_t failures = 0;
    bool good = false;

    begins_are(made, wanted, count);
    tn_optimizer_steps_fini(&made->steps);
    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_optimizer_steps_init(&made->steps, &made->phases, &made->categories);
        tarn_host_fail_nth(0);
        failures += !good;
        if (!good) {
            tn_optimizer_steps_fini(&made->steps);
        }
    }
    assert_true(failures >= 2);
    begins_are(made, wanted, count);
}

/* Also by stacks a step may begin with the trace; without host memory none is missing, and stacks
 * do not stand in for annotations. */
static void steps_are_found_or_not(void **state)
{
    struct stepping made;

    (void)state;
    stepping_parse(&made, "{'segments': [], 'device_traces': [["
                          "{'action': 'alloc', 'addr': 4096, 'time_us': 10," ADAM
                          ",{'action': 'alloc', 'addr': 8192, 'time_us': 20," ADAM
                          ",{'action': 'alloc', 'addr': 12288, 'time_us': 30," NO_FRAMES
                          ",{'action': 'alloc', 'addr': 16384, 'time_us': 40," ADAM "]]}");
    every_host_failure_is_reported(&made, (const uint64_t[]){0, 3}, 2);
    stepping_close(&made);
    stepping_open(&made, true);
    every_host_failure_is_reported(&made, (const uint64_t[]){2, 6}, 2);
    stepping_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_annotations),
        cmocka_unit_test(by_stacks),
        cmocka_unit_test(a_step_has_its_first_entry),
        cmocka_unit_test(steps_are_found_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
