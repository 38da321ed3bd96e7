/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/export.h"

#include <sqlite3.h>

struct asked {
    const struct tarn_snapshot *snapshot;
    enum tarn_export_format format;
    struct tarn_export_options options;
};

static enum tarn_status exported(const void *context, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_export(asked->snapshot, asked->format, &asked->options, writer, error);
}

static const enum tarn_export_format forms[] = {
    TARN_EXPORT_JSON,     TARN_EXPORT_JSONL,      TARN_EXPORT_CSV,    TARN_EXPORT_SQLITE,
    TARN_EXPORT_PERFETTO, TARN_EXPORT_SPEEDSCOPE, TARN_EXPORT_FOLDED, TARN_EXPORT_PICKLE};

enum {
    FORMS = sizeof forms / sizeof *forms
};

/* Two devices; texts that would do harm; a failed request; an annotation; what was there before. */
static const char nasty[] =
    "{'segments': [{'device': 0, 'address': 4096, 'total_size': 1024, 'stream': 7,"
    " 'segment_type': 'small', 'segment_pool_id': [1, 2], 'blocks': [{'address': 4096,"
    "  'size': 512, 'requested_size': 500, 'state': 'active_allocated', 'frames': [{'name':"
    "  '=cmd()', 'filename': '@a,b', 'line': -3}]}, {'address': 4608, 'size': 512,"
    "  'requested_size': 0, 'state': 'inactive', 'frames': []}]},"
    " {'device': 3, 'address': 18446744073709550592, 'total_size': 512, 'blocks': [{'size': 512,"
    "  'requested_size': 1, 'state': 'active_pending_free'}]}],"
    " 'device_traces': [[{'action': 'alloc', 'addr': 4096, 'size': 500, 'stream': 7, 'time_us': 5,"
    "  'user_metadata': '-1+1', 'frames': [{'name': '=cmd()', 'filename': '@a,b', 'line': -3}]},"
    "  {'action': 'free_completed', 'addr': 4608, 'size': 9, 'stream': 7, 'time_us': 6},"
    "  {'action': 'oom', 'device_free': 77, 'size': 1024, 'stream': 7, 'time_us': 7},"
    "  {'action': 'odd\\u001b\\u202e\\\\', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 8}], []],"
    " 'external_annotations': [{'stage': 'START', 'name': '+x', 'device': 0, 'time_us': 5},"
    "  {'stage': 'END', 'name': '+x', 'device': 0, 'time_us': 8}]}";

static struct asked asked_for(const struct tarn_snapshot *snapshot, enum tarn_export_format format,
                              enum tarn_export_table table)
{
    return (struct asked){
        snapshot, format, {.struct_size = sizeof(struct tarn_export_options), .table = table}};
}

static void csv_has_no_formulas(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);
    struct asked asked = asked_for(snapshot, TARN_EXPORT_CSV, TARN_TABLE_ALL);

    (void)state;
    report_says(exported, &asked,
                "device,event,action,address,size,device_free,stream,time_us,stack,frame,pool,"
                "compile_context,user_metadata,internal_metadata,category\r\n"
                "0,0,\"alloc\",0x1000,500,,0x7,5,2,\"'@a,b:-3:=cmd()\",,,\"'-1+1\",,\r\n"
                "0,1,\"free_completed\",0x1200,9,,0x7,6,,,,,,,\r\n"
                "0,2,\"oom\",,1024,77,0x7,7,,,,,,,\r\n"
                "0,3,\"odd\\x1b\\u202e\\\",0x0,0,,0x0,8,,,,,,,\r\n");
    asked.options.table = TARN_TABLE_STACKS;
    report_says(exported, &asked,
                "stack,depth,name,filename,line\r\n2,0,\"'=cmd()\",\"'@a,b\",-3\r\n");
    asked.options.table = TARN_TABLE_ANNOTATIONS;
    report_says(exported, &asked,
                "device,stage,name,time_us\r\n0,\"START\",\"'+x\",5\r\n0,\"END\",\"'+x\",8\r\n");
    asked.options.table = TARN_TABLE_ALLOCATIONS;
    report_says(exported, &asked,
                "allocation,device,address,size,stream,first_event,free_event,end_event,stack,"
                "frame\r\n"
                "0,0,0x1000,500,0x7,0,,,2,\"'@a,b:-3:=cmd()\"\r\n"
                "1,0,0x1200,9,0x7,,,1,,\r\n");
    tarn_snapshot_destroy(snapshot);
}

