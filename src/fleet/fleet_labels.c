/* SPDX-License-Identifier: MIT */
/* Labels of one rank: from the program, and from the name of its file. */
#include "fleet/label_table.h"

#include "base/json_text.h"

#include <string.h>

/* In names of files followed by a number, with or without one of "-_=" between. */
static const char *const numbered[] = {"local_rank", "rank",  "host",  "node",    "stage", "expert",
                                       "step",       "layer", "group", "replica", "gpu",   "pp",
                                       "tp",         "dp",    "cp",    "ep",      "vp",    NULL};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_digit(c) || is_letter(c) || c == '_';
}

const char *tn_labels_find(const struct tn_labels *labels, const char *key)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].key, key) == 0) {
            return labels->items[i].value;
        }
    }
    return NULL;
}

static bool key_is_good(const char *key, size_t length)
{
    bool good = length > 0 && length <= TN_LABEL_KEY_MAX;

    for (size_t i = 0; good && i < length; i++) {
        good = is_word(key[i]);
    }
    return good;
}

/* Where a key is or belongs. */
static size_t key_place(const struct tn_labels *labels, const char *key)
{
    size_t at = 0;

    while (at < labels->count && strcmp(labels->items[at].key, key) < 0) {
        at++;
    }
    return at;
}

enum tarn_status tn_labels_set(struct tn_labels *labels, struct tn_arena *arena, const char *key,
                               size_t key_length, const char *value, size_t value_length)
{
    if (!key_is_good(key, key_length) || value_length > TN_LABEL_VALUE_MAX) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    const struct tarn_label label = {tn_arena_copy_text(arena, key, key_length),
                                     tn_arena_copy_text(arena, value, value_length)};

    if (!label.key || !label.value) {
        return TARN_ERR_HOST_MEMORY;
    }
    const size_t at = key_place(labels, label.key);

    if (at < labels->count && strcmp(labels->items[at].key, label.key) == 0) {
        labels->items[at] = label;
        return TARN_OK;
    }
    if (labels->count == TARN_LABELS_MAX) {
        return TARN_ERR_LIMIT;
    }
    memmove(&labels->items[at + 1], &labels->items[at],
            (labels->count - at) * sizeof labels->items[0]);
    labels->items[at] = label;
    labels->count++;
    return TARN_OK;
}

/* ---- names of files ---- */

/* The length of a value that begins there: to the next separator or to the ending of the file. */
static size_t value_length(const char *value)
{
    static const char *const endings[] = {".pickle", ".json", ".tsum", ".pkl", NULL};
    size_t length = strcspn(value, "/,;&");

    for (int i = 0; endings[i]; i++) {
        const char *ending = strstr(value, endings[i]);

        if (ending && (size_t)(ending - value) < length) {
            length = (size_t)(ending - value);
        }
    }
    return length;
}

static bool set_or_drop(struct tn_labels *labels, struct tn_arena *arena, const char *key,
                        size_t key_length, const char *value, size_t length)
{
    return tn_labels_set(labels, arena, key, key_length, value, length) != TARN_ERR_HOST_MEMORY;
}

/* "rank12" or "rank-12" there; *length_out is 0 when it is neither. */
static bool numbered_read(struct tn_labels *labels, struct tn_arena *arena, const char *at,
                          size_t *length_out)
{
    *length_out = 0;
    for (int i = 0; numbered[i]; i++) {
        const size_t key = strlen(numbered[i]);

        if (strncmp(at, numbered[i], key) != 0) {
            continue;
        }
        const size_t begin = key + (at[key] != '\0' && strchr("-_=", at[key]) ? 1 : 0);
        const size_t digits = strspn(at + begin, "0123456789");

        if (digits > 0 && !is_letter(at[begin + digits])) {
            *length_out = begin + digits;
            return set_or_drop(labels, arena, at, key, at + begin, digits);
        }
    }
    return true;
}

/* "KEY=VALUE" there. */
static bool pair_read(struct tn_labels *labels, struct tn_arena *arena, const char *at,
                      size_t *length_out)
{
    size_t key = 0;

    *length_out = 0;
    while (is_word(at[key])) {
        key++;
    }
    if (key == 0 || at[key] != '=') {
        return true;
    }
    const size_t length = value_length(at + key + 1);

    *length_out = key + 1 + length;
    return set_or_drop(labels, arena, at, key, at + key + 1, length);
}

bool tn_labels_read_name(struct tn_labels *labels, struct tn_arena *arena, const char *name)
{
    bool good = true;

    for (size_t at = 0; good && name[at] != '\0';) {
        size_t length;

        good = pair_read(labels, arena, name + at, &length);
        if (good && length == 0) {
            good = numbered_read(labels, arena, name + at, &length);
        }
        at += length;
        if (length == 0) { /* to the next beginning of a word */
            while (is_digit(name[at]) || is_letter(name[at])) {
                at++;
            }
            at += name[at] != '\0' ? 1 : 0;
        }
    }
    return good;
}

bool tn_labels_write(const struct tarn_label *labels, size_t count, struct tn_vec *text)
{
    const struct tarn_writer writer = tn_text_to_vec(text);
    struct tn_text_out out;
    struct tn_json_text json;

    text->count = 0;
    tn_text_init(&out, &writer);
    tn_json_init(&json, &out, TN_JSON_COMPACT);
    tn_json_open_object(&json, NULL);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(labels[i].key, "file") != 0) {
            tn_json_word(&json, labels[i].key, labels[i].value);
        }
    }
    tn_json_close(&json);
    return tn_text_finish(&out) == TARN_OK;
}
