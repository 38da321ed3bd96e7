/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/group_key.h"
#include "analysis/stack_label.h"
#include "snapshot/snapshot.h"

/* A stack of frames, innermost first, each FILE and NAME; their lines count from 1. */
struct labelled {
    struct tarn_snapshot *snapshot;
    struct tn_stack_label label;
};

static void labelled_open(struct labelled *made, const char *const frames[][2], size_t count)
{
    char json[8192];
    size_t length = (size_t)snprintf(json, sizeof json,
                                     "{'segments': [], 'device_traces': [[{'action': 'alloc',"
                                     " 'addr': 512, 'size': 9, 'stream': 0, 'frames': [");

    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(json + length, sizeof json - length,
                                   "%s{'filename': '%s', 'line': %zu, 'name': '%s'}",
                                   i > 0 ? "," : "", frames[i][0], i + 1, frames[i][1]);
        assert_true(length < sizeof json - 8);
    }
    (void)snprintf(json + length, sizeof json - length, "]}]]}");
    made->snapshot = report_parse(json);
    const struct tn_model *model = tn_snapshot_model(made->snapshot);

    made->label = (struct tn_stack_label){
        .model = model,
        .stack = tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack),
        .is_known = true};
    assert_int_equal(made->label.stack.count, count);
}

static void labelled_close(struct labelled *made)
{
    tarn_snapshot_destroy(made->snapshot);
}

static void label_is(const struct tn_stack_label *label, const char *wanted)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    tn_text_init(&out, &writer);
    tn_stack_label_put(&out, label);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, wanted);
    free(collect.text);
}

/* The innermost frame, the first that asks, and no more than three of the program's own. */
static void frames_are_chosen(void **state)
{
    static const char *const frames[][2] = {
        {"/src/core/boxing/call.h", "call"}, /* hidden */
        {"/x/site-packages/torch/nn/linear.py", "forward"},
        {"/x/site-packages/torch/nn/module.py", "_call"},
        {"/x/site-packages/transformers/gpt.py", "attend"},
        {"/x/site-packages/transformers/gpt.py", "layer"},
        {"/home/u/model.py", "one"},
        {"/home/u/model.py", "two"},
        {"/x/site-packages/torch/nn/module.py", "_call"},
        {"/home/u/train.py", "three"},
        {"/home/u/train.py", "four"},
        {"/home/u/train.py", "five"},
    };
    struct labelled made;
    bool wanted[11] = {[10] = true};

    (void)state;
    labelled_open(&made, frames, 11);
    label_is(&made.label, "linear.py:2:forward < ... < gpt.py:4:attend < ... < model.py:6:one < "
                          "model.py:7:two < ... < train.py:9:three < ...");
    made.label.wanted = wanted;
    label_is(&made.label, "linear.py:2:forward < ... < gpt.py:4:attend < ... < model.py:6:one < "
                          "model.py:7:two < ... < train.py:9:three < ... < train.py:11:five");
    made.label.is_full = true;
    label_is(&made.label, "call.h:1:call < linear.py:2:forward < module.py:3:_call < "
                          "gpt.py:4:attend < gpt.py:5:layer < model.py:6:one < model.py:7:two < "
                          "module.py:8:_call < train.py:9:three < train.py:10:four < "
                          "train.py:11:five");
    labelled_close(&made);
}

/* Once the program's own code asked, a package does not, too. */
static void one_asks(void **state)
{
    static const char *const frames[][2] = {
        {"/x/site-packages/torch/nn/linear.py", "forward"},
        {"/home/u/model.py", "one"},
        {"/x/site-packages/trainer/loop.py", "train"},
        {"/home/u/train.py", "two"},
    };
    struct labelled made;

    (void)state;
    labelled_open(&made, frames, 4);
    label_is(&made.label, "linear.py:1:forward < model.py:2:one < ... < train.py:4:two");
    labelled_close(&made);
}

