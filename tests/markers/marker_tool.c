/* SPDX-License-Identifier: MIT */
/*
 * Snapshots with markers (tests/data/markers.txt) in all of their texts, and a look at what the
 * program makes of them, with other readers than its own.
 *
 *   marker_tool make MARKERS KIND     a snapshot on stdout: with "all" that can be in one, "strict"
 *                                     those that JSON can hold, or "plain" words in their places
 *   marker_tool terminal FILE         nothing in it that a terminal obeys, no line made by a marker
 *   marker_tool json MARKERS FILE     JSON; "jsonl": a document a line. The markers are strings
 *   marker_tool parse FILE            JSON with some marker in it
 *   marker_tool names MARKERS FILE    JSON; short markers are strings as they are shown
 *   marker_tool csv MARKERS FILE      as many cells in each row; the markers are cells
 *   marker_tool cells MARKERS FILE    the same of short markers
 *   marker_tool sqlite MARKERS FILE   sound; the markers are values
 *   marker_tool tags FILE             the markup's tags and comments, one a line, on stdout
 *
 * A marker has "~m" and its number at its end, so that it is found wherever it goes.
 */
#include "tarn/text.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARKERS_MAX = 1000,
    TEXT_MAX = 70100,
    BYTES_FIRST = 64,
    NAME_MAX = 1000, /* names in tables are cut behind some thousand bytes */
    BOUND = '\x1e'   /* around the texts that are found */
};

struct marker {
    char kind[16];
    char *text;
    size_t length;
};

static struct marker markers[MARKERS_MAX];
static size_t marker_count;

/* Bytes that grow. */
struct bytes {
    char *at;
    size_t size;
    size_t room;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

/* The caller frees `at`. */
static struct bytes bytes_new(void)
{
    struct bytes bytes = {.at = calloc(1, BYTES_FIRST), .room = BYTES_FIRST};

    if (!bytes.at) {
        die("no memory");
    }
    return bytes;
}

static void bytes_add(struct bytes *bytes, const char *more, size_t size)
{
    if (bytes->room - bytes->size < size + 1) {
        bytes->room = (bytes->size + size + 1) * 2;
        bytes->at = realloc(bytes->at, bytes->room);
        if (!bytes->at) {
            die("no memory");
        }
    }
    memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
    bytes->at[bytes->size] = '\0';
}

static struct bytes file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct bytes bytes = bytes_new();
    char piece[65536];
    size_t size;

    if (!file) {
        die("cannot read %s", path);
    }
    while ((size = fread(piece, 1, sizeof piece, file)) > 0) {
        bytes_add(&bytes, piece, size);
    }
    (void)fclose(file);
    return bytes;
}

static bool bytes_hold(const struct bytes *bytes, const char *text, size_t length)
{
    const char *at = bytes->at;
    const char *const end = bytes->at + bytes->size;

    while ((size_t)(end - at) >= length) {
        at = memchr(at, text[0], (size_t)(end - at) - length + 1);
        if (!at) {
            return false;
        }
        if (memcmp(at, text, length) == 0) {
            return true;
        }
        at++;
    }
    return false;
}

/* ---- markers ---- */

static void marker_parse(const char *line, size_t length)
{
    struct marker *marker = &markers[marker_count];
    const char *tab = memchr(line, '\t', length);
    struct bytes text = bytes_new();
    char tag[16];

    (void)snprintf(marker->kind, sizeof marker->kind, "%.*s", (int)(tab - line), line);
    for (const char *at = tab + 1; at < line + length; at++) {
        char byte = *at;

        if (byte == '\\') {
            const char digits[3] = {at[2], at[3], '\0'};

            byte = (char)(unsigned char)strtol(digits, NULL, 16);
            at += 3;
        }
        bytes_add(&text, &byte, 1);
    }
    const size_t once = text.size;

    while (strncmp(marker->kind, "long:", 5) == 0 &&
           text.size + once <= strtoul(marker->kind + 5, NULL, 10)) {
        char copy[64];

        memcpy(copy, text.at, once);
        bytes_add(&text, copy, once);
    }
    (void)snprintf(tag, sizeof tag, "~m%03zu", marker_count);
    bytes_add(&text, tag, strlen(tag));
    marker->text = text.at;
    marker->length = text.size;
    marker_count++;
}

