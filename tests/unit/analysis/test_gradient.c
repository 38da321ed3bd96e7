/* SPDX-License-Identifier: MIT */
/* Gradients by how blocks are used, on traces written here: what is one, and what only looks so. */
#include "support/report.h"

#include "analysis/gradient.h"
#include "base/attr.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
    TEXT_MAX = 1 << 15
};

/* A trace as JSON, entry by entry. */
struct script {
    char text[TEXT_MAX];
    size_t length;
    uint64_t count;
};

static void put(struct script *script, const char *format, ...) TN_PRINTF(2, 3);

static void put(struct script *script, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length =
        vsnprintf(script->text + script->length, TEXT_MAX - script->length, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < TEXT_MAX - script->length);
    script->length += (size_t)length;
}

/* Where an entry comes from. */
struct frame {
    const char *file;
    const char *name;
};

static const struct frame MODEL = {"/torch/nn/modules/module.py", "_apply"};
static const struct frame FORWARD = {"model.py", "forward"};
static const struct frame ADAM = {"/torch/optim/adam.py", "step"};
static const struct frame ZERO_GRAD = {"/torch/optim/optimizer.py", "zero_grad"};
static const struct frame MODULE_ZERO_GRAD = {"/torch/nn/modules/module.py", "zero_grad"};
static const struct frame TRAIN = {"train.py", "main"};

/* `frame` NULL: an empty stack. Returns the number of the entry. */
static uint64_t entry_put(struct script *script, const char *action, uint64_t address,
                          uint64_t size, const struct frame *frame)
{
    put(script, "%s{'action': '%s', 'addr': %" PRIu64 ", 'size': %" PRIu64 ", 'stream': 0, ",
        script->count > 0 ? "," : "{'segments': [], 'device_traces': [[", action, address, size);
    if (frame) {
        put(script, "'frames': [{'filename': '%s', 'line': 1, 'name': '%s'}]}", frame->file,
            frame->name);
    } else {
        put(script, "'frames': []}");
    }
    return script->count++;
}

static uint64_t take(struct script *script, uint64_t address, uint64_t size,
                     const struct frame *frame)
{
    return entry_put(script, "alloc", address, size, frame);
}

static void drop(struct script *script, uint64_t address, uint64_t size, const struct frame *frame)
{
    (void)entry_put(script, "free_requested", address, size, frame);
    (void)entry_put(script, "free_completed", address, size, frame);
}

/* The optimizer works on a temporary. */
static void step(struct script *script)
{
    (void)take(script, 9 << 20, 64, &ADAM);
    drop(script, 9 << 20, 64, &ADAM);
}

static bool trace_find(struct tn_gradients *gradients, const struct tn_model *model,
                       struct tn_categories *categories)
{
    return tn_gradients_init_trace(gradients, model, 0, categories, 0);
}

/* The same with a timeline and phases that are there already: only what the search itself takes
 * fails. */
static bool timeline_find(struct tn_gradients *gradients, const struct tn_model *model,
                          struct tn_categories *categories, uint64_t nth)
{
    struct tn_timeline timeline;
    struct tn_phases phases;

    assert_true(tn_timeline_init(&timeline, model, 0));
    assert_true(tn_phases_init(&phases, &timeline));
    tarn_host_fail_nth(nth);
    const bool good = tn_gradients_init(gradients, &timeline, &phases, categories, 0);

    tarn_host_fail_nth(0);
    tn_phases_fini(&phases);
    tn_timeline_fini(&timeline);
    return good;
}

static uint64_t gradients_count(const struct tn_gradients *gradients, const struct tn_model *model)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < model->traces[0].count; i++) {
        count += tn_gradients_has(gradients, i);
    }
    return count;
}

/* Whatever has no memory, it is said, and nothing is left behind. The categories of all frames are
 * known. */
