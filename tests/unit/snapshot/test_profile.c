/* SPDX-License-Identifier: MIT */
#include "support/report.h"
#include "support/temp.h"

#include "snapshot/chrome_events.h"
#include "snapshot/profile_model.h"
#include "snapshot/snapshot.h"
#include "tarn/profile.h"
#include "tarn/report.h"

#include <unistd.h>

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

/* Times are whole microseconds: what begins when another function ended was not called by it. What
 * takes no time was. */
static void a_function_that_follows_is_not_called(void **state)
{
    static const struct {
        int begin;
        int duration;
        const char *frames[3];
    } cases[] = {
        {10, 10, {"b", "f", NULL}},
        {10, 0, {"b", "a", "f"}},
        {9, 1, {"b", "a", "f"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1024];

        (void)snprintf(
            json, sizeof json,
            "[" SLICE("cpu_op", "f", 0, 100) "," SLICE(
                "cpu_op", "a", 0,
                10) ","
                    "{'ph':'X','cat':'cpu_op','name':'b','tid':2,'ts':%d,'dur':%d}," MEMORY(
                        10, 512, 4096, 0, 1) "]",
            cases[i].begin, cases[i].duration);
        struct tarn_snapshot *snapshot = must_load(json, NULL);
        const struct tn_model *model = tn_snapshot_model(snapshot);
        const struct tn_stack stack =
            tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack);

        assert_int_equal(stack.count, cases[i].frames[2] ? 3 : 2);
        for (size_t k = 0; k < stack.count; k++) {
            const struct tn_frame *frame = tn_model_frame(model, stack.frames[k]);

            assert_string_equal(tn_model_string(model, frame->name).text, cases[i].frames[k]);
        }
        tarn_snapshot_destroy(snapshot);
    }
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

/* ---- events that count for nothing, and at bounds ---- */

#define GOOD_MEMORY MEMORY(5, 512, 4096, 0, 1)

static void memory_events_that_say_too_little_are_skipped(void **state)
{
    static const struct {
        const char *event;
        uint64_t unknown;
    } cases[] = {
        {MEMORY(1, 0, 4096, 0, 1), 1},
        {MEMORY(1, 512, 0, 0, 1), 1},
        {MEMORY(1, 512, -1, 0, 1), 1},
        {MEMORY(1, 512, 144115188075855872, 0, 1), 1}, /* 2^57 */
        {MEMORY(1, 512, 144115188075855871, 0, 1), 0},
        {MEMORY(1, 512, 8192, 0, -1), 1},
        {MEMORY(1, 512, 8192, -1, 1), 1},
        {MEMORY(1, 512, 8192, 1000000, 1), 1},
        {MEMORY(1, 512, 8192, 1024, 1), 1},
        {MEMORY(1, 512, 8192, 1023, 1), 0},
        {MEMORY(1, 512, 8192, -1, 0), 0},                /* the CPU has no number */
        {MEMORY(1, 4611686018427387903, 8192, 0, 1), 1}, /* 2^62 - 1, with 512 elsewhere too much */
        {MEMORY(1, -4611686018427387391, 8192, 0, 1), 0}, /* 2^62 - 1 with 512 elsewhere */
        {MEMORY(1, -4611686018427387393, 8192, 0, 1), 1},
        {MEMORY(1, 'x', 8192, 0, 1), 1},
        {"{'name':'[memory]','args':{'Bytes':512,'Device Id':0,'Device Type':1}}", 1},
        {"{'name':'[memory]'}", 1},
        {"{'name':'[memory]','args':7}", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tarn_profile_info info = {.struct_size = sizeof info};
        char text[1024];

        (void)snprintf(text, sizeof text, "[" GOOD_MEMORY ",%s]", cases[i].event);
        struct tarn_snapshot *snapshot = must_load(text, &info);

        if (info.unknown != cases[i].unknown || info.events != 2 - cases[i].unknown) {
            fail_msg("%s: %llu unknown, %llu events", cases[i].event,
                     (unsigned long long)info.unknown, (unsigned long long)info.events);
        }
        is_consistent(snapshot);
        tarn_snapshot_destroy(snapshot);
    }
}

static void slices_are_whole_events_of_three_kinds(void **state)
{
    static const struct {
        const char *event;
        uint64_t slices;
    } cases[] = {
        {SLICE("python_function", "f", 0, 1), 1},
        {SLICE("cpu_op", "f", 0, 1), 1},
        {SLICE("user_annotation", "f", 0, 1), 1},
        {SLICE("cpu_op", "f", 0, -1), 1},
        {SLICE("gpu_user_annotation", "f", 0, 1), 0},
        {SLICE("cpu_operation", "f", 0, 1), 0},
        {"{'ph':'B','cat':'cpu_op','name':'f','ts':0}", 0},
        {"{'ph':'X','name':'cpu_op','ts':0}", 0},
        {"{'cat':'cpu_op','name':'f','ts':0}", 0},
        {"{'ph':'X','cat':'cpu_op','ts':0}", 0},
        {"{'ph':'X','cat':'cpu_op','name':7,'ts':0}", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tarn_profile_info info = {.struct_size = sizeof info};
        char text[1024];

        (void)snprintf(text, sizeof text, "[%s," GOOD_MEMORY "]", cases[i].event);
        struct tarn_snapshot *snapshot = must_load(text, &info);

        if (info.slices != cases[i].slices) {
            fail_msg("%s: %llu slices", cases[i].event, (unsigned long long)info.slices);
        }
        tarn_snapshot_destroy(snapshot);
    }
}

/* The frame of the slice that runs while memory is allocated. */
static void expect_frame(const char *label, const char *name, const char *file, int64_t line)
{
    char text[1024];

    (void)snprintf(text, sizeof text, "[" SLICE("cpu_op", "%s", 0, 10) "," GOOD_MEMORY "]", label);
    struct tarn_snapshot *snapshot = must_load(text, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_stack stack =
        tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack);

    assert_int_equal(stack.count, 1);
    const struct tn_frame *frame = tn_model_frame(model, stack.frames[0]);

    assert_string_equal(tn_model_string(model, frame->name).text, name);
    assert_string_equal(tn_model_string(model, frame->filename).text, file);
    assert_int_equal(frame->line, line);
    tarn_snapshot_destroy(snapshot);
}

static void names_are_of_functions_or_operators(void **state)
{
    (void)state;
    expect_frame("a.py(3): f", "f", "a.py", 3);
    expect_frame("a.py(123456789): f", "f", "a.py", 123456789);
    expect_frame("a.py(1234567890): f", "a.py(1234567890): f", "none",
                 0); /* no line is that large */
    expect_frame("(3): f", "f", "", 3);
    expect_frame("3): f", "3): f", "none", 0);
    expect_frame("a.py(): f", "a.py(): f", "none", 0);
    expect_frame("a.py): f", "a.py): f", "none", 0);
    expect_frame("a.py3): f", "a.py3): f", "none", 0);
    expect_frame("/): f", "/): f", "none", 0);
    expect_frame("a:1): f", "a:1): f", "none", 0);
    expect_frame("a.py(0): ", "", "a.py", 0);
    expect_frame("a.py(9):f", "a.py(9):f", "none", 0);
    expect_frame("aten::add", "aten::add", "none", 0);
}

static int64_t first_time(const char *text)
{
    struct tarn_snapshot *snapshot = must_load(text, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const int64_t time = tn_trace_at(model, &model->traces[0], 0)->time_us;

    tarn_snapshot_destroy(snapshot);
    return time;
}

static void times_out_of_range_are_none(void **state)
{
    (void)state;
    assert_int_equal(first_time("[" MEMORY(7.5, 512, 4096, 0, 1) "]"), 7);
    assert_int_equal(first_time("[" MEMORY(9e15, 512, 4096, 0, 1) "]"), 9000000000000000);
    assert_int_equal(first_time("[" MEMORY(-9e15, 512, 4096, 0, 1) "]"), -9000000000000000);
    assert_int_equal(first_time("[" MEMORY(9.1e15, 512, 4096, 0, 1) "]"), 0);
    assert_int_equal(first_time("[" MEMORY(-9.1e15, 512, 4096, 0, 1) "]"), 0);
    assert_int_equal(first_time("{'baseTimeNanoseconds':5000,'traceEvents':[" GOOD_MEMORY "]}"),
                     10);
    assert_int_equal(first_time("{'baseTimeNanosecondz':5000,'traceEvents':[" GOOD_MEMORY "]}"), 5);
    assert_int_equal(first_time("{'baseTime':5000,'traceEvents':[" GOOD_MEMORY "]}"), 5);
    assert_int_equal(first_time("{'baseTimeNanoseconds': 5000                     ,"
                                "'traceEvents':[" GOOD_MEMORY "]}"),
                     10);
    assert_int_equal(first_time("{'baseTimeNanoseconds':5999,'traceEvents':[" MEMORY(
                         9.1e15, 512, 4096, 0, 1) "]}"),
                     5); /* the base alone */
    assert_int_equal(first_time("{'baseTimeNanoseconds':9000000000000000000,'traceEvents':[" MEMORY(
                         9e15, 512, 4096, 0, 1) "]}"),
                     0); /* the sum overflows */
    assert_int_equal(first_time("{'baseTimeNanoseconds':000000000000000000000005000,"
                                "'traceEvents':[" GOOD_MEMORY "]}"),
                     5); /* that is no number of nanoseconds */
    assert_int_equal(first_time("{'baseTimeNanoseconds':000000000000000000005000,"
                                "'traceEvents':[" GOOD_MEMORY "]}"),
                     5);
    assert_int_equal(first_time("{'baseTimeNanoseconds':00000000000000000005000,"
                                "'traceEvents':[" GOOD_MEMORY "]}"),
                     10);
}

#define TOTAL(ts, bytes, addr, device, total)                                                      \
    "{'name':'[memory]','ts':" #ts ",'args':{'Total Allocated':" #total ",'Bytes':" #bytes         \
    ",'Addr':" #addr ",'Device Id':" #device ",'Device Type':1}}"

static void what_was_there_before_is_counted_once_for_a_device(void **state)
{
    static const struct {
        const char *events;
        uint64_t before;
    } cases[] = {
        {TOTAL(1, 512, 4096, 0, 512), 0},
        {TOTAL(1, 512, 4096, 0, 513), 1},
        {MEMORY(1, 512, 4096, -1, 0), 0}, /* of the CPU's nothing is known */
        {TOTAL(1, 512, 4096, 0, 100), 0},
        {TOTAL(1, -512, 4096, 0, 0), 512},
        {TOTAL(1, -512, 4096, 0, -1), 0}, /* it does not say */
        {TOTAL(1, 512, 4096, 0, 612) "," TOTAL(2, 512, 8192, 0, 9000), 100},
        {TOTAL(1, 512, 4096, 0, 612) "," TOTAL(2, 512, 8192, 1, 712), 300},
        {TOTAL(1, 1, 4096, 0, 9223372036854775807) "," TOTAL(
             2, 1, 4096, 1, 9223372036854775807) "," TOTAL(3, 1, 4096, 2, 9223372036854775807),
         UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tarn_profile_info info = {.struct_size = sizeof info};
        char text[1024];

        (void)snprintf(text, sizeof text, "[%s]", cases[i].events);
        tarn_snapshot_destroy(must_load(text, &info));
        if (info.before_bytes != cases[i].before) {
            fail_msg("%s: %llu bytes before", cases[i].events,
                     (unsigned long long)info.before_bytes);
        }
    }
}

/* Of equal times the order of the file counts; of slices that begin together the longer is outside,
 * and no stack is deeper than the limit. */
static void equal_times_keep_their_order(void **state)
{
    static const char events[] =
        "[" SLICE("cpu_op", "inner", 0, 10) "," SLICE("cpu_op", "outer", 0, 20) "," SLICE(
            "cpu_op", "middle", 0,
            15) "," MEMORY(5, 512, 8192, 0, 1) "," MEMORY(5, 512, 4096, 0,
                                                          1) "," MEMORY(5, -512, 8192, 0, 1) "]";
    const struct tarn_read_limits two = {.struct_size = sizeof two, .max_frames = 2};
    struct tarn_snapshot *snapshot = must_load(events, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_trace *trace = &model->traces[0];
    char *text = quoted(events);

    (void)state;
    assert_int_equal(trace->count, 4);
    assert_int_equal(tn_trace_at(model, trace, 0)->address, 8192);
    assert_int_equal(tn_trace_at(model, trace, 1)->address, 4096);
    assert_int_equal(tn_trace_at(model, trace, 2)->action, TN_TRACE_FREE_REQUESTED);
    struct tn_stack stack = tn_model_stack(model, tn_trace_at(model, trace, 0)->stack);
    static const char *const names[] = {"inner", "middle", "outer"};

    assert_int_equal(stack.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct tn_frame *frame = tn_model_frame(model, stack.frames[i]);

        assert_string_equal(tn_model_string(model, frame->name).text, names[i]);
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_profile_load_memory(text, strlen(text), &two, &snapshot, NULL, NULL),
                     TARN_OK);
    model = tn_snapshot_model(snapshot);
    stack = tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack);
    assert_int_equal(stack.count, 2);
    assert_string_equal(tn_model_string(model, tn_model_frame(model, stack.frames[0])->name).text,
                        "inner");
    tarn_snapshot_destroy(snapshot);
    free(text);
}

static void what_is_no_profile(void **state)
{
    (void)state;
    fails("", TARN_ERR_TRUNCATED, "");
    fails("hello", TARN_ERR_FORMAT, "neither an object nor an array at byte 0");
    fails("{'a': 1}", TARN_ERR_FORMAT, "no traceEvents");
    fails("{'a' 1}", TARN_ERR_FORMAT, "no colon");
    fails("{", TARN_ERR_TRUNCATED, "");
    fails("{'a'", TARN_ERR_TRUNCATED, "");
    fails("{'a':}", TARN_ERR_TRUNCATED, "ends early");
    fails("{'a':,", TARN_ERR_TRUNCATED, "");
    fails("{'a': 1 'b': 2}", TARN_ERR_FORMAT, "no comma between members");
    fails("{1: 1}", TARN_ERR_FORMAT, "no key");
    fails("{'traceEvents': 3}", TARN_ERR_FORMAT, "no [");
    fails("[1]", TARN_ERR_FORMAT, "an event that is no object");
    fails("[{} {}]", TARN_ERR_FORMAT, "no comma between events");
    fails("[{'name': '[memory]', 'ts': }]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': 1", TARN_ERR_TRUNCATED, "ends early");
    fails("[{'name': '[memory]', 'ts': t}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': -}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': 1e}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': 1.}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': '\\u12'}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': '\\ud800\\u'}]", TARN_ERR_FORMAT,
          "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts':}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts'}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]', 'ts': [1}]]", TARN_ERR_FORMAT, "a malformed event at byte 1");
    fails("[{'name': '[memory]',}]", TARN_ERR_FORMAT, "a malformed event at byte 1");
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

/* Writes what was read, so that a profile of which a part is missing is not taken for the whole. */
static enum tarn_status write_and_drop(struct tarn_snapshot *snapshot, enum tarn_status status,
                                       const struct tarn_writer *writer, struct tarn_error *error)
{
    if (status == TARN_OK) {
        status = tarn_snapshot_write(snapshot, TARN_SNAPSHOT_JSON, writer, error);
    }
    tarn_snapshot_destroy(snapshot);
    return status;
}

static enum tarn_status load_and_write(const void *context, const struct tarn_writer *writer,
                                       struct tarn_error *error)
{
    struct tarn_snapshot *snapshot;
    const enum tarn_status status = load(context, &snapshot, NULL, error);

    return write_and_drop(snapshot, status, writer, error);
}

static enum tarn_status load_file_and_write(const void *context, const struct tarn_writer *writer,
                                            struct tarn_error *error)
{
    struct tarn_snapshot *snapshot;
    const enum tarn_status status = tarn_profile_load(context, NULL, &snapshot, NULL, error);

    return write_and_drop(snapshot, status, writer, error);
}

/* Keys and events of any length, which the window grows for. */
static void long_keys_and_events(void **state)
{
    enum {
        LONG = 200000
    };
    char *json = malloc(LONG + 1000);
    size_t used = (size_t)snprintf(json, 1000, "{'");

    (void)state;
    memset(json + used, 'k', 100);
    used += 100;
    used += (size_t)snprintf(json + used, 400,
                             "': 1, 'traceEvents': [" MEMORY(30, 512, 4096, 0, 1) ", {'name': '");
    memset(json + used, 'x', LONG);
    used += LONG;
    (void)snprintf(json + used, 400, "'}, " MEMORY(31, 512, 8192, 0, 1) "]}");
    struct tarn_snapshot *snapshot = must_load(json, NULL);

    assert_int_equal(tarn_snapshot_entry_count(snapshot), 2);
    tarn_snapshot_destroy(snapshot);
    assert_true(report_fails_or_copes(load_and_write, json) > 20);

    char *text = quoted(json);
    struct temp_file file = temp_write(text, strlen(text));

    assert_int_equal(tarn_profile_load(file.path, NULL, &snapshot, NULL, NULL), TARN_OK);
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 2);
    tarn_snapshot_destroy(snapshot);
    assert_true(report_fails_or_copes(load_file_and_write, file.path) > 20);
    temp_remove(&file);
    free(text);
    free(json);
}

/* An event that the window grows for, for the last of its bytes: if it cannot, the reader says so,
 * and does not go on with what it has. */
static void a_window_that_cannot_grow_is_said(void **state)
{
    enum {
        LONG = 300000,
        EMPTY = 23000
    };
    char *json = malloc(3 * EMPTY + LONG + 1000);
    size_t used = 1;

    (void)state;
    assert_non_null(json);
    json[0] = '[';
    for (int i = 0; i < EMPTY; i++) {
        used += (size_t)snprintf(json + used, 4, "{},");
    }
    used += (size_t)snprintf(json + used, 400, GOOD_MEMORY ",{'name':'");
    memset(json + used, 'x', LONG);
    (void)snprintf(json + used + LONG, 400, "'}]");
    const uint64_t begin = tarn_host_get_usage().alloc_calls;

    free(report_text(load_and_write, json));
    const uint64_t calls = tarn_host_get_usage().alloc_calls - begin;

    assert_int_equal(report_fails_cleanly(load_and_write, json), calls);
    free(json);
}

/* More entries than a piece of their table holds, and more than the memory that they may take. */
static void many_events(void **state)
{
    enum {
        COUNT = 1500
    };
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 1 << 16};
    char *json = malloc(COUNT * 240 + 64);
    size_t used = (size_t)snprintf(json, 64, "[");
    struct tarn_snapshot *snapshot;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        used += (size_t)snprintf(
            json + used, 240,
            "%s{'ph':'i','name':'[memory]','pid':1,'tid':2,'ts':%d,'args':{'Total Allocated':9000,"
            "'Bytes':%d,'Addr':%d,'Device Id':0,'Device Type':1}}",
            i > 0 ? "," : "", i, i % 2 ? -512 : 512, 4096 + i / 2 * 512);
    }
    (void)snprintf(json + used, 64, "]");
    assert_true(report_fails_or_copes(load_and_write, json) > 20);
    char *text = quoted(json);

    assert_int_equal(tarn_profile_load_memory(text, strlen(text), &limits, &snapshot, NULL, NULL),
                     TARN_ERR_LIMIT);
    free(text);
    free(json);
}

/* The limit is named, not the memory of the host. */
static void too_little_memory_for_any_profile(void **state)
{
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 4096};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_profile_load_memory("[]", 2, &limits, &snapshot, NULL, &error),
                     TARN_ERR_LIMIT);
    assert_int_equal(error.status, TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "no memory to read a profile"));
}