static void markers_read(const char *path)
{
    const struct bytes file = file_read(path);
    const char *at = file.at;

    while (*at) {
        const size_t length = strcspn(at, "\n");

        if (*at != '#' && marker_count < MARKERS_MAX) {
            marker_parse(at, length);
        }
        at += length + (at[length] == '\n');
    }
    if (marker_count < 250) {
        die("%zu markers only", marker_count);
    }
    free(file.at);
}

static bool is_kind(const struct marker *marker, const char *kind)
{
    return strcmp(marker->kind, kind) == 0;
}

/* ---- a snapshot ---- */

/* As a JSON string; bytes that JSON takes stay as they are. */
static void text_put(const struct marker *marker, bool is_plain)
{
    (void)putchar('"');
    for (size_t i = is_plain ? marker->length - 5 : 0; i < marker->length; i++) {
        const unsigned char c = (unsigned char)marker->text[i];

        if (c < 0x20) {
            (void)printf("\\u%04x", c);
        } else {
            (void)printf(c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
    }
    (void)putchar('"');
}

static void member_put(const char *key, const struct marker *marker, bool is_plain)
{
    (void)printf("\"%s\":", key);
    text_put(marker, is_plain);
    (void)putchar(',');
}

static void frames_put(const struct marker *marker, size_t line, bool is_plain)
{
    (void)printf("\"frames\":[{");
    member_put("name", marker, is_plain);
    member_put("filename", marker, is_plain);
    member_put("fx_node_op", marker, is_plain);
    member_put("fx_node_name", marker, is_plain);
    member_put("fx_node_target", marker, is_plain);
    member_put("fx_original_trace", marker, is_plain);
    (void)printf("\"line\":%zu}]", line);
}

/* As a key, of which not every reader takes a NUL. */
static void key_put(const struct marker *marker, bool is_plain)
{
    text_put(marker, is_plain || memchr(marker->text, '\0', marker->length));
    (void)putchar(':');
}

/* What stands for each marker in a list, by the number of the marker. */
typedef void put_item(const struct marker *marker, size_t number, bool is_plain);

static void block_put(const struct marker *marker, size_t number, bool is_plain)
{
    (void)printf("{\"size\":512,\"requested_size\":500,\"state\":\"active_allocated\",");
    key_put(marker, is_plain);
    (void)printf("1,");
    frames_put(marker, number, is_plain);
    (void)putchar('}');
}

static void entry_put(const struct marker *marker, size_t number, bool is_plain)
{
    (void)printf("{\"action\":\"alloc\",\"addr\":%zu,\"size\":512,\"stream\":0,\"time_us\":%zu,",
                 4096 + number * 512, number + 1);
    member_put("user_metadata", marker, is_plain);
    member_put("compile_context", marker, is_plain);
    member_put("category", marker, is_plain);
    member_put("internal_metadata", marker, is_plain);
    frames_put(marker, number, is_plain);
    (void)printf("},{\"action\":");
    text_put(marker, is_plain);
    (void)printf(",\"addr\":1,\"size\":1,\"stream\":0,");
    key_put(marker, is_plain);
    (void)printf("2,\"time_us\":%zu}", number + 1);
}

static void annotation_put(const struct marker *marker, size_t number, bool is_plain)
{
    (void)printf("{\"stage\":\"START\",\"device\":0,\"time_us\":%zu,", number + 1);
    member_put("name", marker, is_plain);
    key_put(marker, is_plain);
    text_put(marker, is_plain);
    (void)printf("},{\"device\":0,\"name\":\"x\",\"time_us\":1,\"stage\":");
    text_put(marker, is_plain);
    (void)putchar('}');
}

static void setting_put(const struct marker *marker, size_t number, bool is_plain)
{
    (void)number;
    key_put(marker, is_plain);
    text_put(marker, is_plain);
}

static bool can_be_in(const struct marker *marker, const char *what)
{
    return !is_kind(marker, "invalid") && (strcmp(what, "all") == 0 || !is_kind(marker, "half"));
}

static size_t list_put(put_item *put, const char *what)
{
    size_t count = 0;

    for (size_t i = 0; i < marker_count; i++) {
        if (can_be_in(&markers[i], what)) {
            (void)printf(count > 0 ? "," : "");
            put(&markers[i], count++, strcmp(what, "plain") == 0);
        }
    }
    return count;
}

static void snapshot_make(const char *what)
{
    const bool is_plain = strcmp(what, "plain") == 0;
    size_t count = 0;

    for (size_t i = 0; i < marker_count; i++) {
        count += can_be_in(&markers[i], what);
    }
    (void)printf("{\"segments\":[{\"device\":0,\"address\":4096,\"total_size\":%zu,\"stream\":0,"
                 "\"segment_type\":\"small\",\"blocks\":[",
                 count * 512);
    (void)list_put(block_put, what);
    (void)printf("]}],\"device_traces\":[[");
    (void)list_put(entry_put, what);
    (void)printf("]],\"external_annotations\":[");
    (void)list_put(annotation_put, what);
    (void)printf("],\"allocator_settings\":{");
    (void)list_put(setting_put, what);
    (void)printf(",\"PYTORCH_CUDA_ALLOC_CONF\":");
    text_put(&markers[40], is_plain);
    (void)printf("},");
    key_put(&markers[41], is_plain);
    (void)printf("0}\n");
}

/* ---- terminals ---- */

/* The code of the character at `at`, its length in *length_out, 0 for none. */
static unsigned long code_at(const unsigned char *at, size_t left, size_t *length_out)
{
    const size_t length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned long code = length == 1 ? at[0] : at[0] & (0x7fu >> length);

    *length_out = at[0] >= 0x80 && (at[0] < 0xc2 || at[0] > 0xf4) ? 0 : length <= left ? length : 0;
    for (size_t i = 1; i < *length_out; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            *length_out = 0;
            return 0;
        }
        code = code << 6 | (at[i] & 0x3f);
    }
    return code;
}

static bool is_obeyed(unsigned long code)
{
    return (code < 0x20 && code != '\n') || (code >= 0x7f && code <= 0x9f) || code == 0x61c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
           (code >= 0xd800 && code <= 0xdfff) || (code >= 0xe0000 && code <= 0xe007f);
}

static void terminal_check(const struct bytes *bytes)
{
    const unsigned char *text = (const unsigned char *)bytes->at;
    size_t length;

    for (size_t i = 0; i < bytes->size; i += length) {
        const unsigned long code = code_at(text + i, bytes->size - i, &length);
        const bool ends_line = code == '\r' && text[i + 1] == '\n';

        if (length == 0 || (is_obeyed(code) && !ends_line)) {
            die("byte %zu: U+%04lX: %.60s", i, code, bytes->at + (i > 20 ? i - 20 : 0));
        }
    }
    if (strncmp(bytes->at, "FORGED", 6) == 0 || strstr(bytes->at, "\nFORGED")) {
        die("a line of a marker's");
    }
}

/* ---- what was found ---- */

static void found_add(struct bytes *found, const char *text, size_t length)
{
    const char bound = BOUND;

    bytes_add(found, &bound, 1);
    bytes_add(found, text, length);
    bytes_add(found, &bound, 1);
}

typedef size_t make_shape(const struct marker *marker, char *text);

/* Each marker of at most so many bytes must be one of the texts, as `shape` makes it. */
static void found_check(const struct bytes *found, make_shape *shape, size_t most)
{
    static char text[(size_t)8 * TEXT_MAX];
    size_t missing = 0;

    for (size_t i = 0; i < marker_count; i++) {
        if (can_be_in(&markers[i], "strict") && markers[i].length <= most) {
            const size_t length = shape(&markers[i], text + 1);

            text[0] = BOUND;
            text[length + 1] = BOUND;
            if (!bytes_hold(found, text, length + 2)) {
                (void)fprintf(stderr, "marker %zu (%s) is not there\n", i, markers[i].kind);
                missing++;
            }
        }
    }
    if (missing > 0) {
        die("%zu markers are missing", missing);
    }
}

static size_t shape_same(const struct marker *marker, char *text)
{
    memcpy(text, marker->text, marker->length);
    return marker->length;
}

static size_t shape_shown(const struct marker *marker, char *text)
{
    (void)tarn_text_escape(marker->text, marker->length, TARN_TEXT_PLAIN, text,
                           (size_t)7 * TEXT_MAX);
    return strlen(text);
}

/* Spreadsheets take these for formulas; the last four are as wide as Chinese characters. */
static size_t shape_cell(const struct marker *marker, char *text)
{
    static const char *const starts[] = {
        "=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
    const size_t length = shape_shown(marker, text);

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(text, starts[i], strlen(starts[i])) == 0) {
            memmove(text + 1, text, length + 1);
            text[0] = '\'';
            return length + 1;
        }
    }
    return length;
}

