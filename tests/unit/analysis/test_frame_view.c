/* SPDX-License-Identifier: MIT */
/* Stacks that are made anew without some of their frames. */
#include "support/test.h"

#include "analysis/frame_view.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAMES = 700,
    LISTS = 400000, /* of two frames, and as many of three: so many that some hashes are equal */
    PAIRS = 8
};

/* A list of frames. */
struct list {
    uint32_t hash;
    uint32_t count;
    uint32_t frames[3];
};

struct made {
    struct tn_model model;
    struct tn_frame_view view;
};

static void model_make(struct tn_model *model)
{
    uint32_t name;
    uint32_t number;

    assert_int_equal(tn_model_init(model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(model, "f", 1, &name), TARN_OK);
    for (uint32_t i = 0; i < FRAMES; i++) {
        const struct tn_frame frame = {.name = name, .filename = name, .line = i};

        assert_int_equal(tn_model_add_frame(model, &frame, &number), TARN_OK);
        assert_int_equal(number, i + 1); /* 0 is that of no frame, which a list may have */
    }
}

/* Stacks that are cut after so many frames. */
static void made_open(struct made *made, uint32_t depth)
{
    const struct tarn_selection selection = {.struct_size = sizeof selection, .depth = depth};

    assert_int_equal(tn_frame_view_init(&made->view, &made->model, &selection, NULL), TARN_OK);
}

static void made_close(struct made *made)
{
    tn_frame_view_fini(&made->view);
    tn_model_fini(&made->model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static uint32_t stack_add(struct tn_model *model, const struct list *list)
{
    uint32_t stack;

    assert_int_equal(tn_model_add_stack(model, list->frames, list->count, &stack), TARN_OK);
    return stack;
}

/* ---- frames as patterns see them ---- */

static void text_is(const struct tn_model *model, uint32_t name, uint32_t file, int64_t line,
                    const char *wanted)
{
    const struct tn_frame frame = {.name = name, .filename = file, .line = line};
    struct tn_frame_text text;

    memset(&text, 0xa5, sizeof text);
    tn_frame_text_set(&text, model, &frame);
    assert_string_equal(text.text, wanted);
    assert_int_equal(text.length, strlen(wanted));
    assert_int_equal(text.file_length, tn_model_string(model, file).length);
}

/* File, line and function, whatever number the line is. */
static void frames_are_texts(void **state)
{
    struct tn_model model;
    uint32_t file;
    uint32_t name;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "a.py", 4, &file), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "f", 1, &name), TARN_OK);
    text_is(&model, name, file, 0, "a.py:0:f");
    text_is(&model, name, file, 7, "a.py:7:f");
    text_is(&model, name, file, 1234567890, "a.py:1234567890:f");
    text_is(&model, name, file, INT64_MAX, "a.py:9223372036854775807:f");
    text_is(&model, name, file, -1, "a.py:-1:f");
    text_is(&model, name, file, -340, "a.py:-340:f");
    text_is(&model, name, file, INT64_MIN, "a.py:-9223372036854775808:f");
    text_is(&model, TN_STRING_NONE, TN_STRING_NONE, 5, ":5:");
    tn_model_fini(&model);
}

/* Of long ones the beginning, and nothing is written behind it. */
static void long_frames_are_cut(void **state)
{
    static char long_text[TN_PATTERN_TEXT_MAX + 1];
    struct {
        struct tn_frame_text text;
        char behind[2 * TN_PATTERN_TEXT_MAX];
    } both;
    struct tn_model model;
    struct tn_frame frame = {.line = 77};

    (void)state;
    memset(long_text, 'f', TN_PATTERN_TEXT_MAX);
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, long_text, TN_PATTERN_TEXT_MAX, &frame.name),
                     TARN_OK);
    assert_int_equal(
        tn_model_add_string(&model, long_text, TN_PATTERN_TEXT_MAX - 10, &frame.filename), TARN_OK);
    memset(&both, 0xa5, sizeof both);
    tn_frame_text_set(&both.text, &model, &frame);
    assert_int_equal(both.text.length, TN_PATTERN_TEXT_MAX);
    assert_int_equal(strlen(both.text.text), TN_PATTERN_TEXT_MAX);
    assert_int_equal(both.text.file_length, TN_PATTERN_TEXT_MAX - 10);
    assert_string_equal(both.text.text + TN_PATTERN_TEXT_MAX - 10, ":77:ffffff");
    for (size_t i = 0; i < sizeof both.behind; i++) {
        assert_int_equal(both.behind[i], (char)0xa5);
    }
    tn_model_fini(&model);
}

