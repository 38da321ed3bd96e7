/* SPDX-License-Identifier: MIT */
/* Trees of calls in the reports that have them; that their rows add up on recorded runs is in
 * test_adds_up.c. */
#include "support/report.h"

#include "analysis/analysis.h"
#include "analysis/call_tree.h"
#include "analysis/fold.h"
#include "snapshot/snapshot.h"
#include "tarn/report.h"

static enum tarn_status live(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_live(asked->snapshot, &asked->options, writer, error);
}

static enum tarn_status top(const void *context, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_top(asked->snapshot, &asked->options, writer, error);
}

/* main calls f, which asks for 1000 itself and calls g for 200 and h, by four more, for 30; and it
 * calls k for 4, freed at the end. One block has no frames. */
static const char calls[] =
    "{'segments': [], 'device_traces': [["
    "{'action': 'alloc', 'addr': 1000, 'size': 1000, 'stream': 0, 'frames': ["
    " {'name': 'f', 'filename': '/u/m.py', 'line': 2},"
    " {'name': 'main', 'filename': '/u/m.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 3000, 'size': 200, 'stream': 0, 'frames': ["
    " {'name': 'g', 'filename': '/u/m.py', 'line': 3},"
    " {'name': 'f', 'filename': '/u/m.py', 'line': 2},"
    " {'name': 'main', 'filename': '/u/m.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 4000, 'size': 30, 'stream': 0, 'frames': ["
    " {'name': 'h', 'filename': '/u/m.py', 'line': 9},"
    " {'name': 'e', 'filename': '/u/m.py', 'line': 8},"
    " {'name': 'd', 'filename': '/u/m.py', 'line': 7},"
    " {'name': 'c', 'filename': '/u/m.py', 'line': 6},"
    " {'name': 'b', 'filename': '/u/m.py', 'line': 5},"
    " {'name': 'f', 'filename': '/u/m.py', 'line': 2},"
    " {'name': 'main', 'filename': '/u/m.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 5000, 'size': 4, 'stream': 0, 'frames': ["
    " {'name': 'k', 'filename': '/u/m.py', 'line': 4},"
    " {'name': 'main', 'filename': '/u/m.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 6000, 'size': 5, 'stream': 0, 'frames': []},"
    "{'action': 'free_completed', 'addr': 5000, 'size': 4, 'stream': 0}]]}";

static struct report_asked asked_of(const struct tarn_snapshot *snapshot)
{
    return (struct report_asked){snapshot,
                                 {.struct_size = sizeof(struct tarn_report_options), .tree = true}};
}

static void rows_are_chains_and_what_is_left(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(calls);
    struct report_asked asked = asked_of(snapshot);
    const struct tarn_selection peak = {.struct_size = sizeof peak, .at = {TARN_AT_PEAK, 0}};

    (void)state;
    asked.options.selection = &peak;
    report_says(
        live, &asked,
        "device 0\n\nmemory: 0 B reserved, 1.21 KiB requested, at event 4 of 6\n"
        "       bytes   share    blocks  calls\n"
        "    1.21 KiB  100.0%         5  total\n"
        "    1.21 KiB   99.6%         4    m.py:1:main\n"
        "    1.20 KiB   99.3%         3      m.py:2:f\n"
        "       200 B   16.1%         1        m.py:3:g\n"
        "        30 B    2.4%         1        m.py:5:b > (2 more) > m.py:8:e > m.py:9:h\n"
        "      1000 B   80.7%         1        (itself)\n"
        "         4 B    0.3%         1      m.py:4:k\n"
        "         5 B    0.4%         1    (no frames)\n"
        "         0 B          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n");
    asked.options.min_share = 3;
    report_says(
        live, &asked,
        "device 0\n\nmemory: 0 B reserved, 1.21 KiB requested, at event 4 of 6\n"
        "       bytes   share    blocks  calls\n"
        "    1.21 KiB  100.0%         5  total\n"
        "    1.21 KiB   99.6%         4    m.py:1:main\n"
        "    1.20 KiB   99.3%         3      m.py:2:f\n"
        "       200 B   16.1%         1        m.py:3:g\n"
        "        30 B    2.4%         1        others (1 call)\n"
        "      1000 B   80.7%         1        (itself)\n"
        "         4 B    0.3%         1      others (1 call)\n"
        "         5 B    0.4%         1    others (1 call)\n"
        "         0 B          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n");
    asked.options.min_share = 0;
    asked.options.rows = 1;
    asked.options.units = TARN_UNITS_BYTES;
    report_says(live, &asked,
                "device 0\n\nmemory: 0 reserved, 1239 requested, at event 4 of 6\n"
                "            bytes   share    blocks  calls\n"
                "             1239  100.0%         5  total\n"
                "             1234   99.6%         4    m.py:1:main\n"
                "             1230   99.3%         3      m.py:2:f\n"
                "              200   16.1%         1        m.py:3:g\n"
                "               30    2.4%         1        others (1 call)\n"
                "             1000   80.7%         1        (itself)\n"
                "                4    0.3%         1      others (1 call)\n"
                "                5    0.4%         1    others (1 call)\n"
                "                0          reserved but not requested: cached, between blocks, or "
                "lost to rounding\n");
    tarn_snapshot_destroy(snapshot);
}

