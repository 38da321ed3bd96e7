/* SPDX-License-Identifier: MIT */
/*
 * Traces of eight allocations, entry i at the time 10 * (i + 1), with annotations at given times.
 */
#include "support/report.h"

#include "analysis/annotation.h"
#include "analysis/timeline.h"
#include "snapshot/snapshot.h"

enum {
    ENTRIES = 8,
    MOST = 8
};

struct rig {
    struct tarn_snapshot *snapshot;
    struct tn_timeline timeline;
    struct tn_phases phases;
};

/* "S" or "E", a name, a time, and a device or -1. */
struct mark {
    const char *stage;
    const char *name;
    int time;
    int device;
};

#define START(name, time)                                                                          \
    {                                                                                              \
        "START", name, time, -1                                                                    \
    }
#define END(name, time)                                                                            \
    {                                                                                              \
        "END", name, time, -1                                                                      \
    }

static void put(struct test_collect *json, const char *text)
{
    assert_int_equal(test_collect_write(json, text, strlen(text)), TARN_OK);
}

static struct tarn_snapshot *snapshot_of(const struct mark *marks, bool has_times)
{
    struct test_collect json = {.text = NULL};
    char text[256];

    put(&json, "{'segments':[],'device_traces':[[");
    for (int i = 0; i < ENTRIES; i++) {
        char time[32] = "";

        if (has_times) {
            (void)snprintf(time, sizeof time, ",'time_us':%d", 10 * (i + 1));
        }
        (void)snprintf(text, sizeof text,
                       "%s{'action':'alloc','addr':%d,'size':512,'stream':0%s,'frames':[]}",
                       i > 0 ? "," : "", 512 * (i + 1), time);
        put(&json, text);
    }
    put(&json, "]],'external_annotations':[");
    for (int i = 0; i < MOST && marks[i].stage; i++) {
        (void)snprintf(text, sizeof text, "%s{'stage':'%s','name':'%s','device':%d,'time_us':%d}",
                       i > 0 ? "," : "", marks[i].stage, marks[i].name, marks[i].device,
                       marks[i].time);
        put(&json, text);
    }
    put(&json, "]}");
    struct tarn_snapshot *snapshot = report_parse(json.text);

    free(json.text);
    return snapshot;
}

static struct rig *rig_open(struct rig *rig, const struct mark *marks, bool has_times)
{
    rig->snapshot = snapshot_of(marks, has_times);
    assert_true(tn_timeline_init(&rig->timeline, tn_snapshot_model(rig->snapshot), 0));
    assert_true(tn_phases_init(&rig->phases, &rig->timeline));
    return rig;
}

