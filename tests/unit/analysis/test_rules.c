/* SPDX-License-Identifier: MIT */
#include "support/file.h"
#include "support/report.h"

#include "analysis/category.h"
#include "snapshot/snapshot.h"

static struct tarn_rules *parse(const char *text)
{
    struct tarn_rules *rules;
    struct tarn_error error;

    if (tn_rules_parse(text, strlen(text), "my.rules", &rules, &error)) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static void refuses(const char *text, size_t size, enum tarn_status status, const char *message)
{
    struct tarn_rules *rules;
    struct tarn_error error;

    assert_int_equal(tn_rules_parse(text, size, "my.rules", &rules, &error), status);
    assert_null(rules);
    if (!strstr(error.text, message)) {
        fail_msg("\"%s\" is not in: %s", message, error.text);
    }
}

/* Stack 2 of the model: innermost first. */
static const char stack[] =
    "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 0,"
    " 'frames': [{'name': 'helper', 'filename': '/x/torch/nn/functional.py', 'line': 3},"
    " {'name': 'step', 'filename': '/x/torch/optim/adam.py', 'line': 9},"
    " {'name': 'main', 'filename': 'train.py', 'line': 1}]}]]}";

static const char *category_of(const char *text, const struct tn_lifetime *lifetime,
                               uint64_t first_step)
{
    static char name[64];
    struct tarn_snapshot *snapshot = report_parse(stack);
    struct tarn_rules *rules = text ? parse(text) : NULL;
    struct tn_categories categories;
    struct tarn_error error;
    const char *hint;

    if (!text) {
        assert_int_equal(tarn_rules_create_default(&rules, &error), TARN_OK);
    }
    assert_int_equal(tn_categories_init(&categories, rules, tn_snapshot_model(snapshot), NULL),
                     TARN_OK);
    const uint32_t category = tn_category_of(&categories, lifetime, first_step, false);

    assert_int_equal(tn_category_of(&categories, lifetime, first_step, false), category);
    const char *base = tn_category_name(&categories, category, &hint);

    (void)snprintf(name, sizeof name, "%s%s", base, hint);
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
    return name;
}

/* How many categories there are, and the last of them by its whole name. */
static void categories_are_counted(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(stack);
    struct tarn_rules *rules = parse("a: x\nb: y\na: z\n");
    struct tn_categories categories;
    const char *hint;

    (void)state;
    assert_int_equal(tn_categories_init(&categories, rules, tn_snapshot_model(snapshot), NULL),
                     TARN_OK);
    const uint32_t count = tn_category_count(&categories);

    assert_int_equal(count, 1 + 2 + 3);
    assert_string_equal(tn_category_name(&categories, count - 1, &hint), "gradient");
    assert_string_equal(hint, " (by size)");
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* They are taken without the check that those of a file go through. */
static void the_built_in_rules_pass_the_check(void **state)
{
    struct tarn_rules *built_in;
    struct tarn_rules *checked = parse(tarn_rules_default_text());

    (void)state;
    assert_int_equal(tarn_rules_create_default(&built_in, NULL), TARN_OK);
    assert_true(built_in->rules.count > 20);
    assert_int_equal(checked->rules.count, built_in->rules.count);
    assert_int_equal(checked->categories.count, built_in->categories.count);
    tarn_rules_destroy(checked);
    tarn_rules_destroy(built_in);
}

static void the_outermost_frame_decides(void **state)
{
    const struct tn_lifetime lifetime = {.start = 5, .end = 100, .requested = 99, .stack = 2};

    (void)state;
    assert_string_equal(category_of("act: functional\nopt: /optim/\n", &lifetime, 0), "opt");
    assert_string_equal(
        category_of("# a\n\n first : train\\.py:1:main$ \r\nopt: /optim/", &lifetime, 0), "first");
    assert_string_equal(category_of("\ta\t:\tadam\t\nb: adam\n", &lifetime, 0), "a");
    assert_string_equal(category_of("a: nothing\n", &lifetime, 0), "unclassified");
    assert_string_equal(category_of("", &lifetime, 0), "unclassified");
    assert_string_equal(category_of(NULL, &lifetime, 0), "optimizer");
}

static void lifetimes_are_a_hint(void **state)
{
    struct tn_lifetime lifetime = {.start = TN_NEVER, .end = TN_NEVER, .stack = TN_STACK_NONE};

    (void)state;
    assert_string_equal(category_of(NULL, &lifetime, 0), "parameter (by lifetime)");
    lifetime.end = 5; /* how long it was there is not known */
    assert_string_equal(category_of(NULL, &lifetime, 0), "unclassified");
    lifetime.end = TN_NEVER;
    lifetime.start = 7;
    assert_string_equal(category_of(NULL, &lifetime, 7), "parameter (by lifetime)");
    assert_string_equal(category_of(NULL, &lifetime, 6), "unclassified");
    lifetime.end = 7 + TN_TEMPORARY_ENTRIES;
    assert_string_equal(category_of(NULL, &lifetime, 7), "temporary (by lifetime)");
    lifetime.end++;
    assert_string_equal(category_of(NULL, &lifetime, 7), "unclassified");
}

/* The category of a stack of two frames, by rules or by default; `file` is the innermost one's. */
static void stack_is(const char *text, const char *file, const char *name, const char *outer,
                     const char *also, const char *wanted)
{
    char json[1024];
    struct tarn_rules *rules = text ? parse(text) : NULL;
    struct tn_categories categories;
    const char *hint;

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1, 'size': 1,"
                   " 'stream': 0, 'frames': [{'name': 'cat', 'filename': '/x/torch/functional.py',"
                   " 'line': 3}, {'name': '%s', 'filename': '%s', 'line': 3}, {'name': '%s',"
                   " 'filename': '/x/model.py', 'line': 9}]}, {'action': 'alloc', 'addr': 2,"
                   " 'size': 1, 'stream': 0, 'frames': [{'name': 'step', 'filename': '%s',"
                   " 'line': 1}]}]]}",
                   name, file, outer, also);
    struct tarn_snapshot *snapshot = report_parse(json);

    assert_int_equal(tn_categories_init(&categories, rules, tn_snapshot_model(snapshot), NULL),
                     TARN_OK);
    assert_string_equal(tn_category_name(&categories, tn_category_of_stack(&categories, 2), &hint),
                        wanted);
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* The innermost frame outside PyTorch refines the category. */
static void rules_refine(void **state)
{
    static const char text[] = "act: forward$\nact > kept: keeper\nunclassified > seen: keeper\n";

    (void)state;
    stack_is(text, "/x/keeper.py", "put", "forward", "a.py", "kept");
    stack_is(text, "/x/keeper.py", "put", "main", "a.py", "seen");
    stack_is(text, "/x/other.py", "put", "forward", "a.py", "act");
    stack_is("other: forward$\nact > kept: keeper\n", "/x/keeper.py", "put", "forward", "a.py",
             "other"); /* which none refines */
    /* A ">" within a word is a part of it. */
    stack_is("a->b: forward$\na->b\t>\tc >d: keeper\n", "/x/keeper.py", "put", "forward", "a.py",
             "c >d");
    stack_is("x >y: forward$\n", "/x/keeper.py", "put", "forward", "a.py", "x >y");
    stack_is("x> y: forward$\n", "/x/keeper.py", "put", "forward", "a.py", "x> y");
    /* Blanks around it are none of the names'. */
    stack_is("act: forward$\nact  \t >  \t kept: keeper\n", "/x/keeper.py", "put", "forward",
             "a.py", "kept");
    /* Only Python is the program's own; a file may be no more than ".py". */
    stack_is("act: keeper$\nact > kept: keeper\n", "/x/ops.cpp", "put", "keeper", "a.py", "kept");
    stack_is("act: forward$\nact > kept: keeper\n", ".py", "keeper", "forward", "a.py", "kept");
    refuses("a > : b\n", 8, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 1: a rule that refines");
    refuses("> a: b\n", 7, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 1: a rule that refines");
    refuses("a > b > c: d\n", 13, TARN_ERR_INVALID_ARGUMENT, "a rule that refines");
}

/* Stacks from number 2 on, of functions f in these files; "" ends each of them. Lines are 0, or
 * `step` more from frame to frame. */
static struct tarn_snapshot *stacks_parse(const char *const *files, size_t count, size_t step)
{
    char json[8192];
    size_t used = (size_t)snprintf(json, sizeof json, "{'segments': [], 'device_traces': [[");
    bool is_first = true;
    bool has_stack = false;

    for (size_t i = 0; i < count; i++) {
        if (is_first) {
            used += (size_t)snprintf(json + used, sizeof json - used,
                                     "%s{'action': 'alloc', 'addr': %zu, 'size': 1, 'stream': 0,"
                                     " 'frames': [",
                                     has_stack ? "," : "", i + 1);
        }
        if (files[i][0] != '\0') {
            used += (size_t)snprintf(json + used, sizeof json - used,
                                     "%s{'name': 'f', 'filename': '%s', 'line': %zu}",
                                     is_first ? "" : ",", files[i], i * step);
            is_first = false;
            continue;
        }
        used += (size_t)snprintf(json + used, sizeof json - used, "]}");
        is_first = true;
        has_stack = true;
    }
    (void)snprintf(json + used, sizeof json - used, "]]}");
    return report_parse(json);
}

static void stack_has(struct tn_categories *categories, uint32_t number, const char *wanted)
{
    const char *hint;

    assert_string_equal(
        tn_category_name(categories, tn_category_of_stack(categories, number), &hint), wanted);
}

/* Each stack by its own frames, whatever is known of those of others, and of what is behind it. */
static void stacks_do_not_mix(void **state)
{
    /* Of 2 the innermost frame is the program's own, of 3 the outermost, of 4 and 5 none. */
    static const char *const files[] = {
        "/x/keeper.py", "/x/act.py", "",         "/x/a.cpp",
        "/x/act.py",    "",          "/x/a.cpp", "/x/c.cpp",
        "/x/d.cpp",     "/act.so",   "",         "/x/b.cpp",
        "/x/c.cpp",     "/x/d.cpp",  "/act.so",  "",
        "/x/keeper.py", "",
    };
    static const char *const wanted[] = {"kept", "act", "act", "act", "seen"};
    struct tarn_snapshot *snapshot = stacks_parse(files, sizeof files / sizeof *files, 0);
    struct tarn_rules *rules = parse("act: act\nact > kept: keeper\nunclassified > seen: keeper\n");
    struct tn_categories categories;

    (void)state;
    assert_int_equal(tn_categories_init(&categories, rules, tn_snapshot_model(snapshot), NULL),
                     TARN_OK);
    for (uint32_t i = 0; i < 2 * sizeof wanted / sizeof *wanted; i++) {
        stack_has(&categories, 2 + i % 5, wanted[i % 5]);
    }
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* What rules that refine make of a frame, without a word of the stack. */
static void frames_are_refined(void **state)
{
    static const char *const files[] = {"/x/keeper.py", "/x/act.py", "/x/other.py", ""};
    static const char *const wanted[] = {"kept", "unclassified", "unclassified"};
    struct tarn_snapshot *snapshot = stacks_parse(files, sizeof files / sizeof *files, 0);
    struct tarn_rules *rules = parse("act: act\nact > kept: keeper\n");
    struct tn_categories categories;
    const char *hint;

    (void)state;
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_stack frames = tn_model_stack(model, 2);

    assert_int_equal(tn_categories_init(&categories, rules, model, NULL), TARN_OK);
    for (uint32_t i = 0; i < frames.count; i++) {
        const uint32_t category = tn_category_of_frame_refined(&categories, frames.frames[i]);

        assert_string_equal(tn_category_name(&categories, category, &hint), wanted[i]);
    }
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* What is remembered of a file saves time; without room for it the answers are the same. */
static void memory_for_files_may_be_missing(void **state)
{
    enum {
        FILES = 40
    };
    static char names[FILES][16];
    const char *files[2 * FILES + 1];
    struct tarn_rules *rules = parse("even: [02468]\\.py\nodd: [13579]\\.py\n");
    struct tn_categories categories;
    const char *hint;

    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "/x/m%zu.py", i);
        files[2 * i] = files[2 * i + 1] = names[i];
    }
    files[(size_t)2 * FILES] = "";
    struct tarn_snapshot *snapshot = stacks_parse(files, 2 * FILES + 1, 1);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_stack frames = tn_model_stack(model, 2);

    assert_int_equal(frames.count, 2 * FILES);
    assert_int_equal(tn_categories_init(&categories, rules, model, NULL), TARN_OK);
    for (uint32_t i = 0; i < frames.count; i++) {
        tarn_host_fail_nth(i < FILES ? 0 : 1);
        const uint32_t category = tn_category_of_frame(&categories, frames.frames[i]);

        tarn_host_fail_nth(0);
        assert_string_equal(tn_category_name(&categories, category, &hint),
                            i / 2 % 2 == 0 ? "even" : "odd");
    }
    tn_categories_fini(&categories);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* Keys and values of a generation; in training the same code holds activations. */
static void caches_of_a_generation(void **state)
{
    static const char cache[] = "/site-packages/transformers/cache_utils.py";
    static const char adam[] = "/torch/optim/adam.py";

    (void)state;
    stack_is(NULL, cache, "update", "forward", "a.py", "cache");
    stack_is(NULL, cache, "update", "main", "a.py", "cache");
    stack_is(NULL, cache, "update", "forward", adam, "activation");
    stack_is(NULL, cache, "update", "generate", adam, "cache");
    stack_is(NULL, cache, "function7 (generate)", "forward", adam, "cache");
    stack_is(NULL, cache, "function7 (generat)", "forward", adam, "activation");
    stack_is(NULL, cache, "function7 (generates", "forward", adam, "activation");
    stack_is(NULL, cache, " (generate)", "forward", adam, "cache");
    stack_is(NULL, cache, "f (generate)", "forward", adam, "cache");
    stack_is(NULL, cache, "generate_text", "forward", adam, "cache");
    stack_is(NULL, cache, "generation_step", "forward", adam, "activation");
    /* A backward pass is training as well. */
    stack_is(NULL, cache, "update", "forward", "/torch/autograd/graph.py", "activation");
    stack_is(NULL, "/vllm/gpu_model_runner.py", "_allocate_kv_cache_tensors", "main", "a.py",
             "cache");
    stack_is(NULL, "/x/my_kv_cache.py", "update", "forward", "a.py", "cache");
    stack_is(NULL, "/x/attention.py", "attention_with_kv_cache", "forward", "a.py", "activation");
    stack_is(NULL, "/x/rope.py", "_set_cos_sin_cache", "forward", "a.py", "activation");
}

/* Also where the function that generates is the innermost one. */
static void caches_of_a_generation_itself(void **state)
{
    static const char *const names[] = {"generate", "update"};
    static const char *const wanted[] = {"cache", "activation"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char json[1024];
        struct tn_categories categories;

        (void)snprintf(json, sizeof json,
                       "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1,"
                       " 'size': 1, 'stream': 0, 'frames': [{'name': '%s', 'filename':"
                       " '/transformers/cache_utils.py', 'line': 3}, {'name': 'forward',"
                       " 'filename': '/x/model.py', 'line': 9}]}, {'action': 'alloc', 'addr': 2,"
                       " 'size': 1, 'stream': 0, 'frames': [{'name': 'step', 'filename':"
                       " '/torch/optim/adam.py', 'line': 1}]}]]}",
                       names[i]);
        struct tarn_snapshot *snapshot = report_parse(json);

        assert_int_equal(tn_categories_init(&categories, NULL, tn_snapshot_model(snapshot), NULL),
                         TARN_OK);
        stack_has(&categories, 2, wanted[i]);
        tn_categories_fini(&categories);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Only a path that was cut down to the package gets a slash, and all else of it stays. */
static void cut_paths_are_whole_ones(void **state)
{
    (void)state;
    stack_is("mine: ^/torch/nn/x\\.py:3:put$\n", "torch/nn/x.py", "put", "main", "a.py", "mine");
    stack_is("mine: ^torchvision/x\\.py:3:put$\n", "torchvision/x.py", "put", "main", "a.py",
             "mine");
}

/* A path that was cut down to the package is matched as a whole one, as far as there is room. */
static void cut_paths_may_be_long(void **state)
{
    static const size_t lengths[] = {20, TN_PATTERN_TEXT_MAX - 8, TN_PATTERN_TEXT_MAX - 1,
                                     TN_PATTERN_TEXT_MAX, TN_PATTERN_TEXT_MAX + 100};
    struct tarn_rules *rules = parse("mine: ^/torch/optim/x+(:1:f)?$\n"); /* to its end */

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        static const char begin[] = "{'segments': [], 'device_traces': [[{'action': 'alloc', "
                                    "'addr': 1, 'size': 1, 'stream': 0, 'frames': [{'name': "
                                    "'f', 'line': 1, 'filename': 'torch/optim/";
        const size_t more = lengths[i] - strlen("torch/optim/");
        struct test_collect json = {.text = NULL};
        struct tn_categories categories;
        const char *hint;

        assert_int_equal(test_collect_write(&json, begin, sizeof begin - 1), TARN_OK);
        for (size_t k = 0; k < more; k++) {
            assert_int_equal(test_collect_write(&json, "x", 1), TARN_OK);
        }
        assert_int_equal(test_collect_write(&json, "'}]}]]}", 8), TARN_OK);
        struct tarn_snapshot *snapshot = report_parse(json.text);

        assert_int_equal(tn_categories_init(&categories, rules, tn_snapshot_model(snapshot), NULL),
                         TARN_OK);
        assert_string_equal(
            tn_category_name(&categories, tn_category_of_stack(&categories, 2), &hint), "mine");
        tn_categories_fini(&categories);
        tarn_snapshot_destroy(snapshot);
        free(json.text);
    }
    tarn_rules_destroy(rules);
}

/* Comments and blank lines are no rules, whatever blanks they begin with. */
static void lines_that_are_none(void **state)
{
    struct tarn_rules *rules = parse("a: b\n  # c: d\n\n \t \n\t# e\nf: g\n#\n");

    (void)state;
    assert_int_equal(rules->rules.count, 2);
    assert_int_equal(rules->categories.count, 2);
    tarn_rules_destroy(rules);
}

static void bad_files(void **state)
{
    static const char nul[] = "a: b\nc\0: d\n";
    char *longer = malloc(6000);

    (void)state;
    refuses("a: b\n\nno rule\n", 14, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 3: not of the");
    refuses("a:\n", 3, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 1: ");
    refuses(": b\n", 4, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 1: ");
    refuses(nul, sizeof nul - 1, TARN_ERR_INVALID_ARGUMENT, "my.rules, line 2: ");
    refuses("a: b\nc: (\n", 10, TARN_ERR_INVALID_ARGUMENT,
            "my.rules, line 2: \"(\" is not a regular expression");
    assert_non_null(longer);
    memset(longer, 'x', 6000);
    refuses(longer, 6000, TARN_ERR_LIMIT, "longer than 4096 bytes");
    longer[1] = ':'; /* behind a good line as well */
    longer[4] = '\n';
    refuses(longer, 6000, TARN_ERR_LIMIT, "longer than 4096 bytes");
    free(longer);
}

static void too_many(void **state)
{
    enum {
        LINES = 10001
    };
    char *text = malloc(LINES * 5 + 1);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < LINES; i++) {
        memcpy(text + i * 5, "a: b\n", 6);
    }
    refuses(text, (size_t)LINES * 5, TARN_ERR_LIMIT, "line 10001: more than 10000 lines");
    free(text);
}

/* The default rules come out of their own text, and a file that is not there is said. */
static void files(void **state)
{
    struct tarn_rules *rules;
    struct tarn_error error;

    (void)state;
    rules = parse(tarn_rules_default_text());
    assert_true(rules->rules.count >= 10);
    tarn_rules_destroy(rules);
    assert_int_equal(tarn_rules_load("/nonexistent/rules", &rules, &error), TARN_ERR_IO);
    assert_null(rules);
    assert_non_null(strstr(error.text, "/nonexistent/rules"));
}

static void failures_leave_nothing(void **state)
{
    static const char text[] = "a: b\nc: d\ne > f: g\n";
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct tarn_rules *rules;
        struct tarn_error error;

        tarn_host_fail_nth(n);
        status = tn_rules_parse(text, sizeof text - 1, "x", &rules, &error);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        tarn_rules_destroy(rules);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_rules_pass_the_check),
        cmocka_unit_test(categories_are_counted),
        cmocka_unit_test(the_outermost_frame_decides),
        cmocka_unit_test(lifetimes_are_a_hint),
        cmocka_unit_test(rules_refine),
        cmocka_unit_test(stacks_do_not_mix),
        cmocka_unit_test(frames_are_refined),
        cmocka_unit_test(memory_for_files_may_be_missing),
        cmocka_unit_test(caches_of_a_generation),
        cmocka_unit_test(caches_of_a_generation_itself),
        cmocka_unit_test(cut_paths_are_whole_ones),
        cmocka_unit_test(cut_paths_may_be_long),
        cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(too_many),
        cmocka_unit_test(files),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
