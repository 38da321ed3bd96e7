/* SPDX-License-Identifier: MIT */
#include "analysis/group_key.h"

#include "analysis/fold.h"
#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"
#include "base/size_text.h"
#include "base/stable_hash.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_UNKNOWN = 0, /* of what belongs to a frame: the stack was not recorded */
    KEY_NO_FRAME = 1,
    KEY_FIRST = 2
};

struct grouping_words {
    const char *name;
    const char *plural;
    const char *heading;
};

static const struct grouping_words words[] = {
    [TARN_BY_STACK] = {"stack", "stacks", "allocated by"},
    [TARN_BY_FRAME] = {"frame", "frames", "allocated by"},
    [TARN_BY_FUNCTION] = {"function", "functions", "allocated by"},
    [TARN_BY_FILE] = {"file", "files", "allocated by"},
    [TARN_BY_LINE] = {"line", "lines", "allocated by"},
    [TARN_BY_CATEGORY] = {"category", "categories", "category"},
    [TARN_BY_STREAM] = {"stream", "streams", "stream"},
    [TARN_BY_POOL] = {"pool", "pools", "pool"},
    [TARN_BY_SEGMENT] = {"segment", "segments", "segment"},
    [TARN_BY_SIZE] = {"size", "sizes", "size of a block"},
    [TARN_BY_ANNOTATION] = {"annotation", "annotations", "annotation"},
    [TARN_BY_METADATA] = {"metadata", "texts", "metadata"},
    [TARN_BY_COMPILE] = {"compile", "contexts", "compile context"},
    [TARN_BY_MODULE] = {"module", "modules", "module"},
};

const char *tn_grouping_plural(enum tarn_grouping by)
{
    return words[by].plural;
}

const char *tn_grouping_name(enum tarn_grouping by)
{
    return words[by].name;
}

const char *tn_grouping_heading(enum tarn_grouping by)
{
    return words[by].heading;
}

/* ---- frames that count as one ---- */

struct frame_table {
    const struct tn_group_keys *keys;
    struct tn_budget budget;
    struct tn_id_table ids;
};

/* What frames are compared by: those of its members that do not matter are 0. */
struct frame_parts {
    int64_t line;
    uint32_t name;
    uint32_t filename;
};

static struct frame_parts parts_of(const struct tn_group_keys *keys, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(keys->model, number);
    struct frame_parts parts = {
        .line = frame->line, .name = frame->name, .filename = frame->filename};

    if (keys->by == TARN_BY_FUNCTION || keys->by == TARN_BY_FILE) {
        parts.line = 0;
    }
    if (keys->by == TARN_BY_FUNCTION) {
        parts.filename = 0;
    }
    if (keys->by == TARN_BY_FILE || keys->by == TARN_BY_LINE) {
        parts.name = 0;
    }
    return parts;
}

static bool parts_equal(const struct frame_parts *a, const struct frame_parts *b)
{
    return a->line == b->line && a->name == b->name && a->filename == b->filename;
}

static bool frame_equal(const void *owner, uint32_t id, const void *key)
{
    const struct frame_table *table = owner;
    const struct frame_parts parts = parts_of(table->keys, id);

    return parts_equal(&parts, key);
}

static bool same_fill(struct frame_table *table, uint32_t *same)
{
    for (uint32_t i = 0; i < table->keys->model->frames.count; i++) {
        const struct frame_parts parts = parts_of(table->keys, i);
        const uint32_t hash = tn_hash_bytes(&parts, sizeof parts);

        same[i] = i;
        if (!tn_id_table_find(&table->ids, hash, frame_equal, table, &parts, &same[i]) &&
            !tn_id_table_add(&table->ids, hash, i)) {
            return false;
        }
    }
    return true;
}

static bool is_about_a_frame(enum tarn_grouping by)
{
    return by == TARN_BY_FRAME || by == TARN_BY_FUNCTION || by == TARN_BY_FILE ||
           by == TARN_BY_LINE;
}