static void top_sorts_and_shares_by_its_order(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(calls);
    struct report_asked asked = asked_of(snapshot);

    (void)state;
    asked.options.order = TARN_TOP_BY_COUNT;
    report_says(
        top, &asked,
        "device 0: 6 events\n"
        "     at peak      at end   requested    blocks  lifetime   share  calls\n"
        "    1.21 KiB    1.21 KiB    1.21 KiB         5         2  100.0%  total\n"
        "    1.21 KiB    1.20 KiB    1.21 KiB         4         2   80.0%    m.py:1:main\n"
        "    1.20 KiB    1.20 KiB    1.20 KiB         3         -   60.0%      m.py:2:f\n"
        "       200 B       200 B       200 B         1         -   20.0%        m.py:3:g\n"
        "        30 B        30 B        30 B         1         -   20.0%        m.py:5:b > "
        "(2 more) > m.py:8:e > m.py:9:h\n"
        "      1000 B      1000 B      1000 B         1         -   20.0%        (itself)\n"
        "         4 B         0 B         4 B         1         2   20.0%      m.py:4:k\n"
        "         5 B         5 B         5 B         1         -   20.0%    (no frames)\n");
    tarn_snapshot_destroy(snapshot);
}

/* A call gets a row of its own from just that share on; frames of the interpreter get none. */
static void shares_are_exact(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 100000, 'size': 94001, 'stream': 0, 'frames': ["
                     " {'name': 'f', 'filename': 'm.py', 'line': 1},"
                     " {'name': '_PyEval_EvalFrameDefault', 'filename': 'x.c', 'line': 7}]},"
                     "{'action': 'alloc', 'addr': 200000, 'size': 3000, 'stream': 0, 'frames': ["
                     " {'name': 'g', 'filename': 'm.py', 'line': 2}]},"
                     "{'action': 'alloc', 'addr': 300000, 'size': 2999, 'stream': 0, 'frames': ["
                     " {'name': 'h', 'filename': 'm.py', 'line': 3}]}]]}");
    struct report_asked asked = asked_of(snapshot);

    (void)state;
    asked.options.min_share = 3;
    asked.options.units = TARN_UNITS_BYTES;
    report_says(live, &asked,
                "device 0\n\nmemory: 0 reserved, 100000 requested, at event 2 of 3\n"
                "            bytes   share    blocks  calls\n"
                "           100000  100.0%         3  total\n"
                "            94001   94.0%         1    m.py:1:f\n"
                "             3000    3.0%         1    m.py:2:g\n"
                "             2999    3.0%         1    others (1 call)\n"
                "                0          reserved but not requested: cached, between blocks, or "
                "lost to rounding\n");
    tarn_snapshot_destroy(snapshot);
}

