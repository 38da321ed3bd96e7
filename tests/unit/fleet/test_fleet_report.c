/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "support/collect.h"

#include "tarn/fleet.h"
#include "tarn/host.h"

enum {
    RANKS_MAX = 8
};

struct asked {
    struct tarn_report_options options;
    struct tarn_snapshot *snapshots[RANKS_MAX];
    int count;
};

static enum tarn_status ranks_add(struct tarn_fleet *fleet, const struct asked *asked,
                                  struct tarn_error *error)
{
    const struct tarn_summary_options how = {.struct_size = sizeof how, .report = &asked->options};
    enum tarn_status status = TARN_OK;

    for (int i = 0; status == TARN_OK && i < asked->count; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "rank%d", i);
        status = tarn_fleet_add(fleet, asked->snapshots[i], name, &how, error);
    }
    return status;
}

static enum tarn_status ranks(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_fleet *fleet;
    enum tarn_status status = tarn_fleet_create(&fleet, error);

    status = status ? status : ranks_add(fleet, asked, error);
    if (status == TARN_OK) {
        status = tarn_fleet_report(fleet, &asked->options, NULL, writer, error);
    }
    tarn_fleet_destroy(fleet);
    return status;
}

/* A block of `a`, and one of `b` if it has a size. */
static struct tarn_snapshot *run(int a, int b)
{
    char json[1024];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
                   "{'action': 'alloc', 'addr': 99000, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'b', 'filename': 'b.py', 'line': 2}]}]]}",
                   a, b);
    return report_parse(json);
}

static struct asked asked_of(int count)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = count};

    for (int i = 0; i < count; i++) {
        asked.snapshots[i] = i == 2 ? run(1003, 5000) : run(1000 + i, 1);
    }
    return asked;
}

static void asked_close(struct asked *asked)
{
    for (int i = 0; i < asked->count; i++) {
        tarn_snapshot_destroy(asked->snapshots[i]);
    }
}

static void the_one_that_stands_out(void **state)
{
    struct asked asked = asked_of(5);
    char *text;

    (void)state;
    asked.options.rows = 2;
    text = report_text(ranks, &asked);
    assert_non_null(strstr(text, "5 ranks\nrequested: min 1001 B, median 1004 B, max 5.86 KiB\n"));
    assert_non_null(strstr(text, "rank2, device 0  outlier\n"));
    assert_non_null(strstr(text, "    2.94 KiB         0 B            others (3 ranks)\n"));
    assert_non_null(strstr(text, "rank2, device 0 (after) against rank3, device 0 (before)\n"));
    assert_non_null(strstr(text, "    +4.88 KiB         1 B    4.88 KiB        +0  grew    "
                                 "b.py:2:b\n"));
    free(text);
    asked_close(&asked);
}

#define FRAME(file, line) "{'name': 'f', 'filename': '" file "', 'line': " line "}"
#define ALIKE(line)                                                                                \
    "'frames': [" FRAME("m.py", "1") ", " FRAME("a.py", "1") ", " FRAME("b.py", "1") ", " FRAME(   \
        "c.py", "1") ", " FRAME("d.py", line) ", " FRAME("main.py", "1") "]"

/* Two stacks that differ in a frame that labels leave out. */
static struct tarn_snapshot *run_alike(int a, int b)
{
    char json[2048];

    (void)snprintf(
        json, sizeof json,
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, " ALIKE(
            "5") "},"
                 "{'action': 'alloc', 'addr': 99000, 'size': %d, 'stream': 0, " ALIKE("6") "}]]}",
        a, b);
    return report_parse(json);
}

static void stacks_that_look_alike_differ(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = 5};
    char *text;

    (void)state;
    for (int i = 0; i < asked.count; i++) {
        asked.snapshots[i] = i == 2 ? run_alike(9000, 7000) : run_alike(1000 + i, 1000);
    }
    text = report_text(ranks, &asked);
    asked_close(&asked);
    assert_non_null(strstr(text, "d.py:5:f"));
    assert_non_null(strstr(text, "d.py:6:f"));
    free(text);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void alike_or_too_few(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = 3};

    (void)state;
    for (int i = 0; i < 3; i++) {
        asked.snapshots[i] = run(1000, 1);
    }
    for (asked.count = 3; asked.count > 1; asked.count--) {
        char *text = report_text(ranks, &asked);

        assert_null(strstr(text, "outlier\n"));
        assert_non_null(strstr(text, asked.count < 3 ? "too few ranks" : "no rank stands out"));
        free(text);
    }
    asked.count = 3;
    asked_close(&asked);
}

