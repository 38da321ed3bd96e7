/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "base/stable_hash.h"
#include "fleet/fleet.h"
#include "tarn/export.h"
#include "tarn/fleet.h"

#include <sqlite3.h>

struct asked {
    enum tarn_export_format format;
    struct tarn_export_options options;
    bool is_reversed; /* ranks are added in another order */
    bool is_empty;
};

enum {
    RANKS = 4,
    OUTLIER = 2,
    OTHERS_ROWS = 60
};

/* Rank 2 holds more, and has a failed request; names that would do harm. */
static struct tarn_snapshot *snapshot_of(int rank)
{
    char json[1024];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'segment_alloc', 'addr': 512, 'size': 65536, 'stream': 0,"
                   " 'frames': []},"
                   "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': '=cmd()', 'filename': '@a\\u202e', 'line': 1}]}%s]]}",
                   rank == OUTLIER ? 9000 : 1000,
                   rank == OUTLIER ? ",{'action': 'oom', 'device_free': 77, 'size': 1024,"
                                     " 'stream': 0, 'frames': []}"
                                   : "");
    return report_parse(json);
}

static struct tarn_snapshot *snapshot_of_one_step(void)
{
    return report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 1000,"
        " 'stream': 0, 'time_us': 5}]], 'external_annotations': ["
        "{'stage': 'START', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': 6},"
        "{'stage': 'END', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': 7}]}");
}

static enum tarn_status rank_add(struct tarn_fleet *fleet, int rank, struct tarn_error *error)
{
    struct tarn_snapshot *snapshot = snapshot_of(rank);
    char name[32];

    (void)snprintf(name, sizeof name, "host%d/rank%d", rank / 2, rank);
    const enum tarn_status status = tarn_fleet_add(fleet, snapshot, name, NULL, error);

    tarn_snapshot_destroy(snapshot);
    return status;
}

static enum tarn_status exported(const void *context, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_fleet *fleet;
    enum tarn_status status = tarn_fleet_create(&fleet, error);

    for (int i = 0; status == TARN_OK && i < RANKS && !asked->is_empty; i++) {
        status = rank_add(fleet, asked->is_reversed ? RANKS - 1 - i : i, error);
    }
    if (status == TARN_OK) {
        status = tarn_export_fleet(fleet, asked->format, &asked->options, writer, error);
    }
    tarn_fleet_destroy(fleet);
    return status;
}

static struct asked asked_for(enum tarn_export_format format, enum tarn_export_table table)
{
    return (struct asked){
        .format = format,
        .options = {.struct_size = sizeof(struct tarn_export_options), .table = table}};
}

/* ---- text ---- */

static void csv_of_ranks(void **state)
{
    struct asked asked = asked_for(TARN_EXPORT_CSV, TARN_TABLE_ALL);
    char *text = report_text(exported, &asked);

    (void)state;
    assert_non_null(strstr(text, "rank_id,file,device,labels,is_partial,"));
    assert_non_null(strstr(text, "\r\n2,\"host1/rank2\",0,"
                                 "\"{\"\"device\"\":\"\"0\"\",\"\"host\"\":\"\"1\"\","
                                 "\"\"rank\"\":\"\"2\"\"}\",0,,3,1,9000,"));
    assert_non_null(strstr(text, ",1,999.9,0\r\n"));
    free(text);
}

static void csv_of_what_is_held(void **state)
{
    struct asked asked = asked_for(TARN_EXPORT_CSV, TARN_TABLE_HOLDERS);
    char *text = report_text(exported, &asked);

    (void)state;
    assert_non_null(strstr(text, "rank_id,instant,grouping,stack,name,bytes,blocks\r\n"
                                 "0,\"requested_peak\",\"stack\",0x"));
    assert_non_null(strstr(text, ",\"'@a\\u202e:1:=cmd()\",1000,1\r\n"));
    assert_non_null(strstr(text, "2,\"requested_peak\",\"category\",,"));
    free(text);
    asked.options.table = TARN_TABLE_OOMS;
    text = report_text(exported, &asked);
    assert_non_null(
        strstr(text, "rank_id,verdict,is_limited,requests,first_event,request\r\n2,\""));
    assert_non_null(strstr(text, ",1,2,1024\r\n"));
    free(text);
}