static void json_lines_are_rows_of_all_tables(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);
    struct asked asked = asked_for(snapshot, TARN_EXPORT_JSONL, TARN_TABLE_SEGMENTS);

    (void)state;
    report_says(exported, &asked,
                "{\"table\":\"segments\",\"segment\":0,\"device\":0,\"address\":\"0x1000\","
                "\"total_size\":1024,\"allocated_size\":512,\"active_size\":512,"
                "\"requested_size\":500,\"stream\":\"0x7\",\"segment_type\":\"small\",\"pool\":"
                "\"1,2\",\"is_expandable\":0,\"stack\":null,\"frame\":null}\n"
                "{\"table\":\"segments\",\"segment\":1,\"device\":3,\"address\":"
                "\"0xfffffffffffffc00\",\"total_size\":512,\"allocated_size\":0,\"active_size\":"
                "512,\"requested_size\":1,\"stream\":\"0x0\",\"segment_type\":\"small\",\"pool\":"
                "\"0,0\",\"is_expandable\":0,\"stack\":null,\"frame\":null}\n");
    asked.options.one_device = true;
    asked.options.device = 3;
    asked.options.table = TARN_TABLE_ALL;
    char *text = report_text(exported, &asked);

    assert_null(strstr(text, "\"device\":0"));
    assert_non_null(strstr(text, "{\"table\":\"blocks\",\"segment\":1,\"block\":0,\"device\":3,"));
    assert_non_null(strstr(text, "\"name\":\"=cmd()\",\"filename\":\"@a,b\",\"line\":-3}"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static const char perfetto_head[] =
    "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"ts\":0,\"name\":\"process_name\",\"args\":{\"name\":"
    "\"device 0\"}},\n"
    "{\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":5,\"name\":\"requested\",\"args\":{\"bytes\":9}},\n"
    "{\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":5,\"name\":\"reserved\",\"args\":{\"bytes\":1024"
    "}},\n"
    "{\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":5,\"name\":\"requested\",\"args\":{\"bytes\":509}}"
    ",\n"
    "{\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":6,\"name\":\"requested\",\"args\":{\"bytes\":500}}"
    ",\n"
    "{\"ph\":\"i\",\"pid\":0,\"tid\":0,\"ts\":7,\"s\":\"p\",\"name\":\"out of memory\",\"args\""
    ":{\"request\":1024,\"device_free\":77}},\n"
    "{\"ph\":\"b\",\"pid\":0,\"tid\":0,\"ts\":5,\"cat\":\"block\",\"id\":\"0x1\",\"name\":\""
    "@a,b:-3:=cmd()\",\"args\":{\"bytes\":500,\"address\":\"0x1000\",\"stream\":\"0x7\","
    "\"from_before\":false,\"is_left\":true,\"stack\":\"@a,b:-3:=cmd()\"}},\n"
    "{\"ph\":\"e\",\"pid\":0,\"tid\":0,\"ts\":8,\"cat\":\"block\",\"id\":\"0x1\",\"name\":\""
    "@a,b:-3:=cmd()\"},\n"
    "{\"ph\":\"b\",\"pid\":0,\"tid\":0,\"ts\":5,\"cat\":\"block\",\"id\":\"0x2\",\"name\":\""
    "(not recorded)\",\"args\":{\"bytes\":9,\"address\":\"0x1200\",\"stream\":\"0x7\","
    "\"from_before\":true,\"is_left\":false,\"stack\":\"(not recorded)\"}},\n"
    "{\"ph\":\"e\",\"pid\":0,\"tid\":0,\"ts\":6,\"cat\":\"block\",\"id\":\"0x2\",\"name\":\""
    "(not recorded)\"},\n";

static void a_trace_for_perfetto(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);
    struct asked asked = asked_for(snapshot, TARN_EXPORT_PERFETTO, TARN_TABLE_ALL);
    char *text = report_text(exported, &asked);
    const char *rest = text + sizeof perfetto_head - 1;
    char *end = NULL;

    (void)state;
    assert_memory_equal(text, perfetto_head, sizeof perfetto_head - 1);
    assert_non_null(strstr(rest, "{\"ph\":\"b\",\"pid\":0,\"tid\":0,\"ts\":5,\"cat\":"
                                 "\"annotation\",\"id\":\"0x"));
    end = strstr(rest, "{\"ph\":\"e\",\"pid\":0,\"tid\":0,\"ts\":8,\"cat\":"
                       "\"annotation\",\"id\":\"0x");
    assert_non_null(end);
    assert_non_null(strstr(end, "\",\"name\":\"+x\"}\n]}\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Without a time an annotation has no place; whatever is no end is a beginning. */
static void annotations_of_any_stage(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 1,"
        " 'stream': 0, 'time_us': 5}]], 'external_annotations': ["
        "{'stage': 'MID', 'name': 'third', 'device': 0, 'time_us': 6},"
        "{'stage': 'END', 'name': 'nowhere', 'device': 0}]}");
    const struct asked asked = asked_for(snapshot, TARN_EXPORT_PERFETTO, TARN_TABLE_ALL);
    char *text = report_text(exported, &asked);

    (void)state;
    assert_non_null(strstr(text, "{\"ph\":\"b\",\"pid\":0,\"tid\":0,\"ts\":6,\"cat\":"
                                 "\"annotation\",\"id\":\"0x"));
    assert_null(strstr(text, "nowhere"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void profiles_for_speedscope(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);
    struct asked asked = asked_for(snapshot, TARN_EXPORT_SPEEDSCOPE, TARN_TABLE_ALL);

    (void)state;
    asked.options.one_device = true;
    report_says(
        exported, &asked,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
        "\"exporter\":\"tarn\",\n"
        "\"shared\":{\"frames\":[\n{\"name\":\"(not recorded)\"},\n"
        "{\"name\":\"=cmd()\",\"file\":\"@a,b\",\"line\":-3}]},\n"
        "\"profiles\":[\n"
        "{\"type\":\"sampled\",\"name\":\"device 0: requested bytes at the "
        "peak\",\"unit\":\"bytes\""
        ",\"startValue\":0,\"samples\":[[0],[1]],\"weights\":[9,500],\"endValue\":509},\n"
        "{\"type\":\"sampled\",\"name\":\"device 0: requested in the trace\",\"unit\":"
        "\"bytes\",\"startValue\":0,\"samples\":[[1]],\"weights\":[500],\"endValue\":500},\n"
        "{\"type\":\"sampled\",\"name\":\"device 0: requested bytes at the "
        "end\",\"unit\":\"bytes\","
        "\"startValue\":0,\"samples\":[[1]],\"weights\":[500],\"endValue\":500}]}\n");
    tarn_snapshot_destroy(snapshot);
}

/* ---- databases ---- */

static enum tarn_status bytes_write(void *context, const char *bytes, size_t size)
{
    return test_collect_write(context, bytes, size);
}

static sqlite3 *database_of(const struct asked *asked, struct test_collect *collect)
{
    const struct tarn_writer writer = {bytes_write, collect};
    struct tarn_error error;
    sqlite3 *database;

    if (tarn_export(asked->snapshot, asked->format, &asked->options, &writer, &error)) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sqlite3_deserialize(database, "main", (unsigned char *)collect->text,
                                         (sqlite3_int64)collect->size, (sqlite3_int64)collect->size,
                                         0),
                     SQLITE_OK);
    return database;
}

/* All rows of a query, cells joined by '|', rows ended by ';'. */
static void query_says(sqlite3 *database, const char *sql, const char *expected)
{
    char text[2048] = "";
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const unsigned char *cell = sqlite3_column_text(statement, i);
            const size_t used = strlen(text);

            (void)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "|" : "",
                           cell ? (const char *)cell : "-");
        }
        const size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used, ";");
    }
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_string_equal(text, expected);
}