static void memory_fails(const struct tn_model *model, struct tn_categories *categories,
                         uint64_t expected)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_gradients gradients;
    bool good = false;

    for (uint64_t n = 1; !good; n++) {
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        good = trace_find(&gradients, model, categories);
        tarn_host_fail_nth(0);
        assert_int_equal(good, tarn_host_get_usage().alloc_calls - calls < n);
        assert_true(good || !gradients.of_entry);
        if (good) {
            assert_int_equal(gradients_count(&gradients, model), expected);
            tn_gradients_fini(&gradients);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    good = false;
    for (uint64_t n = 1; !good; n++) {
        good = timeline_find(&gradients, model, categories, n);
        if (good) {
            assert_int_equal(gradients_count(&gradients, model), expected);
            tn_gradients_fini(&gradients);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
}

/* Whether each of `count` entries allocated a gradient, as 'g' and '.'. */
static void check(struct script *script, const uint64_t *entries, const char *wanted)
{
    struct tn_categories categories;
    struct tn_gradients gradients;

    put(script, "]]}");
    struct tarn_snapshot *snapshot = report_parse(script->text);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(tn_categories_init(&categories, NULL, model, NULL), TARN_OK);
    assert_true(trace_find(&gradients, model, &categories));
    const uint64_t count = gradients_count(&gradients, model);

    for (size_t i = 0; wanted[i]; i++) {
        assert_int_equal(tn_gradients_has(&gradients, entries[i]) ? 'g' : '.', wanted[i]);
    }
    assert_false(tn_gradients_has(&gradients, TN_NEVER));
    tn_gradients_fini(&gradients);
    memory_fails(model, &categories, count);
    tn_categories_fini(&categories);
    tarn_snapshot_destroy(snapshot);
}

/* Two parameters, of 1000 and 3000 bytes. */
static void model_put(struct script *script)
{
    (void)take(script, 1 << 20, 1000, &MODEL);
    (void)take(script, 2 << 20, 3000, &MODEL);
}

static void what_zero_grad_frees(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[8];

    (void)state;
    model_put(&script);
    at[0] = take(&script, 3 << 20, 1000, NULL); /* the gradients of a step */
    at[1] = take(&script, 4 << 20, 3000, NULL);
    at[2] = take(&script, 5 << 20, 2000, NULL); /* no parameter has that size */
    at[3] = take(&script, 6 << 20, 3000, NULL); /* is gone before the step */
    drop(&script, 6 << 20, 3000, NULL);
    at[4] = take(&script, 7 << 20, 3000, &TRAIN);   /* has frames */
    at[5] = take(&script, 8 << 20, 3000, &FORWARD); /* has frames that a rule knows */
    step(&script);
    drop(&script, 3 << 20, 1000, &ZERO_GRAD);
    drop(&script, 4 << 20, 3000, &MODULE_ZERO_GRAD);
    drop(&script, 5 << 20, 2000, &ZERO_GRAD);
    drop(&script, 7 << 20, 3000, &ZERO_GRAD);
    at[6] = take(&script, 3 << 20, 1000, NULL);  /* of the last step: stays */
    at[7] = take(&script, 10 << 20, 3000, NULL); /* is freed by the program itself */
    step(&script);
    drop(&script, 10 << 20, 3000, &TRAIN);
    check(&script, at, "gg....gg");
}

/* More steps than there is room for at first. */
static void many_steps(void **state)
{
    enum {
        STEPS = 20
    };
    struct script script = {.length = 0};
    uint64_t at[STEPS];

    (void)state;
    model_put(&script);
    for (size_t i = 0; i < STEPS; i++) {
        at[i] = take(&script, 3 << 20, 3000, NULL);
        step(&script);
        drop(&script, 3 << 20, 3000, &ZERO_GRAD);
    }
    check(&script, at, "gggggggggggggggggggg");
}

/* Without an optimizer there is no training, whatever sizes blocks have. */
static void inference_has_none(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[3];

    (void)state;
    model_put(&script);
    for (size_t i = 0; i < 3; i++) {
        at[i] = take(&script, (3 + i) << 20, i == 2 ? 1000 : 3000, NULL);
        (void)take(&script, (6 + i) << 20, 500, &FORWARD);
    }
    drop(&script, 3 << 20, 3000, NULL);
    drop(&script, 4 << 20, 3000, &TRAIN);
    check(&script, at, "...");
}

/* A workspace of a library has no frames and stays, where gradients come and go; it may be as large
 * as a parameter. */
static void a_workspace_is_none(void **state)
{
    static const uint64_t sizes[] = {3000, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct script script = {.length = 0};
        uint64_t at[3];

        model_put(&script);
        at[0] = take(&script, 3 << 20, sizes[i], NULL);
        at[1] = take(&script, 4 << 20, 3000, NULL);
        step(&script);
        drop(&script, 4 << 20, 3000, &ZERO_GRAD);
        at[2] = take(&script, 4 << 20, 3000, NULL);
        step(&script);
        drop(&script, 4 << 20, 3000, &ZERO_GRAD);
        check(&script, at, ".gg");
    }
}

/* As many of a size as there are parameters, unless zero_grad frees them. */
static void no_more_than_parameters(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[3];

    (void)state;
    model_put(&script);
    for (size_t i = 0; i < 3; i++) {
        at[i] = take(&script, (3 + i) << 20, 3000, NULL);
    }
    step(&script);
    drop(&script, 3 << 20, 3000, NULL);
    drop(&script, 4 << 20, 3000, NULL);
    drop(&script, 5 << 20, 3000, &ZERO_GRAD);
    check(&script, at, "..g");
}

/* Of a size that two parameters have, a step has two gradients, and more only where zero_grad frees
 * them. */
static void as_many_as_parameters(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[5];

    (void)state;
    model_put(&script);
    (void)take(&script, 8 << 20, 3000, &MODEL);
    for (size_t i = 0; i < 3; i++) {
        at[i] = take(&script, (3 + i) << 20, 3000, NULL);
    }
    at[3] = take(&script, 6 << 20, 1000, NULL);
    at[4] = take(&script, 7 << 20, 1000, NULL);
    step(&script);
    for (size_t i = 0; i < 3; i++) {
        drop(&script, (3 + i) << 20, 3000, &TRAIN);
    }
    drop(&script, 6 << 20, 1000, &ZERO_GRAD);
    drop(&script, 7 << 20, 1000, &ZERO_GRAD);
    check(&script, at, "gg.gg");
}

/* One block that is gone just before a step, or is there when it begins. Who freed it is not known,
 * or has nothing to do with the optimizer. */
static void when_a_block_is_gone(void **state)
{
    static const char *const wanted[] = {".", ".", ".", "g", "g", "g"};

    (void)state;
    for (int way = 0; way < 6; way++) {
        struct script script = {.length = 0};

        model_put(&script);
        const uint64_t at = take(&script, 3 << 20, 1000, NULL);

        if (way == 0) { /* right before the step */
            (void)entry_put(&script, "free_completed", 3 << 20, 1000, &TRAIN);
        } else if (way == 1) {
            drop(&script, 3 << 20, 1000, &TRAIN);
        } else if (way == 2) { /* its free is complete only after that */
            (void)entry_put(&script, "free_requested", 3 << 20, 1000, &TRAIN);
        }
        (void)take(&script, 9 << 20, 64, &ADAM);
        if (way == 3) { /* with the first event of the step behind it */
            (void)entry_put(&script, "free_completed", 3 << 20, 1000, &TRAIN);
        }
        drop(&script, 9 << 20, 64, &ADAM);
        if (way == 2 || way == 4) {
            (void)entry_put(&script, "free_completed", 3 << 20, 1000, &TRAIN);
        } else if (way == 5) { /* its free is never complete */
            (void)entry_put(&script, "free_requested", 3 << 20, 1000, &TRAIN);
        }
        check(&script, &at, wanted[way]);
    }
}

/* A block as large as a parameter that is gone before the only step, in a trace without gradients
 * otherwise. */
static void what_is_gone_before_the_step_is_not_kept(void **state)
{
    struct script script = {.length = 0};

    (void)state;
    model_put(&script);
    const uint64_t at = take(&script, 3 << 20, 3000, NULL);

    drop(&script, 3 << 20, 3000, NULL);
    step(&script);
    check(&script, &at, ".");
}

/* A block that is there before a step and stays, with a second step or without. */
static void check_one_that_stays(uint64_t size, bool has_second, const char *expected)
{
    struct script script = {.length = 0};

    model_put(&script);
    const uint64_t at = take(&script, 3 << 20, size, NULL);

    step(&script);
    if (has_second) {
        (void)take(&script, 4 << 20, 7, NULL);
        drop(&script, 4 << 20, 7, NULL);
        step(&script);
    }
    check(&script, &at, expected);
}

/* zero_grad(set_to_none=False): gradients stay, if they are many enough to be believed. */
static void gradients_that_are_kept(void **state)
{
    (void)state;
    check_one_that_stays(3000, true, "g");
    check_one_that_stays(1000, true, ".");
}

/* What stays until the end may be a gradient of the last step, or anything else: few are none. */
static void few_that_stay_are_none(void **state)
{
    (void)state;
    check_one_that_stays(3000, false, "g");
    check_one_that_stays(1000, false, ".");
}

/* Whether a block of `kept` bytes that stays over two steps is believed to be a gradient. */
static bool is_kept(const uint64_t *parameters, size_t count, uint64_t kept)
{
    struct script script = {.length = 0};
    struct tn_categories categories;
    struct tn_gradients gradients;

    for (size_t i = 0; i < count; i++) {
        (void)take(&script, (10 + i) << 20, parameters[i], &MODEL);
    }
    const uint64_t at = take(&script, 3 << 20, kept, NULL);

    step(&script);
    (void)take(&script, 4 << 20, 7, NULL);
    drop(&script, 4 << 20, 7, NULL);
    step(&script);
    put(&script, "]]}");
    struct tarn_snapshot *snapshot = report_parse(script.text);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(tn_categories_init(&categories, NULL, model, NULL), TARN_OK);
    assert_true(trace_find(&gradients, model, &categories));
    const bool is = tn_gradients_has(&gradients, at);

    tn_gradients_fini(&gradients);
    tn_categories_fini(&categories);
    tarn_snapshot_destroy(snapshot);
    return is;
}

/* Kept blocks account for at least half the bytes of all parameters, each block for one. */
static void half_of_the_bytes_are_believed(void **state)
{
    (void)state;
    assert_true(is_kept((const uint64_t[]){1000, 1000}, 2, 1000)); /* just half */
    assert_false(is_kept((const uint64_t[]){1000, 1001}, 2, 1000));
    assert_true(is_kept((const uint64_t[]){1000, 1001}, 2, 1001));
    assert_true(is_kept((const uint64_t[]){1000, 1000, 3000}, 3, 3000));
    assert_false(is_kept((const uint64_t[]){1000, 1000, 1500}, 3, 1000));
    assert_false(is_kept((const uint64_t[]){1000, 1000, 1500}, 3, 1500));
    assert_false(is_kept((const uint64_t[]){1000, 1200, 1500}, 3, 1500));
}

/* Parameters from before the trace: blocks freed in it, or there at its end; old files know only
 * the rounded size of the latter. Blocks without frames in the trace are no parameters. */
static void parameters_from_before_of(uint64_t size, const char *stack, const char *wanted)
{
    struct script script = {.length = 0};
    uint64_t at[2];

    at[0] = take(&script, 3 << 20, size, NULL); /* the first entry */
    at[1] = take(&script, 4 << 20, 700, NULL);
    step(&script);
    drop(&script, 3 << 20, size, &ZERO_GRAD);
    drop(&script, 4 << 20, 700, &ZERO_GRAD);
    put(&script,
        "]], 'segments': [{'address': 1048576, 'total_size': 2097152, 'device': 0,"
        " 'stream': 0, 'segment_type': 'small', 'blocks': [{'size': 3072,"
        " 'state': 'active_allocated'%s}, {'size': 2094080, 'state': 'inactive'}]}], 'x': [[",
        stack);
    const char *from = strstr(script.text, "'segments': [], ");

    memmove(script.text + 1, from + 16, strlen(from + 16) + 1);
    script.length = strlen(script.text);
    check(&script, at, wanted);
}

static void parameters_from_before(void **state)
{
    (void)state;
    parameters_from_before_of(3000, "", "g.");
    parameters_from_before_of(3072, "", "g."); /* as large as its block */
    parameters_from_before_of(3071, "", "g.");
    parameters_from_before_of(2561, "", "g.");
    parameters_from_before_of(2560, "", ".."); /* fits a smaller block */
    parameters_from_before_of(3073, "", "..");
    parameters_from_before_of(3000, ", 'frames': []", "g."); /* their stack does not matter */
}

/* What the trace allocates has the size that was asked for, its first entry, too. */
static void sizes_in_the_trace_are_exact(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        struct script script = {.length = 0};

        if (!is_first) {
            (void)take(&script, 2 << 20, 1000, &MODEL);
        }
        (void)take(&script, 1 << 20, 3072, &MODEL);
        const uint64_t at = take(&script, 3 << 20, 3000, NULL);

        step(&script);
        drop(&script, 3 << 20, 3000, &ZERO_GRAD);
        check(&script, &at, ".");
    }
}

/* The optimizer runs, but nothing looks like a parameter. */
static void no_parameters(void **state)
{
    struct script script = {.length = 0};

    (void)state;
    const uint64_t at = take(&script, 3 << 20, 3000, NULL);

    step(&script);
    drop(&script, 3 << 20, 3000, &ZERO_GRAD);
    check(&script, &at, ".");
}

/* One of no bytes, which a damaged file may have, and a block that came before its parameter. */
static void parameters_that_explain_nothing(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[3];

    (void)state;
    (void)take(&script, 8 << 20, 0, &MODEL);
    at[0] = take(&script, 3 << 20, 3000, NULL);
    at[1] = take(&script, 4 << 20, 0, NULL);
    model_put(&script);
    at[2] = take(&script, 5 << 20, 3000, NULL);
    step(&script);
    drop(&script, 3 << 20, 3000, &ZERO_GRAD);
    drop(&script, 4 << 20, 0, &ZERO_GRAD);
    drop(&script, 5 << 20, 3000, &ZERO_GRAD);
    check(&script, at, "..g");
}

/* Without a word of who freed it, a block is one of the step that it was there in. */
static void frees_without_requests(void **state)
{
    struct script script = {.length = 0};
    uint64_t at[2];

    (void)state;
    model_put(&script);
    at[0] = take(&script, 3 << 20, 3000, NULL);
    at[1] = take(&script, 4 << 20, 1000, NULL);
    step(&script);
    (void)entry_put(&script, "free_completed", 3 << 20, 3000, &TRAIN);
    check(&script, at, "gg");
}

static enum tarn_status peak(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_peak(asked->snapshot, &asked->options, writer, error);
}

/* In recorded runs, as many as there are parameters in each step; a generation has none. */
static void recorded_runs(void **state)
{
    static const struct {
        const char *name;
        uint64_t parameters;
        uint64_t steps;
    } runs[] = {
        {"gpt2_varlen", 148, 8}, {"gpt2_varlen_expandable", 148, 8}, {"resnet_sizes", 161, 8},
        {"multistream", 16, 40}, {"llama_generate", 0, 0},           {"cudagraph", 0, 0},
        {"tiny", 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct tarn_snapshot *snapshot = report_load(runs[i].name);
        const struct tn_model *model = tn_snapshot_model(snapshot);
        struct tn_categories categories;
        struct tn_gradients gradients;

        assert_int_equal(tn_categories_init(&categories, NULL, model, NULL), TARN_OK);
        assert_true(trace_find(&gradients, model, &categories));
        assert_int_equal(gradients_count(&gradients, model), runs[i].parameters * runs[i].steps);
        tn_gradients_fini(&gradients);
        tn_categories_fini(&categories);
        tarn_snapshot_destroy(snapshot);
    }
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("multistream");
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .by = TARN_BY_CATEGORY}};

    (void)state;
    assert_true(report_fails_cleanly(peak, &asked) >= 30);
    assert_true(report_fails_or_copes(peak, &asked) >= 30);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_zero_grad_frees),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(inference_has_none),
        cmocka_unit_test(a_workspace_is_none),
        cmocka_unit_test(no_more_than_parameters),
        cmocka_unit_test(as_many_as_parameters),
        cmocka_unit_test(when_a_block_is_gone),
        cmocka_unit_test(what_is_gone_before_the_step_is_not_kept),
        cmocka_unit_test(half_of_the_bytes_are_believed),
        cmocka_unit_test(sizes_in_the_trace_are_exact),
        cmocka_unit_test(gradients_that_are_kept),
        cmocka_unit_test(parameters_from_before),
        cmocka_unit_test(few_that_stay_are_none),
        cmocka_unit_test(recorded_runs),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(no_parameters),
        cmocka_unit_test(frees_without_requests),
        cmocka_unit_test(parameters_that_explain_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
