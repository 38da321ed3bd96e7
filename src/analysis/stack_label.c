/* SPDX-License-Identifier: MIT */
#include "analysis/stack_label.h"

#include "analysis/code_origin.h"
#include "analysis/fold.h"

#include <string.h>

enum {
    OWN_FRAMES = 3
};

/* What of a label is written so far. */
struct progress {
    bool has_frame;
    bool has_asker; /* a frame outside PyTorch */
    unsigned own;
};

static bool is_hidden(const struct tn_stack_label *label, uint32_t i)
{
    return tn_fold_hides_frame(label->model, tn_model_frame(label->model, label->stack.frames[i]));
}

/* Python code of an installed package, not the interpreter's own library. */
static bool is_of_package(struct tn_string file)
{
    return file.length >= 3 && memcmp(file.text + file.length - 3, ".py", 3) == 0 &&
           (strstr(file.text, "/site-packages/") || strstr(file.text, "/dist-packages/") ||
            strncmp(file.text, "site-packages/", sizeof "site-packages/" - 1) == 0);
}

/* Whether the next frame outwards belongs into the label. */
static bool is_chosen(struct progress *progress, struct tn_string file)
{
    const enum tn_code_origin origin = tn_code_origin_of(file);
    const bool is_own = origin == TN_CODE_OWN;
    const bool asks = is_own || (origin == TN_CODE_LIBRARY && is_of_package(file));
    const bool chosen = !progress->has_frame || (is_own && progress->own < OWN_FRAMES) ||
                        (asks && !progress->has_asker);

    progress->own += is_own && progress->has_frame;
    progress->has_asker = progress->has_asker || asks;
    return chosen;
}

static bool is_shown(const struct tn_stack_label *label, struct progress *progress, uint32_t i)
{
    const struct tn_frame *frame = tn_model_frame(label->model, label->stack.frames[i]);
    const bool chosen = is_chosen(progress, tn_model_string(label->model, frame->filename));

    return chosen || (label->wanted && label->wanted[i]);
}

void tn_stack_label_put(struct tn_text_out *out, const struct tn_stack_label *label)
{
    struct progress progress = {.own = 0};
    bool gap = false;

    for (uint32_t i = 0; i < label->stack.count; i++) {
        if (!label->is_full && is_hidden(label, i)) {
            continue;
        }
        if (!label->is_full && !is_shown(label, &progress, i)) {
            gap = true;
            continue;
        }
        if (progress.has_frame) {
            tn_text_puts(out, gap ? " < ... < " : " < ");
        }
        tn_frame_put(out, label->model, label->stack.frames[i], TN_ESCAPED_PLAIN);
        progress.has_frame = true;
        gap = false;
    }
    if (!progress.has_frame) {
        tn_text_puts(out, label->is_known ? "(no frames)" : "(not recorded)");
    } else if (gap) {
        tn_text_puts(out, " < ...");
    }
}

/* ---- telling stacks apart ---- */

static bool strings_equal(struct tn_string a, struct tn_string b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Numbers of frames of the two stacks. */
static bool frames_look_equal(const struct tn_stack_label *stack, uint32_t left,
                              const struct tn_stack_label *other, uint32_t right)
{
    const struct tn_frame *a = tn_model_frame(stack->model, left);
    const struct tn_frame *b = tn_model_frame(other->model, right);

    return a == b || (a->line == b->line &&
                      strings_equal(tn_model_string(stack->model, a->name),
                                    tn_model_string(other->model, b->name)) &&
                      strings_equal(tn_fold_base_name(tn_model_string(stack->model, a->filename)),
                                    tn_fold_base_name(tn_model_string(other->model, b->filename))));
}

/* The first frame from `i` on that labels have. */
static uint32_t next_visible(const struct tn_stack_label *stack, uint32_t i)
{
    while (
        i < stack->stack.count &&
        tn_fold_hides_frame(stack->model, tn_model_frame(stack->model, stack->stack.frames[i]))) {
        i++;
    }
    return i;
}

void tn_stack_label_tell_apart(const struct tn_stack_label *stack,
                               const struct tn_stack_label *other, bool *wanted)
{
    uint32_t i = next_visible(stack, 0);
    uint32_t k = next_visible(other, 0);

    while (i < stack->stack.count && k < other->stack.count &&
           frames_look_equal(stack, stack->stack.frames[i], other, other->stack.frames[k])) {
        i = next_visible(stack, i + 1);
        k = next_visible(other, k + 1);
    }
    if (i < stack->stack.count) {
        wanted[i] = true;
    }
}