/* Rank `i`, from its snapshot or from a file of its summary. */
static void mixed_add(struct tarn_fleet *fleet, const struct asked *asked, int i, bool by_summary)
{
    const struct tarn_summary_options how = {.struct_size = sizeof how, .report = &asked->options};
    struct test_collect file = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &file};
    struct tarn_fleet *to = fleet;
    char name[16];

    (void)snprintf(name, sizeof name, "rank%d", i);
    if (by_summary) {
        assert_int_equal(tarn_fleet_create(&to, NULL), TARN_OK);
    }
    assert_int_equal(tarn_fleet_add(to, asked->snapshots[i], name, &how, NULL), TARN_OK);
    if (by_summary) {
        assert_int_equal(tarn_fleet_write(to, &writer, NULL), TARN_OK);
        assert_int_equal(tarn_fleet_load_memory(fleet, file.text, strlen(file.text), NULL, NULL),
                         TARN_OK);
        tarn_fleet_destroy(to);
        free(file.text);
    }
}

/* A report on snapshots, on their summaries and on some of each has the same bytes. */
static void snapshots_and_summaries_mix(void **state)
{
    struct asked asked = asked_of(6);
    char *wanted = report_text(ranks, &asked);

    (void)state;
    for (int summaries = 1; summaries < 1 << 6; summaries += 9) {
        struct test_collect got = {.text = NULL};
        const struct tarn_writer writer = {.write = test_collect_write, .context = &got};
        struct tarn_fleet *fleet;

        assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
        for (int i = 0; i < asked.count; i++) {
            mixed_add(fleet, &asked, i, (summaries >> i & 1) != 0);
        }
        assert_int_equal(tarn_fleet_report(fleet, &asked.options, NULL, &writer, NULL), TARN_OK);
        assert_string_equal(got.text, wanted);
        tarn_fleet_destroy(fleet);
        free(got.text);
    }
    free(wanted);
    asked_close(&asked);
}

/* ---- what is said of the fleet ---- */

/* A rank under the name, of one block; by what its options say. */
static void named_add(struct tarn_fleet *fleet, const char *name, int size,
                      const struct tarn_report_options *options)
{
    const struct tarn_summary_options how = {.struct_size = sizeof how, .report = options};
    struct tarn_snapshot *snapshot = run(size, 1);
    struct tarn_error error;

    if (tarn_fleet_add(fleet, snapshot, name, &how, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_snapshot_destroy(snapshot);
}

static char *fleet_text(struct tarn_fleet *fleet, enum tarn_report_format format,
                        const struct tarn_fleet_options *how)
{
    const struct tarn_report_options options = {.struct_size = sizeof options, .format = format};
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &collect};

    assert_int_equal(tarn_fleet_report(fleet, &options, how, &writer, NULL), TARN_OK);
    return collect.text;
}

/* Each text is in the report. */
static void fleet_says(struct tarn_fleet *fleet, enum tarn_report_format format,
                       const struct tarn_fleet_options *how, const char *const *wanted)
{
    char *text = fleet_text(fleet, format, how);

    for (; *wanted; wanted++) {
        if (!strstr(text, *wanted)) {
            fail_msg("\"%s\" is not in %s", *wanted, text);
        }
    }
    free(text);
}

static void ranks_that_are_missing_are_named(void **state)
{
    static const char *const few[] = {"missing of ranks 0 to 5: 1, 3, 4\n", NULL};
    static const char *const many[] = {"missing of ranks 0 to 2000: 1, 3, 4, 6, ", " and 19", NULL};
    struct tarn_fleet *fleet;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    named_add(fleet, "rank5", 1000, NULL);
    named_add(fleet, "rank0", 1001, NULL);
    named_add(fleet, "rank2", 1002, NULL);
    named_add(fleet, "rank2.json", 1003, NULL); /* twice is once */
    named_add(fleet, "rank=x", 1004, NULL);     /* these have no number */
    named_add(fleet, "rank=1x", 1005, NULL);
    named_add(fleet, "rank=1234567890", 1006, NULL);
    named_add(fleet, "rank=:", 1006, NULL);
    named_add(fleet, "alone", 1007, NULL);
    fleet_says(fleet, TARN_REPORT_TEXT, NULL, few);
    named_add(fleet, "rank2000", 1000, NULL);
    fleet_says(fleet, TARN_REPORT_TEXT, NULL, many);
    char *json = fleet_text(fleet, TARN_REPORT_JSON, NULL);
    const char *numbers = strstr(json, "\"missing\"");
    int count = 1;

    assert_non_null(strstr(json, "1997"));
    assert_non_null(numbers);
    for (const char *at = numbers; *at != ']'; at++) {
        count += *at == ',';
    }
    assert_int_equal(count, 100); /* as many as are listed */
    free(json);
    tarn_fleet_destroy(fleet);
}

/* A recording without its end. */
static struct tarn_snapshot *run_cut(void)
{
    static char bytes[1 << 20];
    struct tarn_snapshot *snapshot;
    FILE *file = fopen(TEST_DATA_DIR "/snapshots/gpt2_varlen.pickle.gz", "rb");

    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);

    (void)fclose(file);
    assert_int_equal(tarn_snapshot_load_memory(bytes, size / 2, NULL, &snapshot, NULL),
                     TARN_ERR_TRUNCATED);
    assert_non_null(snapshot);
    return snapshot;
}