/* ---- JSON ---- */

/* NOLINTNEXTLINE(misc-no-recursion): jansson bounds the depth */
static void json_collect(struct bytes *found, const json_t *value)
{
    size_t i;
    const json_t *item;
    const char *key;

    if (json_is_string(value)) {
        found_add(found, json_string_value(value), json_string_length(value));
    }
    json_array_foreach(value, i, item)
    {
        json_collect(found, item);
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        json_collect(found, item);
    }
}

static void json_read(struct bytes *found, const char *text, size_t length)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);

    if (!root) {
        die("no JSON: %s at %d", error.text, error.position);
    }
    json_collect(found, root);
    json_decref(root);
}

static void json_check(const struct bytes *file, bool by_line, make_shape *shape, size_t most)
{
    struct bytes found = bytes_new();
    const char *at = file->at;

    if (!by_line) {
        json_read(&found, file->at, file->size);
    }
    for (; by_line && *at; at += strcspn(at, "\n") + 1) {
        json_read(&found, at, strcspn(at, "\n"));
    }
    found_check(&found, shape, most);
    free(found.at);
}

/* With some marker in it. */
static void json_parse_check(const struct bytes *file)
{
    struct bytes found = bytes_new();

    json_read(&found, file->at, file->size);
    if (!bytes_hold(&found, "~m1", 3)) {
        die("no marker");
    }
    free(found.at);
}

