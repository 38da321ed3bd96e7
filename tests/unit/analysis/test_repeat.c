/* SPDX-License-Identifier: MIT */
/* Steps of a trace: given as parts, told by stacks that repeat, or guessed. */
#include "support/report.h"

#include "analysis/repeat.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>

enum {
    TEXT_MAX = 1 << 20
};

/* A trace of allocations; 'a' and 'b' are stacks that repeat, '.' is one of its own, '0' is empty.
 */
struct steps {
    char *json;
    struct tarn_snapshot *snapshot;
    struct tn_query query;
    struct tn_analysis analysis;
};

static void steps_open(struct steps *steps, const char *stacks)
{
    struct tarn_error error;
    size_t length = 0;

    steps->json = malloc(TEXT_MAX);
    assert_non_null(steps->json);
    length += (size_t)snprintf(steps->json, TEXT_MAX, "{'segments': [], 'device_traces': [[");
    for (size_t i = 0; stacks[i]; i++) {
        const size_t line = stacks[i] == '.' ? 1000 + i : (size_t)stacks[i];

        length += (size_t)snprintf(
            steps->json + length, TEXT_MAX - length,
            stacks[i] == '0' ? "%s{'action':'alloc','addr':%zu,'size':512,'stream':0,'frames':[]}"
                             : "%s{'action':'alloc','addr':%zu,'size':512,'stream':0,'frames':["
                               "{'filename':'f.py','line':%zu,'name':'f'}]}",
            i > 0 ? "," : "", 4096 + 512 * i, line);
        assert_true(length < TEXT_MAX - 4);
    }
    (void)snprintf(steps->json + length, TEXT_MAX - length, "]]}");
    steps->snapshot = report_parse(steps->json);
    assert_int_equal(tn_query_init(&steps->query, tn_snapshot_model(steps->snapshot), NULL, &error),
                     TARN_OK);
    assert_int_equal(tn_analysis_init(&steps->analysis, &steps->query, 0, &error), TARN_OK);
}

static void steps_close(struct steps *steps)
{
    tn_analysis_fini(&steps->analysis);
    tn_query_fini(&steps->query);
    tarn_snapshot_destroy(steps->snapshot);
    free(steps->json);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void at_is(const struct tn_repeats *repeats, const uint64_t *at, size_t count)
{
    assert_int_equal(repeats->at.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(((const uint64_t *)repeats->at.items)[i], at[i]);
    }
}

/* `times` the text. */
static char *text_repeat(const char *text, size_t times)
{
    const size_t length = strlen(text);
    char *all = malloc(times * length + 1);

    assert_non_null(all);
    for (size_t i = 0; i < times; i++) {
        memcpy(all + i * length, text, length + 1);
    }
    return all;
}

static void parts_end_with_the_trace(void **state)
{
    struct steps steps;
    struct tn_repeats repeats;

    (void)state;
    steps_open(&steps, "..........");
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 3));
    assert_int_equal(repeats.kind, TN_REPEAT_PARTS);
    assert_int_equal(repeats.found, 3);
    at_is(&repeats, (const uint64_t[]){2, 5, 9}, 3);
    tn_repeats_fini(&repeats);
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 100)); /* no more than entries */
    at_is(&repeats, (const uint64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10);
    tn_repeats_fini(&repeats);
    steps_close(&steps);
}

/* The parts are exact: 75 hundredths of 2724 are 2043. */
static void parts_are_equal(void **state)
{
    struct steps steps;
    struct tn_repeats repeats;
    char *text = text_repeat("....", 681);

    (void)state;
    steps_open(&steps, text);
    assert_true(tn_repeats_init_all(&repeats, &steps.analysis, 100));
    assert_int_equal(repeats.at.count, 100);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(((const uint64_t *)repeats.at.items)[i - 1], 2724 * i / 100 - 1);
    }
    tn_repeats_fini(&repeats);
    steps_close(&steps);
    free(text);
}

