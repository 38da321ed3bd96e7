/* SPDX-License-Identifier: MIT */
#include "analysis/frame_view.h"

#include "analysis/code_origin.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>

/* The patterns of a selection; each may be missing. */
struct patterns {
    struct tn_pattern match;
    struct tn_pattern hide;
    bool has_match;
    bool has_hide;
};

static bool is_python(struct tn_string file)
{
    return file.text[0] == '<' ||
           (file.length >= 3 && memcmp(file.text + file.length - 3, ".py", 3) == 0);
}

static enum tarn_status patterns_init(struct patterns *patterns,
                                      const struct tarn_selection *selection,
                                      struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    *patterns = (struct patterns){.has_match = selection->match, .has_hide = selection->hide};
    if (patterns->has_match) {
        status = tn_pattern_init(&patterns->match, selection->match, "--match", error);
    }
    if (status == TARN_OK && patterns->has_hide) {
        status = tn_pattern_init(&patterns->hide, selection->hide, "--hide", error);
        if (status && patterns->has_match) {
            tn_pattern_fini(&patterns->match);
        }
    }
    return status;
}

static void patterns_fini(struct patterns *patterns)
{
    if (patterns->has_hide) {
        tn_pattern_fini(&patterns->hide);
    }
    if (patterns->has_match) {
        tn_pattern_fini(&patterns->match);
    }
}

static bool is_of_kind(enum tarn_frames frames, struct tn_string file)
{
    switch (frames) {
    case TARN_FRAMES_PYTHON:
        return is_python(file);
    case TARN_FRAMES_CPP:
        return !is_python(file);
    case TARN_FRAMES_OWN:
        return is_python(file) && tn_code_origin_of(file) == TN_CODE_OWN;
    case TARN_FRAMES_ALL:
        break;
    }
    return true;
}

static bool is_hidden(const struct tn_model *model, const struct tn_frame *frame,
                      const struct tarn_selection *selection, const struct patterns *patterns,
                      const struct tn_frame_text *text)
{
    if (!is_of_kind(selection->frames, tn_model_string(model, frame->filename))) {
        return true;
    }
    return patterns->has_hide && tn_pattern_matches(&patterns->hide, text);
}

static void frames_look(struct tn_frame_view *view, const struct tarn_selection *selection,
                        const struct patterns *patterns)
{
    struct tn_frame_text text = {.text = ""};

    for (uint32_t i = 0; i < view->model->frames.count; i++) {
        const struct tn_frame *frame = tn_model_frame(view->model, i);

        if (patterns->has_match || patterns->has_hide) {
            tn_frame_text_set(&text, view->model, frame);
        }
        view->hidden[i] = is_hidden(view->model, frame, selection, patterns, &text);
        if (patterns->has_match) {
            view->matching[i] = tn_pattern_matches(&patterns->match, &text);
        }
    }
}

static bool tables_init(struct tn_frame_view *view)
{
    const size_t frames = (size_t)view->model->frames.count + 1;
    const size_t stacks = (size_t)view->model->stacks.count + 1;

    view->hidden = tn_host_alloc_zero(frames);
    view->matching = view->hidden ? tn_host_alloc_zero(frames) : NULL;
    view->seen_as = view->matching ? tn_host_alloc_zero(stacks * sizeof *view->seen_as) : NULL;
    for (uint32_t i = 0; view->seen_as && i <= TN_STACK_EMPTY; i++) {
        struct tn_stack *stack = tn_chunked_vec_push(&view->stacks);

        if (!stack) {
            return false;
        }
        *stack = (struct tn_stack){.count = 0};
        view->seen_as[i] = i + 1;
    }
    return view->seen_as != NULL;
}

enum tarn_status tn_frame_view_init(struct tn_frame_view *view, const struct tn_model *model,
                                    const struct tarn_selection *selection,
                                    struct tarn_error *error)
{
    struct patterns patterns;
    const enum tarn_status status = patterns_init(&patterns, selection, error);

