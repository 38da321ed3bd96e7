/* SPDX-License-Identifier: MIT */
#include "rows_out.h"

#include "tarn/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_MAX_BYTES = 128,
    FIRST_ROOM = 1 << 16,
    PIECE_BYTES = 1024
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
    const char *at = line;

    while (at && *at) {
        const size_t length = strcspn(at, "\x7f"); /* which is ASCII, and which terminals obey */

        (void)put(target, at, length);
        (void)put(target, "\\u007f", at[length] ? 6 : 0);
        at += length + (at[length] != '\0');
    }
    free(line);
    return at && put(target, "\n", 1);
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

/* Safe to show. */
static void text_put(const struct cell *cell, const char *text, size_t length)
{
    char piece[PIECE_BYTES];

    while (length > 0) {
        const size_t taken = tarn_text_escape(text, length, TARN_TEXT_PLAIN, piece, sizeof piece);

        for (const char *c = piece; *c; c++) {
            cell_char(cell, c, 1);
        }
        text += taken;
        length -= taken;
    }
}

static void string_put(const struct cell *cell, const json_t *string)
{
    text_put(cell, json_string_value(string), json_string_length(string));
}

static void frames_put(const struct cell *cell, const json_t *frames)
{
    char line[32];

    for (size_t i = json_array_size(frames); i > 0; i--) {
        const json_t *frame = json_array_get(frames, i - 1);
        const long long number = json_integer_value(json_object_get(frame, "line"));

        string_put(cell, json_object_get(frame, "filename"));
        text_put(cell, line, (size_t)snprintf(line, sizeof line, ":%lld:", number));
        string_put(cell, json_object_get(frame, "name"));
        text_put(cell, ";", i > 1 ? 1 : 0);
    }
}

/* What the text of a cell begins with. */
static const json_t *first_text(const json_t *value)
{
    const size_t size = json_array_size(value);

    return size > 0 ? json_object_get(json_array_get(value, size - 1), "filename") : value;
}

static void scalar_put(const struct cell *cell, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

    text_put(cell, text ? text : "", text ? strlen(text) : 0);
    free(text);
}

/* Numbers as they are; texts, stacks and lists in quotes. */
static void cell_put(struct target *target, const json_t *value)
{
    const bool is_text = json_is_string(value);
    const json_t *first = first_text(value);
    const struct cell cell = {.target = target};

    if (!value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0)) {
        return;
    }
    if (!is_text && !json_is_array(value) && !json_is_object(value)) {
        scalar_put(&cell, value);
        return;
    }
    (void)put(target, "\"'",
              tarn_text_is_formula(json_string_value(first), json_string_length(first)) ? 2 : 1);
    if (is_text) {
        string_put(&cell, value);
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

enum tarn_status cli_rows_write(const struct cli_rows_out *rows, enum cli_rows_format format,
                                const struct tarn_writer *writer, struct tarn_error *error)
{
    struct target target = {.writer = writer};
    json_error_t wrong;
    json_t *root = json_loadb(rows->text ? rows->text : "", rows->size, JSON_ALLOW_NUL, &wrong);

    if (!root) {
        return json_error_code(&wrong) == json_error_out_of_memory
                   ? fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the rows")
                   : fail(error, TARN_ERR_LIMIT,
                          "the report has a number that rows cannot hold; --json has it");
    }
    const bool good =
        format == CLI_ROWS_CSV
            ? csv_put(&target, root)
            : document_walk(&(struct visitor){.row = line_put, .context = &target}, root);

    json_decref(root);
    if (target.status) {
        return fail(error, target.status, "cannot write the rows");
    }
    return good ? TARN_OK : fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the rows");
}