/* 16 MiB, its brackets included: read, although no event of memory. */
static void an_event_has_a_largest_size(void **state)
{
    enum {
        MOST = 16 << 20
    };
    char *json = malloc(MOST + 4);

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct tarn_snapshot *snapshot;

        memset(json, ' ', MOST + 3);
        json[0] = '[';
        json[1] = '{';
        json[MOST + more] = '}';
        json[MOST + more + 1] = ']';
        assert_int_equal(
            tarn_profile_load_memory(json, MOST + more + 2, NULL, &snapshot, NULL, NULL),
            more == 0 ? TARN_ERR_NOT_SUPPORTED : TARN_ERR_LIMIT);
    }
    free(json);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    assert_true(report_fails_cleanly(load_and_write, small) > 20);
    assert_true(report_fails_or_copes(load_and_write, small) > 20);
    /* tables for 1,024 devices, which have memory of their own */
    assert_true(report_fails_or_copes(load_and_write, "[" MEMORY(1, 512, 4096, 1023, 1) "]") > 10);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Events that the ends of windows cut: shortly before the end of the input, or of what may be
 * read. */
static void events_across_the_ends_of_windows(void **state)
{
    enum {
        SIZE = 600 << 10
    };
    char *event = quoted(MEMORY(30, 512, 4096, 0, 1) ",");
    const size_t length = strlen(event);
    char *text = malloc(SIZE + 1024);
    struct tarn_snapshot *snapshot;

    (void)state;
    for (size_t size = 240 << 10; size < SIZE; size += 7 << 10) {
        const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                                .max_bytes = size - 1000};
        struct tarn_error error = {.text = ""};
        size_t used = 1;

        text[0] = '[';
        for (; used < size; used += length) {
            (void)snprintf(text + used, length + 1, "%s", event);
        }
        text[used - 1] = ']'; /* for the comma */
        assert_int_equal(tarn_profile_load_memory(text, used, NULL, &snapshot, NULL, &error),
                         TARN_OK);
        assert_int_equal(tarn_snapshot_entry_count(snapshot), 3 * (used / length) - 2);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_profile_load_memory(text, used, &limits, &snapshot, NULL, &error),
                         TARN_ERR_LIMIT);
        assert_int_equal(error.status, TARN_ERR_LIMIT);
    }
    free(text);
    free(event);
}

