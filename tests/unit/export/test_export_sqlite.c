/* SPDX-License-Identifier: MIT */
/* Each call of SQLite fails, with each of its reasons; and SQLite is not there. */
#include "support/report.h"

#include "export/export_formats.h"
#include "export/export_table.h"
#include "export/sqlite_library.h"
#include "snapshot/snapshot.h"

/* ---- SQLite whose n-th call fails ---- */

static struct {
    const struct tn_sqlite *real;
    int code; /* what the call says; SQLITE_OK: none fails */
    uint64_t at;
    uint64_t calls;
} failing;

static bool fails_now(void)
{
    return ++failing.calls == failing.at;
}

static int failing_open(const char *name, sqlite3 **database, int flags, const char *vfs)
{
    *database = NULL;
    return fails_now() ? failing.code : failing.real->open_v2(name, database, flags, vfs);
}

static int failing_control(sqlite3 *database, const char *name, int op, void *argument)
{
    return fails_now() ? failing.code : failing.real->file_control(database, name, op, argument);
}

static int failing_exec(sqlite3 *database, const char *sql,
                        int (*row)(void *, int, char **, char **), void *context, char **error)
{
    return fails_now() ? failing.code : failing.real->exec(database, sql, row, context, error);
}

static int failing_prepare(sqlite3 *database, const char *sql, int size, sqlite3_stmt **statement,
                           const char **rest)
{
    return fails_now() ? failing.code
                       : failing.real->prepare_v2(database, sql, size, statement, rest);
}

static int failing_text(sqlite3_stmt *statement, int parameter, const char *text, int size,
                        void (*release)(void *))
{
    return fails_now() ? failing.code
                       : failing.real->bind_text(statement, parameter, text, size, release);
}

static int failing_step(sqlite3_stmt *statement)
{
    return fails_now() ? failing.code : failing.real->step(statement);
}

static int failing_reset(sqlite3_stmt *statement)
{
    const int code = failing.real->reset(statement);

    return fails_now() ? failing.code : code;
}

static unsigned char *failing_serialize(sqlite3 *database, const char *name, sqlite3_int64 *size,
                                        unsigned flags)
{
    return fails_now() ? NULL : failing.real->serialize(database, name, size, flags);
}

static struct tn_sqlite failing_calls(void)
{
    struct tn_sqlite calls;

    failing.real = tn_sqlite_get();
    assert_non_null(failing.real);
    calls = *failing.real;
    calls.open_v2 = failing_open;
    calls.file_control = failing_control;
    calls.exec = failing_exec;
    calls.prepare_v2 = failing_prepare;
    calls.bind_text = failing_text;
    calls.step = failing_step;
    calls.reset = failing_reset;
    calls.serialize = failing_serialize;
    return calls;
}

/* ---- what is exported ---- */

static const char run[] =
    "{'segments': [{'device': 0, 'address': 4096, 'total_size': 512, 'blocks': [{'size': 512,"
    " 'requested_size': 500, 'state': 'active_allocated', 'frames': [{'name': 'f', 'filename':"
    " 'a.py', 'line': 3}]}]}], 'device_traces': [[{'action': 'alloc', 'addr': 4096, 'size': 500,"
    " 'stream': 0, 'time_us': 5, 'frames': [{'name': 'f', 'filename': 'a.py', 'line': 3}]}]],"
    " 'external_annotations': [{'stage': 'START', 'name': 'x', 'device': 0, 'time_us': 5}]}";

static enum tarn_status export_with(const struct tarn_snapshot *snapshot,
                                    const struct tn_sqlite *calls, struct test_collect *collect,
                                    struct tarn_error *error)
{
    static const struct tarn_export_options all = {.struct_size = sizeof all};
    const struct tarn_writer writer = {test_collect_write, collect};
    const struct tn_export job = {.tables = &tn_snapshot_tables,
                                  .model = tn_snapshot_model(snapshot),
                                  .options = &all,
                                  .writer = &writer,
                                  .error = error};

    *error = (struct tarn_error){.status = TARN_OK};
    failing.calls = 0;
    return tn_export_sqlite_with(&job, calls);
}

static void every_call_may_fail(void **state)
{
    static const struct {
        int code;
        enum tarn_status status;
    } rows[] = {{SQLITE_NOMEM, TARN_ERR_HOST_MEMORY},
                {SQLITE_FULL, TARN_ERR_LIMIT},
                {SQLITE_TOOBIG, TARN_ERR_LIMIT},
                {SQLITE_CORRUPT, TARN_ERR_INTERNAL}};
    const struct tn_sqlite calls = failing_calls();
    struct tarn_snapshot *snapshot = report_parse(run);
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct test_collect collect = {0};
    struct tarn_error error;

    (void)state;
    failing.at = 0;
    assert_int_equal(export_with(snapshot, &calls, &collect, &error), TARN_OK);
    const uint64_t count = failing.calls;

    assert_true(count > 30 && collect.size > 4096);
    free(collect.text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failing.code = rows[i].code;
        for (failing.at = 1; failing.at <= count; failing.at++) {
            struct test_collect none = {0};
            const enum tarn_status wanted = /* the last call gives the bytes, or none */
                failing.at == count ? TARN_ERR_HOST_MEMORY : rows[i].status;

            if (export_with(snapshot, &calls, &none, &error) != wanted) {
                fail_msg("call %llu, code %d: %s", (unsigned long long)failing.at, failing.code,
                         error.text);
            }
            assert_int_equal(error.status, wanted);
            assert_int_equal(none.size, 0);
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
        }
    }
    tarn_snapshot_destroy(snapshot);
}

static void without_sqlite_it_is_said(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(run);
    struct test_collect collect = {0};
    struct tarn_error error;
    struct tn_sqlite functions;

    (void)state;
    assert_int_equal(export_with(snapshot, NULL, &collect, &error), TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "libsqlite3.so.0, which cannot be opened"));
    assert_int_equal(collect.size, 0);
    assert_null(tn_sqlite_load("/no/such/library.so", &functions));
    assert_null(tn_sqlite_load("libc.so.6", &functions)); /* which has none of them */
    assert_ptr_equal(tn_sqlite_load(TN_SQLITE_LIBRARY, &functions), &functions);
    tarn_snapshot_destroy(snapshot);
}

/* Larger than what is written at once. */
static void a_large_database_comes_whole(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    struct test_collect collect = {0};
    struct tarn_error error;
    sqlite3 *database = NULL;

    (void)state;
    assert_int_equal(export_with(snapshot, tn_sqlite_get(), &collect, &error), TARN_OK);
    assert_true(collect.size > 1 << 18);
    assert_int_equal(collect.size % 4096, 0);
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sqlite3_deserialize(database, "main", (unsigned char *)collect.text,
                                         (sqlite3_int64)collect.size, (sqlite3_int64)collect.size,
                                         SQLITE_DESERIALIZE_READONLY),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA integrity_check", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(without_sqlite_it_is_said),
        cmocka_unit_test(a_large_database_comes_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