bool tn_group_keys_init(struct tn_group_keys *keys)
{
    struct frame_table table = {.keys = keys};

    keys->same_frame = NULL;
    if (!is_about_a_frame(keys->by)) {
        return true;
    }
    keys->same_frame =
        tn_host_alloc_zero(((size_t)keys->model->frames.count + 1) * sizeof(uint32_t));
    if (!keys->same_frame) {
        return false;
    }
    tn_id_table_init(&table.ids, &table.budget);
    const bool good = same_fill(&table, keys->same_frame);

    tn_id_table_fini(&table.ids);
    if (!good) {
        tn_group_keys_fini(keys);
    }
    return good;
}

void tn_group_keys_fini(struct tn_group_keys *keys)
{
    tn_host_free(keys->same_frame, ((size_t)keys->model->frames.count + 1) * sizeof(uint32_t));
    keys->same_frame = NULL;
}

/* ---- keys ---- */

/* The frame that asked: the innermost that is shown. */
static uint64_t frame_key(const struct tn_group_keys *keys, uint32_t seen)
{
    const struct tn_stack stack = tn_frame_view_stack(keys->view, seen);

    for (uint32_t i = 0; i < stack.count; i++) {
        if (!tn_fold_hides_frame(keys->model, tn_model_frame(keys->model, stack.frames[i]))) {
            return (uint64_t)keys->same_frame[stack.frames[i]] + KEY_FIRST;
        }
    }
    return seen == TN_STACK_NONE ? KEY_UNKNOWN : KEY_NO_FRAME;
}

/* An empty text says as little as none. */
static uint64_t string_key(const struct tn_group_keys *keys, uint32_t string)
{
    return tn_model_string(keys->model, string).length == 0 ? TN_STRING_NONE : string;
}

bool tn_group_key_find_any(const struct tn_group_keys *keys, const struct tn_lifetime *lifetime,
                           uint64_t *key_out)
{
    uint32_t seen = 0;

    if ((keys->by == TARN_BY_STACK || is_about_a_frame(keys->by)) &&
        !tn_frame_view_find(keys->view, lifetime->stack, &seen)) {
        return false;
    }
    switch (keys->by) {
    case TARN_BY_STACK:
        *key_out = seen;
        break;
    case TARN_BY_FRAME:
    case TARN_BY_FUNCTION:
    case TARN_BY_FILE:
    case TARN_BY_LINE:
        *key_out = frame_key(keys, seen);
        break;
    case TARN_BY_CATEGORY:
        *key_out = lifetime->category;
        break;
    case TARN_BY_STREAM:
        *key_out = lifetime->stream;
        break;
    case TARN_BY_POOL:
        *key_out = tn_pool_stream_at(keys->pool_streams, lifetime->pool_stream)->pool;
        break;
    case TARN_BY_SEGMENT:
        *key_out = tn_pool_stream_at(keys->pool_streams, lifetime->pool_stream)->segment;
        break;
    case TARN_BY_SIZE: /* tn_group_key_find has it */
        tn_no_case();
        break;
    case TARN_BY_ANNOTATION:
        *key_out = lifetime->annotation;
        break;
    case TARN_BY_METADATA:
    case TARN_BY_MODULE:
        *key_out = string_key(keys, lifetime->metadata);
        break;
    case TARN_BY_COMPILE:
        *key_out = string_key(keys, tn_model_extra(keys->model, lifetime->extra)->compile_context);
        break;
    }
    return true;
}

/* ---- a stack in one line ---- */

static void string_put(struct tn_text_out *out, struct tn_string text)
{
    tn_text_put_escaped(out, text.text, text.length, TN_ESCAPED_PLAIN);
}

struct tn_stack_label tn_group_key_label(const struct tn_group_keys *keys, uint64_t key)
{
    return (struct tn_stack_label){.model = keys->model,
                                   .stack = tn_frame_view_stack(keys->view, (uint32_t)key),
                                   .is_known = key != TN_STACK_NONE,
                                   .is_full = keys->full_stacks};
}

void tn_stack_put(struct tn_text_out *out, const struct tn_model *model, uint32_t stack)
{
    const struct tn_stack_label label = {
        .model = model, .stack = tn_model_stack(model, stack), .is_known = stack != TN_STACK_NONE};

    tn_stack_label_put(out, &label);
}

/* ---- names of keys ---- */