/* Allocations at one address, each of which ends the block before; within any memory. */
static void blocks_of_one_address_end_each_other(void **state)
{
    enum {
        COUNT = 400
    };
    char *json = malloc(COUNT * 240 + 64);
    size_t used = (size_t)snprintf(json, 64, "[");
    struct tarn_snapshot *snapshot;
    uint64_t refused = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        used += (size_t)snprintf(
            json + used, 240,
            "%s{'ph':'i','name':'[memory]','pid':1,'tid':2,'ts':%d,'args':{'Total Allocated':9000,"
            "'Bytes':512,'Addr':4096,'Device Id':0,'Device Type':1}}",
            i > 0 ? "," : "", i);
    }
    (void)snprintf(json + used, 64, "]");
    snapshot = must_load(json, NULL);
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 3 * COUNT - 2);
    tarn_snapshot_destroy(snapshot);
    assert_true(report_fails_or_copes(load_and_write, json) > 20);
    char *text = quoted(json);

    for (uint64_t most = 1 << 14; most < 1 << 19; most += 1 << 11) {
        const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = most};
        const enum tarn_status st =
            tarn_profile_load_memory(text, strlen(text), &limits, &snapshot, NULL, NULL);

        assert_true(st == TARN_OK || st == TARN_ERR_LIMIT);
        refused += st != TARN_OK;
        tarn_snapshot_destroy(snapshot);
    }
    assert_true(refused > 20);
    free(text);
    free(json);
}

