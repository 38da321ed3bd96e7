/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/analysis.h"
#include "snapshot/snapshot.h"
#include "tarn/report.h"

struct asked {
    const struct tarn_snapshot *snapshot;
    struct tarn_selection selection;
    struct tarn_report_options options;
};

static enum tarn_status live(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_report_options options = asked->options;

    options.selection = &asked->selection;
    return tarn_report_live(asked->snapshot, &options, writer, error);
}

static enum tarn_status info(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_report_options options = asked->options;

    options.selection = &asked->selection;
    return tarn_report_info(asked->snapshot, &options, writer, error);
}

static void says(const struct asked *asked, const char *part)
{
    char *text = report_text(live, asked);

    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

static void refuses(const struct asked *asked, enum tarn_status status, const char *part)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error = {.status = TARN_OK};

    assert_int_equal(live(asked, &writer, &error), status);
    assert_int_equal(error.status, status);
    assert_null(collect.text);
    if (!strstr(error.text, part)) {
        fail_msg("\"%s\" is not in: %s", part, error.text);
    }
}

/* Two segments, of the default pool (stream 0) and a private one (stream 7); a block of 100 from
 * before, and one of each kind: 1000 in the default pool, 20 in the private one, 3 KiB asked for
 * while "load#1" is open inside of "ProfilerStep#4", 5 bytes with metadata set later. */
static const char mixed[] =
    "{'segments': ["
    "{'address': 4096, 'total_size': 65536, 'device': 0, 'stream': 0, 'segment_pool_id': [0, 0],"
    " 'blocks': [{'address': 4096, 'size': 512, 'requested_size': 100, 'state': 'active_allocated',"
    "  'frames': []},{'address': 4608, 'size': 65024, 'state': 'inactive', 'frames': []}]},"
    "{'address': 131072, 'total_size': 65536, 'device': 0, 'stream': 7, 'segment_pool_id': [0, 3],"
    " 'blocks': [{'address': 131072, 'size': 65536, 'state': 'inactive', 'frames': []}]}],"
    "'external_annotations': ["
    "{'stage': 'START', 'name': 'ProfilerStep#3', 'device': 0, 'time_us': 1000},"
    "{'stage': 'END', 'name': 'ProfilerStep#3', 'device': 0, 'time_us': 1025},"
    "{'stage': 'START', 'name': 'ProfilerStep#4', 'device': 0, 'time_us': 1025},"
    "{'stage': 'START', 'name': 'load#1', 'device': 0, 'time_us': 1028},"
    "{'stage': 'END', 'name': 'load#1', 'device': 0, 'time_us': 1032},"
    "{'stage': 'END', 'name': 'ProfilerStep#4', 'device': 0, 'time_us': 1055},"
    "{'stage': 'START', 'name': 'ProfilerStep#5', 'device': 0, 'time_us': 1055}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1010, 'frames': ["
    " {'name': 'at::empty', 'filename': 'Empty.cpp', 'line': 9},"
    " {'name': 'inner', 'filename': '/u/a.py', 'line': 1},"
    " {'name': 'outer', 'filename': '/u/b.py', 'line': 2}]},"
    "{'action': 'alloc', 'addr': 131072, 'size': 20, 'stream': 7, 'time_us': 1020, 'frames': ["
    " {'name': 'at::empty', 'filename': 'Empty.cpp', 'line': 9},"
    " {'name': 'inner', 'filename': '/u/a.py', 'line': 1},"
    " {'name': 'other', 'filename': '/u/b.py', 'line': 5}]},"
    "{'action': 'alloc', 'addr': 16384, 'size': 3072, 'stream': 0, 'time_us': 1030, 'frames': ["
    " {'name': 'load', 'filename': '/u/c.py', 'line': 3}], 'compile_context': '0/0'},"
    "{'action': 'alloc', 'addr': 32768, 'size': 5, 'stream': 0, 'time_us': 1040, 'frames': []},"
    "{'action': 'annotate', 'addr': 32768, 'size': 5, 'stream': 0, 'time_us': 1041, 'frames': [],"
    " 'user_metadata': 'kv_cache'},"
    "{'action': 'free_requested', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1050},"
    "{'action': 'free_completed', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1060},"
    "{'action': 'alloc', 'addr': 49152, 'size': 7, 'stream': 0, 'time_us': 1070, 'frames': []}]]}";

static struct asked asked_of(const struct tarn_snapshot *snapshot)
{
    return (struct asked){
        .snapshot = snapshot,
        .selection = {.struct_size = sizeof(struct tarn_selection), .at = {TARN_AT_EVENT, 4}},
        .options = {.struct_size = sizeof(struct tarn_report_options)}};
}

static void blocks_are_picked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    says(&asked, "4.10 KiB  100.0%         5  total\n");
    asked.selection.one_stream = true;
    asked.selection.stream = 7;
    says(&asked, "selected: stream 7\n\nmemory: 64.00 KiB reserved, 20 B requested");
    says(&asked, "        20 B  100.0%         1  total\n"
                 "    4.08 KiB          requested by blocks that are not selected\n"
                 "   63.98 KiB          reserved but not requested");
    asked.selection.one_stream = false;
    asked.selection.pools = TARN_POOLS_PRIVATE;
    says(&asked, "selected: private pools\n\nmemory: 64.00 KiB reserved, 20 B requested");
    asked.selection.pools = TARN_POOLS_DEFAULT;
    says(&asked, "selected: the default pool\n\nmemory: 64.00 KiB reserved, 4.08 KiB requested");
    asked.selection.pools = TARN_POOLS_ONE;
    asked.selection.pool[1] = 3;
    says(&asked, "selected: pool (0, 3)\n\nmemory: 64.00 KiB reserved, 20 B requested");
    asked.selection.pools = TARN_POOLS_ALL;
    asked.selection.size_min = 21;
    asked.selection.size_max = 1000;
    says(&asked, "selected: blocks of at least 21 B, blocks of at most 1000 B\n\n"
                 "memory: 128.00 KiB reserved, 1.07 KiB requested");
    asked.selection.size_min = 0;
    says(&asked, "selected: blocks of at most 1000 B\n\nmemory: 128.00 KiB reserved, 1.10 KiB "
                 "requested");
    tarn_snapshot_destroy(snapshot);
}

