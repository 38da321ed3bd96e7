/* SPDX-License-Identifier: MIT */
#include "json_out.h"

#include "tarn/base.h"
#include "tarn/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_BYTES = 1024
};

static void string_write(FILE *file, const char *text)
{
    char piece[PIECE_BYTES];
    size_t length = strlen(text);

    (void)fputc('"', file);
    while (length > 0) {
        const size_t taken = tarn_text_escape(text, length, TARN_TEXT_JSON, piece, sizeof piece);

        (void)fputs(piece, file);
        text += taken;
        length -= taken;
    }
    (void)fputc('"', file);
}

static void line_begin(struct cli_json *json)
{
    (void)fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
}

/* Writes what precedes every member: comma, newline, key. */
static void member_begin(struct cli_json *json, const char *key)
{
    if (json->depth > 0) {
        (void)fputs(json->is_empty ? "" : ",", json->file);
        line_begin(json);
    }
    json->is_empty = false;
    if (key) {
        string_write(json->file, key);
        (void)fputs(": ", json->file);
    }
}

static void level_open(struct cli_json *json, const char *key, char opener, char closer)
{
    member_begin(json, key);
    if (json->depth == CLI_JSON_DEPTH_MAX) {
        abort();
    }
    (void)fputc(opener, json->file);
    json->closers[json->depth++] = closer;
    json->is_empty = true;
}

void cli_json_open_object(struct cli_json *json, const char *key)
{
    level_open(json, key, '{', '}');
}

void cli_json_open_array(struct cli_json *json, const char *key)
{
    level_open(json, key, '[', ']');
}

void cli_json_close(struct cli_json *json)
{
    if (json->depth == 0) {
        abort();
    }
    json->depth--;
    if (!json->is_empty) {
        line_begin(json);
    }
    (void)fputc(json->closers[json->depth], json->file);
    json->is_empty = false;
}

void cli_json_text(struct cli_json *json, const char *key, const char *text)
{
    member_begin(json, key);
    if (text) {
        string_write(json->file, text);
    } else {
        (void)fputs("null", json->file);
    }
}

void cli_json_number(struct cli_json *json, const char *key, uint64_t number)
{
    member_begin(json, key);
    (void)fprintf(json->file, "%" PRIu64, number);
}

void cli_json_signed(struct cli_json *json, const char *key, int64_t number)
{
    member_begin(json, key);
    (void)fprintf(json->file, "%" PRId64, number);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    member_begin(json, key);
    (void)fputs(value ? "true" : "false", json->file);
}

void cli_json_begin_flat(struct cli_json *json, FILE *file, const char *schema)
{
    *json = (struct cli_json){.file = file, .is_empty = true};
    cli_json_open_object(json, NULL);
    cli_json_text(json, "schema", schema);
    cli_json_open_object(json, "tool");
    cli_json_text(json, "name", "tarn");
    cli_json_text(json, "version", tarn_version());
    cli_json_close(json);
}

void cli_json_begin(struct cli_json *json, FILE *file, const char *schema, bool data_is_array)
{
    cli_json_begin_flat(json, file, schema);
    level_open(json, "data", data_is_array ? '[' : '{', data_is_array ? ']' : '}');
}

void cli_json_end(struct cli_json *json)
{
    while (json->depth > 0) {
        cli_json_close(json);
    }
    (void)fputc('\n', json->file);
}
