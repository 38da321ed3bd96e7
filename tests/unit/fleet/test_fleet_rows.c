/* SPDX-License-Identifier: MIT */
/* What a fleet's ranks have in common, from lines as a summary has them. */
#include "support/test.h"

#include "support/collect.h"

#include "fleet/fleet_rows.h"
#include "tarn/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a test says of a rank; zeros are usual. */
struct rank {
    const char *labels; /* "\"a\":\"1\",": beside file and device */
    const char *file;
    int device;
    uint64_t requested;
    uint64_t reserved;
    int64_t per_step;
    const char *steps; /* "[1,0,0,0,0,0]" */
    const char *held;  /* rows */
    uint64_t elsewhere;
    bool is_partial;
};

static void rank_add(struct tarn_fleet *fleet, const struct rank *rank)
{
    char line[2048];
    const int length =
        snprintf(line, sizeof line,
                 "{\"rank\":{\"labels\":{%s\"device\":\"%d\",\"file\":\"%s\"},\"by\":\"stack\","
                 "\"partial\":%s,\"at\":{\"requested\":%" PRIu64 ",\"left_out\":0},"
                 "\"held\":{\"rows\":[%s],\"others\":[1,%" PRIu64 ",0]},"
                 "\"reserved_peak\":{\"reserved\":%" PRIu64 "},\"counters\":{\"ooms\":0},"
                 "\"steps\":{\"count\":1,\"rows\":[%s]},"
                 "\"growth\":{\"by\":\"%s\",\"per_step\":%" PRId64 ",\"rows\":[]}}}",
                 rank->labels ? rank->labels : "", rank->device, rank->file,
                 rank->is_partial ? "true" : "false", rank->requested, rank->held ? rank->held : "",
                 rank->held ? rank->elsewhere : rank->requested, rank->reserved,
                 rank->steps ? rank->steps : "", rank->steps ? "steps" : "parts", rank->per_step);

    assert_true(length > 0 && (size_t)length < sizeof line);
    assert_true(tn_fleet_add_rank(fleet, line, (size_t)length));
}

static struct tarn_fleet *fleet_make(void)
{
    struct tarn_fleet *fleet = NULL;

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    return fleet;
}

static void rows_make(struct tn_fleet_rows *rows, struct tarn_fleet *fleet,
                      const struct tarn_fleet_options *how)
{
    struct tarn_error error;

    if (tn_fleet_rows_make(rows, fleet, NULL, how, &error)) {
        fail_msg("%s", error.text);
    }
}

