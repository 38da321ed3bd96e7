/* SPDX-License-Identifier: MIT */
#include "analysis/fold.h"

#include <inttypes.h>
#include <string.h>

/* Calls the visitor with `size` - `accounted`, which may be below zero, unless it is zero. */
static bool gaps_visit(struct tn_fold_line line, uint64_t size, uint64_t accounted,
                       const struct tn_fold_visitor *visitor)
{
    line.leaf = TN_FOLD_GAPS;
    line.is_negative = accounted > size;
    line.bytes = line.is_negative ? accounted - size : size - accounted;
    return line.bytes == 0 || visitor->visit(visitor->context, &line);
}

static enum tn_fold_leaf leaf_of(uint32_t stack)
{
    return stack == TN_STACK_NONE || stack == TN_STACK_EMPTY ? TN_FOLD_NON_PYTHON : TN_FOLD_STACK;
}

static bool history_visit(struct tn_fold_line line, const struct tn_model_block *block,
                          const struct tn_fold_visitor *visitor)
{
    uint64_t accounted = 0;

    for (uint32_t i = 0; i < block->history_count; i++) {
        const struct tn_block_history *history = &block->history[i];

        line.stack = history->stack;
        line.leaf = history->stack == TN_STACK_NONE ? TN_FOLD_NO_CONTEXT : leaf_of(history->stack);
        line.bytes = history->real_size;
        accounted += line.bytes;
        if (!visitor->visit(visitor->context, &line)) {
            return false;
        }
    }
    return gaps_visit(line, block->size, accounted, visitor);
}

static bool block_visit(struct tn_fold_line line, const struct tn_model_block *block,
                        const struct tn_fold_visitor *visitor)
{
    line.state = block->state;
    if (block->history_count > 0) {
        return history_visit(line, block, visitor);
    }
    line.stack = block->stack;
    line.leaf = leaf_of(block->stack);
    line.bytes = block->requested_size;
    return visitor->visit(visitor->context, &line) &&
           gaps_visit(line, block->size, block->requested_size, visitor);
}

bool tn_fold_segment(const struct tn_model_segment *segment, const struct tn_fold_line *head,
                     const struct tn_fold_visitor *visitor)
{
    struct tn_fold_line line = {
        .side = head->side, .segment = segment, .by_segment = head->by_segment};

    for (size_t i = 0; i < segment->block_count; i++) {
        if (!block_visit(line, &segment->blocks[i], visitor)) {
            return false;
        }
    }
    return true;
}

/* Texts come NUL-terminated; text after a NUL in the file is ignored. */
static bool contains_any(struct tn_string text, const char *const *parts)
{
    for (; *parts; parts++) {
        if (strstr(text.text, *parts)) {
            return true;
        }
    }
    return false;
}

bool tn_fold_hides_frame(const struct tn_model *model, const struct tn_frame *frame)
{
    static const char *const names[] = {"unwind::unwind",
                                        "CapturedTraceback::gather",
                                        "gather_with_cpp",
                                        "_start",
                                        "__libc_start_main",
                                        "PyEval_",
                                        "PyObject_",
                                        "PyFunction_",
                                        NULL};
    static const char *const files[] = {"core/boxing",
                                        "/Register",
                                        "/Redispatch",
                                        "pythonrun.c",
                                        "Modules/main.c",
                                        "Objects/call.c",
                                        "Objects/methodobject.c",
                                        "pycore_ceval.h",
                                        "ceval.c",
                                        "cpython/abstract.h",
                                        NULL};

    return contains_any(tn_model_string(model, frame->name), names) ||
           contains_any(tn_model_string(model, frame->filename), files);
}

struct tn_string tn_fold_base_name(struct tn_string path)
{
    for (size_t i = path.length; i > 0; i--) {
        if (path.text[i - 1] == '/') {
            return (struct tn_string){.text = path.text + i, .length = path.length - i};
        }
    }
    return path;
}

const char *tn_fold_leaf_name(enum tn_fold_leaf leaf)
{
    static const char *const names[] = {
        [TN_FOLD_STACK] = "",
        [TN_FOLD_NON_PYTHON] = "<non-python>",
        [TN_FOLD_NO_CONTEXT] = "<no-context>",
        [TN_FOLD_GAPS] = "<gaps>",
    };

    return names[leaf];
}

void tn_frame_put(struct tn_text_out *out, const struct tn_model *model, uint32_t number,
                  enum tn_escape_format format)
{
    const struct tn_frame *frame = tn_model_frame(model, number);
    const struct tn_string file = tn_fold_base_name(tn_model_string(model, frame->filename));
    const struct tn_string name = tn_model_string(model, frame->name);

    tn_text_put_escaped(out, file.text, file.length, format);
    tn_text_printf(out, ":%" PRId64 ":", frame->line);
    tn_text_put_escaped(out, name.text, name.length, format);
}