/* ---- the reader of events ---- */

static enum tarn_status visit_event(void *context, const char *text, size_t size, uint64_t offset)
{
    struct test_collect *collect = context;
    char at[32];
    const int length = snprintf(at, sizeof at, "%llu:", (unsigned long long)offset);

    assert_int_equal(test_collect_write(collect, at, (size_t)length), TARN_OK);
    assert_int_equal(test_collect_write(collect, text, size), TARN_OK);
    return test_collect_write(collect, "\n", 1);
}

static void visit_member(void *context, const char *key, size_t key_size, const char *text,
                         size_t size)
{
    struct test_collect *collect = context;

    assert_int_equal(test_collect_write(collect, key, key_size), TARN_OK);
    assert_int_equal(test_collect_write(collect, "=", 1), TARN_OK);
    assert_int_equal(test_collect_write(collect, text, size), TARN_OK);
    assert_int_equal(test_collect_write(collect, "\n", 1), TARN_OK);
}

/* What the visitor is shown: events with their position, members with their key. */
static void visits(const char *json, const char *wanted)
{
    const struct tn_unpack_limits limits = {1 << 20, 1000};
    char *text = quoted(json);
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tn_chrome_visitor visitor = {visit_event, visit_member, &collect};
    struct tarn_error error;
    struct tn_input input;

    assert_int_equal(tn_input_open_memory(&input, text, strlen(text), &limits, NULL), TARN_OK);
    if (tn_chrome_read(&input, &visitor, &error)) {
        fail_msg("%s", error.text);
    }
    tn_input_close(&input);
    assert_string_equal(collect.text, wanted);
    free(collect.text);
    free(text);
}

