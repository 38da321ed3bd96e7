/* SPDX-License-Identifier: MIT */
#include "tracker/name_list.h"

#include "base/host_mem.h"

#include <string.h>

void tn_name_list_init(struct tn_name_list *list, uint32_t max)
{
    *list = (struct tn_name_list){.max = max};
    tn_id_table_init(&list->table, &list->budget);
    tn_vec_init(&list->texts, sizeof(char *));
}

static char **list_texts(const struct tn_name_list *list)
{
    return list->texts.items;
}

void tn_name_list_fini(struct tn_name_list *list)
{
    for (size_t i = 0; i < list->texts.count; i++) {
        tn_host_strfree(list_texts(list)[i]);
    }
    tn_vec_fini(&list->texts);
    tn_id_table_fini(&list->table);
}

static bool name_equal(const void *owner, uint32_t id, const void *key)
{
    return strcmp(list_texts(owner)[id], key) == 0;
}

enum tarn_status tn_name_list_add(struct tn_name_list *list, const char *text, uint32_t *id_out)
{
    const uint32_t hash = tn_hash_bytes(text, strlen(text));
    const uint32_t id = (uint32_t)list->texts.count;

    if (tn_id_table_find(&list->table, hash, name_equal, list, text, id_out)) {
        return TARN_OK;
    }
    if (id >= list->max) {
        return TARN_ERR_LIMIT;
    }
    char *copy = tn_vec_reserve(&list->texts, 1) ? tn_host_strdup(text) : NULL;

    if (!copy || !tn_id_table_add(&list->table, hash, id)) {
        tn_host_strfree(copy);
        return TARN_ERR_HOST_MEMORY;
    }
    list_texts(list)[list->texts.count++] = copy;
    *id_out = id;
    return TARN_OK;
}

const char *tn_name_list_text(const struct tn_name_list *list, uint32_t id)
{
    return id < list->texts.count ? list_texts(list)[id] : NULL;
}

uint32_t tn_name_list_count(const struct tn_name_list *list)
{
    return (uint32_t)list->texts.count;
}
