/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status top(const void *context, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_top(asked->snapshot, &asked->options, writer, error);
}

/* Three stacks: `a` holds much for long, `b` is called often, `c` was there before. */
static const char three[] =
    "{'segments': [{'address': 4096, 'total_size': 512, 'device': 0, 'blocks': ["
    " {'size': 512, 'requested_size': 500, 'state': 'active_allocated', 'frames': ["
    "  {'name': 'c', 'filename': 'c.py', 'line': 3}]}]}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 10000, 'size': 9000, 'stream': 0, 'frames': ["
    " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 20000, 'size': 10, 'stream': 0, 'frames': ["
    " {'name': 'b', 'filename': 'b.py', 'line': 2}]},"
    "{'action': 'free_completed', 'addr': 20000, 'size': 10, 'stream': 0},"
    "{'action': 'alloc', 'addr': 20000, 'size': 20, 'stream': 0, 'frames': ["
    " {'name': 'b', 'filename': 'b.py', 'line': 2}]},"
    "{'action': 'free_completed', 'addr': 10000, 'size': 9000, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 20000, 'size': 20, 'stream': 0}]]}";

#define HEAD                                                                                       \
    "device 0: 6 events\n     at peak      at end   requested    blocks  lifetime  allocated "     \
    "by\n"
#define A "    8.79 KiB         0 B    8.79 KiB         1         4  a.py:1:a\n"
#define B "        20 B         0 B        30 B         2         1  b.py:2:b\n"
#define C "       500 B       500 B         0 B         0         -  c.py:3:c\n"
#define T "    9.30 KiB       500 B    8.82 KiB         3         2  total\n"

/* The file's last letter tells the stack. */
static void rows_are(const struct tarn_top_result *top, const char *stacks)
{
    assert_int_equal(top->row_count, strlen(stacks));
    for (size_t i = 0; i < top->row_count; i++) {
        assert_int_equal(top->rows[i].group.frame_count, 1);
        assert_int_equal(top->rows[i].group.frames[0].name[0], stacks[i]);
    }
}

static struct tarn_top_result *compute(const struct report_asked *asked)
{
    struct tarn_top_result *results;
    struct tarn_error error;
    size_t count;

    assert_int_equal(tarn_top_compute(asked->snapshot, &asked->options, &results, &count, &error),
                     TARN_OK);
    assert_int_equal(count, 1);
    return results;
}

static void every_order(void **state)
{
    static const char *const orders[] = {[TARN_TOP_BY_PEAK] = "acb",
                                         [TARN_TOP_BY_END] = "cab",
                                         [TARN_TOP_BY_REQUESTED] = "abc",
                                         [TARN_TOP_BY_COUNT] = "bac"};
    struct tarn_snapshot *snapshot = report_parse(three);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(top, &asked, HEAD A C B T);
    for (int order = TARN_TOP_BY_PEAK; order <= TARN_TOP_BY_COUNT; order++) {
        asked.options.order = (enum tarn_top_order)order;
        struct tarn_top_result *result = compute(&asked);

        rows_are(result, orders[order]);
        assert_int_equal(result->other_count, 0);
        tarn_report_destroy(result);
    }
    tarn_snapshot_destroy(snapshot);
}

static void others_and_total(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(three);
    struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .order = TARN_TOP_BY_COUNT, .rows = 1}};
    struct tarn_top_result *result = compute(&asked);

    (void)state;
    rows_are(result, "b");
    assert_int_equal(result->rows[0].allocations, 2);
    assert_int_equal(result->rows[0].freed, 2);
    assert_int_equal(result->rows[0].lifetime_events, 3);
    assert_int_equal(result->other_count, 2);
    assert_int_equal(result->others.at_instant, 9500);
    assert_int_equal(result->others.allocations, 1);
    assert_int_equal(result->total.at_instant, 9520);
    assert_int_equal(result->total.at_end, 500);
    assert_int_equal(result->total.allocated, 9030);
    assert_int_equal(result->at.requested, 9520);
    assert_int_equal(result->head.events, 6);
    report_says(top, &asked,
                HEAD B
                "    9.28 KiB       500 B    8.79 KiB         1         4  others (2 stacks)\n" T);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Totals of a recorded run are its counters: allocation.all.allocated and the peak. */