#define LETTERS_62 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789"

/* Blanks may be anywhere. Of the other members only plain ones are visited; a key of 64 bytes or
 * more is none that is known, and comes without its letters. */
static void events_and_plain_members_are_visited(void **state)
{
    (void)state;
    visits("[ ]", "");
    visits("{'traceEvents':  [  ]  }", "");
    visits("[{'a':[1,'}']} , {} ]", "1:{\"a\":[1,\"}\"]}\n17:{}\n");
    visits("{ 'a' :  1 , 'b':'x,]' ,'c':{'d':1},'e':[1,2], 'traceEvents':[{}],'f':null }",
           "a=1\nb=\"x,]\"\n62:{}\nf=null\n");
    visits("{'" LETTERS_62 "x':1,'" LETTERS_62 "xy':2,'" LETTERS_62 "xyz':3,'traceEvents':[]}",
           LETTERS_62 "x=1\n=2\n=3\n");
    visits("{'otherEvents':1,'traceEventsX':2,'traceEvents':[]}",
           "otherEvents=1\ntraceEventsX=2\n");
    /* A backslash that is escaped does not escape the quote behind it. */
    visits("[{'a':'\\\\'},{'b':'\\\\\\'}]'}]", "1:{\"a\":\"\\\\\"}\n12:{\"b\":\"\\\\\\\"}]\"}\n");
}

