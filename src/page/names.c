/* SPDX-License-Identifier: MIT */
#include "page/names.h"

#include "analysis/code_origin.h"
#include "base/assertion.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool numbering_init(struct tn_numbering *numbering, uint64_t count)
{
    *numbering = (struct tn_numbering){.count = (size_t)count};
    numbering->numbers = tn_host_alloc_zero(numbering->count * sizeof(uint32_t));
    tn_assert(count > 0); /* number 0, which means none */
    return numbering->numbers != NULL;
}

static void numbering_fini(struct tn_numbering *numbering)
{
    tn_host_free(numbering->numbers, numbering->count * sizeof(uint32_t));
}

bool tn_names_init(struct tn_names *names, const struct tn_model *model,
                   struct tn_categories *categories, enum tarn_view_redact redact,
                   struct tn_hidden_texts *hidden)
{
    bool good = true;

    *names = (struct tn_names){
        .model = model, .categories = categories, .redact = redact, .hidden = hidden};
    for (size_t i = 0; i < sizeof names->strings / sizeof names->strings[0]; i++) {
        good = numbering_init(&names->strings[i], model->strings.count) && good;
    }
    good = numbering_init(&names->frames, model->frames.count) && good;
    good = numbering_init(&names->stacks, model->stacks.count) && good;
    good = numbering_init(&names->extras, model->extras.count) && good;
    tn_column_init(&names->text_sizes);
    tn_column_init(&names->text_bytes);
    tn_column_init(&names->frame_column);
    tn_column_init(&names->node_column);
    tn_column_init(&names->stack_column);
    tn_column_init(&names->extra_column);
    if (!good) {
        tn_names_fini(names);
    }
    return good;
}

void tn_names_fini(struct tn_names *names)
{
    for (size_t i = 0; i < sizeof names->strings / sizeof names->strings[0]; i++) {
        numbering_fini(&names->strings[i]);
    }
    numbering_fini(&names->frames);
    numbering_fini(&names->stacks);
    numbering_fini(&names->extras);
    tn_map_fini(&names->children);
    tn_column_fini(&names->text_sizes);
    tn_column_fini(&names->text_bytes);
    tn_column_fini(&names->frame_column);
    tn_column_fini(&names->node_column);
    tn_column_fini(&names->stack_column);
    tn_column_fini(&names->extra_column);
}

/* ---- texts ---- */

static struct tn_string base_name(struct tn_string path)
{
    size_t start = path.length;

    while (start > 0 && path.text[start - 1] != '/' && path.text[start - 1] != '\\') {
        start--;
    }
    return (struct tn_string){path.text + start, path.length - start};
}

static uint32_t text_add(struct tn_names *names, struct tn_string text)
{
    tn_column_put_varint(&names->text_sizes, text.length);
    tn_column_put(&names->text_bytes, text.text, text.length);
    return ++names->texts;
}

static uint32_t text_add_hidden(struct tn_names *names, struct tn_string text,
                                enum tn_text_kind kind)
{
    static const char *const words[TN_TEXT_KINDS] = {
        [TN_TEXT_NAME] = "function", [TN_TEXT_FILE] = "file", [TN_TEXT_OTHER] = "text"};
    char shown[32];
    const uint32_t number = tn_hidden_texts_number(names->hidden, text, kind);
    const int length = snprintf(shown, sizeof shown, "%s %" PRIu32, words[kind], number);

    return text_add(names, (struct tn_string){shown, (size_t)length});
}

uint32_t tn_names_text(struct tn_names *names, uint32_t string, enum tn_text_kind kind)
{
    uint32_t *number = &names->strings[kind].numbers[string];
    const struct tn_string text = tn_model_string(names->model, string);

    if (*number > 0 || string == TN_STRING_NONE) {
        return *number;
    }
    switch (names->redact) {
    case TARN_VIEW_REDACT_NOTHING:
        *number = text_add(names, text);
        break;
    case TARN_VIEW_REDACT_PATHS:
        *number = text_add(names, kind == TN_TEXT_FILE ? base_name(text) : text);
        break;
    case TARN_VIEW_REDACT_ALL:
        *number = text_add_hidden(names, text, kind);
        break;
    }
    return *number;
}

