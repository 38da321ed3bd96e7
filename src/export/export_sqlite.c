/* SPDX-License-Identifier: MIT */
/*
 * A snapshot or a fleet as an SQLite database: the tables of export_table.h, a table `about`, and
 * views. It is built in memory and then written as a whole, so that any writer will do. Addresses
 * and streams above 2^63 are negative there, as SQLite's numbers have a sign.
 */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/escaped.h"
#include "base/vec.h"
#include "export/export_formats.h"
#include "export/export_table.h"
#include "export/sqlite_library.h"

#include <stdio.h>
#include <string.h>

#define DATABASE_MAX ((sqlite3_int64)1 << 40)

enum {
    SQL_MAX = 1024,
    PIECE = 1 << 16 /* bytes written at once */
};

static const char sql_begin[] = "PRAGMA page_size = 4096;"
                                "PRAGMA journal_mode = OFF;"
                                "PRAGMA synchronous = OFF;"
                                "PRAGMA application_id = 1952543342;" /* "tarn" */
                                "PRAGMA user_version = 1;"
                                "BEGIN;"
                                "CREATE TABLE about(key TEXT PRIMARY KEY, value);";

struct sqlite_sink {
    struct tn_table_sink sink; /* first */
    const struct tn_sqlite *calls;
    sqlite3 *database;
    sqlite3_stmt *insert; /* into the table at hand */
    struct tn_vec text;   /* of the cell at hand */
    int code;             /* of the last call of SQLite: nothing follows one that fails */
};

static struct sqlite_sink *sink_of(struct tn_table_sink *sink)
{
    return (struct sqlite_sink *)sink;
}

static bool check(struct sqlite_sink *sink, int code)
{
    sink->code = code == SQLITE_DONE ? SQLITE_OK : code;
    return sink->code == SQLITE_OK;
}

static void append(char *sql, const char *more)
{
    const size_t used = strlen(sql);

    (void)snprintf(sql + used, SQL_MAX - used, "%s", more);
}

static bool is_stored(const struct tn_column *column)
{
    return column->kind != TN_COLUMN_FRAME;
}

static const char *type_name(enum tn_column_kind kind)
{
    return kind == TN_COLUMN_TEXT ? " TEXT" : kind == TN_COLUMN_REAL ? " REAL" : " INTEGER";
}

static bool sqlite_table(struct tn_table_sink *base, const struct tn_table *table)
{
    struct sqlite_sink *sink = sink_of(base);
    char create[SQL_MAX] = "CREATE TABLE ";
    char insert[SQL_MAX] = "INSERT INTO ";

    append(create, table->name);
    append(insert, table->name);
    append(insert, " VALUES");
    for (unsigned i = 0; i < table->column_count; i++) {
        if (is_stored(&table->columns[i])) {
            append(create, i > 0 ? ", " : "(");
            append(create, table->columns[i].name);
            append(create, type_name(table->columns[i].kind));
            append(insert, i > 0 ? ",?" : "(?");
        }
    }
    append(create, ")");
    append(insert, ")");
    (void)sink->calls->finalize(sink->insert);
    sink->insert = NULL;
    return check(sink, sink->calls->exec(sink->database, create, NULL, NULL, NULL)) &&
           check(sink, sink->calls->prepare_v2(sink->database, insert, -1, &sink->insert, NULL));
}

/* The text as it may be shown, in sink->text. */
static bool text_collect(struct sqlite_sink *sink, const struct tn_string text)
{
    struct tn_escaped shown;

    sink->text.count = 0;
    for (size_t at = 0; at < text.length;) {
        at += tn_escaped_next(text.text + at, text.length - at, TN_ESCAPED_PLAIN, &shown);
        if (!tn_vec_append(&sink->text, shown.text, shown.length)) {
            return check(sink, SQLITE_NOMEM);
        }
    }
    return true;
}

static bool string_bind(struct sqlite_sink *sink, int parameter, struct tn_string text)
{
    return text_collect(sink, text) &&
           check(sink, sink->calls->bind_text64(sink->insert, parameter,
                                                sink->text.count > 0 ? sink->text.items : "",
                                                sink->text.count, SQLITE_TRANSIENT, SQLITE_UTF8));
}

static bool cell_bind(struct sqlite_sink *sink, int parameter, const struct tn_cell *cell)
{
    switch (cell->kind) {
    case TN_CELL_SIGNED:
        return check(sink,
                     sink->calls->bind_int64(sink->insert, parameter, cell->value.signed_number));
    case TN_CELL_UNSIGNED:
        return check(sink,
                     sink->calls->bind_int64(sink->insert, parameter, (int64_t)cell->value.number));
    case TN_CELL_WORD:
        return check(sink, sink->calls->bind_text(sink->insert, parameter, cell->value.word, -1,
                                                  SQLITE_TRANSIENT));
    case TN_CELL_STRING:
        return string_bind(sink, parameter,
                           tn_model_string(sink->sink.model, (uint32_t)cell->value.number));
    case TN_CELL_TEXT:
        return string_bind(sink, parameter, cell->value.text);
    case TN_CELL_REAL:
        return check(sink, sink->calls->bind_double(sink->insert, parameter, cell->value.real));
    case TN_CELL_FRAME: /* is not stored */
        tn_no_case();
        break;
    case TN_CELL_NONE:
        break;
    }
    return check(sink, sink->calls->bind_null(sink->insert, parameter));
}