/* ---- CSV (RFC 4180) ---- */

/* A cell from `at` on; returns what is behind it. */
static const char *cell_read(const char *at, struct bytes *cell)
{
    cell->size = 0;
    bytes_add(cell, "", 0);
    if (*at != '"') {
        const size_t length = strcspn(at, ",\r\n");

        bytes_add(cell, at, length);
        if (memchr(at, '"', length)) {
            die("a quote in a bare cell");
        }
        return at + length;
    }
    for (at++; at[0] != '"' || at[1] == '"'; at++) {
        if (*at == '\0') {
            die("a cell does not end");
        }
        bytes_add(cell, at, 1);
        at += *at == '"';
    }
    if (at[1] == '\0' || !strchr(",\r\n", at[1])) {
        die("text behind a cell: %.20s", at);
    }
    return at + 1;
}

static const char *row_read(const char *at, struct bytes *found, size_t *columns_out)
{
    struct bytes cell = bytes_new();
    size_t columns = 0;

    for (bool more = true; more; columns++) {
        at = cell_read(at, &cell);
        found_add(found, cell.at, cell.size);
        more = *at == ',';
        at += more;
    }
    *columns_out = columns;
    free(cell.at);
    at += *at == '\r';
    return at + (*at == '\n');
}

static void csv_check(const struct bytes *file, size_t most)
{
    struct bytes found = bytes_new();
    size_t columns;
    size_t named;
    const char *at = row_read(file->at, &found, &named);

    while (*at) {
        at = row_read(at, &found, &columns);
        if (columns != named) {
            die("%zu cells in a row of %zu", columns, named);
        }
    }
    found_check(&found, shape_cell, most);
    free(found.at);
}