static void every_table_of_csv_has_its_rows(void **state)
{
    static const struct {
        enum tarn_export_table table;
        int rows;
    } all[] = {{TARN_TABLE_RANKS, RANKS},
               {TARN_TABLE_TIMELINE, RANKS * 64},
               {TARN_TABLE_OOMS, 1},
               {TARN_TABLE_STEPS, 2 * RANKS + 1}, /* parts of a trace without steps */
               {TARN_TABLE_STACKS, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct asked asked = asked_for(TARN_EXPORT_CSV, all[i].table);
        char *text = report_text(exported, &asked);
        int lines = 0;

        for (const char *at = text; (at = strchr(at, '\n')); at++) {
            lines++;
        }
        assert_int_equal(lines, all[i].rows + 1);
        free(text);
    }
}

static void one_device(void **state)
{
    struct asked asked = asked_for(TARN_EXPORT_CSV, TARN_TABLE_OOMS);

    (void)state;
    asked.options.one_device = true;
    asked.options.device = 1;
    report_says(exported, &asked, "rank_id,verdict,is_limited,requests,first_event,request\r\n");
    asked.options.device = 0;
    char *text = report_text(exported, &asked);

    assert_non_null(strstr(text, "\r\n2,\""));
    free(text);
}

/* With one step nothing grows from one to the next. */
static void one_step_has_no_growth(void **state)
{
    struct tarn_snapshot *snapshot = snapshot_of_one_step();
    const struct tarn_export_options options = {.struct_size = sizeof options,
                                                .table = TARN_TABLE_RANKS};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_fleet *fleet;

    (void)state;
    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_add(fleet, snapshot, "rank0", NULL, NULL), TARN_OK);
    assert_int_equal(tarn_export_fleet(fleet, TARN_EXPORT_JSONL, &options, &writer, NULL), TARN_OK);
    assert_non_null(strstr(collect.text, "\"steps\":1,\"growth\":null,"));
    free(collect.text);
    tarn_fleet_destroy(fleet);
    tarn_snapshot_destroy(snapshot);
}

static void the_order_of_ranks_does_not_matter(void **state)
{
    static const enum tarn_export_format formats[] = {TARN_EXPORT_CSV, TARN_EXPORT_JSONL,
                                                      TARN_EXPORT_SQLITE};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct asked asked = asked_for(formats[i], TARN_TABLE_ALL);
        struct test_collect first = {.text = NULL};
        struct test_collect second = {.text = NULL};

        assert_int_equal(exported(&asked, &(struct tarn_writer){test_collect_write, &first}, NULL),
                         TARN_OK);
        asked.is_reversed = true;
        assert_int_equal(exported(&asked, &(struct tarn_writer){test_collect_write, &second}, NULL),
                         TARN_OK);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.text, second.text, first.size);
        free(first.text);
        free(second.text);
    }
}

/* The ranks are there already: only the export meets the failure. */
struct filled {
    struct tarn_fleet *fleet;
    struct asked asked;
};

static enum tarn_status filled_export(const void *context, const struct tarn_writer *writer,
                                      struct tarn_error *error)
{
    const struct filled *filled = context;

    return tarn_export_fleet(filled->fleet, filled->asked.format, &filled->asked.options, writer,
                             error);
}

/* ---- summaries by others ---- */