/* ---- what counts ---- */

#define PLAIN_MEMORY(ts, bytes, addr)                                                              \
    "{'name':'[memory]','ts':" #ts ",'args':{'Bytes':" #bytes ",'Addr':" #addr                     \
    ",'Device Id':0,'Device Type':1}}"

/* Events of kernels, which are most of a profile, are not even parsed, whatever comes next. */
static void other_events_are_skipped_unseen(void **state)
{
    static const char *const others[] = {
        "{'ph':'X','cat':'kernel','name':'[memo]','ts':oops}",
        "{'cat':'cpu_','name':'python_user','ts':}",
        "{'name':'k','a':'[[[[[[','ts':oops}",
        "{'name':'k',}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct tarn_profile_info info = {.struct_size = sizeof info};
        char text[512];

        (void)snprintf(text, sizeof text, "[%s," PLAIN_MEMORY(3, 512, 4096) "]", others[i]);
        tarn_snapshot_destroy(must_load(text, &info));
        assert_int_equal(info.events, 1);
        assert_int_equal(info.unknown, 0);
        assert_int_equal(info.struct_size, sizeof info);
    }
}

/* Name of the innermost function of an entry; "" for none. */
static const char *innermost(const struct tn_model *model, uint64_t index)
{
    const struct tn_stack stack =
        tn_model_stack(model, tn_trace_at(model, &model->traces[0], index)->stack);

    return stack.count == 0
               ? ""
               : tn_model_string(model, tn_model_frame(model, stack.frames[0])->name).text;
}

/* From when it begins to when it ends, both included; one of a negative length has none. In
 * whatever order the file has the events. */
static void a_function_runs_between_its_times(void **state)
{
    static const char *const events[] = {
        MEMORY(25, 512, 512, 0, 1),        MEMORY(5, 512, 1024, 0, 1),
        MEMORY(20, 512, 1536, 0, 1),       MEMORY(30, 512, 2048, 0, 1),
        MEMORY(30.5, 512, 2560, 0, 1),     MEMORY(40.5, 512, 3072, 0, 1),
        MEMORY(50, 512, 3584, 0, 1),       SLICE("cpu_op", "a", 0, 10),
        SLICE("cpu_op", "b", 20, 10),      SLICE("cpu_op", "short", 40, 0.75),
        SLICE("cpu_op", "none", 49.5, -1),
    };
    static const char *const names[] = {"a", "b", "b", "b", "", "short", ""};
    char text[4096] = "[{}";

    (void)state;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used, ",%s", events[i]);
    }
    text[strlen(text)] = ']';
    struct tarn_snapshot *snapshot = must_load(text, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    for (uint64_t i = 0; i < 7; i++) {
        assert_string_equal(innermost(model, i), names[i]);
    }
    tarn_snapshot_destroy(snapshot);

    /* Events that name no thread are of one thread. */
    snapshot = must_load("[{'ph':'X','cat':'cpu_op','name':'op','tid':0,'ts':0,'dur':9},"
                         "{'ph':'X','cat':'cpu_op','name':'inner','ts':3,'dur':1}," PLAIN_MEMORY(
                             3, 512, 4096) "," PLAIN_MEMORY(7, 512, 8192) "]",
                         NULL);
    model = tn_snapshot_model(snapshot);
    assert_string_equal(innermost(model, 0), "inner");
    assert_string_equal(innermost(model, 1), "op");
    tarn_snapshot_destroy(snapshot);
}

/* A free is of the block that was allocated there, whatever it says. */
static void a_free_has_the_size_of_its_block(void **state)
{
    struct tarn_snapshot *snapshot =
        must_load("[" MEMORY(1, 512, 4096, 0, 1) "," MEMORY(2, -256, 4096, 0,
                                                            1) "," MEMORY(3, -256, 8192, 0, 1) "]",
                  NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    static const uint64_t sizes[] = {512, 512, 512, 256, 256};

    (void)state;
    assert_int_equal(model->traces[0].count, 5);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(tn_trace_at(model, &model->traces[0], i)->size, sizes[i]);
    }
    tarn_snapshot_destroy(snapshot);
}

