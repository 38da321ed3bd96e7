/* SPDX-License-Identifier: MIT */
#include "rows_out.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_MAX_BYTES = 128,
    FIRST_ROOM = 1 << 16
};

/* ---- collecting ---- */

static enum tarn_status collect(void *context, const char *bytes, size_t size)
{
    struct cli_rows_out *rows = context;

    while (rows->room - rows->size < size) {
        const size_t room = rows->room ? rows->room * 2 : FIRST_ROOM;
        char *text = realloc(rows->text, room);

        if (!text) {
            return TARN_ERR_HOST_MEMORY;
        }
        rows->text = text;
        rows->room = room;
    }
    memcpy(rows->text + rows->size, bytes, size);
    rows->size += size;
    return TARN_OK;
}

struct tarn_writer cli_rows_writer(struct cli_rows_out *rows)
{
    *rows = (struct cli_rows_out){.text = NULL};
    return (struct tarn_writer){.write = collect, .context = rows};
}

void cli_rows_fini(struct cli_rows_out *rows)
{
    free(rows->text);
    rows->text = NULL;
}

/* ---- walking ---- */

/* Who takes the rows; false ends the walk. */
struct visitor {
    bool (*row)(void *context, json_t *row);
    void *context;
};

/* Where in the document the walk is. */
struct place {
    const json_t *device; /* a number, or NULL */
    char path[PATH_MAX_BYTES];
};

static bool row_send(const struct visitor *visitor, const struct place *place, const char *part,
                     json_t *members)
{
    json_t *row = json_object();
    bool good = row != NULL;

    if (good && place->device) {
        good = json_object_set_new(row, "device", json_deep_copy(place->device)) == 0;
    }
    good = good && json_object_set_new(row, "table", json_string(place->path)) == 0 &&
           json_object_set_new(row, "part", json_string(part)) == 0 &&
           json_object_update(row, members) == 0 && visitor->row(visitor->context, row);
    json_decref(row);
    return good;
}

static bool is_table(const char *key, const json_t *value)
{
    return json_is_array(value) && strcmp(key, "frames") != 0 &&
           (json_array_size(value) == 0 || json_is_object(json_array_get(value, 0)));
}

static struct place place_below(const struct place *place, const char *key)
{
    struct place below = {.device = place->device};

    (void)snprintf(below.path, sizeof below.path, "%.80s%s%.40s", place->path,
                   place->path[0] ? "." : "", key);
    return below;
}

static bool table_walk(const struct visitor *visitor, const struct place *place,
                       const json_t *table)
{
    size_t i;
    json_t *row;

    json_array_foreach(table, i, row)
    {
        if (json_is_object(row) && !row_send(visitor, place, "row", row)) {
            return false;
        }
    }
    return true;
}

/* Documents of ours are few levels deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool object_walk(const struct visitor *visitor, const struct place *place, json_t *object)
{
    struct place last = *place; /* the table whose others and total follow */
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        bool good = true;

        if (is_table(key, value)) {
            last = place_below(place, key);
            good = table_walk(visitor, &last, value);
        } else if (strcmp(key, "others") == 0 || strcmp(key, "total") == 0) {
            good = !json_is_object(value) ||
                   row_send(visitor, &last, key[0] == 'o' ? "others" : "total", value);
        } else if (json_is_object(value)) {
            const struct place below = place_below(place, key);

            good = object_walk(visitor, &below, value);
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool document_walk(const struct visitor *visitor, json_t *root)
{
    json_t *data = json_object_get(root, "data");
    const json_t *devices = json_object_get(data, "devices");
    struct place place = {.device = NULL};
    size_t i;
    json_t *device;

    if (!devices) {
        return object_walk(visitor, &place, data);
    }
    json_array_foreach(devices, i, device)
    {
        place.device = json_object_get(device, "device");
        if (!object_walk(visitor, &place, device)) {
            return false;
        }
    }
    return true;
}

/* ---- JSON lines ---- */

/* Where rows go, and what stopped them. */
struct target {
    const struct tarn_writer *writer;
    enum tarn_status status;
    json_t *columns; /* of CSV: an object whose keys are the names, in their order */
};

static bool put(struct target *target, const char *text, size_t size)
{
    if (target->status == TARN_OK && size > 0) {
        target->status = target->writer->write(target->writer->context, text, size);
    }
    return target->status == TARN_OK;
}

static bool line_put(void *context, json_t *row)
{
    struct target *target = context;
    char *line = json_dumps(row, JSON_COMPACT | JSON_ENSURE_ASCII);
    const bool good = line && put(target, line, strlen(line)) && put(target, "\n", 1);

    free(line);
    return good;
}

/* ---- CSV ---- */

struct cell {
    struct target *target;
};

static void cell_char(const struct cell *cell, const char *bytes, size_t size)
{
    (void)put(cell->target, bytes, size);
    if (size == 1 && *bytes == '"') {
        (void)put(cell->target, bytes, size);
    }
}

/* One character of valid UTF-8; returns its length. */
static size_t character_read(const char *text, unsigned long *code_out)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

    *code_out = length == 1 ? first : first & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        *code_out = *code_out << 6 | ((unsigned char)text[i] & 0x3FU);
    }
    return length;
}