/* ---- stacks ---- */

static uint32_t frame_number(struct tn_names *names, uint32_t frame)
{
    uint32_t *number = &names->frames.numbers[frame];
    const struct tn_frame *from = tn_model_frame(names->model, frame);
    struct tn_column *column = &names->frame_column;

    if (*number > 0) {
        return *number;
    }
    tn_column_put_varint(column, tn_names_text(names, from->name, TN_TEXT_NAME));
    tn_column_put_varint(column, tn_names_text(names, from->filename, TN_TEXT_FILE));
    tn_column_put_step(column, 0, names->redact == TARN_VIEW_REDACT_ALL ? 0 : (uint64_t)from->line);
    tn_column_put_varint(column, tn_code_origin_of(tn_model_string(names->model, from->filename)));
    const struct tn_frame_fx *fx = tn_chunked_vec_at(&names->model->fx, from->fx);

    tn_column_put_varint(column, tn_names_text(names, fx->node_op, TN_TEXT_OTHER));
    tn_column_put_varint(column, tn_names_text(names, fx->node_name, TN_TEXT_OTHER));
    tn_column_put_varint(column, tn_names_text(names, fx->node_target, TN_TEXT_OTHER));
    tn_column_put_varint(column, tn_names_text(names, fx->original_trace, TN_TEXT_OTHER));
    *number = ++names->frames.used;
    return *number;
}

static uint32_t node_child(struct tn_names *names, uint32_t parent, uint32_t frame)
{
    const uint64_t key = (uint64_t)parent << 32 | frame; /* not 0: frames are not */
    const uint64_t *found = tn_map_find(&names->children, key);

    if (found) {
        return (uint32_t)*found;
    }
    if (!tn_map_reserve(&names->children, 1)) {
        names->failed = true;
        return parent;
    }
    const uint32_t node = ++names->nodes;

    tn_map_insert(&names->children, key, node);
    tn_column_put_varint(&names->node_column, node - parent);
    tn_column_put_varint(&names->node_column, frame);
    return node;
}

uint32_t tn_names_stack(struct tn_names *names, uint32_t stack)
{
    uint32_t *number = &names->stacks.numbers[stack];
    uint32_t node = 0;

    if (*number > 0 || stack == TN_STACK_NONE) {
        return *number;
    }
    const struct tn_stack frames = tn_model_stack(names->model, stack);

    for (uint32_t i = frames.count; i > 0; i--) {
        node = node_child(names, node, frame_number(names, frames.frames[i - 1]));
    }
    tn_column_put_varint(&names->stack_column, node);
    tn_column_put_varint(&names->stack_column, tn_category_of_stack(names->categories, stack));
    *number = ++names->stacks.used;
    return *number;
}

/* ---- details ---- */

uint32_t tn_names_extra(struct tn_names *names, uint32_t extra)
{
    const struct tn_trace_extra *from = tn_model_extra(names->model, extra);
    const uint32_t strings[] = {from->user_metadata, from->compile_context, from->category,
                                from->internal_metadata, from->action_name};
    uint32_t *number = &names->extras.numbers[extra];
    bool is_plain = true;

    if (*number > 0) {
        return *number;
    }
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        is_plain = is_plain && tn_model_string(names->model, strings[i]).length == 0;
    }
    if (is_plain) {
        return 0;
    }
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        tn_column_put_varint(&names->extra_column, tn_names_text(names, strings[i], TN_TEXT_OTHER));
    }
    *number = ++names->extras.used;
    return *number;
}

bool tn_names_put(const struct tn_names *names, const struct tn_section_out *out)
{
    return !names->failed && !names->hidden->failed &&
           tn_section_put(out, "text.sizes", &names->text_sizes) &&
           tn_section_put(out, "text.bytes", &names->text_bytes) &&
           tn_section_put(out, "frames", &names->frame_column) &&
           tn_section_put(out, "nodes", &names->node_column) &&
           tn_section_put(out, "stacks", &names->stack_column) &&
           tn_section_put(out, "extras", &names->extra_column);
}