/* From the first address to the last: blocks in use, and free ones only where there is a gap. */
static void a_segment_has_no_more_blocks_than_it_needs(void **state)
{
    struct tarn_snapshot *snapshot =
        must_load("[" MEMORY(1, 512, 4096, 0, 1) "," MEMORY(2, 1, 4608, 0,
                                                            1) "," MEMORY(3, 64, 8192, 0, 1) "]",
                  NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_model_block *blocks = model->segments[0].blocks;

    (void)state;
    assert_int_equal(model->segments[0].block_count, 4);
    assert_int_equal(model->segments[0].requested_size, 577);
    assert_int_equal(blocks[0].size, 512);
    assert_int_equal(blocks[1].address, 4608);
    assert_int_equal(blocks[1].state, TN_BLOCK_ACTIVE_ALLOCATED);
    assert_int_equal(blocks[2].address, 4609);
    assert_int_equal(blocks[2].state, TN_BLOCK_INACTIVE);
    assert_int_equal(blocks[2].requested_size, 0);
    assert_int_equal(blocks[3].size, 64);
    tarn_snapshot_destroy(snapshot);

    /* The CPU comes after the last GPU: it is the first device where there is none. */
    snapshot = must_load("[" MEMORY(1, 512, 4096, -1, 0) "]", NULL);
    assert_int_equal(tn_snapshot_model(snapshot)->trace_count, 1);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 0), 1);
    tarn_snapshot_destroy(snapshot);
}

/* ---- limits ---- */

/* Sorting needs as much again. */
static void records_are_charged_twice(void **state)
{
    struct tn_profile profile;
    struct tn_model model;

    (void)state;
    assert_int_equal(tn_model_init(&model, 1 << 20), TARN_OK);
    tn_profile_init(&profile, &model);
    const uint64_t before = model.budget.used;

    assert_non_null(tn_profile_push(&profile, &profile.events));
    assert_int_equal(model.budget.used - before, 2 * sizeof(struct tn_profile_event));
    assert_non_null(tn_profile_push(&profile, &profile.slices));
    assert_int_equal(model.budget.used - before,
                     2 * (sizeof(struct tn_profile_event) + sizeof(struct tn_profile_slice)));
    tn_profile_fini(&profile);
    tn_model_fini(&model);
}

/* Values nest at most 64 deep. */
static void the_depth_of_values_is_limited(void **state)
{
    (void)state;
    for (size_t depth = 64; depth <= 65; depth++) {
        char text[256] = "[{'a':";
        const size_t begin = strlen(text);

        memset(text + begin, '[', depth - 1);
        memset(text + begin + depth - 1, ']', depth - 1);
        (void)snprintf(text + begin + 2 * (depth - 1), 16, "}]");
        fails(text, depth == 64 ? TARN_ERR_NOT_SUPPORTED : TARN_ERR_LIMIT,
              depth == 64 ? "no events" : "nested deeper than 64");
    }
}

/* Cut anywhere it ends early, and is not a profile. */
static void a_profile_that_is_cut_ends_early(void **state)
{
    static const char *const profiles[] = {
        "[{},{} ]",
        "[{'a':1},{'a':1},{'a':1}]",
        "[" GOOD_MEMORY "," GOOD_MEMORY ", " GOOD_MEMORY " ]",
        "{'baseTimeNanoseconds': 1000 ,'traceEvents':[" GOOD_MEMORY ", {} ], 'x':[]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        char *text = quoted(profiles[i]);

        for (size_t size = 0; size < strlen(text); size++) {
            struct tarn_snapshot *snapshot;
            struct tarn_error error = {.status = TARN_OK};
            const enum tarn_status status =
                tarn_profile_load_memory(text, size, NULL, &snapshot, NULL, &error);

            if (status != TARN_ERR_TRUNCATED || error.status != TARN_ERR_TRUNCATED || snapshot) {
                fail_msg("%zu bytes of %s: %s", size, text, error.text);
            }
        }
        free(text);
    }
}

/* Also behind the begin of a window, whose bytes are still there when the input has ended. */
static void a_profile_that_is_cut_after_a_window_ends_early(void **state)
{
    enum {
        WINDOW = 1 << 16 /* that is read first */
    };
    static const char begin[] = "{\"traceEvents\":[{}";
    static const char end[] = "],\"traceEvents\":[ {} , {} ] , \"x\" : [1] ";
    char *text = malloc(WINDOW + sizeof end);

    (void)state;
    assert_non_null(text);
    memset(text, ' ', WINDOW);
    memcpy(text, begin, sizeof begin - 1);
    memcpy(text + WINDOW, end, sizeof end);
    for (size_t size = 0; size < sizeof end; size++) {
        struct tarn_snapshot *snapshot;
        struct tarn_error error = {.status = TARN_OK};

        assert_int_equal(
            tarn_profile_load_memory(text, WINDOW + size, NULL, &snapshot, NULL, &error),
            TARN_ERR_TRUNCATED);
        assert_int_equal(error.status, TARN_ERR_TRUNCATED);
    }
    free(text);
}

static enum tarn_status load_within(const char *text, uint64_t most, struct tarn_error *error)
{
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = most};
    struct tarn_snapshot *snapshot;
    const enum tarn_status status =
        tarn_profile_load_memory(text, strlen(text), &limits, &snapshot, NULL, error);

    tarn_snapshot_destroy(snapshot);
    return status;
}

/* The message tells a limit, which can be raised, from a host that has no more. What is cut is said
 * to be so even where memory would not suffice for what is built then: tables of 1,024 devices. */
