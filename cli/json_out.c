/* SPDX-License-Identifier: MIT */
#include "json_out.h"

#include "tarn/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at `text`, 0 when it is none: overlong forms, surrogates and what is
 * beyond U+10FFFF are none. */
static size_t utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    if (text[0] < 0x80) {
        return 1;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first_min || text[0] > forms[i].first_max ||
            text[1] < forms[i].second_min || text[1] > forms[i].second_max) {
            continue;
        }
        for (size_t k = 2; k < forms[i].length; k++) {
            if (text[k] < 0x80 || text[k] > 0xBF) {
                return 0;
            }
        }
        return forms[i].length;
    }
    return 0;
}

static void string_write(FILE *file, const char *text)
{
    static const char escaped[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";

    (void)fputc('"', file);
    while (*text != '\0') {
        const size_t length = utf8_length((const unsigned char *)text);
        const char *escape = strchr(escaped, *text);

        if (length == 0) {
            (void)fputs("\xEF\xBF\xBD", file);
        } else if (escape) {
            (void)fprintf(file, "\\%c", letters[escape - escaped]);
        } else if ((unsigned char)*text < ' ' || *text == 0x7F) {
            (void)fprintf(file, "\\u%04x", (unsigned char)*text);
        } else {
            (void)fwrite(text, 1, length, file);
        }
        text += length > 0 ? length : 1;
    }
    (void)fputc('"', file);
}

static void line_begin(struct cli_json *json)
{
    (void)fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
}

/* What comes before every member: comma, new line, key. */
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

void cli_json_begin_bare(struct cli_json *json, FILE *file)
{
    *json = (struct cli_json){.file = file, .is_empty = true};
    cli_json_open_object(json, NULL);
}

void cli_json_begin(struct cli_json *json, FILE *file, const char *schema, bool data_is_array)
{
    char tool[64];

    *json = (struct cli_json){.file = file, .is_empty = true};
    (void)snprintf(tool, sizeof tool, "tarn %s", tarn_version());
    cli_json_open_object(json, NULL);
    cli_json_text(json, "schema", schema);
    cli_json_text(json, "tool", tool);
    level_open(json, "data", data_is_array ? '[' : '{', data_is_array ? ']' : '}');
}

void cli_json_end(struct cli_json *json)
{
    while (json->depth > 0) {
        cli_json_close(json);
    }
    (void)fputc('\n', json->file);
}
