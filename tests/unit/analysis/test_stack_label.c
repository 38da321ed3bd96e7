/* SPDX-License-Identifier: MIT */
#include "support/report.h"

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

/* A package asks, whatever its folder is called; the interpreter and what is no Python do not. */
static void packages_ask(void **state)
{
    static const struct {
        const char *file;
        bool asks;
    } files[] = {
        {"/x/site-packages/p/a.py", true},
        {"/x/dist-packages/p/a.py", true},
        {"site-packages/p/a.py", true},
        {"/x/site-packages/p/a.so", false},
        {"/usr/lib/python3.11/a.py", false},
        {"my_site-packages/torch/a.py", false},
        {".h", false},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_chosen),
        cmocka_unit_test(packages_ask),
        cmocka_unit_test(without_frames),
        cmocka_unit_test(stacks_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