/* What is reserved before the first event is what the segments of the selection have at the end,
 * less what the trace added to them; those of other streams and devices do not count. */
static void reserved_is_of_the_selection(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': ["
        "{'address': 131072, 'total_size': 65536, 'device': 0, 'stream': 7, 'blocks': []},"
        "{'address': 262144, 'total_size': 16384, 'device': 0, 'stream': 7, 'blocks': []},"
        "{'address': 131072, 'total_size': 1048576, 'device': 1, 'stream': 7, 'blocks': []}],"
        "'device_traces': [["
        "{'action': 'segment_free', 'addr': 1048576, 'size': 32768, 'stream': 0},"
        "{'action': 'segment_alloc', 'addr': 131072, 'size': 65536, 'stream': 7},"
        "{'action': 'alloc', 'addr': 131072, 'size': 20, 'stream': 7}], []]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.options.one_device = true;
    asked.selection.one_stream = true;
    asked.selection.stream = 7;
    asked.selection.at.kind = TARN_AT_END;
    says(&asked, "memory: 80.00 KiB reserved, 20 B requested");
    asked.selection.at.kind = TARN_AT_START;
    says(&asked, "memory: 16.00 KiB reserved, 0 B requested");
    tarn_snapshot_destroy(snapshot);
}

/* A file that has less at its end than its trace added: nothing was there before. */
static void reserved_is_not_negative(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'segment_alloc', 'addr': 131072, 'size': 65536, 'stream': 7},"
                     "{'action': 'alloc', 'addr': 131072, 'size': 20, 'stream': 7}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.one_stream = true;
    asked.selection.stream = 7;
    asked.selection.at.kind = TARN_AT_START;
    says(&asked, "memory: 0 B reserved, 0 B requested");
    asked.selection.at.kind = TARN_AT_END;
    says(&asked, "memory: 64.00 KiB reserved, 20 B requested");
    tarn_snapshot_destroy(snapshot);
}

static void frames_are_picked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.match = "b\\.py:[0-9]+:outer$";
    says(&asked,
         "stacks with \"b\\.py:[0-9]+:outer$\"\n\nmemory: 128.00 KiB reserved, 1000 B requested");
    asked.selection.match = NULL;
    asked.selection.frames = TARN_FRAMES_PYTHON;
    says(&asked, "  a.py:1:inner < b.py:2:outer\n");
    asked.selection.frames = TARN_FRAMES_CPP;
    says(&asked, "      1020 B   24.3%         2  Empty.cpp:9:at::empty\n");
    asked.selection.frames = TARN_FRAMES_ALL;
    asked.selection.hide = "Empty|b\\.py";
    says(&asked, "      1020 B   24.3%         2  a.py:1:inner\n");
    asked.selection.hide = NULL;
    asked.selection.depth = 2;
    says(&asked, "         2  Empty.cpp:9:at::empty < a.py:1:inner\n");
    tarn_snapshot_destroy(snapshot);
}

static void own_frames_are_those_of_no_package(void **state)
{
    static const char text[] =
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 8192, 'size': 1000,"
        " 'stream': 0, 'time_us': 1010, 'frames': ["
        " {'name': 'at::empty', 'filename': '/src/Empty.cpp', 'line': 9},"
        " {'name': 'forward', 'filename': '/v/site-packages/torch/nn/linear.py', 'line': 1},"
        " {'name': 'forward', 'filename': '/home/u/model.py', 'line': 2},"
        " {'name': 'train', 'filename': '/v/site-packages/trainer/loop.py', 'line': 3},"
        " {'name': 'main', 'filename': '/home/u/train.py', 'line': 4},"
        " {'name': 'run', 'filename': '/usr/lib/python3.11/runpy.py', 'line': 5}]}]]}";
    struct tarn_snapshot *snapshot = report_parse(text);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.selection.frames = TARN_FRAMES_OWN;
    says(&asked, "  model.py:2:forward < train.py:4:main\n");
    tarn_snapshot_destroy(snapshot);
}

/* Python is what a file in .py has, or what is no file; the program's own is a part of that. A
 * frame of which only the line is known is neither, and what has no stack has none in any view. */
static void python_is_told_by_the_file(void **state)
{
    static const char text[] =
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 8192, 'size': 1000, 'stream': 0, 'frames': ["
        " {'name': 's', 'filename': '<string>', 'line': 1},"
        " {'name': 'p', 'filename': '.py', 'line': 2},"
        " {'name': 'k', 'filename': '/u/kernel.cu', 'line': 3},"
        " {'name': 'q', 'filename': 'py', 'line': 4}]},"
        "{'action': 'alloc', 'addr': 16384, 'size': 20, 'stream': 0, 'frames': [{'line': 0}]},"
        "{'action': 'alloc', 'addr': 32768, 'size': 3, 'stream': 0}]]}";
    static const struct {
        enum tarn_frames frames;
        const char *row;
    } rows[] = {
        {TARN_FRAMES_PYTHON, " 1  <string>:1:s < .py:2:p\n"},
        {TARN_FRAMES_PYTHON, "        20 B    2.0%         1  (no frames)\n"},
        {TARN_FRAMES_PYTHON, "         3 B    0.3%         1  (not recorded)\n"},
        {TARN_FRAMES_OWN, " 1  <string>:1:s < .py:2:p\n"},
        {TARN_FRAMES_CPP, " 1  kernel.cu:3:k < py:4:q\n"},
        {TARN_FRAMES_CPP, "        20 B    2.0%         1  :0:\n"},
        {TARN_FRAMES_CPP, "         3 B    0.3%         1  (not recorded)\n"},
    };
    struct tarn_snapshot *snapshot = report_parse(text);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked.selection.frames = rows[i].frames;
        says(&asked, rows[i].row);
    }
    tarn_snapshot_destroy(snapshot);
}