static void ranks_that_were_cut_off_are_named(void **state)
{
    static const char *const one[] = {
        "\n1 rank of snapshots that were cut off:\n  cut0, device 0\n", NULL};
    static const char *const many[] = {"\n12 ranks of snapshots that were cut off:\n",
                                       "  and 2 more\n", NULL};
    static const char *const json[] = {"\"partial_ranks\": 12", "\"file\": \"cut11\"", NULL};
    struct tarn_snapshot *cut = run_cut();
    struct tarn_fleet *fleet;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    named_add(fleet, "rank5", 1000, NULL);
    for (int i = 0; i < 12; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "cut%d", i);
        assert_int_equal(tarn_fleet_add(fleet, cut, name, NULL, NULL), TARN_OK);
        if (i == 0) {
            fleet_says(fleet, TARN_REPORT_TEXT, NULL, one);
        }
    }
    fleet_says(fleet, TARN_REPORT_TEXT, NULL, many);
    fleet_says(fleet, TARN_REPORT_JSON, NULL, json);
    tarn_fleet_destroy(fleet);
    tarn_snapshot_destroy(cut);
}

static void the_same_rank_twice_is_said(void **state)
{
    static const char *const said[] = {"counted again: the same summary is there more than once",
                                       NULL};
    struct asked asked = asked_of(3);
    struct tarn_fleet *fleet;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    for (int i = 0; i < 3; i++) {
        mixed_add(fleet, &asked, i, true);
    }
    mixed_add(fleet, &asked, 1, true);
    assert_int_equal(tarn_fleet_rank_count(fleet), 4);
    fleet_says(fleet, TARN_REPORT_TEXT, NULL, said);
    tarn_fleet_destroy(fleet);
    asked_close(&asked);
}

static void ranks_grouped_in_different_ways_do_not_mix(void **state)
{
    const struct tarn_report_options by_file = {.struct_size = sizeof by_file, .by = TARN_BY_FILE};
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &collect};
    struct tarn_error error;
    struct tarn_fleet *fleet;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    named_add(fleet, "rank0", 1000, NULL);
    named_add(fleet, "rank1", 1000, &by_file);
    assert_int_equal(tarn_fleet_report(fleet, NULL, NULL, &writer, &error), TARN_ERR_MISMATCH);
    assert_string_equal(error.text, "ranks are grouped by stack and by file");
    assert_null(collect.text);
    tarn_fleet_destroy(fleet);
}