/* Controls, and marks that change the direction of what follows. */
static bool shows(unsigned long code)
{
    return code >= 0x20 && (code < 0x7F || code > 0x9F) && code != 0x61C && code != 0xFEFF &&
           (code < 0x200B || code > 0x200F) && (code < 0x2028 || code > 0x202E) &&
           (code < 0x2060 || code > 0x206F) && code < 0xE0000;
}

static void text_put(const struct cell *cell, const char *text)
{
    char escape[16];

    while (*text) {
        unsigned long code;
        const size_t length = character_read(text, &code);

        if (shows(code)) {
            cell_char(cell, text, length);
        } else {
            (void)put(cell->target, escape,
                      (size_t)snprintf(escape, sizeof escape, "\\u%04lx", code));
        }
        text += length;
    }
}

static void frames_put(const struct cell *cell, const json_t *frames)
{
    char line[32];

    for (size_t i = json_array_size(frames); i > 0; i--) {
        const json_t *frame = json_array_get(frames, i - 1);
        const char *file = json_string_value(json_object_get(frame, "filename"));
        const char *name = json_string_value(json_object_get(frame, "name"));

        (void)snprintf(line, sizeof line,
                       ":%lld:", (long long)json_integer_value(json_object_get(frame, "line")));
        text_put(cell, file ? file : "");
        text_put(cell, line);
        text_put(cell, name ? name : "");
        text_put(cell, i > 1 ? ";" : "");
    }
}

static void scalar_put(const struct cell *cell, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

    text_put(cell, text ? text : "");
    free(text);
}

/* Numbers as they are; texts, stacks and lists in quotes. */
static void cell_put(struct target *target, const json_t *value)
{
    const char *text = json_string_value(value);
    const struct cell cell = {.target = target};

    if (!value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0)) {
        return;
    }
    if (!text && !json_is_array(value) && !json_is_object(value)) {
        scalar_put(&cell, value);
        return;
    }
    (void)put(target, "\"", 1);
    if (text) {
        (void)put(target, "'", strchr("=+-@\t\r", *text) && *text ? 1 : 0);
        text_put(&cell, text);
    } else if (json_is_object(json_array_get(value, 0))) {
        frames_put(&cell, value);
    } else {
        scalar_put(&cell, value);
    }
    (void)put(target, "\"", 1);
}

static bool names_add(void *context, json_t *row)
{
    const struct target *target = context;
    const char *key;
    json_t *value;

    json_object_foreach(row, key, value)
    {
        if (json_object_set_new(target->columns, key, json_null()) != 0) {
            return false;
        }
    }
    return true;
}

static bool record_put(void *context, json_t *row)
{
    struct target *target = context;
    bool is_first = true;
    const char *key;
    json_t *nothing;

    json_object_foreach(target->columns, key, nothing)
    {
        (void)put(target, ",", is_first ? 0 : 1);
        cell_put(target, json_object_get(row, key));
        is_first = false;
    }
    return put(target, "\n", 1);
}

static bool csv_put(struct target *target, json_t *root)
{
    bool is_first = true;
    const char *key;
    json_t *nothing;

    target->columns = json_object();
    if (!target->columns ||
        !document_walk(&(struct visitor){.row = names_add, .context = target}, root)) {
        json_decref(target->columns);
        return false;
    }
    json_object_foreach(target->columns, key, nothing)
    {
        (void)put(target, ",", is_first ? 0 : 1);
        (void)put(target, key, strlen(key));
        is_first = false;
    }
    const bool good = put(target, "\n", is_first ? 0 : 1) &&
                      document_walk(&(struct visitor){.row = record_put, .context = target}, root);

    json_decref(target->columns);
    return good;
}

/* ---- both ---- */

static enum tarn_status fail(struct tarn_error *error, enum tarn_status status, const char *text)
{
    *error = (struct tarn_error){.status = status, .offset = -1};
    (void)snprintf(error->text, sizeof error->text, "%s", text);
    return status;
}

enum tarn_status cli_rows_write(const struct cli_rows_out *rows, enum cli_rows_form form,
                                const struct tarn_writer *writer, struct tarn_error *error)
{
    struct target target = {.writer = writer};
    json_error_t wrong;
    json_t *root = json_loadb(rows->text ? rows->text : "", rows->size, 0, &wrong);

    if (!root) {
        return json_error_code(&wrong) == json_error_out_of_memory
                   ? fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the rows")
                   : fail(error, TARN_ERR_LIMIT,
                          "the report has a number that rows cannot hold; --json has it");
    }
    const bool good =
        form == CLI_ROWS_CSV
            ? csv_put(&target, root)
            : document_walk(&(struct visitor){.row = line_put, .context = &target}, root);

    json_decref(root);
    if (target.status) {
        return fail(error, target.status, "cannot write the rows");
    }
    return good ? TARN_OK : fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the rows");
}