/* Frames of which the line alone is known are frames. */
static void frames_may_have_no_names(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'frames': [{'line': 0}]},"
        "{'action': 'alloc', 'addr': 1024, 'size': 7, 'stream': 0, 'frames': [{'line': 5}]},"
        "{'action': 'alloc', 'addr': 2048, 'size': 4, 'stream': 0, 'frames': []}]]}");
    static const struct {
        enum tarn_grouping by;
        const char *row;
    } rows[] = {
        {TARN_BY_FRAME, "         9 B   45.0%         1  :0:\n"},
        {TARN_BY_FRAME, "         7 B   35.0%         1  :5:\n"},
        {TARN_BY_FRAME, "         4 B   20.0%         1  (no frames)\n"},
        {TARN_BY_FUNCTION, "        16 B   80.0%         2  \n"},
        {TARN_BY_LINE, "         9 B   45.0%         1  :0\n"},
    };
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked.options.by = rows[i].by;
        says(&asked, rows[i].row);
    }
    tarn_snapshot_destroy(snapshot);
}

/* Either half of a pool's number makes it a private one. */
static void pools_have_names(void **state)
{
    static const char text[] =
        "{'segments': ["
        "{'address': 4096, 'total_size': 4096, 'device': 0, 'stream': 0, 'segment_pool_id': [0, 0],"
        " 'blocks': [{'size': 4096, 'requested_size': 1000, 'state': 'active_allocated'}]},"
        "{'address': 8192, 'total_size': 4096, 'device': 0, 'stream': 0, 'segment_pool_id': [5, 0],"
        " 'blocks': [{'size': 4096, 'requested_size': 200, 'state': 'active_allocated'}]},"
        "{'address': 16384, 'total_size': 4096, 'device': 0, 'stream': 0,"
        " 'segment_pool_id': [0, 3],"
        " 'blocks': [{'size': 4096, 'requested_size': 30, 'state': 'active_allocated'}]},"
        "{'address': 32768, 'total_size': 4096, 'device': 0, 'stream': 0,"
        " 'segment_pool_id': [0, 1],"
        " 'blocks': [{'size': 4096, 'requested_size': 5, 'state': 'active_allocated'}]}],"
        "'device_traces': [["
        "{'action': 'alloc', 'addr': 65536, 'size': 1, 'stream': 0}]]}";
    static const char *const rows[] = {
        "      1000 B   80.9%         1  default\n",
        "       200 B   16.2%         1  private (5, 0)\n",
        "        30 B    2.4%         1  private (0, 3)\n",
        "         5 B    0.4%         1  private (0, 1)\n",
        "         1 B    0.1%         1  (unknown pool)\n",
    };
    struct tarn_snapshot *snapshot = report_parse(text);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.options.by = TARN_BY_POOL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        says(&asked, rows[i]);
    }
    asked.selection.pools = TARN_POOLS_ONE;
    asked.selection.pool[1] = 8;
    refuses(&asked, TARN_ERR_NOT_FOUND, "the private pool 5,0");
    refuses(&asked, TARN_ERR_NOT_FOUND, "the private pool 0,3");
    refuses(&asked, TARN_ERR_NOT_FOUND, "the private pool 0,1");
    refuses(&asked, TARN_ERR_NOT_FOUND, "the default pool");
    tarn_snapshot_destroy(snapshot);
}

static void parts_are_picked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_UNSPECIFIED;
    asked.selection.events = (struct tarn_span){true, 1, 2};
    says(&asked,
         "selected: events 1 to 2 of 8\n\nmemory: 128.00 KiB reserved, 4.09 KiB requested, at "
         "event 2 of 8\n");
    says(&asked, "    1.07 KiB          of the total was allocated before that part\n");
    asked.selection.at.kind = TARN_AT_START;
    says(&asked, "memory: 128.00 KiB reserved, 1.07 KiB requested, before event 1 of 8\n");
    asked.selection.at.kind = TARN_AT_UNSPECIFIED;
    asked.selection.events.is_given = false;
    asked.selection.time_us = (struct tarn_span){true, 10, 30};
    says(&asked, "selected: events 1 to 3 of 8\n");
    asked.selection.time_us.last = UINT64_MAX;
    says(&asked, "selected: events 1 to 7 of 8\n");
    asked.selection.time_us.is_given = false;

    /* Steps begin at 1000 (before the trace), 1025 and 1055. */
    asked.selection.steps = (struct tarn_span){true, 1, 1};
    says(&asked, "selected: events 0 to 1 of 8\n");
    asked.selection.steps = (struct tarn_span){true, 2, 2};
    says(&asked, "selected: events 2 to 5 of 8\n");
    asked.selection.steps = (struct tarn_span){true, 2, 9};
    says(&asked, "selected: events 2 to 7 of 8\n");
    asked.selection.at = (struct tarn_instant){TARN_AT_STEP, 2};
    says(&asked, "at event 5 of 8\n");
    asked.selection.steps.is_given = false;
    asked.selection.at = (struct tarn_instant){TARN_AT_TIME, 31};
    says(&asked, "at event 4 of 8\n");
    asked.selection.at.kind = TARN_AT_RESERVED_PEAK;
    says(&asked, "memory: 128.00 KiB reserved, 100 B requested, before the first event\n");
    tarn_snapshot_destroy(snapshot);
}