static void rows_end(struct tn_fleet_rows *rows, struct tarn_fleet *fleet)
{
    tn_fleet_rows_fini(rows);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- labels ---- */

static void expect_label(const struct tn_fleet_rows *rows, size_t row, const char *wanted)
{
    const struct tn_label_row *label = (const struct tn_label_row *)rows->labels.items + row;
    char text[128];

    assert_true(row < rows->labels.count);
    (void)snprintf(text, sizeof text, "%s=%s %d/%d %d/%d", label->key, label->value,
                   (int)label->outliers, (int)label->ranks, (int)label->other_outliers,
                   (int)label->other_ranks);
    assert_string_equal(text, wanted);
}

/* Of 80 ranks hosts 3 and 7, of four each, stand out. Labels that only these have come first, then
 * those that few others have as well. A half of all, few of which stand out, explains nothing. */
static void labels_are_in_the_order_of_what_they_explain(void **state)
{
    static const char *const wanted[] = {
        "zone=x 8/8 0/72",  /* all of those that stand out, and nobody else */
        "solo=1 2/2 0/72",  /* fewer of them */
        "solo2=1 2/2 0/72", /* by the name */
        "rail=x 8/10 0/70", /* and two others */
        "host=3 4/4 4/76",  /* there are some elsewhere */
        "host=7 4/4 4/76",  /* by the value */
    };
    struct tarn_fleet *fleet = fleet_make();
    struct tn_fleet_rows rows;

    (void)state;
    for (int i = 0; i < 80; i++) {
        const bool is_bad = i / 4 == 3 || i / 4 == 7;
        char labels[256];
        char file[16];
        char solo[64] = "";

        if (!is_bad || i % 4 == 0) { /* the others lack the label */
            (void)snprintf(solo, sizeof solo, "\"solo\":\"%d\",\"solo2\":\"%d\",", is_bad, is_bad);
        }
        (void)snprintf(
            labels, sizeof labels,
            "\"half\":\"%d\",\"host\":\"%d\",\"zone\":\"%c\",\"rail\":\"%c\",\"kind\":\"a\",%s",
            i / 40, i / 4, is_bad ? 'x' : 'y', is_bad || i < 2 ? 'x' : 'y', solo);
        (void)snprintf(file, sizeof file, "f%02d", i);
        rank_add(fleet, &(struct rank){.file = file,
                                       .labels = labels,
                                       .requested = is_bad ? 900000 : 1000 + (uint64_t)i % 7});
    }
    rows_make(&rows, fleet, NULL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        expect_label(&rows, i, wanted[i]);
    }
    assert_int_equal(rows.labels.count, sizeof wanted / sizeof *wanted);
    rows_end(&rows, fleet);
}

/* One of two that stands out says nothing where others stand out as often elsewhere. */
static void labels_that_are_as_bad_elsewhere_explain_nothing(void **state)
{
    struct tarn_fleet *fleet = fleet_make();
    struct tn_fleet_rows rows;

    (void)state;
    for (int i = 0; i < 40; i++) {
        char labels[64];
        char file[16];

        (void)snprintf(labels, sizeof labels, "\"pair\":\"%d\",", i / 2);
        (void)snprintf(file, sizeof file, "f%02d", i);
        rank_add(fleet, &(struct rank){
                            .file = file,
                            .labels = labels,
                            .requested = i % 8 == 0 || i == 39 ? 900000 : 1000 + (uint64_t)i % 7});
    }
    rows_make(&rows, fleet, NULL);
    assert_int_equal(rows.result->outlier_count > 0, true);
    assert_int_equal(rows.labels.count, 0);
    rows_end(&rows, fleet);
}

/* ---- numbers of ranks ---- */

static void numbers_that_are_missing_are_counted(void **state)
{
    static const char *const numbers[] = {"5", "0", "5", "2000", "2005", "2005", "-7", "x", "7x"};
    struct tarn_fleet *fleet = fleet_make();
    struct tn_fleet_rows rows;

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char labels[32];
        char file[16];

        (void)snprintf(labels, sizeof labels, "\"rank\":\"%s\",", numbers[i]);
        (void)snprintf(file, sizeof file, "f%zu", i);
        rank_add(fleet, &(struct rank){.file = file, .labels = labels, .requested = 1000});
    }
    rows_make(&rows, fleet, NULL);
    const uint64_t *missing = rows.missing.items;

    assert_int_equal(rows.highest_rank, 2005);
    assert_int_equal(rows.missing_count, 2006 - 4); /* 0, 5, 2000 and 2005 are there */
    assert_int_equal(rows.missing.count, 100);
    assert_int_equal(missing[0], 1);
    assert_int_equal(missing[4], 6);
    assert_int_equal(missing[99], 101);
    rows_end(&rows, fleet);
}

/* ---- growth ---- */

static void growth_is_sorted(void **state)
{
    static const struct rank ranks[] = {
        {.file = "a", .per_step = 10, .steps = "[1,5,5,0,0,0],[2,6,15,0,0,0]"},
        {.file = "b", .per_step = 30, .steps = "[1,5,5,0,0,0],[2,6,35,0,0,0]"},
        {.file = "c", .per_step = 20, .steps = "[1,5,5,0,0,0],[2,6,25,0,0,0]"},
        {.file = "c", .device = 1, .per_step = 20, .steps = "[1,5,5,0,0,0],[2,6,25,0,0,0]"},
        {.file = "d", .per_step = 40, .steps = "[1,5,5,0,0,0]"}, /* one step does not grow */
        {.file = "e", .per_step = 50},                           /* nor do parts */
        {.file = "f", .per_step = -5, .steps = "[1,5,5,0,0,0],[2,6,1,0,0,0]"},
        {.file = "g", .per_step = 5, .steps = "[1,5,5,0,0,0],[2,6,10,0,0,0]"},
    };
    static const char files[] = "bccag";
    const struct tarn_fleet_options how = {.struct_size = sizeof how, .since_step = 2};
    struct tarn_fleet *fleet = fleet_make();
    struct tn_fleet_rows rows;

    (void)state;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        rank_add(fleet, &ranks[i]);
    }
    rows_make(&rows, fleet, NULL);
    const struct tn_growth_row *growth = rows.growth.items;

    assert_int_equal(rows.growth.count, strlen(files));
    for (size_t i = 0; i < strlen(files); i++) {
        assert_int_equal(growth[i].file[0], files[i]);
        assert_int_equal(growth[i].since, 1);
        assert_int_equal(growth[i].change, growth[i].per_step);
    }
    assert_int_equal(growth[1].device, 0);
    assert_int_equal(growth[2].device, 1);
    tn_fleet_rows_fini(&rows);
    rows_make(&rows, fleet, &how); /* since the last step: some do not have it */
    const struct tn_fleet_member *members = rows.members.items;

    for (size_t i = 0; i < rows.members.count; i++) {
        const bool has = members[i].has_steps;

        assert_int_equal(members[i].since, has ? 2 : 0);
        assert_int_equal(members[i].change, 0);
    }
    rows_end(&rows, fleet);
}

