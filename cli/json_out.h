/* SPDX-License-Identifier: MIT */
/*
 * Writes one JSON document of the program to a stdio stream: an envelope
 * {"schema": NAME, "tool": "tarn VERSION", "data": ...} around what the command adds. Members are
 * written in order, two blanks a level. Text that is not UTF-8 becomes U+FFFD byte by byte.
 *
 * Every call takes the member's key, NULL inside arrays. Only open and close keep a balance;
 * closing what is not open is the caller's bug and stops the program.
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
    char closers[CLI_JSON_DEPTH_MAX]; /* what ends each open level */
    bool is_empty;                    /* nothing was written on this level yet */
};

/* Opens the envelope and the object or array of "data". `schema` is a name with a version, such as
 * "tarn.config/1"; it changes when members are removed or change their meaning. */
void cli_json_begin(struct cli_json *json, FILE *file, const char *schema, bool data_is_array);

/* Opens an object without the envelope: for the few documents whose form is fixed elsewhere. */
void cli_json_begin_bare(struct cli_json *json, FILE *file);

/* Closes every level that is open, and ends the line. */
void cli_json_end(struct cli_json *json);

void cli_json_open_object(struct cli_json *json, const char *key);
void cli_json_open_array(struct cli_json *json, const char *key);
void cli_json_close(struct cli_json *json); /* the innermost of both */

void cli_json_text(struct cli_json *json, const char *key, const char *text); /* NULL: null */
void cli_json_number(struct cli_json *json, const char *key, uint64_t number);
void cli_json_signed(struct cli_json *json, const char *key, int64_t number);
void cli_json_bool(struct cli_json *json, const char *key, bool value);

#endif
