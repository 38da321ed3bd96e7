/* SPDX-License-Identifier: MIT */
/*
 * Writes one JSON document of the program to a stdio stream: an envelope {"schema": NAME, "tool":
 * {"name": "tarn", "version": VERSION}, "data": ...} around the command's data, the same as reports
 * have; the folder `schemas` describes each. Members are written in order, indented by two spaces
 * per level. Invalid UTF-8 becomes U+FFFD byte by byte.
 *
 * Every call takes the member's key, NULL inside arrays. Opens and closes must match; an unmatched
 * close is a bug in the caller and aborts.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CLI_JSON_DEPTH_MAX = 16
};

struct cli_json {
    FILE *file;
    unsigned depth;
    char closers[CLI_JSON_DEPTH_MAX]; /* the closing bracket of each open level */
    bool is_empty;                    /* this level has no member yet */
};

/* Opens the envelope and the object or array of "data". `schema` is a name with a version, such as
 * "tarn.config/1"; the version changes when members are removed or change their meaning. */
void cli_json_begin(struct cli_json *json, FILE *file, const char *schema, bool data_is_array);

/* Opens an object with "schema" and "tool", whose other members follow beside them. */
void cli_json_begin_flat(struct cli_json *json, FILE *file, const char *schema);

/* Closes all open levels and ends the line. */
void cli_json_end(struct cli_json *json);

void cli_json_open_object(struct cli_json *json, const char *key);
void cli_json_open_array(struct cli_json *json, const char *key);
void cli_json_close(struct cli_json *json); /* the innermost object or array */

void cli_json_text(struct cli_json *json, const char *key, const char *text); /* NULL: null */
void cli_json_number(struct cli_json *json, const char *key, uint64_t number);
void cli_json_signed(struct cli_json *json, const char *key, int64_t number);
void cli_json_bool(struct cli_json *json, const char *key, bool value);

#endif