/* A summary of a snapshot, which is destroyed, with one part of the line of its rank replaced. */
static struct test_collect summary_changed(struct tarn_snapshot *snapshot, const char *from,
                                           const char *to)
{
    struct tarn_fleet *fleet;
    struct test_collect text = {0};
    struct test_collect changed = {0};
    const struct tarn_writer writer = {test_collect_write, &text};

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_add(fleet, snapshot, "rank0", NULL, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_fleet_write(fleet, &writer, NULL), TARN_OK);
    tarn_fleet_destroy(fleet);
    uint64_t hash = TN_STABLE_HASH_BEGIN;

    for (const char *line = text.text; strncmp(line, "{\"end\"", 6) != 0;) {
        const size_t length = strcspn(line, "\n");
        const char *at = strstr(line, from);
        char out[8192];

        if (strncmp(line, "{\"rank\"", 7) != 0) {
            at = line + length;
        }
        assert_non_null(at);
        const size_t skipped = at == line + length ? 0 : strlen(from);
        const int size =
            snprintf(out, sizeof out, "%.*s%s%.*s", (int)(at - line), line, skipped ? to : "",
                     (int)(length - (size_t)(at - line) - skipped), at + skipped);

        hash = tn_line_hash(hash, out, (size_t)size);
        assert_int_equal(test_collect_write(&changed, out, (size_t)size), TARN_OK);
        assert_int_equal(test_collect_write(&changed, "\n", 1), TARN_OK);
        line += length + 1;
    }
    char end[64];
    const int size = snprintf(end, sizeof end, "{\"end\":\"%016llx\"}\n", (unsigned long long)hash);

    assert_int_equal(test_collect_write(&changed, end, (size_t)size), TARN_OK);
    free(text.text);
    return changed;
}