enum {
    NAME_PIECE_MAX = 96
};

/* A name: text of a file, which is escaped where it is written, between texts of our own. */
struct name {
    char before[NAME_PIECE_MAX];
    struct tn_string text;
    char after[NAME_PIECE_MAX];
};

static void name_string(struct name *name, const struct tn_model *model, uint64_t string,
                        const char *none)
{
    if (string == TN_STRING_NONE || tn_model_string(model, (uint32_t)string).length == 0) {
        (void)snprintf(name->before, sizeof name->before, "%s", none);
    } else {
        name->text = tn_model_string(model, (uint32_t)string);
    }
}

static void name_frame(struct name *name, const struct tn_group_keys *keys, uint64_t key)
{
    if (key < KEY_FIRST) {
        (void)snprintf(name->before, sizeof name->before, "%s",
                       key == KEY_UNKNOWN ? "(not recorded)" : "(no frames)");
        return;
    }
    const struct tn_frame *frame = tn_model_frame(keys->model, (uint32_t)(key - KEY_FIRST));

    name->text =
        tn_model_string(keys->model, keys->by == TARN_BY_FUNCTION ? frame->name : frame->filename);
    if (keys->by == TARN_BY_LINE || keys->by == TARN_BY_FRAME) {
        (void)snprintf(name->after, sizeof name->after, ":%" PRId64, frame->line);
    }
}

static void name_pool(struct name *name, const struct tn_group_keys *keys, uint64_t key)
{
    const struct tn_pool_id pool = tn_pool_stream_pool(keys->pool_streams, (uint32_t)key);

    if (key == 0) {
        (void)snprintf(name->before, sizeof name->before, "(unknown pool)");
    } else if (pool.id[0] == 0 && pool.id[1] == 0) {
        (void)snprintf(name->before, sizeof name->before, "default");
    } else {
        (void)snprintf(name->before, sizeof name->before, "private (%" PRIu64 ", %" PRIu64 ")",
                       pool.id[0], pool.id[1]);
    }
}

/* Sizes are below 2^62. */
static void name_size(struct name *name, enum tarn_units units, uint64_t bits)
{
    tn_assert(bits < 64);
    (void)snprintf(name->before, sizeof name->before, "up to %s",
                   tn_size_text_in(units, (double)((uint64_t)1 << bits)).text);
}

static void name_set(struct name *name, const struct tn_group_keys *keys, uint64_t key)
{
    const char *hint;

    *name = (struct name){.text = {"", 0}};
    switch (keys->by) {
    case TARN_BY_STACK: /* is written frame by frame */
        tn_no_case();
        break;
    case TARN_BY_FRAME:
    case TARN_BY_FUNCTION:
    case TARN_BY_FILE:
    case TARN_BY_LINE:
        name_frame(name, keys, key);
        break;
    case TARN_BY_CATEGORY:
        name->text.text = tn_category_name(keys->categories, (uint32_t)key, &hint);
        name->text.length = strlen(name->text.text);
        (void)snprintf(name->after, sizeof name->after, "%s", hint);
        break;
    case TARN_BY_STREAM:
        (void)snprintf(name->before, sizeof name->before, "stream %" PRIu64, key);
        break;
    case TARN_BY_POOL:
        name_pool(name, keys, key);
        break;
    case TARN_BY_SEGMENT:
        (void)snprintf(name->before, sizeof name->before,
                       key == 0 ? "(unknown segment)" : "segment 0x%" PRIx64, key);
        break;
    case TARN_BY_SIZE:
        name_size(name, keys->units, key);
        break;
    case TARN_BY_ANNOTATION:
        name_string(name, keys->model, key, "(no annotation)");
        break;
    case TARN_BY_METADATA:
        name_string(name, keys->model, key, "(none)");
        break;
    case TARN_BY_COMPILE:
        name_string(name, keys->model, key, "(not compiled)");
        break;
    case TARN_BY_MODULE:
        name_string(name, keys->model, key, "(outside of all modules)");
        break;
    }
}