/* ---- extremes ---- */

/* Two devices of one file are two ranks. */
static void extremes_are_by_file_and_device(void **state)
{
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    struct tarn_fleet *fleet = fleet_make();
    size_t count = 0;

    (void)state;
    rank_add(fleet, &(struct rank){.file = "a", .device = 0, .requested = 900, .reserved = 1000});
    rank_add(fleet, &(struct rank){.file = "a", .device = 1, .requested = 500, .reserved = 5000});
    rank_add(fleet, &(struct rank){.file = "b", .device = 1, .requested = 500, .reserved = 800});
    rank_add(fleet, &(struct rank){.file = "c", .device = 0, .requested = 500, .reserved = 900});
    rank_add(fleet, &(struct rank){.file = "c", .device = 1, .requested = 501, .reserved = 700});
    assert_int_equal(tarn_fleet_find_extremes(fleet, extremes, TARN_FLEET_EXTREMES, &count, NULL),
                     TARN_OK);
    assert_int_equal(count, 3);
    assert_string_equal(extremes[0].why, "most requested");
    assert_string_equal(extremes[0].file, "a");
    assert_int_equal(extremes[0].device, 0);
    assert_string_equal(extremes[1].why, "most reserved"); /* and of its group */
    assert_string_equal(extremes[1].file, "a");
    assert_int_equal(extremes[1].device, 1);
    assert_string_equal(extremes[2].why, "nearest to the median");
    tarn_fleet_destroy(fleet);
}

/* A group none of which is extreme otherwise: the last of its ranks reserved most. */
static void a_group_is_shown_by_who_reserved_most(void **state)
{
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    struct tarn_fleet *fleet = fleet_make();
    size_t count = 0;

    (void)state;
    rank_add(fleet, &(struct rank){.file = "a", .requested = 9000, .reserved = 90000});
    for (int i = 0; i < 4; i++) {
        const char file[2] = {(char)('k' + i), '\0'};

        rank_add(fleet,
                 &(struct rank){.file = file, .requested = 100, .reserved = 500 + (uint64_t)i});
    }
    for (int i = 0; i < 5; i++) {
        const char file[2] = {(char)('p' + i), '\0'};

        rank_add(fleet, &(struct rank){.file = file, .requested = 1000, .reserved = 1000});
    }
    assert_int_equal(tarn_fleet_find_extremes(fleet, extremes, TARN_FLEET_EXTREMES, &count, NULL),
                     TARN_OK);
    assert_true(count >= 3);
    assert_string_equal(extremes[count - 1].file, "n");
    assert_string_equal(extremes[count - 1].why, "most reserved of its group of like ranks");
    tarn_fleet_destroy(fleet);
}

/* ---- hostile lines ---- */

static bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The ends of two texts of JSON that begin differently and have one hash. */
static bool ends_make(uint64_t difference, char one[8], char other[8])
{
    char xored[8];

    memcpy(xored, &difference, sizeof xored);
    one[7] = '"';
    other[7] = '"';
    for (int i = 0; i < 7; i++) {
        one[i] = 0;
        for (char c = '0'; c <= 'z' && !one[i]; c++) {
            if (is_safe(c) && is_safe((char)(c ^ xored[i]))) {
                one[i] = c;
                other[i] = (char)(c ^ xored[i]);
            }
        }
        if (!one[i]) {
            return false;
        }
    }
    return xored[7] == 0;
}