/* A package asks, whatever its folder is called; the interpreter and what is no Python do not. */
static void packages_ask(void **state)
{
    static const struct {
        const char *file;
        bool asks;
    } files[] = {
        {"/x/site-packages/p/a.py", true},   {"/x/dist-packages/p/a.py", true},
        {"site-packages/p/a.py", true},      {"/x/site-packages/p/a.so", false},
        {"/usr/lib/python3.11/a.py", false}, {"my_site-packages/torch/a.py", false},
        {"site-packages.hub/p/a.py", false}, {".h", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *const frames[][2] = {{"/x/site-packages/torch/nn/linear.py", "forward"},
                                         {files[i].file, "f"}};
        struct labelled made;
        char text[100];
        const char *name = strrchr(files[i].file, '/');

        (void)snprintf(text, sizeof text, "linear.py:1:forward < %s%s",
                       files[i].asks ? name + 1 : "...", files[i].asks ? ":2:f" : "");
        labelled_open(&made, frames, 2);
        label_is(&made.label, text);
        labelled_close(&made);
    }
}

static void without_frames(void **state)
{
    static const char *const frames[][2] = {{"ceval.c", "hidden"}};
    struct labelled made;

    (void)state;
    labelled_open(&made, frames, 1);
    label_is(&made.label, "(no frames)"); /* that a label shows */
    made.label.stack.count = 0;
    label_is(&made.label, "(no frames)");
    made.label.is_known = false;
    label_is(&made.label, "(not recorded)");
    labelled_close(&made);
}

/* Which frame of the first stack tells it from the second; -1: none. */
static int tells_apart(const char *const first[][2], size_t first_count,
                       const char *const second[][2], size_t second_count)
{
    struct labelled a;
    struct labelled b;
    bool wanted[8] = {false};
    int told = -1;

    labelled_open(&a, first, first_count);
    labelled_open(&b, second, second_count);
    tn_stack_label_tell_apart(&a.label, &b.label, wanted);
    for (int i = 0; i < 8; i++) {
        if (wanted[i]) {
            assert_int_equal(told, -1);
            told = i;
        }
    }
    labelled_close(&a);
    labelled_close(&b);
    return told;
}

static void stacks_are_told_apart(void **state)
{
    static const char *const plain[][2] = {{"/a/f.py", "f"}, {"/a/g.py", "g"}, {"/a/h.py", "h"}};
    static const char *const moved[][2] = {{"/b/f.py", "f"}, {"/b/g.py", "g"}, {"/b/h.py", "h"}};
    static const char *const named[][2] = {{"/a/f.py", "f"}, {"/a/g.py", "x"}, {"/a/h.py", "h"}};
    static const char *const filed[][2] = {{"/a/f.py", "f"}, {"/a/g.py", "g"}, {"/a/x.py", "h"}};
    static const char *const longer[][2] = {{"/a/f.py", "fg"}, {"/a/g.py", "g"}};
    static const char *const lined[][2] = {
        {"/a/f.py", "f"}, {"ceval.c", "hidden"}, {"/a/g.py", "g"}, {"/a/h.py", "h"}};

    (void)state;
    assert_int_equal(tells_apart(plain, 3, plain, 3), -1);
    assert_int_equal(tells_apart(plain, 3, moved, 3), -1); /* labels have no folders */
    assert_int_equal(tells_apart(plain, 3, named, 3), 1);
    assert_int_equal(tells_apart(plain, 3, filed, 3), 2);
    assert_int_equal(tells_apart(plain, 2, longer, 2), 0);
    assert_int_equal(tells_apart(plain, 3, plain, 2), 2);
    assert_int_equal(tells_apart(plain, 2, plain, 3), -1);
    assert_int_equal(tells_apart(plain, 3, lined, 4), 1); /* at another line */
    assert_int_equal(tells_apart(lined, 4, plain, 3), 2); /* not the hidden one */
}

/* What lies behind the frames of a stack is not its own. */
static void stacks_end_where_they_end(void **state)
{
    static const char *const frames[][2] = {{"/a/f.py", "f"}, {"/a/g.py", "g"}, {"/a/h.py", "h"}};
    struct labelled made;
    bool wanted[3] = {false};

    (void)state;
    labelled_open(&made, frames, 3);
    struct tn_stack_label shorter = made.label;

    shorter.stack.count = 2;
    tn_stack_label_tell_apart(&made.label, &shorter, wanted);
    assert_true(wanted[2]);
    wanted[2] = false;
    tn_stack_label_tell_apart(&shorter, &made.label, wanted);
    assert_false(wanted[0] || wanted[1] || wanted[2]);
    labelled_close(&made);
}

/* ---- groups of blocks ---- */

struct grouped {
    struct labelled made;
    struct tn_frame_view view;
    struct tn_group_keys keys;
};

static void grouped_open(struct grouped *grouped, const char *const frames[][2], size_t count,
                         enum tarn_grouping by)
{
    const struct tarn_selection all = {.struct_size = sizeof all};

    labelled_open(&grouped->made, frames, count);
    const struct tn_model *model = grouped->made.label.model;

    assert_int_equal(tn_frame_view_init(&grouped->view, model, &all, NULL), TARN_OK);
    grouped->keys = (struct tn_group_keys){.by = by, .model = model, .view = &grouped->view};
    assert_true(tn_group_keys_init(&grouped->keys));
}

static void grouped_close(struct grouped *grouped)
{
    tn_group_keys_fini(&grouped->keys);
    tn_frame_view_fini(&grouped->view);
    labelled_close(&grouped->made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Of a block of stream 5 with a stack of the model. */
static void path_is(const struct grouped *grouped, uint32_t stack,
                    const struct tn_path_format *format, const char *wanted)
{
    const struct tn_lifetime lifetime = {.stream = 5, .stack = stack};
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;
    uint64_t key;

    assert_true(tn_group_key_find(&grouped->keys, &lifetime, &key));
    tn_text_init(&out, &writer);
    tn_group_key_put_path(&out, &grouped->keys, key, format);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, wanted);
    free(collect.text);
}

static uint32_t only_stack(const struct grouped *grouped)
{
    const struct tn_model *model = grouped->made.label.model;

    return tn_trace_at(model, &model->traces[0], 0)->stack;
}

/* Each grouping has what it asks for, with or without lines, and of files only what follows a
 * prefix that they begin with. */
static void paths_have_what_is_asked(void **state)
{
    static const char *const frames[][2] = {{"/u/a.py", "f"}};
    static const struct tn_path_format formats[] = {
        {.strip_prefix = NULL},       {.ignore_lines = true},
        {.strip_prefix = "/u/"},      {.strip_prefix = "/v/"},
        {.strip_prefix = "/u/a.py"},  {.strip_prefix = ""},
        {.strip_prefix = "/u/a.pyc"}, {.strip_prefix = "/a/longer/path/"},
    };
    enum {
        FORMATS = sizeof formats / sizeof *formats
    };
    static const struct {
        enum tarn_grouping by;
        const char *paths[FORMATS];
    } cases[] = {
        {TARN_BY_STACK,
         {"/u/a.py:1:f", "/u/a.py:f", "a.py:1:f", "/u/a.py:1:f", ":1:f", "/u/a.py:1:f",
          "/u/a.py:1:f", "/u/a.py:1:f"}},
        {TARN_BY_FRAME,
         {"/u/a.py:1:f", "/u/a.py:f", "a.py:1:f", "/u/a.py:1:f", ":1:f", "/u/a.py:1:f",
          "/u/a.py:1:f", "/u/a.py:1:f"}},
        {TARN_BY_FUNCTION, {"f", "f", "f", "f", "f", "f", "f", "f"}},
        {TARN_BY_FILE,
         {"/u/a.py", "/u/a.py", "a.py", "/u/a.py", "", "/u/a.py", "/u/a.py", "/u/a.py"}},
        {TARN_BY_LINE,
         {"/u/a.py:1", "/u/a.py", "a.py:1", "/u/a.py:1", ":1", "/u/a.py:1", "/u/a.py:1",
          "/u/a.py:1"}},
        {TARN_BY_STREAM,
         {"stream 5", "stream 5", "stream 5", "stream 5", "stream 5", "stream 5", "stream 5",
          "stream 5"}},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct grouped grouped;

        grouped_open(&grouped, frames, 1, cases[c].by);
        for (size_t i = 0; i < FORMATS; i++) {
            const bool has_stack = cases[c].by != TARN_BY_STREAM;

            path_is(&grouped, only_stack(&grouped), &formats[i], cases[c].paths[i]);
            path_is(&grouped, TN_STACK_NONE, &formats[i],
                    has_stack ? "(not recorded)" : "stream 5");
            path_is(&grouped, TN_STACK_EMPTY, &formats[i], has_stack ? "(no frames)" : "stream 5");
        }
        grouped_close(&grouped);
    }
}

/* A frame of which only the line is known, and that is 0, is a frame all the same. */
static void a_frame_without_names_has_a_path(void **state)
{
    struct grouped grouped = {
        .made.snapshot = report_parse("{'segments': [], 'device_traces': [[{'action': 'alloc',"
                                      " 'addr': 512, 'size': 9, 'stream': 0,"
                                      " 'frames': [{'line': 0}]}]]}")};
    const struct tarn_selection all = {.struct_size = sizeof all};
    const struct tn_model *model = tn_snapshot_model(grouped.made.snapshot);

    (void)state;
    grouped.made.label.model = model;
    assert_int_equal(tn_frame_view_init(&grouped.view, model, &all, NULL), TARN_OK);
    grouped.keys =
        (struct tn_group_keys){.by = TARN_BY_FRAME, .model = model, .view = &grouped.view};
    assert_true(tn_group_keys_init(&grouped.keys));
    path_is(&grouped, only_stack(&grouped), &(struct tn_path_format){.ignore_lines = false}, ":0:");
    path_is(&grouped, only_stack(&grouped), &(struct tn_path_format){.ignore_lines = true}, ":");
    grouped_close(&grouped);
}

static void stack_is(const struct tn_model *model, uint32_t stack, const char *wanted)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    tn_text_init(&out, &writer);
    tn_stack_put(&out, model, stack);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, wanted);
    free(collect.text);
}