/* A block of which nothing is recorded, and a trace of which nothing is left. */
static void few_stacks_are_a_tree(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [[{'action': 'free_completed', 'addr': 1, "
                     "'size': 8, 'stream': 0}]]}");
    struct report_asked asked = asked_of(snapshot);
    const struct tarn_selection start = {.struct_size = sizeof start, .at = {TARN_AT_START, 0}};

    (void)state;
    report_says(
        live, &asked,
        "device 0\n\nmemory: 0 B reserved, 0 B requested, at event 0 of 1\n"
        "       bytes   share    blocks  calls\n"
        "         0 B    0.0%         0  total\n"
        "         0 B          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n");
    asked.options.selection = &start;
    report_says(
        live, &asked,
        "device 0\n\nmemory: 0 B reserved, 8 B requested, before the first event\n"
        "       bytes   share    blocks  calls\n"
        "         8 B  100.0%         1  total\n"
        "         8 B  100.0%         1    (not recorded)\n"
        "         0 B          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n"
        "         8 B          of the total was allocated before the first event\n");
    tarn_snapshot_destroy(snapshot);
}

static void only_stacks_have_calls(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(calls);
    struct report_asked asked = asked_of(snapshot);
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    asked.options.by = TARN_BY_FILE;
    assert_int_equal(live(&asked, &writer, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "a tree shows stacks: it cannot be grouped by file");
    assert_null(collect.text);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    static const char *const names[] = {"tiny", "multistream"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        struct report_asked asked = asked_of(snapshot);

        for (int json = 0; json < 2; json++) {
            asked.options.format = json ? TARN_REPORT_JSON : TARN_REPORT_TEXT;
            assert_true(report_fails_cleanly(live, &asked) > 10);
            assert_true(report_fails_cleanly(top, &asked) > 10);
            report_is_refused(top, &asked);
        }
        tarn_snapshot_destroy(snapshot);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Counts rows, and ends with one of them. */
struct ending {
    int rows;
    int last; /* 0: none */
};

static bool row_count(void *context, const struct tn_call_tree *tree, const struct tn_call_row *row)
{
    struct ending *ending = context;

    (void)tree;
    assert_int_equal(row->others, row->kind == TARN_CALL_OTHERS ? 1 : 0);
    return ++ending->rows != ending->last;
}

/* Whichever row a visitor ends with, it gets no other. */
static void a_walk_may_end_with_any_row(void **state)
{
    const struct tn_call_limits limits = {.callees = 1}; /* all kinds of rows */
    struct tarn_snapshot *snapshot = report_parse(calls);
    struct tn_query query;
    struct tn_analysis analysis;
    struct tn_call_tree tree;
    struct ending all = {.last = 0};

    (void)state;
    assert_int_equal(tn_query_init(&query, tn_snapshot_model(snapshot), NULL, NULL), TARN_OK);
    assert_int_equal(tn_analysis_init(&analysis, &query, 0, NULL), TARN_OK);
    assert_true(tn_call_tree_init(&tree, &analysis.keys));
    for (size_t i = 0; i < analysis.whole.lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &tn_timeline_lifetimes(&analysis.whole)[i];
        const struct tn_call_sums sums = {.numbers = {lifetime->size, 1}};

        assert_true(tn_call_tree_add(&tree, lifetime->stack, &sums));
    }
    assert_true(tn_call_tree_sort(&tree));
    assert_true(tn_call_tree_walk(&tree, &limits, row_count, &all));
    /* The total, main, f, g, others and itself of f, others of main, and others. */
    assert_int_equal(all.rows, 8);
    for (int last = 1; last <= all.rows; last++) {
        struct ending some = {.last = last};

        assert_false(tn_call_tree_walk(&tree, &limits, row_count, &some));
        assert_int_equal(some.rows, last);
    }
    tn_call_tree_fini(&tree);
    tn_analysis_fini(&analysis);
    tn_query_fini(&query);
    tarn_snapshot_destroy(snapshot);
}

/* Without host memory at any step a call is not there twice: there is no tree instead. */
static void a_tree_without_memory_is_none(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(calls);
    struct report_asked asked = asked_of(snapshot);

    (void)state;
    assert_true(report_fails_or_copes(live, &asked) > 10);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static bool line_count(void *context, const struct tn_fold_line *line)
{
    struct ending *ending = context;

    (void)line;
    return ++ending->rows != ending->last;
}

/* Whichever line of a block a visitor ends with, it gets no other. */
static void a_fold_may_end_with_any_line(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.size = 1024, .requested_size = 600, .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.size = 512, .requested_size = 512, .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.size = 512, .requested_size = 512, .state = TN_BLOCK_ACTIVE_ALLOCATED},
    };
    const struct tn_model_segment segment = {
        .total_size = 2048, .blocks = blocks, .block_count = 3};
    const struct tn_fold_line head = {.side = NULL};
    struct ending all = {.last = 0};

    (void)state;
    assert_true(tn_fold_segment(&segment, &head, &(struct tn_fold_visitor){line_count, &all}));
    assert_int_equal(all.rows, 4); /* the first block has a gap */
    for (int last = 1; last <= all.rows; last++) {
        struct ending some = {.last = last};

        assert_false(
            tn_fold_segment(&segment, &head, &(struct tn_fold_visitor){line_count, &some}));
        assert_int_equal(some.rows, last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_chains_and_what_is_left),
        cmocka_unit_test(top_sorts_and_shares_by_its_order),
        cmocka_unit_test(shares_are_exact),
        cmocka_unit_test(few_stacks_are_a_tree),
        cmocka_unit_test(a_walk_may_end_with_any_row),
        cmocka_unit_test(only_stacks_have_calls),
        cmocka_unit_test(a_fold_may_end_with_any_line),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(a_tree_without_memory_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
