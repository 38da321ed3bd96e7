/* SPDX-License-Identifier: MIT */
#include "report/name_table.h"

#include <string.h>

void tn_name_table_init(struct tn_name_table *table, const struct tn_path_format *format)
{
    *table = (struct tn_name_table){.format = *format};
    tn_arena_init(&table->arena, &table->budget);
    tn_chunked_vec_init(&table->names, &table->budget, sizeof(struct tn_name));
    tn_id_table_init(&table->ids, &table->budget);
    tn_vec_init(&table->text, 1);
}

void tn_name_table_fini(struct tn_name_table *table)
{
    tn_vec_fini(&table->text);
    tn_id_table_fini(&table->ids);
    tn_chunked_vec_fini(&table->names);
    tn_arena_fini(&table->arena);
}

static bool name_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_name_table *table = owner;
    const struct tn_name *name = tn_name_at(table, id);
    const struct tn_vec *text = key;

    return name->path_length == text->count &&
           (text->count == 0 || memcmp(name->path, text->items, text->count) == 0);
}

/* What a name is made from: a key of an analysis, a stack of a model that stays, or a text. */
struct origin {
    const struct tn_group_keys *keys;
    uint64_t key;
    const struct tn_stack_label *stack;
    const char *text;
    size_t length;
};

static void origin_put_path(struct tn_text_out *out, const struct origin *origin,
                            const struct tn_path_format *format)
{
    if (origin->keys) {
        tn_group_key_put_path(out, origin->keys, origin->key, format);
    } else if (origin->stack) {
        tn_stack_put_path(out, origin->stack, format);
    } else {
        tn_text_put(out, origin->text, origin->length);
    }
}

static void origin_put(struct tn_text_out *out, const struct origin *origin)
{
    if (origin->keys) {
        tn_group_key_put(out, origin->keys, origin->key);
    } else if (origin->stack) {
        tn_stack_label_put(out, origin->stack);
    } else {
        tn_text_put(out, origin->text, origin->length);
    }
}

/* The stack that a name stands for; without a model if it is none. */
static struct tn_stack_label label_of(const struct origin *origin)
{
    if (origin->stack) {
        return *origin->stack;
    }
    return origin->keys && origin->keys->by == TARN_BY_STACK
               ? tn_group_key_label(origin->keys, origin->key)
               : (struct tn_stack_label){.model = NULL};
}

static bool name_make(struct tn_name_table *table, const struct origin *origin,
                      struct tn_name *name)
{
    const struct tarn_writer writer = tn_text_to_vec(&table->text);
    struct tn_text_out out;

    name->path_length = table->text.count;
    name->path = tn_arena_copy(&table->arena, table->text.items, table->text.count, 1);
    table->text.count = 0;
    tn_text_init(&out, &writer);
    origin_put(&out, origin);
    if (!name->path || tn_text_finish(&out)) {
        return false;
    }
    name->shown_length = table->text.count;
    name->shown = tn_arena_copy(&table->arena, table->text.items, table->text.count, 1);
    name->label = label_of(origin);
    return name->shown != NULL;
}

static bool name_find(struct tn_name_table *table, const struct origin *origin, uint32_t *name_out)
{
    const struct tarn_writer writer = tn_text_to_vec(&table->text);
    struct tn_text_out out;
    struct tn_name made;

    table->text.count = 0;
    tn_text_init(&out, &writer);
    origin_put_path(&out, origin, &table->format);
    if (tn_text_finish(&out)) {
        return false;
    }
    const uint32_t hash = tn_hash_bytes(table->text.items, table->text.count);

    if (tn_id_table_find(&table->ids, hash, name_equal, table, &table->text, name_out)) {
        return true;
    }
    struct tn_name *added =
        name_make(table, origin, &made) ? tn_chunked_vec_push(&table->names) : NULL;

    if (!added) {
        return false;
    }
    *added = made;
    *name_out = (uint32_t)table->names.count - 1;
    return tn_id_table_add(&table->ids, hash, *name_out);
}

bool tn_name_find(struct tn_name_table *table, const struct tn_group_keys *keys, uint64_t key,
                  uint32_t *name_out)
{
    const struct origin origin = {.keys = keys, .key = key};

    return name_find(table, &origin, name_out);
}

bool tn_name_find_stack(struct tn_name_table *table, const struct tn_stack_label *label,
                        uint32_t *name_out)
{
    const struct origin origin = {.stack = label};

    return name_find(table, &origin, name_out);
}

bool tn_name_find_text(struct tn_name_table *table, const char *text, size_t length,
                       uint32_t *name_out)
{
    const struct origin origin = {.text = text, .length = length};

    return name_find(table, &origin, name_out);
}