static void annotations_are_picked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.annotation = "load";
    says(&asked,
         "selected: annotation \"load\"\n\nmemory: 128.00 KiB reserved, 3.00 KiB requested");
    says(&asked, "    3.00 KiB  100.0%         1  total\n"); /* not a block of other metadata */
    asked.selection.annotation = "kv_cache";
    says(&asked, "memory: 128.00 KiB reserved, 5 B requested");
    asked.selection.annotation = NULL;
    asked.options.by = TARN_BY_ANNOTATION;
    says(&asked, "    3.00 KiB   73.2%         1  load#1\n"
                 "      1020 B   24.3%         2  ProfilerStep#3\n"
                 "       100 B    2.4%         1  (no annotation)\n"
                 "         5 B    0.1%         1  ProfilerStep#4\n");
    asked.options.by = TARN_BY_METADATA;
    says(&asked, "         5 B    0.1%         1  kv_cache\n");
    asked.options.by = TARN_BY_COMPILE;
    says(&asked, "    3.00 KiB   73.2%         1  0/0\n");
    tarn_snapshot_destroy(snapshot);
}

/* An annotation without a name has blocks, but a block without metadata has no name. */
static void names_may_be_empty(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'external_annotations': ["
        "{'stage': 'START', 'name': '', 'device': 0, 'time_us': 6}],"
        "'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'time_us': 5},"
        "{'action': 'alloc', 'addr': 1024, 'size': 70, 'stream': 0, 'time_us': 7}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.selection.annotation = "";
    says(&asked, "        70 B  100.0%         1  total\n");
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse(mixed);
    asked.snapshot = snapshot;
    refuses(&asked, TARN_ERR_NOT_FOUND, "device 0 has no annotation \"\"");
    tarn_snapshot_destroy(snapshot);
}

/* Also where it is the only block, and no annotation is in the file. */
static void metadata_is_enough(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': "
        "0, 'user_metadata': 'mine'}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.selection.annotation = "mine";
    says(&asked, "         9 B  100.0%         1  total\n");
    tarn_snapshot_destroy(snapshot);
}

/* Sizes in names of groups are in the units of the report; JSON has its own. */
static void labels_have_the_units_that_are_asked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.options.by = TARN_BY_SIZE;
    asked.options.units = TARN_UNITS_BYTES;
    says(&asked, "  up to 4096\n");
    asked.options.format = TARN_REPORT_JSON;
    says(&asked, "\"up to 4.00 KiB\"");
    tarn_snapshot_destroy(snapshot);
}

static void an_empty_label_is_none(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': "
        "0, 'user_metadata': '', 'compile_context': ''}, {'action': 'alloc', 'addr': 1024,"
        " 'size': 9, 'stream': 0}]]}");
    static const struct {
        enum tarn_grouping by;
        const char *row;
    } rows[] = {{TARN_BY_METADATA, "        18 B  100.0%         2  (none)\n"},
                {TARN_BY_MODULE, "        18 B  100.0%         2  (outside of all modules)\n"},
                {TARN_BY_COMPILE, "        18 B  100.0%         2  (not compiled)\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct asked asked = asked_of(snapshot);

        asked.selection.at.kind = TARN_AT_END;
        asked.options.by = rows[i].by;
        says(&asked, rows[i].row);
    }
    tarn_snapshot_destroy(snapshot);
}

/* Frames of the interpreter are no one's; and an annotation may have no name. */
static void what_has_no_name_of_its_own(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'external_annotations': ["
        "{'stage': 'START', 'name': '', 'device': 0, 'time_us': 5}],"
        "'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'time_us': 5,"
        " 'frames': [{'name': 'PyObject_Call', 'filename': 'call.c', 'line': 1},"
        "  {'name': 'mine', 'filename': 'a.py', 'line': 2}]},"
        "{'action': 'alloc', 'addr': 1024, 'size': 9, 'stream': 0, 'time_us': 7,"
        " 'frames': [{'name': 'PyObject_Call', 'filename': 'call.c', 'line': 1}]}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.options.by = TARN_BY_FUNCTION;
    says(&asked, "         9 B   50.0%         1  mine\n");
    says(&asked, "         9 B   50.0%         1  (no frames)\n");
    asked.options.by = TARN_BY_ANNOTATION;
    says(&asked, "        18 B  100.0%         2  (no annotation)\n");
    tarn_snapshot_destroy(snapshot);
}

static void every_grouping(void **state)
{
    static const struct {
        enum tarn_grouping by;
        const char *row;
    } rows[] = {
        {TARN_BY_FRAME, "      1020 B   24.3%         2  Empty.cpp:9:at::empty\n"},
        {TARN_BY_FUNCTION, "      1020 B   24.3%         2  at::empty\n"},
        {TARN_BY_FILE, "    3.00 KiB   73.2%         1  /u/c.py\n"},
        {TARN_BY_LINE, "    3.00 KiB   73.2%         1  c.py:3\n"},
        {TARN_BY_STREAM, "        20 B    0.5%         1  stream 7\n"},
        {TARN_BY_POOL, "        20 B    0.5%         1  private (0, 3)\n"},
        {TARN_BY_SEGMENT, "        20 B    0.5%         1  segment 0x20000\n"},
        {TARN_BY_SIZE, "    3.00 KiB   73.2%         1  up to 4.00 KiB\n"},
        {TARN_BY_CATEGORY, "       120 B    2.9%         2  parameter (by lifetime)\n"},
        {TARN_BY_CATEGORY, "  of it is unclassified\n"},
    };
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked.options.by = rows[i].by;
        says(&asked, rows[i].row);
    }
    asked.options.format = TARN_REPORT_JSON;
    asked.options.by = TARN_BY_FRAME;
    says(&asked, "\"name\": \"Empty.cpp:9:at::empty\"\n");
    asked.options.by = TARN_BY_POOL;
    says(&asked, "\"by\": \"pool\",\n");
    tarn_snapshot_destroy(snapshot);
}