static void a_database(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);
    const struct asked asked = asked_for(snapshot, TARN_EXPORT_SQLITE, TARN_TABLE_ALL);
    struct test_collect collect = {.text = NULL};
    sqlite3 *database = database_of(&asked, &collect);

    (void)state;
    query_says(database, "PRAGMA integrity_check", "ok;");
    query_says(database, "SELECT * FROM about", "tool|tarn;schema|1;is_partial|0;settings|;");
    query_says(database, "SELECT event, action, address, size, device_free, stack FROM events",
               "0|alloc|4096|500|-|2;1|free_completed|4608|9|-|-;2|oom|-|1024|77|-;"
               "3|odd\\x1b\\u202e\\|0|0|-|-;");
    query_says(database, "SELECT * FROM live",
               "0|0x1000|512|500|active_allocated|2|=cmd()|@a,b|-3;"
               "3|0xfffffffffffffc00|512|1|active_pending_free|-|-|-|-;");
    query_says(database, "SELECT device, stack, blocks, bytes FROM live_by_stack",
               "0|2|1|512;3|-|1|512;");
    query_says(database, "SELECT device, stack, allocations, bytes FROM asked_by_stack",
               "0|2|1|500;");
    query_says(database, "SELECT segment, free, largest_free, blocks FROM segment_use",
               "0|512|512|1;1|0|0|1;");
    query_says(database, "SELECT * FROM ooms", "0|2|7|1024|77|-;");
    query_says(database, "SELECT * FROM folded", "2|=cmd();");
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