static void a_stack_marks_steps(void **state)
{
    struct steps steps;
    struct tn_repeats repeats;

    (void)state;
    steps_open(&steps, ".a.b.a.b.a.b.a.b."); /* four times are enough, by two stacks */
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
    assert_int_equal(repeats.kind, TN_REPEAT_STACK);
    assert_int_equal(repeats.found, 4);
    at_is(&repeats, (const uint64_t[]){1, 5, 9, 13}, 4);
    assert_int_equal(tn_timeline_lifetimes(&steps.analysis.whole)[1].stack, repeats.stack);
    tn_repeats_fini(&repeats);
    steps_close(&steps);
}

static void kind_is(const char *stacks, enum tn_repeat_kind kind, uint64_t first)
{
    struct steps steps;
    struct tn_repeats repeats;

    steps_open(&steps, stacks);
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
    assert_int_equal(repeats.kind, kind);
    assert_true(repeats.at.count > 0);
    assert_int_equal(((const uint64_t *)repeats.at.items)[0], first);
    tn_repeats_fini(&repeats);
    steps_close(&steps);
}

static void what_marks_no_steps(void **state)
{
    (void)state;
    kind_is("a.b.a.b.a.b.........", TN_REPEAT_GUESSED, 1); /* three times only */
    kind_is("a...a...a...a.......", TN_REPEAT_GUESSED, 1); /* no second stack agrees */
    /* In pairs: no distance may be three times another's, except exactly. */
    kind_is("ab......ab......ab..ab......", TN_REPEAT_STACK, 0);
    kind_is("ab......ab......ab......abab", TN_REPEAT_GUESSED, 1);
    kind_is("ab...ab...............ab...ab....", TN_REPEAT_GUESSED, 2);
    kind_is("ab..................................................ab..ab..ab..ab..",
            TN_REPEAT_GUESSED, 5); /* only the first distance is another */
    kind_is("abab..ab..........ab........", TN_REPEAT_STACK, 0); /* three times the middle one */
    kind_is("abab....ab....ab....", TN_REPEAT_STACK, 0);         /* a third of it */
    kind_is("abab................ab....ab................", TN_REPEAT_STACK, 0); /* both */
    kind_is("ababab....ab....ab........", TN_REPEAT_STACK, 0); /* of four, the upper middle one */
    /* Not near the beginning, or the end. */
    kind_is(".............ab..ab..ab..ab..", TN_REPEAT_GUESSED, 1);
    kind_is("ab..ab..ab..ab................", TN_REPEAT_GUESSED, 2);
    kind_is("............ab..ab..ab..ab..", TN_REPEAT_STACK, 12);
    kind_is("ab..ab..ab..ab..........", TN_REPEAT_STACK, 0);
    /* The second stack is even, the first is not. */
    kind_is("aaaab...b...b...b...", TN_REPEAT_STACK, 4);
    /* Blocks without frames come as often, and first: they are of no stack. */
    kind_is("0ab.0ab.0ab.0ab.", TN_REPEAT_STACK, 1);
    kind_is("0a..0a..0a..0a..", TN_REPEAT_GUESSED, 0);
}

/* Of stacks that come very often none marks steps. */
static void too_often(void **state)
{
    char *text = text_repeat("ab", 4097);

    (void)state;
    kind_is(text, TN_REPEAT_GUESSED, 818);
    text[(size_t)2 * 4096] = '\0';
    kind_is(text, TN_REPEAT_STACK, 0);
    free(text);
}

/* No more than some counts are tried: of pairs of stacks that come at the beginning only, each pair
 * once more than the one before, and then of one that comes everywhere. */
static void candidates_have_an_end(void **state)
{
    enum {
        STEPS = 24,
        BETWEEN = 40
    };
    char uneven[STEPS * BETWEEN];
    char text[STEPS * (BETWEEN + 2) + 1];

    (void)state;
    for (unsigned pairs = 15; pairs <= 16; pairs++) {
        size_t length = 0;

        memset(uneven, '.', sizeof uneven);
        for (unsigned i = 0; i < pairs; i++) {
            for (unsigned k = 0; k < TN_REPEATS_MIN + i; k++) {
                uneven[length++] = (char)('A' + 2 * i);
                uneven[length++] = (char)('B' + 2 * i);
            }
        }
        length = 0;
        for (size_t i = 0; i < STEPS; i++) {
            text[length++] = 'x';
            text[length++] = 'y';
            memcpy(text + length, uneven + i * BETWEEN, BETWEEN);
            length += BETWEEN;
        }
        text[length] = '\0';
        kind_is(text, pairs == 15 ? TN_REPEAT_STACK : TN_REPEAT_GUESSED, pairs == 15 ? 0 : 99);
    }
}