static char *changed_table(struct tarn_snapshot *snapshot, const char *from, const char *to,
                           enum tarn_export_table table)
{
    const struct tarn_export_options options = {.struct_size = sizeof options, .table = table};
    struct test_collect summary = summary_changed(snapshot, from, to);
    struct test_collect rows = {0};
    const struct tarn_writer writer = {test_collect_write, &rows};
    struct tarn_fleet *fleet;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
    if (tarn_fleet_load_memory(fleet, summary.text, summary.size, NULL, &error) ||
        tarn_export_fleet(fleet, TARN_EXPORT_JSONL, &options, &writer, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_fleet_destroy(fleet);
    free(summary.text);
    return rows.text;
}

static void strange_summaries_have_rows(void **state)
{
    char *text = changed_table(snapshot_of_one_step(), "\"growth\":{\"by\":\"parts\"",
                               "\"growth\":{\"by\":\"steps\"", TARN_TABLE_RANKS);

    (void)state;
    assert_non_null(strstr(text, "\"growth\":null,"));
    free(text);
    text = changed_table(snapshot_of(0), "\"held_at_reserved_peak\":{\"rows\":[]",
                         "\"held_at_reserved_peak\":{\"rows\":[[\"no number\",3,1]]",
                         TARN_TABLE_HOLDERS);
    assert_non_null(strstr(text, "\"(smaller ones)\",\"bytes\":3,\"blocks\":1}"));
    free(text);
}

/* What is held by others is a row as well, which a writer may refuse: it gets so much at a time, of
 * any number of rows before that one. */
static void others_have_a_row(void **state)
{
    static const char from[] = "\"held_at_reserved_peak\":{\"rows\":[],\"others\":[0,0,0]";

    (void)state;
    for (size_t count = 0; count < OTHERS_ROWS; count++) {
        static char to[OTHERS_ROWS * 32 + 128];
        size_t used = (size_t)snprintf(to, sizeof to, "\"held_at_reserved_peak\":{\"rows\":[");
        struct filled filled = {.asked = asked_for(TARN_EXPORT_JSONL, TARN_TABLE_HOLDERS)};

        for (size_t i = 0; i < count; i++) {
            used += (size_t)snprintf(to + used, sizeof to - used, "%s[\"%016zx\",1,1]",
                                     i ? "," : "", i + 1);
        }
        (void)snprintf(to + used, sizeof to - used, "],\"others\":[2,300,4]");
        struct test_collect summary = summary_changed(snapshot_of(0), from, to);

        assert_int_equal(tarn_fleet_create(&filled.fleet, NULL), TARN_OK);
        assert_int_equal(
            tarn_fleet_load_memory(filled.fleet, summary.text, summary.size, NULL, NULL), TARN_OK);
        char *text = report_text(filled_export, &filled);

        assert_non_null(strstr(text, "\"(smaller ones)\",\"bytes\":300,\"blocks\":4}"));
        free(text);
        report_is_refused(filled_export, &filled);
        tarn_fleet_destroy(filled.fleet);
        free(summary.text);
    }
}

/* ---- databases ---- */

static char *cell_of(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement;
    char *text;

    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    text = strdup((const char *)sqlite3_column_text(statement, 0));
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return text;
}

static void query_says(sqlite3 *database, const char *sql, const char *expected)
{
    char *text = cell_of(database, sql);

    assert_string_equal(text, expected);
    free(text);
}

static void a_database(void **state)
{
    const struct asked asked = asked_for(TARN_EXPORT_SQLITE, TARN_TABLE_ALL);
    struct test_collect collect = {.text = NULL};
    sqlite3 *database;

    (void)state;
    assert_int_equal(exported(&asked, &(struct tarn_writer){test_collect_write, &collect}, NULL),
                     TARN_OK);
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sqlite3_deserialize(database, "main", (unsigned char *)collect.text,
                                         (sqlite3_int64)collect.size, (sqlite3_int64)collect.size,
                                         0),
                     SQLITE_OK);
    query_says(database, "PRAGMA integrity_check", "ok");
    query_says(database, "SELECT value FROM about WHERE key = 'ranks'", "4");
    query_says(database, "SELECT group_concat(file || distance) FROM outliers", "host1/rank2999.9");
    query_says(database, "SELECT group_concat(ranks || ':' || most) FROM like_ranks",
               "1:9000,3:1000");
    query_says(database,
               "SELECT ranks || ' ' || least || ' ' || most || ' ' || bytes FROM"
               " held_by_stack",
               "4 1000 9000 12000");
    query_says(database, "SELECT f.name FROM holders JOIN frames f USING (stack) LIMIT 1",
               "=cmd()");
    query_says(database,
               "SELECT sum(r.requested_peak = t.most) FROM ranks r JOIN (SELECT rank_id,"
               " max(requested) AS most FROM timeline GROUP BY rank_id) t USING (rank_id)",
               "4");
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(collect.text);
}

/* ---- what is refused, and failures ---- */

static void what_is_refused(void **state)
{
    struct asked asked = asked_for(TARN_EXPORT_PERFETTO, TARN_TABLE_ALL);
    struct tarn_snapshot *snapshot = snapshot_of(0);
    const struct tarn_writer writer = {test_collect_write, NULL};
    struct tarn_error error;

    (void)state;
    assert_int_equal(exported(&asked, &writer, &error), TARN_ERR_INVALID_ARGUMENT);
    asked = asked_for(TARN_EXPORT_CSV, TARN_TABLE_EVENTS);
    assert_int_equal(exported(&asked, &writer, &error), TARN_ERR_INVALID_ARGUMENT);
    asked = asked_for(TARN_EXPORT_CSV, TARN_TABLE_RANKS);
    assert_int_equal(tarn_export(snapshot, TARN_EXPORT_CSV, &asked.options, &writer, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    asked.is_empty = true;
    assert_int_equal(exported(&asked, &writer, &error), TARN_ERR_STATE);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    static const enum tarn_export_format formats[] = {TARN_EXPORT_CSV, TARN_EXPORT_JSONL,
                                                      TARN_EXPORT_SQLITE};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tarn_fleet *fleet;
        const struct asked asked = asked_for(formats[i], TARN_TABLE_ALL);

        assert_int_equal(tarn_fleet_create(&fleet, NULL), TARN_OK);
        report_is_refused(exported, &asked);
        tarn_fleet_destroy(fleet);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void without_host_memory(void **state)
{
    struct filled filled = {.asked = asked_for(TARN_EXPORT_JSONL, TARN_TABLE_ALL)};

    (void)state;
    assert_int_equal(tarn_fleet_create(&filled.fleet, NULL), TARN_OK);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(rank_add(filled.fleet, i, NULL), TARN_OK);
    }
    (void)report_fails_cleanly(filled_export, &filled);
    tarn_fleet_destroy(filled.fleet);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_of_ranks),
        cmocka_unit_test(csv_of_what_is_held),
        cmocka_unit_test(every_table_of_csv_has_its_rows),
        cmocka_unit_test(one_device),
        cmocka_unit_test(one_step_has_no_growth),
        cmocka_unit_test(the_order_of_ranks_does_not_matter),
        cmocka_unit_test(strange_summaries_have_rows),
        cmocka_unit_test(others_have_a_row),
        cmocka_unit_test(a_database),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