/* SQLite asks for memory of its own. */
static void a_database_without_memory(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    const struct asked asked = asked_for(snapshot, TARN_EXPORT_SQLITE, TARN_TABLE_ALL);
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    (void)sqlite3_hard_heap_limit64(200 << 10);
    assert_int_equal(exported(&asked, &writer, &error), TARN_ERR_HOST_MEMORY);
    assert_int_equal(error.status, TARN_ERR_HOST_MEMORY);
    (void)sqlite3_hard_heap_limit64(0);
    assert_int_equal(collect.size, 0);
    assert_int_equal(exported(&asked, &writer, &error), TARN_OK);
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

/* ---- all forms ---- */

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(nasty);

    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        const struct asked asked = asked_for(snapshot, forms[i], TARN_TABLE_ALL);

        (void)report_fails_cleanly(exported, &asked);
        report_is_refused(exported, &asked);
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Files of every kind go into every form. */
static void every_recorded_snapshot(void **state)
{
    static const char *const names[] = {"tiny.before", "tiny", "cudagraph", "multistream", "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);

        for (size_t k = 0; k < FORMS; k++) {
            const struct asked asked = asked_for(snapshot, forms[k], TARN_TABLE_ALL);

            free(report_text(exported, &asked));
        }
        tarn_snapshot_destroy(snapshot);
    }
}

static void an_unknown_form(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    const struct tarn_writer writer = {test_collect_write, NULL};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_export(snapshot, (enum tarn_export_format)99, NULL, &writer, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_has_no_formulas),
        cmocka_unit_test(json_lines_are_rows_of_all_tables),
        cmocka_unit_test(a_trace_for_perfetto),
        cmocka_unit_test(annotations_of_any_stage),
        cmocka_unit_test(profiles_for_speedscope),
        cmocka_unit_test(a_database),
        cmocka_unit_test(a_database_without_memory),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(every_recorded_snapshot),
        cmocka_unit_test(an_unknown_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