static void the_reason_of_a_failure_is_told(void **state)
{
    static const char far[] = "[" MEMORY(1, 512, 4096, 1023, 1) "]";
    char *text = quoted(far);
    char *cut = quoted(far);
    struct tarn_error error;
    uint64_t n = 0;
    uint64_t most = 1 << 18; /* more than an empty snapshot has */
    bool says_memory = false;

    (void)state;
    cut[strlen(cut) - 1] = '\0';
    for (; load_within(text, most, &error) != TARN_OK; most += 1024) {
        char says[64];

        (void)snprintf(says, sizeof says, "the limit of %llu bytes allows",
                       (unsigned long long)most);
        assert_int_equal(error.status, TARN_ERR_LIMIT);
        assert_non_null(strstr(error.text, says));
    }
    assert_int_equal(load_within(cut, most - 1024, &error), TARN_ERR_TRUNCATED);
    while (n < 200 && !says_memory) {
        tarn_host_fail_nth(++n);
        const enum tarn_status status = load_within(text, 0, &error);

        tarn_host_fail_nth(0);
        says_memory = status == TARN_ERR_HOST_MEMORY &&
                      strstr(error.text, "no host memory to read a profile (used: ") != NULL;
    }
    assert_true(says_memory);
    free(cut);
    free(text);
}

/* A small file cannot have gigabytes written: here each of many events has a name of 300,000
 * bytes, which the file has once. */
static void what_is_written_out_is_limited(void **state)
{
    enum {
        LETTERS = 300000,
        EVENTS = 3000
    };
    static const char begin[] = "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"ts\":0,\"dur\":9,\"name\":\"";
    struct test_collect json = {.text = NULL};
    char *name = malloc(LETTERS);
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_non_null(name);
    memset(name, 'x', LETTERS);
    assert_int_equal(test_collect_write(&json, begin, sizeof begin - 1), TARN_OK);
    assert_int_equal(test_collect_write(&json, name, LETTERS), TARN_OK);
    assert_int_equal(test_collect_write(&json, "\"}", 2), TARN_OK);
    for (int i = 0; i < EVENTS; i++) {
        char event[128];
        const int size = snprintf(event, sizeof event,
                                  ",{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Bytes\":1,"
                                  "\"Addr\":%d,\"Device Id\":0,\"Device Type\":1}}",
                                  1 + i);

        assert_int_equal(test_collect_write(&json, event, (size_t)size), TARN_OK);
    }
    assert_int_equal(test_collect_write(&json, "]", 1), TARN_OK);
    assert_int_equal(tarn_profile_load_memory(json.text, json.size, NULL, &snapshot, NULL, &error),
                     TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "its stacks written out"));
    free(json.text);
    free(name);
}

/* What came from a pipe has its limits as those of a file: they no longer follow the input. */
static void a_pipe_is_read_and_done_with(void **state)
{
    char *text = quoted("[" GOOD_MEMORY "]");
    const size_t size = strlen(text);
    struct tarn_snapshot *snapshot;
    char path[64];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, size), size);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(tarn_profile_load(path, NULL, &snapshot, NULL, NULL), TARN_OK);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 1);
    assert_null(tn_snapshot_model(snapshot)->budget.input);
    tarn_snapshot_destroy(snapshot);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_of_the_profiler),
        cmocka_unit_test(stacks_are_what_ran_then),
        cmocka_unit_test(a_function_that_follows_is_not_called),
        cmocka_unit_test(strange_events),
        cmocka_unit_test(memory_events_that_say_too_little_are_skipped),
        cmocka_unit_test(slices_are_whole_events_of_three_kinds),
        cmocka_unit_test(names_are_of_functions_or_operators),
        cmocka_unit_test(times_out_of_range_are_none),
        cmocka_unit_test(what_was_there_before_is_counted_once_for_a_device),
        cmocka_unit_test(equal_times_keep_their_order),
        cmocka_unit_test(what_is_no_profile),
        cmocka_unit_test(bounds),
        cmocka_unit_test(long_keys_and_events),
        cmocka_unit_test(a_window_that_cannot_grow_is_said),
        cmocka_unit_test(many_events),
        cmocka_unit_test(events_across_the_ends_of_windows),
        cmocka_unit_test(blocks_of_one_address_end_each_other),
        cmocka_unit_test(too_little_memory_for_any_profile),
        cmocka_unit_test(an_event_has_a_largest_size),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(events_and_plain_members_are_visited),
        cmocka_unit_test(other_events_are_skipped_unseen),
        cmocka_unit_test(a_function_runs_between_its_times),
        cmocka_unit_test(a_free_has_the_size_of_its_block),
        cmocka_unit_test(a_segment_has_no_more_blocks_than_it_needs),
        cmocka_unit_test(records_are_charged_twice),
        cmocka_unit_test(the_depth_of_values_is_limited),
        cmocka_unit_test(a_profile_that_is_cut_ends_early),
        cmocka_unit_test(a_profile_that_is_cut_after_a_window_ends_early),
        cmocka_unit_test(the_reason_of_a_failure_is_told),
        cmocka_unit_test(what_is_written_out_is_limited),
        cmocka_unit_test(a_pipe_is_read_and_done_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
