/* SPDX-License-Identifier: MIT */
#include "page/hidden_texts.h"

#include <string.h>

void tn_hidden_texts_init(struct tn_hidden_texts *hidden)
{
    *hidden = (struct tn_hidden_texts){.failed = false};
    for (int i = 0; i < TN_TEXT_KINDS; i++) {
        tn_vec_init(&hidden->texts[i], sizeof(struct tn_string));
        tn_id_table_init(&hidden->ids[i], &hidden->budget);
    }
}

void tn_hidden_texts_fini(struct tn_hidden_texts *hidden)
{
    for (int i = 0; i < TN_TEXT_KINDS; i++) {
        tn_vec_fini(&hidden->texts[i]);
        tn_id_table_fini(&hidden->ids[i]);
    }
}

static bool text_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_vec *texts = owner;
    const struct tn_string *text = (const struct tn_string *)texts->items + id;
    const struct tn_string *wanted = key;

    return text->length == wanted->length &&
           (text->length == 0 || memcmp(text->text, wanted->text, text->length) == 0);
}

uint32_t tn_hidden_texts_number(struct tn_hidden_texts *hidden, struct tn_string text,
                                enum tn_text_kind kind)
{
    struct tn_vec *texts = &hidden->texts[kind];
    const uint32_t hash = tn_hash_bytes(text.text, text.length);
    uint32_t id;

    if (tn_id_table_find(&hidden->ids[kind], hash, text_equal, texts, &text, &id)) {
        return id + 1;
    }
    id = (uint32_t)texts->count;
    if (!tn_vec_append(texts, &text, 1) || !tn_id_table_add(&hidden->ids[kind], hash, id)) {
        hidden->failed = true;
        return 0;
    }
    return id + 1;
}