/* What only outliers have in common, and what nearly all others have as well. */
static void labels_that_explain_are_shown(void **state)
{
    struct tarn_fleet *fleet;
    char *text;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    for (int i = 0; i < 40; i++) {
        const bool is_bad = i / 4 == 3;
        char name[64];

        (void)snprintf(name, sizeof name, "host%d,zone=%c,kind=a,rank%d", i / 4, is_bad ? 'x' : 'y',
                       i);
        named_add(fleet, name, is_bad ? 900000 + i : 1000 + i % 3, NULL);
    }
    text = fleet_text(fleet, TARN_REPORT_JSONL, NULL);
    assert_non_null(strstr(text, "\"zone\""));
    free(text);
    text = fleet_text(fleet, TARN_REPORT_TEXT, NULL);
    assert_non_null(strstr(text, "zone"));
    assert_non_null(strstr(text, "host"));
    assert_null(strstr(text, "kind=y"));
    free(text);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void nothing_and_nonsense(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}};
    struct tarn_error error;

    (void)state;
    assert_int_equal(ranks(&asked, NULL, &error), TARN_ERR_STATE);
    asked.count = 1;
    asked.snapshots[0] = report_load("tiny.before");
    assert_int_equal(ranks(&asked, NULL, &error), TARN_ERR_NOT_SUPPORTED);
    asked_close(&asked);
}

static void failures_leave_nothing(void **state)
{
    struct asked asked = asked_of(4);

    (void)state;
    assert_true(report_fails_cleanly(ranks, &asked) >= 20);
    report_is_refused(ranks, &asked);
    asked_close(&asked);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- extremes ---- */

static struct tarn_fleet *fleet_of(const struct asked *asked)
{
    struct tarn_fleet *fleet;

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    assert_int_equal(ranks_add(fleet, asked, NULL), TARN_OK);
    return fleet;
}

static void extremes_stand_for_the_fleet(void **state)
{
    struct asked asked = asked_of(6);
    struct tarn_fleet *fleet = fleet_of(&asked);
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    size_t count;

    (void)state;
    assert_int_equal(tarn_fleet_find_extremes(fleet, extremes, TARN_FLEET_EXTREMES, &count, NULL),
                     TARN_OK);
    assert_int_equal(count, 3); /* nothing is reserved, nothing failed */
    assert_string_equal(extremes[0].file, "rank2");
    assert_string_equal(extremes[0].why, "most requested");
    assert_string_equal(extremes[1].why, "nearest to the median");
    assert_string_equal(extremes[2].why, "most reserved of its group of like ranks");
    assert_string_not_equal(extremes[1].file, extremes[2].file);
    assert_int_equal(tarn_fleet_find_extremes(fleet, extremes, 1, &count, NULL), TARN_OK);
    assert_int_equal(count, 1);
    tarn_fleet_destroy(fleet);
    asked_close(&asked);
}

static void no_extremes_of_nothing(void **state)
{
    struct tarn_fleet_extreme extremes[1];
    struct tarn_fleet *fleet;
    struct tarn_error error;
    size_t count = 7;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_find_extremes(fleet, extremes, 1, &count, &error), TARN_ERR_STATE);
    assert_int_equal(count, 0);
    tarn_fleet_destroy(fleet);
}

static void extremes_without_host_memory(void **state)
{
    struct asked asked = asked_of(4);
    struct tarn_fleet *fleet = fleet_of(&asked);
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    size_t count;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        status = tarn_fleet_find_extremes(fleet, extremes, TARN_FLEET_EXTREMES, &count, NULL);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || (status == TARN_ERR_HOST_MEMORY && count == 0));
    }
    tarn_fleet_destroy(fleet);
    asked_close(&asked);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_stands_out),
        cmocka_unit_test(stacks_that_look_alike_differ),
        cmocka_unit_test(alike_or_too_few),
        cmocka_unit_test(snapshots_and_summaries_mix),
        cmocka_unit_test(ranks_that_are_missing_are_named),
        cmocka_unit_test(ranks_that_were_cut_off_are_named),
        cmocka_unit_test(the_same_rank_twice_is_said),
        cmocka_unit_test(ranks_grouped_in_different_ways_do_not_mix),
        cmocka_unit_test(labels_that_explain_are_shown),
        cmocka_unit_test(nothing_and_nonsense),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(extremes_stand_for_the_fleet),
        cmocka_unit_test(no_extremes_of_nothing),
        cmocka_unit_test(extremes_without_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