/* Blocks of 512 bytes by each of two functions in each of two files on each of two lines: what a
 * grouping does not ask for does not tell frames apart, and all else does. */
static void groups_are_of_what_is_asked(void **state)
{
    static const struct {
        enum tarn_grouping by;
        const char *row;
    } rows[] = {
        {TARN_BY_FRAME, "       512 B   12.5%         1  a.py:1:f\n"},
        {TARN_BY_FRAME, "       512 B   12.5%         1  b.py:2:g\n"},
        {TARN_BY_FUNCTION, "    2.00 KiB   50.0%         4  f\n"},
        {TARN_BY_FUNCTION, "    2.00 KiB   50.0%         4  g\n"},
        {TARN_BY_FILE, "    2.00 KiB   50.0%         4  /u/a.py\n"},
        {TARN_BY_FILE, "    2.00 KiB   50.0%         4  /u/b.py\n"},
        {TARN_BY_LINE, "    1.00 KiB   25.0%         2  a.py:1\n"},
        {TARN_BY_LINE, "    1.00 KiB   25.0%         2  b.py:2\n"},
    };
    char json[4096];
    size_t length = (size_t)snprintf(json, sizeof json, "{'segments': [], 'device_traces': [[");

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        length += (size_t)snprintf(
            json + length, sizeof json - length,
            "%s{'action': 'alloc', 'addr': %u, 'size': 512, 'stream': 0, 'frames': ["
            "{'name': '%s', 'filename': '/u/%s.py', 'line': %u}]}",
            i > 0 ? "," : "", 4096 + 512 * i, i & 1 ? "g" : "f", i & 2 ? "b" : "a", 1 + i / 4);
    }
    (void)snprintf(json + length, sizeof json - length, "]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    struct asked asked = asked_of(snapshot);

    asked.selection.at.kind = TARN_AT_END;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked.options.by = rows[i].by;
        says(&asked, rows[i].row);
    }
    tarn_snapshot_destroy(snapshot);
}

static void what_is_not_there(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.match = "(";
    refuses(&asked, TARN_ERR_INVALID_ARGUMENT, "--match: \"(\" is not a regular expression");
    asked.selection.match = NULL;
    asked.selection.hide = "[";
    refuses(&asked, TARN_ERR_INVALID_ARGUMENT, "--hide: \"[\" is not a regular expression");
    char long_one[250] = "";

    memset(long_one, '(', sizeof long_one - 1); /* of which the beginning is shown */
    memset(long_one + 1, 'a', 199);
    asked.selection.hide = long_one;
    refuses(&asked, TARN_ERR_INVALID_ARGUMENT, "aaa\" is not a regular expression");
    asked.selection.hide = NULL;
    asked.selection.annotation = "nothing";
    refuses(&asked, TARN_ERR_NOT_FOUND, "device 0 has no annotation \"nothing\"");
    asked.selection.annotation = NULL;
    asked.selection.events = (struct tarn_span){true, 8, 9};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has events 0 to 7, none of them in that part");
    asked.selection.events = (struct tarn_span){true, 6, 7};
    refuses(&asked, TARN_ERR_NOT_FOUND, "is outside the selection, events 6 to 7");
    asked.selection.events = (struct tarn_span){true, 1, 3};
    refuses(&asked, TARN_ERR_NOT_FOUND, "is outside the selection, events 1 to 3");
    asked.selection.events.is_given = false;
    asked.selection.steps = (struct tarn_span){true, 3, 3};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has steps 1 to 2");
    asked.selection.steps = (struct tarn_span){true, 0, 2};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has steps 1 to 2");
    asked.selection.steps = (struct tarn_span){true, 2, 1};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has steps 1 to 2");
    asked.selection.steps.is_given = false;
    asked.selection.time_us = (struct tarn_span){true, UINT64_MAX, UINT64_MAX};
    refuses(&asked, TARN_ERR_NOT_FOUND, "none of them in that part");
    asked.selection.time_us.is_given = false;
    asked.selection.at = (struct tarn_instant){TARN_AT_OOM, 1};
    refuses(&asked, TARN_ERR_NOT_FOUND, "0 requests failed on device 0");
    asked.selection.at = (struct tarn_instant){TARN_AT_OOM, 0};
    refuses(&asked, TARN_ERR_NOT_FOUND, "0 requests failed on device 0");
    asked.selection.at = (struct tarn_instant){TARN_AT_STEP, 0};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has steps 1 to 2");
    asked.selection.at = (struct tarn_instant){TARN_AT_STEP, 3};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has steps 1 to 2");
    asked.selection.events = (struct tarn_span){true, 3, 7};
    asked.selection.at = (struct tarn_instant){TARN_AT_EVENT, 2};
    says(&asked, "before event 3 of 8"); /* right before the part */
    asked.selection.at = (struct tarn_instant){TARN_AT_EVENT, 1};
    refuses(&asked, TARN_ERR_NOT_FOUND, "is outside the selection, events 3 to 7");
    asked.selection.events.is_given = false;
    asked.selection.at = (struct tarn_instant){TARN_AT_TIME, UINT64_MAX};
    says(&asked, "at event 7 of 8\n"); /* the end is long over */
    tarn_snapshot_destroy(snapshot);
}

/* Of a name that is too long for the message, the first 200 bytes. */
static void long_names_are_cut(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);
    char name[300];
    char expected[300];

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)snprintf(expected, sizeof expected, "has no annotation \"%.200s\"; ", name);
    asked.selection.annotation = name;
    refuses(&asked, TARN_ERR_NOT_FOUND, expected);
    tarn_snapshot_destroy(snapshot);
}