static void totals_are_the_counters_of_the_run(void **state)
{
    struct tarn_snapshot *snapshot = report_load("gpt2_varlen");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options, .rows = 3}};
    struct tarn_top_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->total.at_instant, 10432354568);
    assert_int_equal(result->total.at_end, 68157440);
    assert_int_equal(result->total.allocated, 196766864707);
    assert_int_equal(result->total.allocations, 11897);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* Without a trace devices are those of segments, whose numbers may be any. */
static void devices_have_numbers_of_devices(void **state)
{
#define ON(device)                                                                                 \
    "{'address': 4096, 'total_size': 512, 'device': " device ", 'blocks': [{'size': 512,"          \
    " 'requested_size': 500, 'state': 'active_allocated'}]}"
    static const struct {
        const char *json;
        size_t count;
    } rows[] = {{"[" ON("-1") "," ON("1023") "," ON("1024") "]", 1},
                {"[" ON("-1") "," ON("1024") "," ON("2147483647") "]", 0}};
#undef ON

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tarn_report_options options = {.struct_size = sizeof options};
        struct tarn_snapshot *snapshot = report_parse(rows[i].json);
        struct tarn_top_result *results = NULL;
        struct tarn_error error = {.text = ""};
        size_t count = 0;

        assert_int_equal(tarn_top_compute(snapshot, &options, &results, &count, &error),
                         rows[i].count > 0 ? TARN_OK : TARN_ERR_NOT_FOUND);
        assert_int_equal(count, rows[i].count);
        if (count > 0) {
            assert_int_equal(results[0].head.device, 1023);
            tarn_report_destroy(results);
        } else {
            assert_string_equal(error.text, "the file has no segments of devices 0 to 1023; "
                                            "\"tarn info\" lists the devices");
        }
        options.one_device = true;
        options.device = 5;
        assert_int_equal(tarn_top_compute(snapshot, &options, &results, &count, &error),
                         TARN_ERR_NOT_FOUND);
        assert_string_equal(error.text, "the file has no segments of device 5; \"tarn info\" lists "
                                        "the devices");
        tarn_snapshot_destroy(snapshot);
    }
}