static bool sqlite_row(struct tn_table_sink *base, const struct tn_table *table,
                       const struct tn_cell *cells)
{
    struct sqlite_sink *sink = sink_of(base);
    int parameter = 0;

    for (unsigned i = 0; i < table->column_count; i++) {
        if (is_stored(&table->columns[i]) && !cell_bind(sink, ++parameter, &cells[i])) {
            return false;
        }
    }
    return check(sink, sink->calls->step(sink->insert)) &&
           check(sink, sink->calls->reset(sink->insert));
}

static bool about_put(struct sqlite_sink *sink, const char *key, const struct tn_cell *value)
{
    (void)sink->calls->finalize(sink->insert);
    sink->insert = NULL;
    return check(sink, sink->calls->prepare_v2(sink->database, "INSERT INTO about VALUES(?, ?)", -1,
                                               &sink->insert, NULL)) &&
           check(sink, sink->calls->bind_text(sink->insert, 1, key, -1, SQLITE_STATIC)) &&
           cell_bind(sink, 2, value) && check(sink, sink->calls->step(sink->insert));
}

static bool abouts_put(struct sqlite_sink *sink, const struct tn_export *job)
{
    const struct tn_cell tool = {.kind = TN_CELL_WORD, .value = {.word = "tarn"}};
    const struct tn_cell schema = {.kind = TN_CELL_UNSIGNED, .value = {.number = 1}};
    struct tn_about abouts[TN_ABOUTS_MAX];
    const size_t count = job->tables->about(job, abouts);
    bool good = about_put(sink, "tool", &tool) && about_put(sink, "schema", &schema);

    for (size_t i = 0; good && i < count; i++) {
        good = about_put(sink, abouts[i].key, &abouts[i].value);
    }
    return good;
}

static bool sql_run(struct sqlite_sink *sink, const char *sql)
{
    return check(sink, sink->calls->exec(sink->database, sql, NULL, NULL, NULL));
}

static bool database_open(struct sqlite_sink *sink)
{
    sqlite3_int64 most = DATABASE_MAX;

    /* A name that begins with no slash is this connection's own. */
    return check(sink, sink->calls->open_v2(
                           "file:tarn?vfs=memdb", &sink->database,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL)) &&
           check(sink, sink->calls->file_control(sink->database, "main", SQLITE_FCNTL_SIZE_LIMIT,
                                                 &most)) &&
           sql_run(sink, sql_begin);
}

static enum tarn_status database_write(struct sqlite_sink *sink, const struct tarn_writer *writer)
{
    sqlite3_int64 size = 0;
    const unsigned char *bytes =
        sink->calls->serialize(sink->database, "main", &size, SQLITE_SERIALIZE_NOCOPY);
    enum tarn_status status = bytes ? TARN_OK : TARN_ERR_HOST_MEMORY;

    for (sqlite3_int64 at = 0; status == TARN_OK && at < size; at += PIECE) {
        const sqlite3_int64 piece = size - at < PIECE ? size - at : PIECE;

        status = writer->write(writer->context, (const char *)bytes + at, (size_t)piece);
    }
    return status;
}

/* What a code of SQLite is to the caller. */
static enum tarn_status status_of(int code)
{
    if (code == SQLITE_OK || code == SQLITE_NOMEM) {
        return TARN_ERR_HOST_MEMORY;
    }
    return code == SQLITE_FULL || code == SQLITE_TOOBIG ? TARN_ERR_LIMIT : TARN_ERR_INTERNAL;
}

enum tarn_status tn_export_sqlite(const struct tn_export *job)
{
    return tn_export_sqlite_with(job, tn_sqlite_get());
}

enum tarn_status tn_export_sqlite_with(const struct tn_export *job, const struct tn_sqlite *calls)
{
    struct sqlite_sink sink = {.sink = {sqlite_table, sqlite_row, job->model}, .calls = calls};
    struct tarn_export_options options = *job->options;
    bool out_of_memory = false;
    enum tarn_status status;

    if (!calls) {
        return tn_fail(job->error, TARN_ERR_NOT_SUPPORTED,
                       "a database needs " TN_SQLITE_LIBRARY ", which cannot be opened: install it "
                       "(Debian: libsqlite3-0), or export to csv or jsonl");
    }
    options.table = TARN_TABLE_ALL;
    tn_vec_init(&sink.text, 1);
    const bool good =
        database_open(&sink) && job->tables->send(job, &sink.sink, &options, &out_of_memory) &&
        abouts_put(&sink, job) && sql_run(&sink, job->tables->sql) && sql_run(&sink, "COMMIT");

    if (good) {
        (void)calls->finalize(sink.insert);
        sink.insert = NULL;
        status = database_write(&sink, job->writer);
        if (status) {
            (void)tn_fail(job->error, status, "writing the database failed");
        }
    } else {
        status = tn_fail(job->error, status_of(sink.code), "no database can be made: %s",
                         out_of_memory ? "no host memory" : calls->errstr(sink.code));
    }
    (void)calls->finalize(sink.insert);
    (void)calls->close(sink.database);
    tn_vec_fini(&sink.text);
    return status;
}
