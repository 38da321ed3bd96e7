/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/collect.h"
#include "support/temp.h"

#include "fleet/fleet.h"
#include "tarn/host.h"
#include "tarn/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

enum {
    PARTS = 14
};

/* A rank with a block of `size` bytes and, if `planted`, one more from a stack of its own. */
static struct tarn_snapshot *snapshot_make(uint64_t size, uint64_t planted)
{
    static const char form[] =
        "{\"segments\":[],\"device_traces\":[["
        "{\"action\":\"segment_alloc\",\"addr\":16777216,\"size\":1073741824,\"stream\":0},"
        "{\"action\":\"alloc\",\"addr\":16777216,\"size\":%" PRIu64 ",\"stream\":0,"
        "\"frames\":[{\"filename\":\"m.py\",\"line\":%d,\"name\":\"layer\"}]},"
        "{\"action\":\"alloc\",\"addr\":536870912,\"size\":%" PRIu64 ",\"stream\":0,"
        "\"frames\":[{\"filename\":\"m.py\",\"line\":%d,\"name\":\"%s\"}]}]]}";
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};
    char text[1024];
    const int length = snprintf(text, sizeof text, form, size, (int)(size % 5) + 1,
                                planted ? planted : 512, 9, planted ? "planted" : "loss");

    if (tarn_snapshot_load_memory(text, (size_t)length, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static struct tarn_fleet *fleet_make(void)
{
    struct tarn_fleet *fleet = NULL;

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    return fleet;
}

static void rank_add(struct tarn_fleet *fleet, int rank, uint64_t size, uint64_t planted)
{
    struct tarn_snapshot *snapshot = snapshot_make(size, planted);
    struct tarn_error error = {.text = ""};
    char name[64];

    (void)snprintf(name, sizeof name, "host%d/rank%d.json", rank / 4, rank);
    if (tarn_fleet_add(fleet, snapshot, name, NULL, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_snapshot_destroy(snapshot);
}

static struct test_collect written(struct tarn_fleet *fleet)
{
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &collect};

    assert_int_equal(tarn_fleet_write(fleet, &writer, NULL), TARN_OK);
    return collect;
}

static enum tarn_status load(struct tarn_fleet *fleet, const char *text, size_t size,
                             struct tarn_error *error)
{
    return tarn_fleet_load_memory(fleet, text, size, NULL, error);
}

/* A file of one rank. */
static struct test_collect part_make(int rank)
{
    struct tarn_fleet *fleet = fleet_make();

    rank_add(fleet, rank, 100 * MIB + (uint64_t)rank * 512, 0);
    struct test_collect part = written(fleet);

    tarn_fleet_destroy(fleet);
    return part;
}

static void what_is_written_is_read(void **state)
{
    struct test_collect file = part_make(3);
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    assert_int_equal(load(fleet, file.text, file.size, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_rank_count(fleet), 1);
    assert_non_null(strstr(file.text, "\"rank\":\"3\""));
    assert_non_null(strstr(file.text, "\"host\":\"0\""));
    struct test_collect again = written(fleet);

    assert_string_equal(again.text, file.text);
    free(again.text);
    free(file.text);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- merging ---- */

static uint64_t drawn = 12345;

static size_t draw(size_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(drawn >> 33) % below;
}

static struct test_collect merged(struct test_collect left, struct test_collect right)
{
    struct tarn_fleet *fleet = fleet_make();

    assert_int_equal(load(fleet, left.text, left.size, NULL), TARN_OK);
    assert_int_equal(load(fleet, right.text, right.size, NULL), TARN_OK);
    struct test_collect both = written(fleet);

    tarn_fleet_destroy(fleet);
    free(left.text);
    free(right.text);
    return both;
}

/* Joins two of them, drawn, until one is left. */
static struct test_collect merged_somehow(void)
{
    struct test_collect parts[PARTS];

    for (int i = 0; i < PARTS; i++) {
        parts[i] = part_make(i);
    }
    for (size_t count = PARTS; count > 1; count--) {
        const size_t one = draw(count);
        const struct test_collect left = parts[one];

        parts[one] = parts[count - 1];
        const size_t other = draw(count - 1);

        parts[other] = merged(left, parts[other]);
    }
    return parts[0];
}

static void any_order_and_tree_of_merges_gives_equal_bytes(void **state)
{
    struct tarn_fleet *all = fleet_make();

    (void)state;
    for (int i = 0; i < PARTS; i++) {
        rank_add(all, i, 100 * MIB + (uint64_t)i * 512, 0);
    }
    struct test_collect wanted = written(all);

    assert_int_equal(tarn_fleet_rank_count(all), PARTS);
    for (int turn = 0; turn < 30; turn++) {
        struct test_collect found = merged_somehow();

        assert_string_equal(found.text, wanted.text);
        free(found.text);
    }
    free(wanted.text);
    tarn_fleet_destroy(all);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- files that are none ---- */

/* Loading it fails with one of the two, and changes nothing. */
static void refused(struct tarn_fleet *fleet, const char *text, size_t size,
                    enum tarn_status wanted, enum tarn_status or_else)
{
    struct tarn_error error = {.text = ""};
    const size_t stacks = fleet->stacks.count;
    const size_t ranks = fleet->ranks.count;
    const enum tarn_status status = load(fleet, text, size, &error);

    assert_true(status == wanted || status == or_else);
    assert_true(error.text[0] != '\0');
    assert_int_equal(fleet->stacks.count, stacks);
    assert_int_equal(fleet->ranks.count, ranks);
}

static void damaged_and_cut_files_are_refused(void **state)
{
    struct test_collect file = part_make(1);
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    rank_add(fleet, 0, 100 * MIB, 0);
    for (size_t i = 0; i + 1 < file.size; i++) {
        refused(fleet, file.text, i, TARN_ERR_FORMAT, TARN_ERR_TRUNCATED);
        const char before = file.text[i];

        file.text[i] = (char)(before ^ 1);
        refused(fleet, file.text, file.size, TARN_ERR_FORMAT, TARN_ERR_TRUNCATED);
        file.text[i] = before;
    }
    assert_int_equal(load(fleet, file.text, file.size, NULL), TARN_OK);
    free(file.text);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Lines with the right checksum behind them. */
static struct test_collect signed_lines(const char *lines)
{
    char end[64];
    struct test_collect file = {.text = NULL};
    uint64_t hash = TN_STABLE_HASH_BEGIN;

    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        hash = tn_line_hash(hash, line, strcspn(line, "\n"));
    }
    const int length = snprintf(end, sizeof end, "%s%016" PRIx64 "\"}\n", TN_SUMMARY_END, hash);

    assert_int_equal(test_collect_write(&file, lines, strlen(lines)), TARN_OK);
    assert_int_equal(test_collect_write(&file, end, (size_t)length), TARN_OK);
    return file;
}

static void hostile_files_are_refused(void **state)
{
    static const char *const bodies[] = {
        "{\"format\":\"tarn summary\",\"version\":3}\n",
        "{\"format\":\"tarn summary\",\"version\":99999999999999999999999}\n",
        "{\"format\":\"tarn summary\",\"version\": 2}\n",
        "{\"format\":\"tarn summary\",\"version\":2 }\n",
        "{\"format\":\"tarn summary\",\"version\":2}\n{\"other\":1}\n",
        "{\"format\":\"tarn summary\",\"version\":2}\n{\"rank\":{}}\n",
        "{\"format\":\"tarn summary\",\"version\":2}\n{\"rank\":[[[[[[[[\n",
        "{\"format\":\"tarn summary\",\"version\":2}\n{\"stack\":\"01\",\"frames\":[]}\n",
        "[]\n"};
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct test_collect file = signed_lines(bodies[i]);

        refused(fleet, file.text, file.size, TARN_ERR_FORMAT, TARN_ERR_FORMAT);
        free(file.text);
    }
    tarn_fleet_destroy(fleet);
}

/* The sums of a rank whose checksum is right are checked as well. */
static void sums_that_do_not_add_up_are_refused(void **state)
{
    struct test_collect file = part_make(1);
    struct tarn_fleet *fleet = fleet_make();
    char *digits = strstr(file.text, "\"requested\":") + 12;

    (void)state;
    *strstr(file.text, TN_SUMMARY_END) = '\0';
    struct test_collect same = signed_lines(file.text);

    *digits = *digits == '9' ? '8' : '9';
    struct test_collect other = signed_lines(file.text);

    refused(fleet, other.text, other.size, TARN_ERR_FORMAT, TARN_ERR_FORMAT);
    assert_int_equal(load(fleet, same.text, same.size, NULL), TARN_OK);
    free(same.text);
    free(other.text);
    free(file.text);
    tarn_fleet_destroy(fleet);
}

/* The summary of a recorded run with the first `from` replaced by `to`, and signed. */
static struct test_collect edited(const char *text, const char *from, const char *to)
{
    const char *at = text ? strstr(text, from) : NULL;
    struct test_collect lines = {.text = NULL};

    if (!at) {
        fail_msg("%s is not in %s", from, text ? text : "nothing");
        return lines;
    }
    const char *rest = at + strlen(from);

    assert_int_equal(test_collect_write(&lines, text, (size_t)(at - text)), TARN_OK);
    assert_int_equal(test_collect_write(&lines, to, strlen(to)), TARN_OK);
    assert_int_equal(
        test_collect_write(&lines, rest, (size_t)(strstr(rest, TN_SUMMARY_END) - rest)), TARN_OK);
    struct test_collect file = signed_lines(lines.text);

    free(lines.text);
    return file;
}

static struct test_collect recorded_make(void)
{
    struct tarn_snapshot *snapshot;
    struct tarn_fleet *fleet = fleet_make();

    assert_int_equal(
        tarn_snapshot_load(TEST_DATA_DIR "/snapshots/tiny.pickle.gz", NULL, &snapshot, NULL),
        TARN_OK);
    assert_int_equal(tarn_fleet_add(fleet, snapshot, "tiny", NULL, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    struct test_collect file = written(fleet);

    tarn_fleet_destroy(fleet);
    return file;
}

#define STACK      "\"9020871e99c19ecc\""
#define HELD       "[" STACK ",50332675,8]"
#define FIRST_STEP "[1,1,1,2097152,1,1]"
#define TOO_LARGE  "4611686018427387904"

static void parts_of_the_wrong_kind_are_refused(void **state)
{
    static const char *const edits[][2] = {
        {"\"device\":\"0\"", "\"device\":\"x\""},
        {"\"device\":\"0\"", "\"device\":\"-1\""},
        {"\"device\":\"0\"", "\"device\":\"0x\""},
        {"\"device\":\"0\"", "\"device\":\"\""},
        {"\"device\":\"0\"", "\"device\":\"2147483647\""},
        {"\"device\":\"0\"", "\"device\":0"},
        {"\"device\":", "\"de vice\":"},
        {"\"device\":", "\"other\":"},
        {"\"file\":", "\"life\":"},
        {"\"labels\":{\"device\":\"0\",\"file\":\"tiny\"}", "\"labels\":{}"},
        {"\"labels\":{\"device\":\"0\",\"file\":\"tiny\"}", "\"labels\":[]"},
        {"\"by\":\"stack\"", "\"by\":\"size of shoe\""},
        {"\"by\":\"stack\"", "\"by\":1"},
        {"\"partial\":false", "\"partial\":0"},
        {"\"at\":{\"event\":10,\"requested\":50332675", "\"at\":{\"event\":10"},
        {"\"left_out\":0", "\"left_out\":-1"},
        {"\"left_out\":0", "\"left_out\":" TOO_LARGE},
        {"\"left_out\":0", "\"left_out\":0.5"},
        {"\"ooms\":0", "\"ooms\":-1"},
        {"\"per_step\":6291328", "\"per_step\":" TOO_LARGE},
        {"\"per_step\":6291328", "\"per_step\":-" TOO_LARGE "0"},
        {"\"per_step\":6291328", "\"per_step\":-4611686018427387905"},
        {"\"per_step\":6291328", "\"per_step\":null"},
        {"\"growth\":{\"by\":\"parts\"", "\"growth\":{\"by\":7"},
        {"\"rows\":[[" STACK ",6291328,", "\"rows\":[[1,6291328,"},
        {"\"rows\":[[" STACK ",6291328,12584126,3]]", "\"rows\":{}"},
        {HELD, "[" STACK ",50332675]"},
        {HELD, "[\"0000000000000000\",50332675,8]"},
        {HELD, "[\"9020871e99c19ec\",50332675,8]"},
        {HELD, "[\"9020871e99c19ecg\",50332675,8]"},
        {HELD, "[\"9020871e99c19ec \",50332675,8]"},
        {HELD, "[\"669F2984c020edfd\",50332675,8]"},
        {HELD, "[669,50332675,8]"},
        {HELD, "[" STACK ",-50332675,8]"},
        {HELD, "[" STACK ",50332675,-8]"},
        {HELD, "[" STACK ",50332674,8]"}, /* a byte is missing */
        {HELD, HELD "," HELD},
        {"\"held\":{\"rows\":[" HELD "]", "\"held\":{\"rows\":7"},
        {"\"others\":[0,0,0]", "\"others\":[0,0]"},
        {"\"others\":[0,0,0]", "\"others\":[-1,0,0]"},
        {"\"others\":[0,0,0]", "\"others\":[0,-1,0]"},
        {"\"others\":[0,0,0]", "\"others\":[0,0,-1]"},
        {"\"others\":[0,0,0]", "\"others\":[0,4611686018427387903,0]"}, /* and 50332675 */
        {FIRST_STEP, "[1,1,1,2097152,1]"},
        {FIRST_STEP, "[-1,1,1,2097152,1,1]"},
        {FIRST_STEP, "[1,-1,1,2097152,1,1]"},
        {FIRST_STEP, "[1,1,-1,2097152,1,1]"},
        {"\"count\":10,", "\"count\":-10,"},
    };
    struct test_collect file = recorded_make();
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct test_collect wrong = edited(file.text, edits[i][0], edits[i][1]);
        const size_t ranks = fleet->ranks.count;

        if (load(fleet, wrong.text, wrong.size, NULL) == TARN_OK) {
            fail_msg("%s was accepted in place of %s", edits[i][1], edits[i][0]);
        }
        assert_int_equal(fleet->ranks.count, ranks);
        refused(fleet, wrong.text, wrong.size, TARN_ERR_FORMAT, TARN_ERR_FORMAT);
        free(wrong.text);
    }
    assert_int_equal(load(fleet, file.text, file.size, NULL), TARN_OK);
    free(file.text);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Frames that are not what they should be name nothing: their bytes are among the smaller ones. */
static void stacks_that_are_none_name_nothing(void **state)
{
    static const struct {
        const char *frames;
        const char *shown;
    } cases[] = {
        {"[[\"leaf\",\"a.py\",7]]", "a.py:7:leaf"},
        {"\"a text\"", "a text"},
        {"[]", "(no frames)"},
        {"[[\"leaf\",\"a.py\"]]", "(smaller ones)"},
        {"[[1,\"a.py\",7]]", "(smaller ones)"},
        {"[[\"leaf\",1,7]]", "(smaller ones)"},
        {"[[\"leaf\",\"a.py\",\"7\"]]", "(smaller ones)"},
        {"[7]", "(smaller ones)"},
    };
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .format = TARN_REPORT_JSON};
    struct test_collect file = recorded_make();
    const char *frames = strstr(file.text, "\"frames\":") + 9;
    char old_line[512];

    (void)state;
    (void)snprintf(old_line, sizeof old_line, STACK ",\"frames\":%.*s",
                   (int)(strstr(frames, "}\n") - frames), frames);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        char held[64];
        struct test_collect report = {.text = NULL};
        const struct tarn_writer writer = {.write = test_collect_write, .context = &report};
        const uint64_t id = tn_stack_line_id(cases[i].frames, strlen(cases[i].frames));
        struct tarn_fleet *fleet = fleet_make();

        (void)snprintf(line, sizeof line, "\"%016" PRIx64 "\",\"frames\":%s", id, cases[i].frames);
        (void)snprintf(held, sizeof held, "[\"%016" PRIx64 "\",50332675,8]", id);
        struct test_collect other = edited(file.text, old_line, line);
        struct test_collect both = edited(other.text, HELD, held);

        assert_int_equal(load(fleet, both.text, both.size, NULL), TARN_OK);
        for (int rank = 0; rank < 4; rank++) {
            rank_add(fleet, rank, 4 * MIB, 0);
        }
        assert_int_equal(tarn_fleet_report(fleet, &options, NULL, &writer, NULL), TARN_OK);
        if (!strstr(report.text, cases[i].shown)) {
            fail_msg("%s is not in %s", cases[i].shown, report.text);
        }
        free(report.text);
        free(both.text);
        free(other.text);
        tarn_fleet_destroy(fleet);
    }
    free(file.text);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* One row more than a list of a line may have. */
static void lists_have_an_end(void **state)
{
    static const char *const rows[] = {HELD, FIRST_STEP};
    struct test_collect file = recorded_make();
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct test_collect many = {.text = NULL};

        for (int k = 0; k < 4096; k++) {
            const char *row = i == 0 ? "[" STACK ",0,0]," : FIRST_STEP ",";

            assert_int_equal(test_collect_write(&many, row, strlen(row)), TARN_OK);
        }
        assert_int_equal(test_collect_write(&many, rows[i], strlen(rows[i]) + 1), TARN_OK);
        struct test_collect wrong = edited(file.text, rows[i], many.text);

        refused(fleet, wrong.text, wrong.size, TARN_ERR_FORMAT, TARN_ERR_FORMAT);
        free(wrong.text);
        free(many.text);
    }
    free(file.text);
    tarn_fleet_destroy(fleet);
}

/* Frames that end too early, in a line whose number is right. */
static void frames_that_end_early_are_damage(void **state)
{
    static const char frames[] = "[[\"leaf\",";
    char line[256];
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    (void)snprintf(line, sizeof line,
                   "{\"format\":\"tarn summary\",\"version\":2}\n%s%016" PRIx64
                   "\",\"frames\":%s}\n",
                   TN_SUMMARY_STACK, tn_stack_line_id(frames, sizeof frames - 1), frames);
    struct test_collect file = signed_lines(line);

    refused(fleet, file.text, file.size, TARN_ERR_FORMAT, TARN_ERR_FORMAT);
    free(file.text);
    tarn_fleet_destroy(fleet);
}

/* A fleet that is full takes no more. */
static void ranks_have_an_end(void **state)
{
    struct test_collect file = part_make(1);
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    fleet->ranks.count = (1 << 24) - 1; /* none of them is looked at */
    assert_int_equal(load(fleet, file.text, 0, NULL), TARN_ERR_FORMAT);
    fleet->ranks.count = 1 << 24;
    refused(fleet, file.text, file.size, TARN_ERR_LIMIT, TARN_ERR_LIMIT);
    fleet->ranks.count = 0;
    assert_int_equal(load(fleet, file.text, file.size, NULL), TARN_OK);
    free(file.text);
    tarn_fleet_destroy(fleet);
}

/* Stacks that were taken back are added again, as if they had never been there. */
static void what_was_cut_off_is_added_again(void **state)
{
    struct test_collect wanted = part_make(2);
    struct tarn_fleet *fleet = fleet_make();

    (void)state;
    rank_add(fleet, 2, 100 * MIB + 1024, 0);
    tn_fleet_cut(fleet, 0, 0);
    rank_add(fleet, 7, 77 * MIB, MIB); /* other stacks get their numbers */
    tn_fleet_cut(fleet, 1, 0);
    tn_fleet_cut(fleet, 0, 0);
    rank_add(fleet, 2, 100 * MIB + 1024, 0);
    struct test_collect found = written(fleet);

    assert_string_equal(found.text, wanted.text);
    free(found.text);
    free(wanted.text);
    tarn_fleet_destroy(fleet);
}

static void what_begins_as_a_summary_is_one(void **state)
{
    struct test_collect part = part_make(1);
    struct temp_file file = temp_write(part.text, part.size);
    struct temp_file other = temp_write("[]", 2);

    (void)state;
    assert_true(tarn_fleet_is_summary(file.path));
    assert_false(tarn_fleet_is_summary(other.path));
    assert_false(tarn_fleet_is_summary("-"));
    temp_remove(&other);
    assert_false(tarn_fleet_is_summary(other.path));
    temp_remove(&file);
    free(part.text);
}

static void limits_are_kept(void **state)
{
    const struct tarn_read_limits small = {.max_memory = 64};
    const size_t size = (size_t)TN_LINE_MAX + 100;
    struct test_collect file = part_make(1);
    struct tarn_fleet *fleet = fleet_make();
    char *line = malloc(size);

    (void)state;
    assert_non_null(line);
    memset(line, 'x', size);
    refused(fleet, line, size, TARN_ERR_LIMIT, TARN_ERR_FORMAT);
    assert_int_equal(tarn_fleet_load_memory(fleet, file.text, file.size, &small, NULL),
                     TARN_ERR_LIMIT);
    assert_int_equal(fleet->stacks.count + fleet->ranks.count, 0);
    const struct tarn_read_limits tight = {.max_ratio = 3, .max_bytes = 1 << 20};

    assert_int_equal(tarn_fleet_load_memory(fleet, file.text, file.size, &tight, NULL), TARN_OK);
    free(line);
    free(file.text);
    tarn_fleet_destroy(fleet);
}

/* ---- host memory ---- */

/* What a step does to a fleet that has one rank. */
typedef enum tarn_status step(struct tarn_fleet *fleet, const void *what);

static enum tarn_status add_step(struct tarn_fleet *fleet, const void *what)
{
    return tarn_fleet_add(fleet, what, "rank7", NULL, NULL);
}

static enum tarn_status load_step(struct tarn_fleet *fleet, const void *what)
{
    const struct test_collect *file = what;

    return load(fleet, file->text, file->size, NULL);
}

static enum tarn_status write_bytes(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

static enum tarn_status write_step(struct tarn_fleet *fleet, const void *what)
{
    const struct tarn_writer writer = {.write = write_bytes};

    (void)what;
    return tarn_fleet_write(fleet, &writer, NULL);
}

static enum tarn_status report_step(struct tarn_fleet *fleet, const void *what)
{
    const struct tarn_writer writer = {.write = write_bytes};

    (void)what;
    return tarn_fleet_report(fleet, NULL, NULL, &writer, NULL);
}

/* Fails each allocation of the step in turn: the fleet is as before, and the step works then. */
static void every_failure(step *run, const void *what)
{
    bool done = false;

    for (uint64_t n = 1; !done; n++) {
        struct tarn_fleet *fleet = fleet_make();

        rank_add(fleet, 0, 100 * MIB, 0);
        struct test_collect before = written(fleet);

        tarn_host_fail_nth(n);
        const enum tarn_status status = run(fleet, what);

        tarn_host_fail_nth(0);
        done = status == TARN_OK;
        if (!done) {
            assert_int_equal(status, TARN_ERR_HOST_MEMORY);
            struct test_collect after = written(fleet);

            assert_string_equal(after.text, before.text);
            free(after.text);
            assert_int_equal(run(fleet, what), TARN_OK);
        }
        assert_true(done ? n > 1 : n < 10000);
        free(before.text);
        tarn_fleet_destroy(fleet);
    }
}

static void every_host_failure_leaves_the_fleet_as_it_was(void **state)
{
    struct tarn_snapshot *snapshot = snapshot_make(77 * MIB, MIB);
    struct test_collect file = part_make(5);

    (void)state;
    every_failure(add_step, snapshot);
    every_failure(load_step, &file);
    every_failure(write_step, NULL);
    every_failure(report_step, NULL);
    free(file.text);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- outliers ---- */

static void planted_outliers_come_first_and_alone(void **state)
{
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .format = TARN_REPORT_JSONL};
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {.write = test_collect_write, .context = &collect};
    struct tarn_fleet *fleet = fleet_make();
    int found = 0;

    (void)state;
    for (int i = 0; i < 40; i++) {
        rank_add(fleet, i, 100 * MIB + (uint64_t)(i * 7 % 11) * 4096,
                 i == 9 || i == 10 ? (uint64_t)(i + 20) * MIB : 0);
    }
    assert_int_equal(tarn_fleet_report(fleet, &options, NULL, &writer, NULL), TARN_OK);
    for (const char *at = collect.text; (at = strstr(at, "\"is_outlier\":true")); at++) {
        found++;
    }
    assert_int_equal(found, 2);
    const char *second = strchr(collect.text, '\n') + 1;

    assert_true(strstr(collect.text, "rank10.json") < second);
    assert_true(strstr(second, "rank9.json") < strchr(second, '\n'));
    assert_non_null(strstr(collect.text, "planted"));
    free(collect.text);
    tarn_fleet_destroy(fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(any_order_and_tree_of_merges_gives_equal_bytes),
        cmocka_unit_test(damaged_and_cut_files_are_refused),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(sums_that_do_not_add_up_are_refused),
        cmocka_unit_test(parts_of_the_wrong_kind_are_refused),
        cmocka_unit_test(stacks_that_are_none_name_nothing),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(frames_that_end_early_are_damage),
        cmocka_unit_test(ranks_have_an_end),
        cmocka_unit_test(what_was_cut_off_is_added_again),
        cmocka_unit_test(what_begins_as_a_summary_is_one),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(every_host_failure_leaves_the_fleet_as_it_was),
        cmocka_unit_test(planted_outliers_come_first_and_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