/* A tree in lines of JSON and CSV has the frames of each row, outermost first. */
static void trees_have_lines(void **state)
{
    static const char json[] =
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 100, 'stream': 0, 'frames': ["
        " {'name': 'in', 'filename': 'a.py', 'line': 1},"
        " {'name': 'out', 'filename': 'm.py', 'line': 9}]},"
        "{'action': 'alloc', 'addr': 2048, 'size': 30, 'stream': 0, 'frames': ["
        " {'name': 'b', 'filename': 'b.py', 'line': 2},"
        " {'name': 'out', 'filename': 'm.py', 'line': 9}]}]]}";
    struct tarn_snapshot *snapshot = report_parse(json);
    struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .format = TARN_REPORT_CSV, .tree = true}};
    char *text = report_text(top, &asked);

    (void)state;
    assert_non_null(strstr(text, ",\"m.py:9:out\""));
    assert_non_null(strstr(text, ",\"a.py:1:in\""));
    const size_t columns = 1 + (size_t)(strcspn(text, "\n") > 0);
    size_t wanted = 0;

    (void)columns;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) { /* as many cells */
        size_t cells = 1;
        bool quoted = false;

        for (const char *at = line; *at != '\n'; at++) {
            quoted ^= *at == '"';
            cells += *at == ',' && !quoted;
        }
        wanted = wanted ? wanted : cells;
        assert_int_equal(cells, wanted);
    }
    free(text);
    asked.options.tree = false; /* and no columns of trees without one */
    text = report_text(top, &asked);
    assert_null(strstr(text, "parent"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void the_peak_needs_no_heading_of_its_own(void **state)
{
    struct tarn_selection selection = {.struct_size = sizeof selection,
                                       .at = {.kind = TARN_AT_PEAK}};
    struct tarn_snapshot *snapshot = report_load("tiny");
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .selection = &selection}};
    char *text = report_text(top, &asked);

    (void)state;
    assert_non_null(strstr(text, "at peak"));
    free(text);
    selection.at.kind = TARN_AT_END;
    text = report_text(top, &asked);
    assert_non_null(strstr(text, "at instant"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void what_matches_nothing_is_said(void **state)
{
    const struct tarn_selection selection = {.struct_size = sizeof selection, .match = "nowhere"};
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .selection = &selection};
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct tarn_top_result *results = NULL;
    struct tarn_error error = {.text = ""};
    size_t count;

    (void)state;
    assert_int_equal(tarn_top_compute(snapshot, &options, &results, &count, &error),
                     TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "nothing is selected: none of the 9 blocks of device 0 "));
    assert_null(results);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(top, "cudagraph", 6);
}

/* Two projections of a model, called through PyTorch's modules; the second stack differs from the
 * first one in a frame of PyTorch alone. */
#define FRAME(name, file, line) "{'name': '" name "', 'filename': '" file "', 'line': " line "}"
#define NN(name, file, line)    FRAME(name, "/v/site-packages/torch/nn/modules/" file, line)
#define MODEL(line)             FRAME("project", "/v/site-packages/models/bert.py", line)
#define PROJECTION(call, line)                                                                     \
    NN("forward", "linear.py", "134")                                                              \
    "," NN("call", "module.py", call) "," MODEL(line) "," NN("call", "module.py", "17") "," FRAME( \
        "train", "/home/me/train.py", "9")
#define ALLOC(addr, size, frames)                                                                  \
    "{'action': 'alloc', 'addr': " addr ", 'size': " size ", 'stream': 0, 'frames': [" frames "]}"

static void labels_tell_stacks_apart(void **state)
{
    struct tarn_snapshot *snapshot = report_parse("{'segments': [], 'device_traces': [[" ALLOC(
        "4096", "3000",
        PROJECTION("17", "175")) "," ALLOC("8192", "2000",
                                           PROJECTION("18",
                                                      "175")) "," ALLOC("12288", "1000",
                                                                        PROJECTION("17",
                                                                                   "176")) "]]}");
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_top_result *result = compute(&asked);

    (void)state;
    assert_string_equal(result->rows[0].group.text,
                        "linear.py:134:forward < module.py:17:call < bert.py:175:project < ... < "
                        "train.py:9:train");
    assert_string_equal(result->rows[1].group.text,
                        "linear.py:134:forward < module.py:18:call < bert.py:175:project < ... < "
                        "train.py:9:train");
    assert_string_equal(result->rows[2].group.text,
                        "linear.py:134:forward < ... < bert.py:176:project < ... < "
                        "train.py:9:train");
    tarn_report_destroy(result);

    asked.options.full_stacks = true;
    result = compute(&asked);
    assert_string_equal(result->rows[2].group.text,
                        "linear.py:134:forward < module.py:17:call < bert.py:176:project < "
                        "module.py:17:call < train.py:9:train");
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_tell_stacks_apart),
        cmocka_unit_test(every_order),
        cmocka_unit_test(others_and_total),
        cmocka_unit_test(totals_are_the_counters_of_the_run),
        cmocka_unit_test(devices_have_numbers_of_devices),
        cmocka_unit_test(trees_have_lines),
        cmocka_unit_test(the_peak_needs_no_heading_of_its_own),
        cmocka_unit_test(what_matches_nothing_is_said),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