static void rig_close(struct rig *rig)
{
    tn_phases_fini(&rig->phases);
    tn_timeline_fini(&rig->timeline);
    tarn_snapshot_destroy(rig->snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static const char *name_of(const struct rig *rig, uint32_t string)
{
    return tn_model_string(rig->timeline.model, string).text;
}

/* ---- phases ---- */

static void phases_are_between_their_ends(void **state)
{
    static const struct {
        struct mark marks[MOST];
        const char *phases; /* NAME[start,end) in order */
        const char *inner;  /* of each entry the innermost phase, '-' for none */
    } cases[] = {
        {{START("a", 20), END("a", 50)}, "a[1,4)", "-aaa----"},
        {{START("a", 20)}, "a[1,8)", "-aaaaaaa"}, /* open until the end */
        {{END("a", 40)}, "a[0,3)", "aaa-----"},   /* open since the beginning */
        {{START("a", 0), END("a", 99)}, "a[0,8)", "aaaaaaaa"},
        {{START("a", 15), END("a", 55)}, "a[1,5)", "-aaaa---"}, /* between entries */
        {{START("a", 50), END("a", 20)}, "a[4,4)", "--------"}, /* time runs backwards */
        {{START("a", 20), START("b", 30), END("b", 50), END("a", 70)}, "a[1,6) b[2,4)", "-abbaa--"},
        {{START("a", 20), START("b", 30), END("a", 50), END("b", 70)},
         "a[1,4) b[2,6)",
         "-abbbb--"}, /* they cross: what began last is inside */
        {{START("a", 20), START("a", 30), END("a", 50), END("a", 70)},
         "a[1,6) a[2,4)",
         "-aaaaa--"}, /* an end is of the one that began last */
        {{START("a", 20), START("a", 30), END("a", 50), END("a", 70), END("a", 80)},
         "a[0,7) a[1,6) a[2,4)",
         "aaaaaaa-"},
        {{START("b", 20), START("a", 20), END("a", 50), END("b", 50)}, "b[1,4) a[1,4)", "-aaa----"},
        {{START("b", 20), START("a", 20), END("b", 60), END("a", 40)},
         "b[1,5) a[1,3)",
         "-aabb---"}, /* of equal starts the longer is outside */
        {{START("a", 20), START("b", 20), END("b", 60), END("a", 40)}, "b[1,5) a[1,3)", "-aabb---"},
        {{START("a", 20), START("b", 20), START("c", 20), END("c", 50), END("b", 50), END("a", 50)},
         "a[1,4) b[1,4) c[1,4)",
         "-ccc----"}, /* of equal spans the one named first is outside */
        {{START("a", 20), START("b", 20), START("c", 20), END("a", 50), END("c", 50), END("b", 50)},
         "a[1,4) b[1,4) c[1,4)",
         "-ccc----"},
        {{START("a", 20), END("a", 30), START("b", 50), START("a", 50), END("b", 70), END("a", 70)},
         "a[1,2) a[4,6) b[4,6)",
         "-a--bb--"},
        {{{"START", "a", 20, 0}, {"END", "a", 40, 0}}, "a[1,3)", "-aa-----"},
        {{{"START", "a", 20, 1}, {"END", "a", 40, 1}}, "", "--------"}, /* another device's */
        {{{"MIDDLE", "a", 20, -1}}, "", "--------"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct rig opened;
        struct rig *rig = rig_open(&opened, cases[c].marks, true);
        const struct tn_phase *phases = rig->phases.phases.items;
        char text[256] = "";
        char inner[ENTRIES + 1] = "";
        size_t used = 0;

        for (size_t i = 0; i < rig->phases.phases.count; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s[%d,%d)",
                                     i > 0 ? " " : "", name_of(rig, phases[i].name),
                                     (int)phases[i].start, (int)phases[i].end);
        }
        assert_string_equal(text, cases[c].phases);
        assert_true(tn_phases_mark(&rig->phases, &rig->timeline));
        for (size_t i = 0; i < ENTRIES; i++) {
            const char *name = name_of(rig, tn_timeline_lifetimes(&rig->timeline)[i].annotation);

            inner[i] = (char)(name[0] ? name[0] : '-');
        }
        assert_string_equal(inner, cases[c].inner);
        rig_close(rig);
    }
}

/* Without times nobody knows where an annotation belongs. */
static void without_times_there_are_no_phases(void **state)
{
    static const struct mark marks[MOST] = {START("a", 20), END("a", 50)};
    struct rig opened;
    struct rig *rig = rig_open(&opened, marks, false);

    (void)state;
    assert_int_equal(rig->phases.phases.count, 0);
    assert_int_equal(tn_timeline_first_time(&rig->timeline), TN_TIME_NONE);
    rig_close(rig);
}

static void times_are_found(void **state)
{
    static const struct mark none[MOST] = {{NULL, NULL, 0, 0}};
    static const struct {
        int64_t time;
        uint64_t entry;
    } cases[] = {{INT64_MIN, 0}, {9, 0}, {10, 0}, {11, 1}, {20, 1}, {80, 7}, {81, 8}};
    struct rig opened;
    struct rig *rig = rig_open(&opened, none, true);

    (void)state;
    assert_int_equal(tn_timeline_first_time(&rig->timeline), 10);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tn_timeline_find_time(&rig->timeline, cases[i].time), cases[i].entry);
    }
    rig_close(rig);
}

static void names_end_at_a_hash(void **state)
{
    (void)state;
    assert_true(tn_phase_is_named((struct tn_string){"step", 4}, "step"));
    assert_true(tn_phase_is_named((struct tn_string){"step#12", 7}, "step"));
    assert_false(tn_phase_is_named((struct tn_string){"steps", 5}, "step"));
    assert_false(tn_phase_is_named((struct tn_string){"ste", 3}, "step"));
    assert_false(tn_phase_is_named((struct tn_string){"", 0}, "step"));
}

/* ---- what a name covers ---- */