static void stacks_of_the_model_have_labels(void **state)
{
    static const char *const frames[][2] = {{"/u/a.py", "f"}};
    struct grouped grouped;

    (void)state;
    grouped_open(&grouped, frames, 1, TARN_BY_STACK);
    stack_is(grouped.made.label.model, only_stack(&grouped), "a.py:1:f");
    stack_is(grouped.made.label.model, TN_STACK_NONE, "(not recorded)");
    stack_is(grouped.made.label.model, TN_STACK_EMPTY, "(no frames)");
    grouped_close(&grouped);
}

static uint32_t frame_add(struct tn_model *model, uint32_t text, int64_t line)
{
    const struct tn_frame frame = {.name = text, .filename = text, .line = line};
    uint32_t number;

    assert_int_equal(tn_model_add_frame(model, &frame, &number), TARN_OK);
    return number;
}

/* However many frames there are, all of one function are the same; without host memory nothing is
 * left, and groupings that ask for no frame need none. */
static void frames_of_a_function_are_the_same(void **state)
{
    enum {
        FRAMES = 5000,
        NAMES = 7
    };
    struct tn_model model;
    struct tn_group_keys keys = {.by = TARN_BY_FUNCTION, .model = &model};
    uint32_t texts[NAMES];
    uint64_t failures = 0;
    bool good = false;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (uint32_t i = 0; i < NAMES; i++) {
        const char name = (char)('a' + i);

        assert_int_equal(tn_model_add_string(&model, &name, 1, &texts[i]), TARN_OK);
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        assert_int_equal(frame_add(&model, texts[i % NAMES], i), i + 1);
    }
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_group_keys_init(&keys);
        tarn_host_fail_nth(0);
        failures += !good;
        assert_true(good || tarn_host_get_usage().live_bytes == live);
    }
    assert_true(failures >= 2);
    for (uint32_t i = 0; i < FRAMES; i++) {
        assert_int_equal(keys.same_frame[i + 1], i % NAMES + 1);
    }
    tn_group_keys_fini(&keys);

    keys.by = TARN_BY_STREAM;
    keys.same_frame = texts; /* of another time */
    tarn_host_fail_nth(1);
    assert_true(tn_group_keys_init(&keys));
    tarn_host_fail_nth(0);
    assert_null(keys.same_frame);
    tn_model_fini(&model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Two lines of one function are two frames, even if a table gives them one hash. */
static void equal_hashes_are_no_equal_frames(void **state)
{
    enum {
        SLOTS = 1 << 18
    };
    /* As frames are compared. */
    struct {
        int64_t line;
        uint32_t name;
        uint32_t filename;
    } parts = {.line = 0};
    uint32_t *lines = calloc(SLOTS, sizeof *lines); /* by hash; 0: none */
    struct tn_model model;
    struct tn_group_keys keys = {.by = TARN_BY_FRAME, .model = &model};
    uint32_t text;
    uint32_t other = 0;

    (void)state;
    assert_non_null(lines);
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "f", 1, &text), TARN_OK);
    parts.name = text;
    parts.filename = text;
    while (other == 0) { /* after some 100,000 */
        parts.line++;
        const uint32_t hash = tn_hash_bytes(&parts, sizeof parts);
        uint32_t *slot = &lines[hash % SLOTS];
        const uint32_t line = *slot;

        *slot = (uint32_t)parts.line;
        if (line != 0) {
            parts.line = line;
            other = tn_hash_bytes(&parts, sizeof parts) == hash ? *slot : 0;
            parts.line = other != 0 ? line : *slot;
        }
    }
    assert_int_equal(frame_add(&model, text, parts.line), 1);
    assert_int_equal(frame_add(&model, text, other), 2);
    assert_true(tn_group_keys_init(&keys));
    assert_int_equal(keys.same_frame[1], 1);
    assert_int_equal(keys.same_frame[2], 2);
    tn_group_keys_fini(&keys);
    tn_model_fini(&model);
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_chosen),
        cmocka_unit_test(one_asks),
        cmocka_unit_test(packages_ask),
        cmocka_unit_test(without_frames),
        cmocka_unit_test(stacks_are_told_apart),
        cmocka_unit_test(stacks_end_where_they_end),
        cmocka_unit_test(paths_have_what_is_asked),
        cmocka_unit_test(a_frame_without_names_has_a_path),
        cmocka_unit_test(stacks_of_the_model_have_labels),
        cmocka_unit_test(frames_of_a_function_are_the_same),
        cmocka_unit_test(equal_hashes_are_no_equal_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