static void name_put(struct tn_text_out *out, const struct tn_group_keys *keys,
                     const struct name *name, uint64_t key)
{
    tn_text_puts(out, name->before);
    string_put(out, name->text);
    tn_text_puts(out, name->after);
    if (keys->by == TARN_BY_FRAME && key >= KEY_FIRST) {
        tn_text_putc(out, ':');
        string_put(out,
                   tn_model_string(keys->model,
                                   tn_model_frame(keys->model, (uint32_t)(key - KEY_FIRST))->name));
    }
}

void tn_group_key_put(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key)
{
    struct name name;

    if (keys->by == TARN_BY_STACK) {
        const struct tn_stack_label label = tn_group_key_label(keys, key);

        tn_stack_label_put(out, &label);
        return;
    }
    name_set(&name, keys, key);
    if (keys->by == TARN_BY_FRAME || keys->by == TARN_BY_LINE) {
        name.text = tn_fold_base_name(name.text);
    }
    name_put(out, keys, &name, key);
}

void tn_group_key_put_name(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key)
{
    struct name name;

    name_set(&name, keys, key);
    name_put(out, keys, &name, key);
}

/* ---- paths ---- */

enum {
    PATH_TEXT_MAX = 4096 /* bytes of a text in a path */
};

/* A long text may be in every frame of every stack, though it is in the file once: beyond its
 * beginning only length and hash are written. */
static void path_text_put(struct tn_text_out *out, struct tn_string text)
{
    const struct tn_string begin = {text.text,
                                    (size_t)tn_utf8_fit(text.text, text.length, PATH_TEXT_MAX)};

    string_put(out, begin);
    if (begin.length < text.length) {
        tn_text_printf(out, "...(%zu bytes, %016" PRIx64 ")", text.length,
                       tn_stable_hash(TN_STABLE_HASH_BEGIN, text.text, text.length));
    }
}

static void file_put(struct tn_text_out *out, struct tn_string file,
                     const struct tn_path_format *format)
{
    const size_t prefix = format->strip_prefix ? strlen(format->strip_prefix) : 0;

    if (prefix > 0 && file.length >= prefix &&
        memcmp(file.text, format->strip_prefix, prefix) == 0) {
        file.text += prefix;
        file.length -= prefix;
    }
    path_text_put(out, file);
}

static void path_frame_put(struct tn_text_out *out, const struct tn_model *model,
                           const struct tn_frame *frame, const struct tn_path_format *format)
{
    file_put(out, tn_model_string(model, frame->filename), format);
    if (format->ignore_lines) {
        tn_text_putc(out, ':');
    } else {
        tn_text_printf(out, ":%" PRId64 ":", frame->line);
    }
    path_text_put(out, tn_model_string(model, frame->name));
}

void tn_stack_put_path(struct tn_text_out *out, const struct tn_stack_label *label,
                       const struct tn_path_format *format)
{
    bool is_first = true;

    for (uint32_t i = label->stack.count; i > 0; i--) {
        const struct tn_frame *frame = tn_model_frame(label->model, label->stack.frames[i - 1]);

        if (!tn_fold_hides_frame(label->model, frame)) {
            tn_text_puts(out, is_first ? "" : ";");
            path_frame_put(out, label->model, frame, format);
            is_first = false;
        }
    }
    if (is_first) {
        tn_text_puts(out, label->is_known ? "(no frames)" : "(not recorded)");
    }
}

void tn_group_key_put_path(struct tn_text_out *out, const struct tn_group_keys *keys, uint64_t key,
                           const struct tn_path_format *format)
{
    struct name name;

    if (keys->by == TARN_BY_STACK) {
        const struct tn_stack_label label = tn_group_key_label(keys, key);

        tn_stack_put_path(out, &label, format);
        return;
    }
    name_set(&name, keys, key);
    if (is_about_a_frame(keys->by) && key >= KEY_FIRST) {
        const struct tn_frame *frame = tn_model_frame(keys->model, (uint32_t)(key - KEY_FIRST));

        if (keys->by == TARN_BY_FRAME) {
            path_frame_put(out, keys->model, frame, format);
            return;
        }
        if (keys->by != TARN_BY_FUNCTION) {
            file_put(out, name.text, format);
            tn_text_puts(out, format->ignore_lines ? "" : name.after);
            return;
        }
    }
    name_put(out, keys, &name, key);
}
