/* SPDX-License-Identifier: MIT */
/*
 * Writes one JSON document to a text, usually an envelope {"schema": NAME, "tool": {"name": "tarn",
 * "version": VERSION}, "data": {...}} around a report's data, in order; cli/schemas describes each.
 * Invisible characters are escaped. `key` is NULL inside arrays. Needs no host memory.
 */
#ifndef TN_BASE_JSON_TEXT_H
#define TN_BASE_JSON_TEXT_H

#include "base/text_out.h"

#include <stdbool.h>

enum {
    TN_JSON_DEPTH_MAX = 16
};

enum tn_json_layout {
    TN_JSON_INDENTED, /* one member per line, two blanks per level */
    TN_JSON_PYTHON,   /* one line, as Python's json.dumps writes it */
    TN_JSON_COMPACT   /* one line without blanks */
};

struct tn_json_text {
    struct tn_text_out *out;
    enum tn_json_layout layout;
    unsigned depth;
    char closers[TN_JSON_DEPTH_MAX];
    bool is_empty; /* this level has no member yet */
};

/* A document without an envelope. */
void tn_json_init(struct tn_json_text *json, struct tn_text_out *out, enum tn_json_layout layout);

/* Opens an object with the members of the envelope but "data": for documents whose own members
 * stand beside them. */
void tn_json_begin_flat(struct tn_json_text *json, struct tn_text_out *out,
                        enum tn_json_layout layout, const char *schema);

/* Opens the envelope. `schema` is a name with a version, which changes when members are removed or
 * change their meaning. */
void tn_json_begin(struct tn_json_text *json, struct tn_text_out *out, const char *schema);

/* Closes all open levels and ends the line. */
void tn_json_end(struct tn_json_text *json);

void tn_json_open_object(struct tn_json_text *json, const char *key);
void tn_json_open_array(struct tn_json_text *json, const char *key);
void tn_json_close(struct tn_json_text *json);

void tn_json_text(struct tn_json_text *json, const char *key, const char *text, size_t length);
void tn_json_word(struct tn_json_text *json, const char *key, const char *word);
void tn_json_number(struct tn_json_text *json, const char *key, uint64_t number);
void tn_json_number_or_null(struct tn_json_text *json, const char *key, uint64_t number,
                            uint64_t none);
void tn_json_signed(struct tn_json_text *json, const char *key, int64_t number);
void tn_json_address(struct tn_json_text *json, const char *key, uint64_t address); /* "0x..." */
void tn_json_bool(struct tn_json_text *json, const char *key, bool value);
void tn_json_null(struct tn_json_text *json, const char *key);

#endif