/* What was found once is used again, but not where the caller wants parts. */
static void those_that_were_made_are_used_again(void **state)
{
    struct steps steps;
    struct tn_repeats made;
    struct tn_repeats repeats;

    (void)state;
    steps_open(&steps, ".a.b.a.b.a.b.a.b.");
    assert_true(tn_repeats_init_all(&made, &steps.analysis, 0));
    ((uint64_t *)made.at.items)[0] = 2; /* which nobody would find */
    steps.analysis.repeats = &made;
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
    assert_int_equal(repeats.kind, TN_REPEAT_STACK);
    assert_int_equal(repeats.stack, made.stack);
    at_is(&repeats, made.at.items, made.at.count);
    tn_repeats_fini(&repeats);
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 2));
    assert_int_equal(repeats.kind, TN_REPEAT_PARTS);
    at_is(&repeats, (const uint64_t[]){7, 16}, 2);
    tn_repeats_fini(&repeats);
    steps.analysis.repeats = NULL;
    tn_repeats_fini(&made);
    steps_close(&steps);
}

static void step_ends_set(struct steps *steps, const uint64_t *ends, size_t count)
{
    steps->analysis.steps.count = 0;
    assert_true(tn_vec_append(&steps->analysis.steps, ends, count));
}

/* Of few blocks as well, and of annotated steps if there are enough. */
static void few_that_were_made_are_used_again(void **state)
{
    struct steps steps;
    struct tn_repeats made;
    struct tn_repeats repeats;

    (void)state;
    steps_open(&steps, "...");
    assert_true(tn_repeats_init_all(&made, &steps.analysis, 0));
    assert_int_equal(made.kind, TN_REPEAT_GUESSED);
    ((uint64_t *)made.at.items)[1] = 0; /* which nobody would find */
    steps.analysis.repeats = &made;
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
    at_is(&repeats, (const uint64_t[]){0, 0, 2}, 3);
    tn_repeats_fini(&repeats);
    tn_repeats_fini(&made);
    steps_close(&steps);

    for (size_t count = 3; count <= 4; count++) {
        steps_open(&steps, "...........");
        step_ends_set(&steps, (const uint64_t[]){1, 3, 5, 7}, count);
        assert_true(tn_repeats_init_all(&made, &steps.analysis, 0));
        assert_int_equal(made.kind, TN_REPEAT_STEPS);
        ((uint64_t *)made.at.items)[0] = 2;
        steps.analysis.repeats = &made;
        assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
        assert_int_equal(repeats.kind, count == 4 ? TN_REPEAT_STEPS : TN_REPEAT_GUESSED);
        assert_int_equal(((const uint64_t *)repeats.at.items)[0], count == 4 ? 2 : 0);
        tn_repeats_fini(&repeats);
        tn_repeats_fini(&made);
        steps_close(&steps);
    }
}

/* Steps end before the limit of a part, and distances are counted from its beginning. */
static void parts_of_a_trace(void **state)
{
    static const struct {
        struct tn_narrowing narrowing;
        enum tn_repeat_kind kind;
        uint64_t at[4];
        size_t count;
    } cases[] = {
        {{.first = 0, .limit = 13}, TN_REPEAT_STEPS, {1, 5, 9}, 3},
        {{.first = 5, .limit = 14}, TN_REPEAT_STEPS, {5, 9, 13}, 3},
        {{.first = 40, .limit = 56}, TN_REPEAT_STACK, {40, 44, 48, 52}, 4},
    };
    struct steps steps;

    (void)state;
    steps_open(&steps, "..........." /* 40 without a stack that repeats */
                       ".............................a.b.a.b.a.b.a.b.");
    step_ends_set(&steps, (const uint64_t[]){1, 5, 9, 13}, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tn_timeline part;
        struct tn_repeats repeats;

        assert_true(tn_timeline_narrow(&part, &steps.analysis.whole, &cases[i].narrowing));
        steps.analysis.timeline = &part;
        assert_true(tn_repeats_init_all(&repeats, &steps.analysis, 0));
        assert_int_equal(repeats.kind, cases[i].kind);
        at_is(&repeats, cases[i].at, cases[i].count);
        tn_repeats_fini(&repeats);
        tn_timeline_fini(&part);
    }
    steps.analysis.timeline = &steps.analysis.whole;
    steps_close(&steps);
}