/* ---- SQLite ---- */

static void rows_collect(sqlite3 *database, const char *sql, struct bytes *found)
{
    sqlite3_stmt *rows;

    if (sqlite3_prepare_v2(database, sql, -1, &rows, NULL) != SQLITE_OK) {
        die("%s: %s", sql, sqlite3_errmsg(database));
    }
    while (sqlite3_step(rows) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(rows, 0);

        found_add(found, text ? text : "", (size_t)sqlite3_column_bytes(rows, 0));
    }
    (void)sqlite3_finalize(rows);
}

static void sqlite_check(const char *path)
{
    static const char *const columns[] = {
        "SELECT name FROM stacks",          "SELECT filename FROM stacks",
        "SELECT user_metadata FROM events", "SELECT compile_context FROM events",
        "SELECT category FROM events",      "SELECT name FROM annotations",
        "SELECT stage FROM annotations",    "SELECT name FROM live_by_stack"};
    sqlite3 *database;
    struct bytes state = bytes_new();

    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        die("no database");
    }
    rows_collect(database, "PRAGMA integrity_check", &state);
    if (strcmp(state.at, "\x1eok\x1e") != 0) {
        die("not sound: %s", state.at);
    }
    free(state.at);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        struct bytes found = bytes_new();

        rows_collect(database, columns[i], &found);
        found_check(&found, shape_shown, TEXT_MAX);
        free(found.at);
    }
    (void)sqlite3_close(database);
}

/* ---- markup ---- */

/* "<" and what follows up to a blank or ">": of programs and styles, their ends. */
static void tags_print(const struct bytes *file)
{
    for (const char *at = file->at; (at = strchr(at, '<')) != NULL; at++) {
        (void)printf("%.*s\n", (int)strcspn(at, " \t\n>"), at);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    const bool has_markers = argc > 3;

    if (has_markers) {
        markers_read(argv[2]);
    }
    if (strcmp(what, "make") == 0 && has_markers) {
        snapshot_make(argv[3]);
        return 0;
    }
    if (argc < 3) {
        die("usage: see the source");
    }
    const char *path = argv[argc - 1];
    const struct bytes file = file_read(path);

    if (strcmp(what, "terminal") == 0) {
        terminal_check(&file);
    } else if (strcmp(what, "tags") == 0) {
        tags_print(&file);
    } else if (strncmp(what, "json", 4) == 0 && has_markers) {
        json_check(&file, what[4] == 'l', shape_same, TEXT_MAX);
    } else if (strcmp(what, "names") == 0 && has_markers) {
        json_check(&file, false, shape_shown, NAME_MAX);
    } else if (strcmp(what, "csv") == 0 && has_markers) {
        csv_check(&file, TEXT_MAX);
    } else if (strcmp(what, "cells") == 0 && has_markers) {
        csv_check(&file, NAME_MAX);
    } else if (strcmp(what, "sqlite") == 0 && has_markers) {
        sqlite_check(path);
    } else if (strcmp(what, "parse") == 0) {
        json_parse_check(&file);
    } else {
        die("usage: see the source");
    }
    free(file.at);
    return 0;
}
