/* SPDX-License-Identifier: MIT */
/* What lines say of snapshots with long names, deep stacks, many steps, and labels of the caller's:
 * what goes beyond a limit is left out, and sums stay those of the snapshot. */
#include "support/test.h"

#include "support/collect.h"
#include "support/temp.h"

#include "fleet/fleet.h"
#include "fleet/summary_parts.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <stdio.h>

enum {
    LONG_NAME = 1500,
    LARGE_FRAMES = 40 /* of LONG_NAME bytes: a stack that takes more than an eighth of all room */
};

/* A snapshot with one trace. */
struct made {
    struct tarn_snapshot *snapshot;
    struct tn_model *model;
    struct tn_trace trace;
    struct tn_annotation *annotations;
};

static void made_open(struct made *made)
{
    *made = (struct made){.snapshot = NULL};
    assert_int_equal(tn_snapshot_create(0, &made->snapshot), TARN_OK);
    made->model = tn_snapshot_model_mutable(made->snapshot);
    made->model->traces = &made->trace;
    made->model->trace_count = 1;
    made->model->has_traces = true;
}

static void made_close(struct made *made)
{
    tarn_snapshot_destroy(made->snapshot);
    free(made->annotations);
}

static uint32_t string_of(struct made *made, const char *text, size_t length)
{
    uint32_t string;

    assert_int_equal(tn_model_add_string(made->model, text, length, &string), TARN_OK);
    return string;
}

/* Frames whose lines begin at `line`. */
static uint32_t stack_make(struct made *made, size_t frames, size_t name_length, int64_t line)
{
    char name[LONG_NAME];
    uint32_t numbers[1024];
    uint32_t stack;

    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < frames; i++) {
        const struct tn_frame frame = {.name = string_of(made, name, name_length),
                                       .filename = string_of(made, "deep.py", 7),
                                       .line = line + (int64_t)i};

        assert_int_equal(tn_model_add_frame(made->model, &frame, &numbers[i]), TARN_OK);
    }
    assert_int_equal(tn_model_add_stack(made->model, numbers, frames, &stack), TARN_OK);
    return stack;
}

static void alloc_make(struct made *made, uint64_t size, uint32_t stack)
{
    const uint64_t number = made->trace.count++;
    const struct tn_trace_entry entry = {.action = TN_TRACE_ALLOC,
                                         .address = ((uint64_t)1 << 40) + (number << 20),
                                         .size = size,
                                         .time_us = (int64_t)number * 10,
                                         .stack = stack & 0x7ffffff};
    uint64_t added;

    assert_int_equal(tn_model_add_entry(made->model, &entry, &added), TARN_OK);
}

/* The summary; free with free(). It was read again: its sums are right. */
static char *summary_of(const struct made *made, const struct tarn_summary_options *options)
{
    struct test_collect file = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &file};
    struct tarn_fleet *fleet = NULL;
    struct tarn_fleet *again = NULL;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_create(&again, NULL), TARN_OK);
    if (tarn_fleet_add(fleet, made->snapshot, "made", options, &error)) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(tarn_fleet_write(fleet, &writer, NULL), TARN_OK);
    if (tarn_fleet_load_memory(again, file.text, file.size, NULL, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_fleet_destroy(again);
    tarn_fleet_destroy(fleet);
    return file.text;
}

static size_t count_of(const char *text, const char *end, const char *word)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, word)) && at < end; at++) {
        count++;
    }
    return count;
}

/* From the word on; fails where there is none. */
static const char *find(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    if (!at) {
        fail_msg("no %s in %s", word, text);
    }
    return at;
}

static void long_names_are_cut_and_told_apart(void **state)
{
    struct made made;

    (void)state;
    made_open(&made);
    alloc_make(&made, 512, stack_make(&made, 1, 1024, 1));
    alloc_make(&made, 512, stack_make(&made, 1, LONG_NAME, 1));
    alloc_make(&made, 512, stack_make(&made, 1, LONG_NAME - 1, 1));
    char *text = summary_of(&made, NULL);

    assert_int_equal(count_of(text, text + strlen(text), "n...("), 2);
    (void)find(text, "n...(1500 bytes, ");
    (void)find(text, "n...(1499 bytes, ");
    free(text);
    made_close(&made);
}