/* A time is that of the last event that is not behind it, wherever the clock begins and ends. */
static void times_to_the_microsecond(void **state)
{
    static const struct {
        int64_t times[2];
        uint64_t at;
        int event;
    } rows[] = {
        {{1010, 1011}, 0, 0},
        {{1010, 1011}, 1, 1},
        {{1010, 1011}, INT64_MAX - 1011, 1},
        {{1010, 1011}, INT64_MAX - 1010, 1},
        {{1010, 1011}, INT64_MAX - 1, 1},
        {{0, 7}, INT64_MAX - 1, 1},
        {{0, 7}, INT64_MAX, 1},
        {{-5, 7}, INT64_MAX - 1, 1},
        {{-5, 2}, 6, 0},
        {{-5, 2}, 7, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[512];
        char expected[64];

        (void)snprintf(json, sizeof json,
                       "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512,"
                       " 'size': 9, 'stream': 0, 'time_us': %lld}, {'action': 'alloc', 'addr':"
                       " 1024, 'size': 9, 'stream': 0, 'time_us': %lld}]]}",
                       (long long)rows[i].times[0], (long long)rows[i].times[1]);
        struct tarn_snapshot *snapshot = report_parse(json);
        struct asked asked = asked_of(snapshot);

        (void)snprintf(expected, sizeof expected, "at event %d of 2\n", rows[i].event);
        asked.selection.at = (struct tarn_instant){TARN_AT_TIME, rows[i].at};
        says(&asked, expected);
        tarn_snapshot_destroy(snapshot);
    }
}

/* A selection without a block says what there is. */
static void what_matches_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.match = "INNER";
    refuses(&asked, TARN_ERR_NOT_FOUND,
            "nothing is selected: none of the 6 blocks of device 0 matches; its largest block is "
            "of c.py:3:load; upper and lower case differ");
    asked.selection.match = NULL;
    asked.selection.one_stream = true;
    asked.selection.stream = 9;
    refuses(&asked, TARN_ERR_NOT_FOUND, "matches; it has blocks on streams 0, 7");
    asked.selection.one_stream = false;
    asked.selection.pools = TARN_POOLS_ONE;
    asked.selection.pool[1] = 8;
    refuses(&asked, TARN_ERR_NOT_FOUND, "it has blocks in the default pool, the private pool 0,3");
    asked.selection.pools = TARN_POOLS_ALL;
    asked.selection.size_min = 4096;
    refuses(&asked, TARN_ERR_NOT_FOUND, "its blocks have 5 to 3072 bytes");
    tarn_snapshot_destroy(snapshot);
}