static void phases_of_a_name_cover_entries(void **state)
{
    static const struct mark marks[MOST] = {START("a#1", 20), END("a#1", 60), START("a#2", 30),
                                            END("a#2", 40),   START("b", 70), START("a", 80),
                                            END("d", 20)};
    struct rig opened;
    struct rig *rig = rig_open(&opened, marks, true);
    uint8_t covered[ENTRIES + 1] = {0};
    static const uint8_t wanted[ENTRIES + 1] = {0, 1, 1, 1, 1,
                                                0, 0, 1, 0}; /* none beyond the end */
    static const uint8_t with_first[ENTRIES + 1] = {1, 1, 1, 1, 1, 0, 0, 1, 0};

    (void)state;
    assert_int_equal(tn_phases_cover(&rig->phases, "a", covered), 3);
    assert_memory_equal(covered, wanted, sizeof wanted);
    assert_int_equal(tn_phases_cover(&rig->phases, "c", covered), 0);
    assert_memory_equal(covered, wanted, sizeof wanted);
    assert_int_equal(tn_phases_cover(&rig->phases, "d", covered), 1); /* open at the beginning */
    assert_memory_equal(covered, with_first, sizeof with_first);
    rig_close(rig);
}

/* ---- steps ---- */

static void steps_begin_with_the_profilers_or_end_with_the_optimizers(void **state)
{
    static const struct {
        struct mark marks[MOST];
        const char *ends;
    } cases[] = {
        {{{NULL, NULL, 0, 0}}, ""},
        {{START("ProfilerStep#1", 30), START("ProfilerStep#2", 60)}, "1 4 "},
        {{START("ProfilerStep#1", 5), START("ProfilerStep#2", 60)}, "4 "}, /* at the beginning */
        {{START("ProfilerStep#1", 99)}, "7 "},
        {{START("ProfilerStep#2", 60), START("ProfilerStep#1", 30), START("ProfilerStep#3", 30)},
         "1 4 "}, /* twice at one entry is once */
        {{START("Optimizer.step#SGD.step", 20), END("Optimizer.step#SGD.step", 40),
          START("Optimizer.step#SGD.step", 60), END("Optimizer.step#SGD.step", 70)},
         "2 5 "},
        {{START("Optimizer.step#A.step", 20), START("Optimizer.step#B.step", 30),
          END("Optimizer.step#B.step", 50), END("Optimizer.step#A.step", 70)},
         "3 5 "},                                       /* one in the other */
        {{START("Optimizer.step#SGD.step", 60)}, "7 "}, /* it is open at the end */
        {{START("Optimizer.step#SGD.step", 20), END("Optimizer.step#SGD.step", 40),
          START("ProfilerStep#1", 70)},
         "5 "}, /* the profiler's count first */
        {{START("Optimizer", 20), END("Optimizer", 40)}, ""},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct rig opened;
        struct rig *rig = rig_open(&opened, cases[c].marks, true);
        char text[128] = "";
        size_t used = 0;
        struct tn_vec ends;
        uint64_t first = 77;

        assert_true(tn_phases_steps(&rig->phases, &ends));
        for (size_t i = 0; i < ends.count; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%d ",
                                     (int)((const uint64_t *)ends.items)[i]);
        }
        assert_string_equal(text, cases[c].ends);
        assert_true(tn_trace_first_step(rig->timeline.model, rig->timeline.trace, 0, &first));
        assert_int_equal(first, ends.count > 0 ? *(const uint64_t *)ends.items : 0);
        tn_vec_fini(&ends);
        rig_close(rig);
    }
}

/* Whoever tells the steps, a failure never makes them fewer. */
static void failures_leave_nothing(void **state)
{
    static const struct mark marks[2][MOST] = {
        {START("ProfilerStep#1", 30), END("b", 50), START("ProfilerStep#1", 60)},
        {START("Optimizer.step", 10), END("b", 50), END("Optimizer.step", 30)},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig opened;
        struct rig *rig = rig_open(&opened, marks[i], true);
        const uint64_t live = tarn_host_get_usage().live_bytes;
        bool good = false;
        uint64_t first = 0;

        for (uint64_t n = 1; !good; n++) {
            tarn_host_fail_nth(n);
            good = tn_trace_first_step(rig->timeline.model, rig->timeline.trace, 0, &first);
            tarn_host_fail_nth(0);
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
            assert_true(n < 100);
        }
        assert_int_equal(first, 1);
        for (uint64_t n = 1; n <= 2; n++) {
            tarn_host_fail_nth(n);
            assert_false(tn_phases_mark(&rig->phases, &rig->timeline));
            tarn_host_fail_nth(0);
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
        }
        rig_close(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_are_between_their_ends),
        cmocka_unit_test(without_times_there_are_no_phases),
        cmocka_unit_test(times_are_found),
        cmocka_unit_test(names_end_at_a_hash),
        cmocka_unit_test(phases_of_a_name_cover_entries),
        cmocka_unit_test(steps_begin_with_the_profilers_or_end_with_the_optimizers),
        cmocka_unit_test(failures_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