    if (status) {
        return status;
    }
    *view = (struct tn_frame_view){.model = model,
                                   .changes = patterns.has_hide || selection->depth > 0 ||
                                              selection->frames != TARN_FRAMES_ALL,
                                   .has_match = patterns.has_match,
                                   .depth = selection->depth};
    tn_chunked_vec_init(&view->stacks, &view->budget, sizeof(struct tn_stack));
    tn_id_table_init(&view->ids, &view->budget);
    tn_arena_init(&view->arena, &view->budget);
    if (!tables_init(view)) {
        patterns_fini(&patterns);
        tn_frame_view_fini(view);
        return tn_fail_memory(error);
    }
    if (view->changes || view->has_match) {
        frames_look(view, selection, &patterns);
    }
    patterns_fini(&patterns);
    return TARN_OK;
}

void tn_frame_view_fini(struct tn_frame_view *view)
{
    const size_t frames = (size_t)view->model->frames.count + 1;
    const size_t stacks = (size_t)view->model->stacks.count + 1;

    tn_arena_fini(&view->arena);
    tn_id_table_fini(&view->ids);
    tn_chunked_vec_fini(&view->stacks);
    tn_host_free(view->seen_as, stacks * sizeof *view->seen_as);
    tn_host_free(view->matching, frames);
    tn_host_free(view->hidden, frames);
}

/* ---- stacks ---- */

struct tn_stack tn_frame_view_stack(const struct tn_frame_view *view, uint32_t seen)
{
    return view->changes ? *(const struct tn_stack *)tn_chunked_vec_at(&view->stacks, seen)
                         : tn_model_stack(view->model, seen);
}

static bool stack_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_frame_view *view = owner;
    const struct tn_stack *a = tn_chunked_vec_at(&view->stacks, id);
    const struct tn_stack *b = key;

    return a->count == b->count && memcmp(a->frames, b->frames, a->count * sizeof *a->frames) == 0;
}

/* The number of a list of frames, made at first sight. The list is the arena's. */
static bool stack_get(struct tn_frame_view *view, const struct tn_stack *wanted, uint32_t *seen_out)
{
    if (wanted->count == 0) {
        *seen_out = TN_STACK_EMPTY;
        return true;
    }
    const uint32_t hash = tn_hash_bytes(wanted->frames, wanted->count * sizeof *wanted->frames);

    if (tn_id_table_find(&view->ids, hash, stack_equal, view, wanted, seen_out)) {
        return true;
    }
    struct tn_stack *added = tn_chunked_vec_push(&view->stacks);

    if (!added) {
        return false;
    }
    *added = *wanted;
    *seen_out = (uint32_t)view->stacks.count - 1;
    return tn_id_table_add(&view->ids, hash, *seen_out);
}

static bool stack_look(struct tn_frame_view *view, uint32_t number, uint32_t *seen_out)
{
    const struct tn_stack stack = tn_model_stack(view->model, number);
    uint32_t *frames = tn_arena_alloc_array(&view->arena, stack.count, sizeof *frames);
    struct tn_stack wanted = {.frames = frames};

    if (!frames) {
        return false;
    }
    for (uint32_t i = 0; i < stack.count && (view->depth == 0 || wanted.count < view->depth); i++) {
        if (!view->hidden[stack.frames[i]]) {
            frames[wanted.count++] = stack.frames[i];
        }
    }
    return stack_get(view, &wanted, seen_out);
}

bool tn_frame_view_find(struct tn_frame_view *view, uint32_t stack, uint32_t *seen_out)
{
    if (!view->changes) {
        *seen_out = stack;
        return true;
    }
    if (view->seen_as[stack] == 0) {
        uint32_t seen;

        if (!stack_look(view, stack, &seen)) {
            return false;
        }
        view->seen_as[stack] = seen + 1;
    }
    *seen_out = view->seen_as[stack] - 1;
    return true;
}

bool tn_frame_view_matches(const struct tn_frame_view *view, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(view->model, number);

    for (uint32_t i = 0; view->has_match && i < stack.count; i++) {
        if (view->matching[stack.frames[i]]) {
            return true;
        }
    }
    return !view->has_match;
}