/* Without host memory nothing is found, instead of what comes next, and nothing is left. */
static void every_host_failure_is_reported(void **state)
{
    static const struct {
        const char *stacks;
        uint64_t parts;
        size_t steps; /* annotated */
        enum tn_repeat_kind kind;
        uint64_t first;
    } cases[] = {
        {"cd..abcdcd..abcdcd..abcdcd..abcd", 0, 0, TN_REPEAT_STACK, 4},
        {"cd..abcdcd..abcdcd..abcdcd..abcd", 0, 2, TN_REPEAT_STACK, 4},
        {"cd..abcdcd..abcdcd..abcdcd..abcd", 31, 0, TN_REPEAT_PARTS, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct steps steps;
        struct tn_repeats repeats;
        uint64_t failures = 0;
        bool good = false;

        steps_open(&steps, cases[i].stacks);
        step_ends_set(&steps, (const uint64_t[]){1, 3}, cases[i].steps);
        const uint64_t live = tarn_host_get_usage().live_bytes;

        for (uint64_t n = 1; !good; n++) {
            tarn_host_fail_nth(n);
            good = tn_repeats_init(&repeats, &steps.analysis, cases[i].parts);
            tarn_host_fail_nth(0);
            failures += !good;
            assert_true(good || tarn_host_get_usage().live_bytes == live);
        }
        assert_true(failures >= 2);
        assert_int_equal(repeats.kind, cases[i].kind);
        assert_int_equal(((const uint64_t *)repeats.at.items)[0], cases[i].first);
        tn_repeats_fini(&repeats);
        steps_close(&steps);
    }
}

/* The fewest repetitions that are even count: 'c' and 'd' come twice as often as 'a' and 'b'. */
static void fewest_count(void **state)
{
    (void)state;
    kind_is("cd..abcdcd..abcdcd..abcdcd..abcd", TN_REPEAT_STACK, 4);
}

static void many_are_thinned(void **state)
{
    enum {
        STEPS = 40
    };
    char *text = text_repeat("ab..", STEPS);
    struct steps steps;
    struct tn_repeats repeats;

    (void)state;
    steps_open(&steps, text);
    assert_true(tn_repeats_init(&repeats, &steps.analysis, 0));
    assert_int_equal(repeats.found, STEPS);
    assert_int_equal(repeats.at.count, TN_REPEATS_MAX);
    for (size_t i = 0; i < TN_REPEATS_MAX; i++) {
        assert_int_equal(((const uint64_t *)repeats.at.items)[i],
                         4 * (i * (STEPS - 1) / (TN_REPEATS_MAX - 1)));
    }
    tn_repeats_fini(&repeats);
    assert_true(tn_repeats_init_all(&repeats, &steps.analysis, 0));
    assert_int_equal(repeats.at.count, STEPS);
    assert_int_equal(repeats.found, STEPS);
    tn_repeats_fini(&repeats);
    assert_true(tn_repeats_init(&repeats, &steps.analysis, TN_REPEATS_MAX));
    assert_int_equal(repeats.at.count, TN_REPEATS_MAX); /* just as many as are kept */
    tn_repeats_fini(&repeats);
    steps_close(&steps);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_end_with_the_trace),
        cmocka_unit_test(a_stack_marks_steps),
        cmocka_unit_test(what_marks_no_steps),
        cmocka_unit_test(fewest_count),
        cmocka_unit_test(many_are_thinned),
        cmocka_unit_test(parts_are_equal),
        cmocka_unit_test(too_often),
        cmocka_unit_test(candidates_have_an_end),
        cmocka_unit_test(those_that_were_made_are_used_again),
        cmocka_unit_test(few_that_were_made_are_used_again),
        cmocka_unit_test(parts_of_a_trace),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
