/* SPDX-License-Identifier: MIT */
#include "render/category_hint.h"

#include "base/size_text.h"

enum {
    SHARE_WORTH_IT = 20 /* a twentieth */
};

static bool is_much(uint64_t part, uint64_t total)
{
    return part > 0 && part >= total / SHARE_WORTH_IT;
}

void tn_category_hint_put(struct tn_document *document, const struct tn_unnamed *unnamed)
{
    const bool has_empty = is_much(unnamed->without_frames, unnamed->total);

    if (!document->text || document->by != TARN_BY_CATEGORY || document->has_hint ||
        (!has_empty && !is_much(unnamed->before, unnamed->total))) {
        return;
    }
    document->has_hint = true;
    if (has_empty) {
        tn_text_printf(
            document->text,
            "hint: %s of it has no frames, as the backward pass has with Python's stacks\n"
            "      alone; record with _record_memory_history(stacks=\"all\")\n",
            tn_size_text_in(document->text->units, (double)unnamed->without_frames).text);
    } else {
        tn_text_printf(document->text,
                       "hint: %s of it was allocated before the recording; start it before the\n"
                       "      model is made\n",
                       tn_size_text_in(document->text->units, (double)unnamed->before).text);
    }
}
