/* SPDX-License-Identifier: MIT */
#include "report/group.h"

#include "base/map.h"
#include "base/size_text.h"
#include "report/fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    USER_FRAMES = 3
};

static int group_compare(const void *left, const void *right)
{
    const struct tn_group *a = left;
    const struct tn_group *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* The row of a stack, made at first sight. */
static struct tn_group *group_get(struct tn_groups *groups, struct tn_map *numbers, uint32_t stack)
{
    const uint64_t *number = tn_map_find(numbers, (uint64_t)stack + 1);

    if (number) {
        return (struct tn_group *)groups->rows.items + *number;
    }
    if (!tn_map_reserve(numbers, 1)) {
        return NULL;
    }
    struct tn_group *group = tn_vec_push(&groups->rows);

    if (group) {
        group->stack = stack;
        tn_map_insert(numbers, (uint64_t)stack + 1, groups->rows.count - 1);
    }
    return group;
}

static bool life_add(struct tn_groups *groups, struct tn_map *numbers, const struct tn_life *life)
{
    struct tn_group *group = group_get(groups, numbers, life->stack);
    const uint64_t before = life->start == TN_NEVER ? life->size : 0;

    if (!group) {
        return false;
    }
    group->bytes += life->size;
    group->count++;
    group->before += before;
    groups->bytes += life->size;
    groups->count++;
    groups->before += before;
    return true;
}

bool tn_groups_collect(struct tn_groups *groups, const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_life *lives = tn_timeline_lives(timeline);
    struct tn_map numbers = {0};
    bool good = true;

    *groups = (struct tn_groups){.bytes = 0};
    tn_vec_init(&groups->rows, sizeof(struct tn_group));
    for (size_t i = 0; good && i < timeline->lives.count; i++) {
        if (tn_life_is_at(&lives[i], entry)) {
            good = life_add(groups, &numbers, &lives[i]);
        }
    }
    tn_map_fini(&numbers);
    if (!good) {
        tn_groups_fini(groups);
        return false;
    }
    if (groups->rows.count > 0) {
        qsort(groups->rows.items, groups->rows.count, sizeof(struct tn_group), group_compare);
    }
    return true;
}

void tn_groups_fini(struct tn_groups *groups)
{
    tn_vec_fini(&groups->rows);
}

/* ---- a stack in one line ---- */

static void frame_put(struct tn_text_out *out, const struct tn_model *model,
                      const struct tn_frame *frame, enum tn_shown_form form)
{
    const struct tn_string name = tn_model_string(model, frame->name);
    const struct tn_string file = tn_fold_base_name(tn_model_string(model, frame->filename));

    tn_text_put_shown(out, file.text, file.length, form);
    tn_text_printf(out, ":%" PRId64 ":", frame->line);
    tn_text_put_shown(out, name.text, name.length, form);
}

/* Code of libraries and of the interpreter. */
static bool is_library(const struct tn_model *model, const struct tn_frame *frame)
{
    static const char *const parts[] = {"/torch/", "<frozen", "/lib/python", ".so", ".cpp", ".h"};
    const struct tn_string file = tn_model_string(model, frame->filename);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(file.text, parts[i])) {
            return true;
        }
    }
    return false;
}

void tn_stack_put(struct tn_text_out *out, const struct tn_model *model, uint32_t number,
                  enum tn_shown_form form)
{
    const struct tn_stack stack = tn_model_stack(model, number);
    unsigned shown = 0;

    for (uint32_t i = 0; i < stack.count && shown <= USER_FRAMES; i++) {
        const struct tn_frame *frame = tn_model_frame(model, stack.frames[i]);

        if (tn_fold_hides_frame(model, frame) || (shown > 0 && is_library(model, frame))) {
            continue;
        }
        tn_text_puts(out, shown > 0 ? " < " : "");
        frame_put(out, model, frame, form);
        shown++;
    }
    if (shown == 0) {
        tn_text_puts(out, number == TN_STACK_NONE ? "(not recorded)" : "(no frames)");
    }
}

/* ---- tables ---- */

static void row_put(struct tn_text_out *out, uint64_t bytes, uint64_t all, uint64_t count)
{
    tn_text_printf(out, "  %10s  %5.1f%%  %8" PRIu64 "  ", tn_size_text((double)bytes).text,
                   all > 0 ? (double)bytes / (double)all * 100 : 0.0, count);
}

/* Rows that are not shown, as one. */
static struct tn_group others_sum(const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;
    struct tn_group others = {0};

    for (size_t i = (size_t)limit; i < groups->rows.count; i++) {
        others.bytes += rows[i].bytes;
        others.count += rows[i].count;
        others.before += rows[i].before;
    }
    return others;
}

void tn_groups_put(struct tn_text_out *out, const struct tn_model *model,
                   const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;

    limit = limit < groups->rows.count ? limit : groups->rows.count;
    tn_text_puts(out, "       bytes   share    blocks  allocated by\n");
    for (size_t i = 0; i < limit; i++) {
        row_put(out, rows[i].bytes, groups->bytes, rows[i].count);
        tn_stack_put(out, model, rows[i].stack, TN_SHOWN_PLAIN);
        tn_text_putc(out, '\n');
    }
    if (limit < groups->rows.count) {
        const struct tn_group others = others_sum(groups, limit);

        row_put(out, others.bytes, groups->bytes, others.count);
        tn_text_printf(out, "others (%" PRIu64 " stacks)\n", groups->rows.count - limit);
    }
    row_put(out, groups->bytes, groups->bytes, groups->count);
    tn_text_puts(out, "total\n");
}

void tn_stack_put_json(struct tn_json_text *json, const char *key, const struct tn_model *model,
                       uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(model, number);

    tn_json_open_array(json, key);
    for (uint32_t i = 0; i < stack.count; i++) {
        const struct tn_frame *frame = tn_model_frame(model, stack.frames[i]);
        const struct tn_string name = tn_model_string(model, frame->name);
        const struct tn_string file = tn_model_string(model, frame->filename);

        tn_json_open_object(json, NULL);
        tn_json_text(json, "name", name.text, name.length);
        tn_json_text(json, "filename", file.text, file.length);
        tn_json_signed(json, "line", frame->line);
        tn_json_close(json);
    }
    tn_json_close(json);
}

static void numbers_put_json(struct tn_json_text *json, uint64_t bytes, uint64_t count,
                             uint64_t before)
{
    tn_json_number(json, "bytes", bytes);
    tn_json_number(json, "blocks", count);
    tn_json_number(json, "bytes_from_before_the_trace", before);
}

void tn_groups_put_json(struct tn_json_text *json, const struct tn_model *model,
                        const struct tn_groups *groups, uint64_t limit)
{
    const struct tn_group *rows = groups->rows.items;

    limit = limit < groups->rows.count ? limit : groups->rows.count;
    tn_json_open_array(json, "groups");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        numbers_put_json(json, rows[i].bytes, rows[i].count, rows[i].before);
        tn_stack_put_json(json, "frames", model, rows[i].stack);
        tn_json_close(json);
    }
    tn_json_close(json);
    const struct tn_group others = others_sum(groups, limit);

    tn_json_open_object(json, "others");
    tn_json_number(json, "stacks", groups->rows.count - limit);
    numbers_put_json(json, others.bytes, others.count, others.before);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    numbers_put_json(json, groups->bytes, groups->count, groups->before);
    tn_json_close(json);
}
