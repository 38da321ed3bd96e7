/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "snapshot/snapshot.h"
#include "tarn/profile.h"
#include "tarn/report.h"

static char *quoted(const char *json)
{
    char *text = strdup(json);

    assert_non_null(text);
    for (char *c = text; *c; c++) {
        *c = (char)(*c == '\'' ? '"' : *c);
    }
    return text;
}

static enum tarn_status load(const char *json, struct tarn_snapshot **snapshot,
                             struct tarn_profile_info *info, struct tarn_error *error)
{
    char *text = quoted(json);
    const enum tarn_status status =
        tarn_profile_load_memory(text, strlen(text), NULL, snapshot, info, error);

    free(text);
    return status;
}

static struct tarn_snapshot *must_load(const char *json, struct tarn_profile_info *info)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    if (load(json, &snapshot, info, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static void fails(const char *json, enum tarn_status wanted, const char *says)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {.status = TARN_OK};

    assert_int_equal(load(json, &snapshot, NULL, &error), wanted);
    assert_null(snapshot);
    assert_int_equal(error.status, wanted);
    if (!strstr(error.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
    }
}

#define MEMORY(ts, bytes, addr, device, type)                                                      \
    "{'ph':'i','cat':'cpu_instant_event','s':'t','name':'[memory]','pid':1,'tid':2,'ts':" #ts      \
    ",'args':{'Total Allocated':9000,'Bytes':" #bytes ",'Addr':" #addr ",'Device Id':" #device     \
    ",'Device Type':" #type "}}"

#define SLICE(kind, label, ts, dur)                                                                \
    "{'ph':'X','cat':'" kind "','name':'" label "','pid':1,'tid':2,'ts':" #ts ",'dur':" #dur "}"

static void is_consistent(const struct tarn_snapshot *snapshot)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    if (findings.count > 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static void the_form_of_the_profiler(void **state)
{
    struct tarn_profile_info info = {.struct_size = sizeof info};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    if (tarn_profile_load(TEST_DATA_DIR "/profiles/profile.json.gz", NULL, &snapshot, &info,
                          &error)) {
        fail_msg("%s", error.text);
    }
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(info.events, 8);
    assert_int_equal(info.unknown, 1);
    assert_int_equal(info.slices, 7);
    assert_int_equal(info.before_bytes, 3 << 20);
    assert_int_equal(model->trace_count, 3);
    assert_int_equal(model->traces[0].count, 7);
    assert_int_equal(model->traces[2].count, 3);
    assert_int_equal(model->segments[0].total_size, 6 << 20);
    assert_int_equal(tn_trace_at(model, &model->traces[0], 0)->time_us, 1700000000000140);
    is_consistent(snapshot);
    tarn_snapshot_destroy(snapshot);
}

/* Callers that ended, callers of another thread and kernels are not in the stack. */
static void stacks_are_what_ran_then(void **state)
{
    struct tarn_snapshot *snapshot = must_load(
        "[" SLICE("python_function", "a.py(3): f", 0, 100) "," SLICE(
            "cpu_op", "op", 10,
            5) "," SLICE("cpu_op", "odd(x): y", 20,
                         20) "," SLICE("kernel", "k", 0,
                                       100) ","
                                            "{'ph':'X','cat':'cpu_op','name':'other','tid':3,'ts':"
                                            "0,'dur':100}," MEMORY(30, 512, 4096, 0, 1) "," MEMORY(
                                                200, 512, 8192, 0, 1) "]",
        NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_stack stack =
        tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack);

    (void)state;
    assert_int_equal(stack.count, 2);
    const struct tn_frame *op = tn_model_frame(model, stack.frames[0]);
    const struct tn_frame *f = tn_model_frame(model, stack.frames[1]);

    assert_string_equal(tn_model_string(model, op->name).text, "odd(x): y");
    assert_string_equal(tn_model_string(model, op->filename).text, "none");
    assert_string_equal(tn_model_string(model, f->name).text, "f");
    assert_string_equal(tn_model_string(model, f->filename).text, "a.py");
    assert_int_equal(f->line, 3);
    assert_int_equal(tn_trace_at(model, &model->traces[0], 1)->stack, TN_STACK_EMPTY);
    tarn_snapshot_destroy(snapshot);
}

/* Out of order in the file, allocated twice, freed though never allocated, overlapping at the end,
 * at the end of the address space. */
static void strange_events(void **state)
{
    struct tarn_snapshot *snapshot = must_load(
        "{'traceEvents':[" MEMORY(9, -512, 4096, 0, 1) "," MEMORY(1, 512, 4096, 0, 1) "," MEMORY(
            2, 1024, 8192, 0,
            1) "," MEMORY(3, 2048, 8192, 0,
                          1) "," MEMORY(4, 512, 8704, 0,
                                        1) "," MEMORY(5, -64, 64, 0,
                                                      1) "," MEMORY(6, 4096, 144115188075855870, 3,
                                                                    1) "," MEMORY(7, 16, 16, -1,
                                                                                  0) "]}",
        NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    assert_int_equal(model->trace_count, 5);
    assert_int_equal(tn_trace_at(model, &model->traces[0], 0)->address, 4096);
    assert_int_equal(model->segment_count, 3);
    assert_int_equal(model->segments[0].requested_size, 2048);
    for (size_t i = 0; i < model->segment_count; i++) {
        uint64_t sum = 0;

        for (size_t k = 0; k < model->segments[i].block_count; k++) {
            sum += model->segments[i].blocks[k].size;
        }
        assert_int_equal(sum, model->segments[i].total_size);
    }
    tarn_snapshot_destroy(snapshot);
}

static void what_is_no_profile(void **state)
{
    (void)state;
    fails("", TARN_ERR_TRUNCATED, "");
    fails("hello", TARN_ERR_FORMAT, "neither an object nor an array at byte 0");
    fails("{'a': 1}", TARN_ERR_FORMAT, "no traceEvents");
    fails("{'a' 1}", TARN_ERR_FORMAT, "no colon");
    fails("{'a': 1 'b': 2}", TARN_ERR_FORMAT, "no comma between members");
    fails("{1: 1}", TARN_ERR_FORMAT, "no key");
    fails("{'traceEvents': 3}", TARN_ERR_FORMAT, "no [");
    fails("[1]", TARN_ERR_FORMAT, "an event that is no object");
    fails("[{} {}]", TARN_ERR_FORMAT, "no comma between events");
    fails("[{'name': '[memory]', 'ts': }]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': 1", TARN_ERR_TRUNCATED, "ends early");
    fails("[{},", TARN_ERR_TRUNCATED, "");
    fails("[]", TARN_ERR_NOT_SUPPORTED, "profile_memory=True");
    fails("{'traceEvents': [], 'x': {'y': [1, '}']}}", TARN_ERR_NOT_SUPPORTED, "no events");
}

static void bounds(void **state)
{
    enum {
        LARGE = 17 << 20
    };
    static const char start[] = "[{\"a\":\"";
    char *text = malloc(LARGE);
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', LARGE);
    for (size_t i = 0; i < sizeof start - 1; i++) {
        text[i] = start[i];
    }
    assert_int_equal(tarn_profile_load_memory(text, LARGE, NULL, &snapshot, NULL, &error),
                     TARN_ERR_LIMIT);
    memset(text, '[', LARGE);
    text[1] = '{';
    assert_int_equal(tarn_profile_load_memory(text, LARGE, NULL, &snapshot, NULL, &error),
                     TARN_ERR_LIMIT);
    free(text);
    assert_int_equal(tarn_profile_load("/nonexistent", NULL, &snapshot, NULL, &error), TARN_ERR_IO);
}

static const char small[] = "{'baseTimeNanoseconds':1000,'traceEvents':[" SLICE(
    "python_function", "a.py(3): f", 0,
    100) "," MEMORY(30, 512, 4096, 0, 1) "," MEMORY(31, 512, 8192, 0, 1) "," MEMORY(40, -512, 4096,
                                                                                    0, 1) "]}";

static enum tarn_status load_and_drop(const void *context, const struct tarn_writer *writer,
                                      struct tarn_error *error)
{
    struct tarn_snapshot *snapshot;
    const enum tarn_status status = load(context, &snapshot, NULL, error);

    (void)writer;
    tarn_snapshot_destroy(snapshot);
    return status;
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    assert_true(report_fails_cleanly(load_and_drop, small) > 20);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_of_the_profiler),
        cmocka_unit_test(stacks_are_what_ran_then),
        cmocka_unit_test(strange_events),
        cmocka_unit_test(what_is_no_profile),
        cmocka_unit_test(bounds),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