static void deep_stacks_lose_their_outermost_callers(void **state)
{
    struct made made;

    (void)state;
    made_open(&made);
    alloc_make(&made, 512, stack_make(&made, 600, 4, 1));
    char *text = summary_of(&made, NULL);
    const char *stack = find(text, TN_SUMMARY_STACK);

    assert_int_equal(count_of(stack, strchr(stack, '\n'), "deep.py"), 512);
    (void)find(text, "\"deep.py\",512]");
    assert_null(strstr(text, "\"deep.py\",513]"));
    free(text);
    made_close(&made);
}

/* The number behind the word. */
static uint64_t number_behind(const char *text, const char *word)
{
    return strtoull(find(text, word) + strlen(word), NULL, 10);
}

/* Stacks that have no room any more are among the others: in what is held, and in what grows. */
static void large_stacks_share_the_room(void **state)
{
    struct made made;
    uint32_t stacks[10];

    (void)state;
    made_open(&made);
    for (int i = 0; i < 10; i++) {
        stacks[i] = stack_make(&made, LARGE_FRAMES, LONG_NAME, 1 + 1000 * i);
    }
    for (int k = 0; k < 200; k++) { /* all of them grow, the first ones most */
        alloc_make(&made, 4096 * (uint64_t)(11 - k % 10), stacks[k % 10]);
    }
    char *text = summary_of(&made, NULL);
    const size_t lines = count_of(text, text + strlen(text), TN_SUMMARY_STACK);
    const char *held = find(text, "\"held\":{");
    const char *growth = find(text, "\"growth\":{");

    assert_true(lines > 2 && lines < 8); /* of 256 KiB */
    assert_int_equal(number_behind(held, "\"others\":["), 10 - lines);
    assert_int_equal(count_of(find(held, "\"rows\":["), strstr(held, "\"others\""), ",20]"), lines);
    assert_int_equal(number_behind(growth, "\"groups\":"), 10);
    assert_int_equal(count_of(growth, strstr(growth, "]]}"), "],["), lines - 1);
    free(text);
    made_close(&made);
}

/* Every second step, say, and always the last one. */
static void of_many_steps_some_are_kept(void **state)
{
    enum {
        STEPS = 150
    };
    struct made made;
    char name[32];

    (void)state;
    made_open(&made);
    made.annotations = calloc(STEPS, sizeof *made.annotations);
    assert_non_null(made.annotations);
    for (int i = 0; i < STEPS; i++) {
        const int length = snprintf(name, sizeof name, "ProfilerStep#%d", i);

        alloc_make(&made, 512, TN_STACK_EMPTY);
        made.annotations[i] = (struct tn_annotation){.stage = string_of(&made, "START", 5),
                                                     .name = string_of(&made, name, (size_t)length),
                                                     .time_us = (int64_t)i * 10};
    }
    made.model->annotations = made.annotations;
    made.model->annotation_count = STEPS;
    made.model->has_annotations = true;
    char *text = summary_of(&made, NULL);
    const char *steps = find(text, "\"steps\":{\"by\":\"steps\"");
    const uint64_t count = number_behind(steps, "\"count\":");
    const char *end = strstr(find(steps, "\"rows\":["), "]]");
    char last[32];

    assert_true(count >= STEPS - 1 && count <= STEPS + 1);
    (void)snprintf(last, sizeof last, "[%llu,", (unsigned long long)count);
    assert_true(find(steps, last) < end);
    const size_t rows = count_of(find(steps, "\"rows\":["), end, "],[") + 1;

    assert_int_equal(rows, (count + 2) / 3); /* of three, for 64 */
    assert_true(rows <= TN_SUMMARY_STEPS);
    free(text);
    made_close(&made);
}

/* ---- what the caller says ---- */