/* Blocks of other sizes, with and without stacks, and of no pool that is known. */
static void what_matches_nothing_of_few(void **state)
{
    static const char largest_first[] =
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 900, 'stream': 0, 'frames': ["
        " {'name': 'f', 'filename': '/u/a.py', 'line': 1}]},"
        "{'action': 'alloc', 'addr': 4096, 'size': 10, 'stream': 0, 'frames': ["
        " {'name': 'g', 'filename': '/u/a.py', 'line': 2}]}]]}";
    static const char largest_without[] =
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 4096, 'size': 10, 'stream': 0, 'frames': ["
        " {'name': 'g', 'filename': '/u/a.py', 'line': 2}]},"
        "{'action': 'alloc', 'addr': 8192, 'size': 900, 'stream': 0, 'frames': []}]]}";
    static const char none_with[] = "{'segments': [], 'device_traces': [["
                                    "{'action': 'alloc', 'addr': 8192, 'size': 0, 'stream': 0}]]}";
    static const struct {
        const char *json;
        const char *match;
        uint64_t size_min;
        uint64_t size_max;
        enum tarn_pools pools;
        const char *message;
    } cases[] = {
        {largest_first, "none", 0, 0, TARN_POOLS_ALL, "matches; its largest block is of a.py:1:f;"},
        {largest_first, NULL, 1000, 0, TARN_POOLS_ALL, "matches; its blocks have 10 to 900 bytes"},
        {largest_first, NULL, 0, 5, TARN_POOLS_ALL, "matches; its blocks have 10 to 900 bytes"},
        {largest_first, NULL, 0, 0, TARN_POOLS_PRIVATE,
         "matches; in which pools its blocks are is unknown"},
        {largest_without, "none", 0, 0, TARN_POOLS_ALL,
         "matches; its largest block is of a.py:2:g;"},
        {none_with, "none", 1, 0, TARN_POOLS_ALL,
         "matches; its blocks have no stacks; its blocks have 0 to 0 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = report_parse(cases[i].json);
        struct asked asked = asked_of(snapshot);

        asked.selection.at.kind = TARN_AT_END;
        asked.selection.match = cases[i].match;
        asked.selection.size_min = cases[i].size_min;
        asked.selection.size_max = cases[i].size_max;
        asked.selection.pools = cases[i].pools;
        refuses(&asked, TARN_ERR_NOT_FOUND, cases[i].message);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Eight pools are named, all of them or the first. */
static void pools_that_are_named(void **state)
{
    (void)state;
    for (int pools = 8; pools <= 9; pools++) {
        char json[4096];
        size_t length = (size_t)snprintf(json, sizeof json, "{'segments': [");

        for (int i = 1; i <= pools; i++) {
            length += (size_t)snprintf(
                json + length, sizeof json - length,
                "%s{'address': %d, 'total_size': 512, 'device': 0, 'stream': 0,"
                " 'segment_pool_id': [0, %d], 'blocks': ["
                "{'size': 512, 'requested_size': 512, 'state': 'active_allocated'}]}",
                i > 1 ? "," : "", 4096 * i, i);
        }
        (void)snprintf(json + length, sizeof json - length, "], 'device_traces': [[]]}");
        struct tarn_snapshot *snapshot = report_parse(json);
        struct asked asked = asked_of(snapshot);
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_error error = {.text = ""};

        asked.selection.at.kind = TARN_AT_END;
        asked.selection.pools = TARN_POOLS_DEFAULT;
        assert_int_equal(live(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
        assert_non_null(strstr(error.text, ", the private pool 0,8"));
        assert_null(strstr(error.text, "0,9"));
        assert_int_equal(strstr(error.text, "0,8 and others") != NULL, pools == 9);
        tarn_snapshot_destroy(snapshot);
    }
}

/* More streams and pools than are named, all of them, and more text than there is room for. */
static void what_matches_nothing_of_many(void **state)
{
    static const char long_name[] = "a_name_that_is_longer_than_what_of_it_is_shown_in_a_message_"
                                    "a_name_that_is_longer_than_what_of_it_is_shown_in_a_message_";
    enum {
        MANY = 10
    };
    char json[16384];
    size_t length = (size_t)snprintf(json, sizeof json, "{'segments': [");
    struct tarn_error error = {.text = ""};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    for (int i = 0; i < MANY; i++) { /* each pool has a segment with a block */
        length += (size_t)snprintf(
            json + length, sizeof json - length,
            "%s{'address': %d, 'total_size': 512, 'device': 0, 'stream': 1844674407370955161%d,"
            " 'segment_pool_id': [1844674407370955161%d, 1844674407370955161%d], 'blocks': ["
            "{'address': %d, 'size': 512, 'requested_size': 512, 'state': 'active_allocated',"
            " 'frames': [{'name': '%s', 'filename': '/u/%s.py', 'line': %d00000000000000000}]}]}",
            i > 0 ? "," : "", 4096 * (i + 1), i % 6, i % 6, i / 6, 4096 * (i + 1), long_name,
            long_name, i + 10);
    }
    (void)snprintf(
        json + length, sizeof json - length,
        "], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 1000000000000000000,"
        " 'stream': 18446744073709551601},"
        "{'action': 'alloc', 'addr': 2048, 'size': 9, 'stream': 18446744073709551602},"
        "{'action': 'alloc', 'addr': 3072, 'size': 9, 'stream': 18446744073709551603},"
        "{'action': 'alloc', 'addr': 3584, 'size': 9, 'stream': 18446744073709551604}]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    struct asked asked = asked_of(snapshot);

    asked.selection.at.kind = TARN_AT_END;
    asked.selection.one_stream = true;
    asked.selection.stream = 7;
    refuses(&asked, TARN_ERR_NOT_FOUND, ", 18446744073709551613 and others");
    asked.selection.one_stream = false;
    asked.selection.pools = TARN_POOLS_ONE;
    refuses(&asked, TARN_ERR_NOT_FOUND, ", the private pool 18446744073709551611,1844674407370955");
    refuses(&asked, TARN_ERR_NOT_FOUND, " and others");
    asked.selection.one_stream = true;
    asked.selection.match = "nothing";
    asked.selection.size_min = UINT64_MAX;
    assert_int_equal(live(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_int_equal(strlen(error.text), sizeof error.text - 1); /* as much as there is room for */
    tarn_snapshot_destroy(snapshot);
}

/* It is no failure that one of two devices has nothing. */
static void one_device_matches(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': ["
                     "[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}],"
                     "[{'action': 'alloc', 'addr': 512, 'size': 7, 'stream': 3}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_END;
    asked.selection.one_stream = true;
    asked.selection.stream = 3;
    says(&asked, "device 0\nselected: stream 3; no block of this device matches\n");
    says(&asked, "device 1\nselected: stream 3\n");
    asked.options.one_device = true;
    refuses(&asked, TARN_ERR_NOT_FOUND, "it has blocks on stream 0");
    tarn_snapshot_destroy(snapshot);

    snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'segment_alloc', 'addr': 512, 'size': 512, 'stream': 0}]]}");
    asked.snapshot = snapshot;
    refuses(&asked, TARN_ERR_NOT_FOUND, "nothing is selected: device 0 has no blocks");
    tarn_snapshot_destroy(snapshot);
}

/* Neither annotations, nor times, nor steps. */
static void a_file_without(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_UNSPECIFIED;
    asked.selection.annotation = "a";
    refuses(&asked, TARN_ERR_NOT_FOUND, "the file has no annotations of device 0");
    asked.selection.annotation = NULL;
    asked.selection.time_us = (struct tarn_span){true, 0, 1};
    refuses(&asked, TARN_ERR_NOT_SUPPORTED, "has no times; pick a part with --events");
    asked.selection.steps = (struct tarn_span){true, 1, 1}; /* the first of several mistakes */
    refuses(&asked, TARN_ERR_NOT_SUPPORTED, "has no times; pick a part with --events");
    asked.selection.steps.is_given = false;
    asked.selection.events = (struct tarn_span){true, 7, 9};
    refuses(&asked, TARN_ERR_NOT_SUPPORTED, "has no times; pick a part with --events");
    asked.selection.events.is_given = false;
    asked.selection.time_us.is_given = false;
    asked.selection.steps = (struct tarn_span){true, 1, 1};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has no steps of device 0");
    asked.selection.steps.is_given = false;
    asked.selection.at = (struct tarn_instant){TARN_AT_STEP, 1};
    refuses(&asked, TARN_ERR_NOT_FOUND, "has no steps of device 0");
    asked.selection.at = (struct tarn_instant){TARN_AT_TIME, 1};
    refuses(&asked, TARN_ERR_NOT_SUPPORTED, "has no times; use --at event:N");
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse("{'segments': [{'address': 4096, 'total_size': 512, 'device': 0,"
                            " 'stream': 0, 'blocks': [{'size': 512, 'requested_size': 9,"
                            " 'state': 'active_allocated', 'frames': []}]}]}");
    asked.snapshot = snapshot;
    asked.selection.at = (struct tarn_instant){TARN_AT_EVENT, 0};
    refuses(&asked, TARN_ERR_NOT_SUPPORTED, "the file has no trace of device 0");
    tarn_snapshot_destroy(snapshot);
}

/* Times and sizes at the ends of what readers take. */
static void absurd_numbers(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 4611686018427387903, 'stream': 0,"
                     " 'time_us': 2305843009213693952},"
                     "{'action': 'alloc', 'addr': 18446744073709551615, 'size': 1, 'stream': "
                     "18446744073709551615, 'time_us': -2305843009213693952}]]}");
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.at.kind = TARN_AT_UNSPECIFIED;
    for (int by = TARN_BY_STACK; by <= TARN_BY_MODULE; by++) {
        asked.options.by = (enum tarn_grouping)by;
        says(&asked, "total\n");
    }
    asked.selection.time_us = (struct tarn_span){true, 0, UINT64_MAX};
    refuses(&asked, TARN_ERR_NOT_FOUND, "nothing is selected");
    tarn_snapshot_destroy(snapshot);
}

static void info_tells_of_a_selection(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.size_min = 20;
    asked.selection.steps = (struct tarn_span){true, 1, 2};
    char *text = report_text(info, &asked);

    assert_non_null(strstr(text, "  steps: 2, from annotations\n"));
    assert_non_null(strstr(text,
                           "  selected: blocks of at least 20 B, events 0 to 5 of 8\n"
                           "    3 allocations of 4.00 KiB, at most 4.09 KiB requested at once\n"));
    free(text);
    asked.options.format = TARN_REPORT_JSON;
    text = report_text(info, &asked);
    assert_non_null(strstr(text, "\"selected_allocations\": 3,"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* A copy for rows of another grouping has the same blocks; its groups by stack have no labels. */
static void another_grouping(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);

    (void)state;
    for (int is_part = 0; is_part < 2; is_part++) {
        const struct tarn_selection selection = {.struct_size = sizeof selection,
                                                 .size_min = is_part ? 20 : 0};
        const struct tarn_report_options options = {.struct_size = sizeof options,
                                                    .selection = &selection};
        struct tn_query query;
        struct tn_analysis analysis;
        struct tn_analysis copy;

        assert_int_equal(tn_query_init(&query, tn_snapshot_model(snapshot), &options, NULL),
                         TARN_OK);
        assert_int_equal(tn_analysis_init(&analysis, &query, 0, NULL), TARN_OK);
        tn_analysis_regroup(&analysis, TARN_BY_STACK, &copy);
        assert_int_equal(copy.keys.by, TARN_BY_STACK);
        assert_true(copy.keys.only_frames);
        assert_int_equal(tn_analysis_is_part(&copy), is_part);
        assert_int_equal(copy.timeline->lifetimes.count, is_part ? 4 : 6);
        tn_analysis_regroup(&analysis, TARN_BY_SIZE, &copy);
        assert_int_equal(copy.keys.by, TARN_BY_SIZE);
        assert_false(analysis.keys.only_frames);
        tn_analysis_fini(&analysis);
        tn_query_fini(&query);
    }
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct asked asked = asked_of(snapshot);

    (void)state;
    asked.selection.hide = "b\\.py";
    asked.selection.match = ".";
    asked.selection.annotation = "ProfilerStep";
    asked.selection.pools = TARN_POOLS_DEFAULT;
    asked.selection.events = (struct tarn_span){true, 0, 6};
    for (int by = TARN_BY_STACK; by <= TARN_BY_MODULE; by++) {
        asked.options.by = (enum tarn_grouping)by;
        assert_true(report_fails_cleanly(live, &asked) >= 10);
        assert_true(report_fails_cleanly(info, &asked) >= 10);
    }
    report_is_refused(live, &asked);
    asked = asked_of(snapshot); /* where a part of the selection would show if it were left out */
    asked.selection.annotation = "load";
    assert_true(report_fails_or_copes(live, &asked) >= 10);
    asked.selection.annotation = NULL;
    asked.selection.steps = (struct tarn_span){true, 2, 2};
    assert_true(report_fails_or_copes(live, &asked) >= 10);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_picked),
        cmocka_unit_test(reserved_is_of_the_selection),
        cmocka_unit_test(reserved_is_not_negative),
        cmocka_unit_test(frames_are_picked),
        cmocka_unit_test(own_frames_are_those_of_no_package),
        cmocka_unit_test(python_is_told_by_the_file),
        cmocka_unit_test(frames_may_have_no_names),
        cmocka_unit_test(pools_have_names),
        cmocka_unit_test(parts_are_picked),
        cmocka_unit_test(annotations_are_picked),
        cmocka_unit_test(names_may_be_empty),
        cmocka_unit_test(metadata_is_enough),
        cmocka_unit_test(labels_have_the_units_that_are_asked),
        cmocka_unit_test(an_empty_label_is_none),
        cmocka_unit_test(what_has_no_name_of_its_own),
        cmocka_unit_test(every_grouping),
        cmocka_unit_test(groups_are_of_what_is_asked),
        cmocka_unit_test(what_is_not_there),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(times_to_the_microsecond),
        cmocka_unit_test(what_matches_nothing),
        cmocka_unit_test(what_matches_nothing_of_few),
        cmocka_unit_test(what_matches_nothing_of_many),
        cmocka_unit_test(pools_that_are_named),
        cmocka_unit_test(one_device_matches),
        cmocka_unit_test(a_file_without),
        cmocka_unit_test(absurd_numbers),
        cmocka_unit_test(info_tells_of_a_selection),
        cmocka_unit_test(another_grouping),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