/* ---- equal hashes ---- */

static int list_compare(const void *left, const void *right)
{
    const struct list *a = left;
    const struct list *b = right;

    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static struct list *lists_make(void)
{
    struct list *lists = calloc(2 * (size_t)LISTS, sizeof *lists);

    assert_non_null(lists);
    for (uint32_t i = 0; i < 2 * LISTS; i++) {
        const bool has_three = i >= LISTS;
        const uint32_t number = has_three ? i - LISTS : i;
        struct list *list = &lists[i];

        list->count = has_three ? 3 : 2;
        list->frames[0] = number / FRAMES;
        list->frames[1] = number % FRAMES;
        list->hash = tn_hash_bytes(list->frames, list->count * sizeof list->frames[0]);
    }
    qsort(lists, 2 * (size_t)LISTS, sizeof *lists, list_compare);
    return lists;
}

static void expect_stack(const struct made *made, uint32_t seen, const struct list *list)
{
    const struct tn_stack stack = tn_frame_view_stack(&made->view, seen);

    assert_int_equal(stack.count, list->count);
    assert_memory_equal(stack.frames, list->frames, list->count * sizeof list->frames[0]);
}

/* Stacks with equal hashes are told apart, of as many frames and of another number. */
static void equal_hashes_are_no_equal_stacks(void **state)
{
    struct list *lists = lists_make();
    unsigned pairs[2] = {0, 0}; /* of lists of one length, and of two */

    (void)state;
    for (size_t i = 1; i < 2 * (size_t)LISTS; i++) {
        const struct list *a = &lists[i - 1];
        const struct list *b = &lists[i];
        unsigned *count = &pairs[a->count != b->count];
        struct made made;
        uint32_t seen[3];

        if (a->hash != b->hash || *count == PAIRS) {
            continue;
        }
        ++*count;
        model_make(&made.model);
        const uint32_t numbers[] = {stack_add(&made.model, a), stack_add(&made.model, b)};

        made_open(&made, 3);
        for (int k = 0; k < 3; k++) { /* the last is the first again */
            assert_true(tn_frame_view_find(&made.view, numbers[k % 2], &seen[k]));
        }
        assert_int_not_equal(seen[0], seen[1]);
        assert_int_equal(seen[0], seen[2]);
        expect_stack(&made, seen[0], a);
        expect_stack(&made, seen[1], b);
        made_close(&made);
    }
    assert_true(pairs[0] > 0 && pairs[1] > 0);
    free(lists);
}

/* ---- memory ---- */

/* Of many stacks each finds no memory first: then it is found all the same, and as what it is. */
static void each_stack_may_find_no_memory(void **state)
{
    enum {
        STACKS = 2500 /* more than two pieces of the list of them */
    };
    static uint32_t numbers[STACKS];
    struct made made;
    unsigned failures = 0;

    (void)state;
    model_make(&made.model);
    for (uint32_t i = 0; i < STACKS; i++) {
        const struct list list = {.count = 3, .frames = {i / FRAMES, i % FRAMES, 0}};

        numbers[i] = stack_add(&made.model, &list);
    }
    made_open(&made, 2);
    for (uint32_t i = 0; i < STACKS; i++) {
        const struct list wanted = {.count = 2, .frames = {i / FRAMES, i % FRAMES}};
        uint32_t seen;
        bool good = false;

        for (uint64_t n = 1; !good; n++) {
            tarn_host_fail_nth(n);
            good = tn_frame_view_find(&made.view, numbers[i], &seen);
            tarn_host_fail_nth(0);
            failures += !good;
        }
        expect_stack(&made, seen, &wanted);
    }
    assert_true(failures > 3);
    made_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_texts),
        cmocka_unit_test(long_frames_are_cut),
        cmocka_unit_test(equal_hashes_are_no_equal_stacks),
        cmocka_unit_test(each_stack_may_find_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