static void the_caller_may_have_rules(void **state)
{
    struct tarn_report_options report = {.struct_size = sizeof report};
    const struct tarn_summary_options options = {.struct_size = sizeof options, .report = &report};
    struct tarn_rules *rules = NULL;
    static const char rule[] = "of_mine: deep\\.py\n";
    struct temp_file file = temp_write(rule, sizeof rule - 1);
    struct made made;

    (void)state;
    assert_int_equal(tarn_rules_load(file.path, &rules, NULL), TARN_OK);
    temp_remove(&file);
    report.rules = rules;
    made_open(&made);
    alloc_make(&made, 512, stack_make(&made, 1, 4, 1));
    char *text = summary_of(&made, &options);

    (void)find(text, "\"categories\":[[\"of_mine\",512,1]]");
    free(text);
    text = summary_of(&made, NULL);
    assert_null(strstr(text, "of_mine"));
    free(text);
    made_close(&made);
    tarn_rules_destroy(rules);
}

static void labels_that_are_none_are_refused(void **state)
{
    static const char value[TN_LABEL_VALUE_MAX + 2] = "";
    struct tarn_label many[TARN_LABELS_MAX + 1];
    char keys[TARN_LABELS_MAX + 1][16];
    char long_value[sizeof value];
    const struct {
        struct tarn_label labels[2];
        const struct tarn_label *all;
        size_t count;
        enum tarn_status status;
        const char *said;
    } cases[] = {
        {{{"job", "7"}}, NULL, 1, TARN_OK, ""},
        {{{"file", "other"}, {"device", "9"}}, NULL, 2, TARN_OK, ""}, /* ours win */
        {{{"a b", "7"}}, NULL, 1, TARN_ERR_INVALID_ARGUMENT, "\"a b\" is no label"},
        {{{"job", "7"}, {"", "7"}}, NULL, 2, TARN_ERR_INVALID_ARGUMENT, "\"\" is no label"},
        {{{"job", long_value}}, NULL, 1, TARN_ERR_INVALID_ARGUMENT, "at most 256 bytes"},
        {{{NULL, NULL}}, many, TARN_LABELS_MAX + 1, TARN_ERR_LIMIT, "at most 32 labels"},
        {{{NULL, NULL}}, many, TARN_LABELS_MAX, TARN_ERR_LIMIT, "at most 32 labels"}, /* and file */
        {{{NULL, NULL}},
         many,
         TARN_LABELS_MAX - 1,
         TARN_ERR_LIMIT,
         "at most 32 labels"}, /* device */
        {{{NULL, NULL}}, many, TARN_LABELS_MAX - 2, TARN_OK, ""},
    };
    struct made made;

    (void)state;
    memset(long_value, 'v', sizeof long_value - 1);
    long_value[sizeof long_value - 1] = '\0';
    for (int i = 0; i < TARN_LABELS_MAX + 1; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
        many[i] = (struct tarn_label){keys[i], "v"};
    }
    made_open(&made);
    alloc_make(&made, 512, TN_STACK_EMPTY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tarn_summary_options options = {.struct_size = sizeof options,
                                                     .labels = cases[i].all ? cases[i].all
                                                                            : cases[i].labels,
                                                     .label_count = cases[i].count};
        struct tarn_error error = {.text = ""};
        struct tarn_fleet *fleet = NULL;

        assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
        assert_int_equal(tarn_fleet_add(fleet, made.snapshot, "made", &options, &error),
                         cases[i].status);
        if (!strstr(error.text, cases[i].said)) {
            fail_msg("%s is not in \"%s\"", cases[i].said, error.text);
        }
        assert_int_equal(tarn_fleet_rank_count(fleet), cases[i].status == TARN_OK);
        assert_int_equal(fleet->stacks.count > 0, cases[i].status == TARN_OK);
        tarn_fleet_destroy(fleet);
    }
    made_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_names_are_cut_and_told_apart),
        cmocka_unit_test(deep_stacks_lose_their_outermost_callers),
        cmocka_unit_test(large_stacks_share_the_room),
        cmocka_unit_test(of_many_steps_some_are_kept),
        cmocka_unit_test(the_caller_may_have_rules),
        cmocka_unit_test(labels_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