static bool twins_make(char one[17], char other[17])
{
    (void)snprintf(one, 17, "\"%07x", 0U);
    const uint64_t hash = tn_stable_hash(TN_STABLE_HASH_BEGIN, one, 8);

    for (unsigned i = 1; i < 1U << 28; i++) {
        (void)snprintf(other, 17, "\"%07x", i);
        if (ends_make(hash ^ tn_stable_hash(TN_STABLE_HASH_BEGIN, other, 8), one + 8, other + 8)) {
            one[16] = '\0';
            other[16] = '\0';
            return true;
        }
    }
    return false;
}

static void stack_add(struct tarn_fleet *fleet, const char *frames)
{
    char line[128];
    const int length = snprintf(line, sizeof line, "%s%016" PRIx64 "\",\"frames\":%s}",
                                TN_SUMMARY_STACK, tn_stack_line_id(frames, strlen(frames)), frames);

    assert_true(tn_fleet_add_stack(fleet, line, (size_t)length));
}

/* Somebody can make two stacks that have one number. The first one names it, whatever the order in
 * which they came; and what has bytes but no blocks counts as well. */
static void of_two_stacks_with_one_number_the_first_counts(void **state)
{
    char one[17] = "";
    char other[17] = "";
    char held[64];
    char *texts[2];

    (void)state;
    assert_true(twins_make(one, other));
    assert_int_equal(tn_stack_line_id(one, 16), tn_stack_line_id(other, 16));
    assert_string_not_equal(one, other);
    (void)snprintf(held, sizeof held, "[\"%016" PRIx64 "\",4000,2]", tn_stack_line_id(one, 16));
    for (int turn = 0; turn < 2; turn++) {
        struct tarn_fleet *fleet = fleet_make();
        struct test_collect report = {.text = NULL};
        const struct tarn_writer writer = {test_collect_write, &report};
        const struct tarn_report_options options = {.struct_size = sizeof options,
                                                    .format = TARN_REPORT_JSON};

        stack_add(fleet, turn ? one : other);
        stack_add(fleet, turn ? other : one);
        assert_int_equal(fleet->stacks.count, 2);
        for (int i = 0; i < 4; i++) {
            const char file[2] = {(char)('a' + i), '\0'};

            rank_add(fleet, &(struct rank){.file = file, .requested = 1000 + (uint64_t)i});
        }
        rank_add(fleet,
                 &(struct rank){.file = "z", .requested = 4100, .held = held, .elsewhere = 100});
        assert_int_equal(tarn_fleet_report(fleet, &options, NULL, &writer, NULL), TARN_OK);
        texts[turn] = report.text;
        tarn_fleet_destroy(fleet);
    }
    one[15] = '\0'; /* without its quotes */
    other[15] = '\0';
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], strcmp(one, other) < 0 ? one + 1 : other + 1));
    assert_null(strstr(texts[0], strcmp(one, other) < 0 ? other + 1 : one + 1));
    assert_non_null(strstr(texts[0], "(smaller ones)"));
    free(texts[0]);
    free(texts[1]);
}

static void no_more_than_a_hundred_partial_ranks_are_listed(void **state)
{
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .format = TARN_REPORT_JSON};
    struct test_collect report = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &report};
    struct tarn_fleet *fleet = fleet_make();
    size_t listed = 0;

    (void)state;
    for (int i = 0; i < 103; i++) {
        char file[16];

        (void)snprintf(file, sizeof file, "f%03d", i);
        rank_add(fleet, &(struct rank){.file = file, .requested = 1000, .is_partial = i != 1});
    }
    assert_int_equal(tarn_fleet_report(fleet, &options, NULL, &writer, NULL), TARN_OK);
    const char *partial = strstr(report.text, "\"partial\": [");

    assert_non_null(strstr(report.text, "\"partial_ranks\": 102"));
    assert_non_null(partial);
    const char *end = strchr(partial, ']');

    for (const char *at = partial; (at = strstr(at, "\"file\"")) && at < end; at++) {
        listed++;
    }
    assert_int_equal(listed, 100);
    free(report.text);
    tarn_fleet_destroy(fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_in_the_order_of_what_they_explain),
        cmocka_unit_test(labels_that_are_as_bad_elsewhere_explain_nothing),
        cmocka_unit_test(numbers_that_are_missing_are_counted),
        cmocka_unit_test(growth_is_sorted),
        cmocka_unit_test(extremes_are_by_file_and_device),
        cmocka_unit_test(a_group_is_shown_by_who_reserved_most),
        cmocka_unit_test(of_two_stacks_with_one_number_the_first_counts),
        cmocka_unit_test(no_more_than_a_hundred_partial_ranks_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
