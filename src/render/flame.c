/* SPDX-License-Identifier: MIT */
#include "render/flame.h"

#include "analysis/address_map.h"
#include "analysis/call_tree.h"
#include "base/assertion.h"
#include "base/escaped.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_NEW = 0,
    FRAME_HIDDEN = 1,
    FRAME_FIRST = 2,
    LABEL_MAX = 1 << 12 /* bytes of a label; longer ones end in "..." */
};

/* ---- labels ---- */

/* A label being assembled. */
struct draft {
    char text[LABEL_MAX + 4];
    size_t length;
    uint8_t kind;
};

/* The text is not cleared. */
static void draft_begin(struct draft *draft, enum tn_flame_kind kind)
{
    draft->length = 0;
    draft->kind = (uint8_t)kind;
}

static void draft_add(struct draft *draft, const char *text, size_t length)
{
    while (length > 0 && draft->length <= LABEL_MAX) {
        struct tn_escaped shown;
        const size_t count = tn_escaped_next(text, length, TN_ESCAPED_PLAIN, &shown);

        if (draft->length + shown.length > LABEL_MAX) {
            memcpy(draft->text + draft->length, "...", 3);
            draft->length += 3;
            return;
        }
        memcpy(draft->text + draft->length, shown.text, shown.length);
        draft->length += shown.length;
        text += count;
        length -= count;
    }
}

static void draft_add_text(struct draft *draft, const char *text)
{
    draft_add(draft, text, strlen(text));
}

static bool label_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_flame_label *label = tn_flame_label(owner, id);
    const struct draft *draft = key;

    return label->length == draft->length && label->kind == draft->kind &&
           memcmp(label->text, draft->text, draft->length) == 0;
}

/* The number of the label, made at first sight; -1 when host memory is missing. */
static int64_t label_get(struct tn_flame *flame, struct draft *draft)
{
    const uint32_t hash = tn_hash_bytes(draft->text, draft->length);
    uint32_t number;

    if (tn_id_table_find(&flame->label_ids, hash, label_equal, flame, draft, &number)) {
        return number;
    }
    const char *text = tn_arena_copy_text(&flame->arena, draft->text, draft->length);
    struct tn_flame_label *label = text ? tn_chunked_vec_push(&flame->labels) : NULL;

    if (!label) {
        return -1;
    }
    *label = (struct tn_flame_label){.text = text, .length = draft->length, .kind = draft->kind};
    number = (uint32_t)(flame->labels.count - 1);
    return tn_id_table_add(&flame->label_ids, hash, number) ? (int64_t)number : -1;
}

/* ---- nodes ---- */

static int64_t node_get(struct tn_flame *flame, uint32_t parent, uint32_t label)
{
    const uint64_t key = (uint64_t)parent << 32 | label;
    const uint64_t *found = tn_address_find(&flame->node_numbers, key);
    const uint64_t number = flame->nodes.count;

    if (found) {
        return (int64_t)*found;
    }
    struct tn_flame_node *node = tn_chunked_vec_push(&flame->nodes);

    if (!node || !tn_address_put(&flame->node_numbers, key, number)) {
        return -1;
    }
    *node = (struct tn_flame_node){
        .parent = parent, .label = label, .depth = tn_flame_node(flame, parent)->depth + 1};
    flame->depth_max = node->depth > flame->depth_max ? node->depth : flame->depth_max;
    return (int64_t)number;
}

/* How far a path has been followed from the root; -1 when host memory is missing. */
struct path {
    struct tn_flame *flame;
    uint64_t bytes;
    int64_t node;
};

static void path_step(struct path *path, int64_t label)
{
    if (path->node < 0 || label < 0) {
        path->node = -1;
        return;
    }
    path->node = node_get(path->flame, (uint32_t)path->node, (uint32_t)label);
    if (path->node >= 0) {
        tn_flame_node(path->flame, (uint32_t)path->node)->bytes += path->bytes;
    }
}

static void path_step_text(struct path *path, struct tn_string text, enum tn_flame_kind kind)
{
    struct draft draft;

    draft_begin(&draft, kind);
    draft_add(&draft, text.text, text.length);
    path_step(path, label_get(path->flame, &draft));
}

/* ---- frames ---- */

static int64_t frame_label_make(struct tn_flame *flame, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(flame->model, number);
    const struct tn_string name = tn_model_string(flame->model, frame->name);
    const struct tn_string file = tn_fold_base_name(tn_model_string(flame->model, frame->filename));
    struct draft draft;
    char line[32];

    draft_begin(&draft, TN_FLAME_FRAME);
    (void)snprintf(line, sizeof line, ":%" PRId64 ":", frame->line);
    draft_add(&draft, file.text, file.length);
    draft_add_text(&draft, line);
    draft_add(&draft, name.text, name.length);
    return label_get(flame, &draft);
}

/* One frame; those that are left out cost nothing. */
static void path_step_frame(struct path *path, uint32_t number)
{
    struct tn_flame *flame = path->flame;
    uint32_t *cached = (uint32_t *)flame->frame_labels.items + number;

    if (*cached == FRAME_NEW) {
        const struct tn_frame *frame = tn_model_frame(flame->model, number);
        const bool hidden = tn_fold_hides_frame(flame->model, frame);
        const int64_t label = hidden ? 0 : frame_label_make(flame, number);

        if (label < 0) {
            path->node = -1;
            return;
        }
        *cached = hidden ? (uint32_t)FRAME_HIDDEN : (uint32_t)label + FRAME_FIRST;
    }
    if (*cached != FRAME_HIDDEN) {
        path_step(path, (int64_t)*cached - FRAME_FIRST);
    }
}

/* Numbers of frames belong to one model. */
static bool flame_use_model(struct tn_flame *flame, const struct tn_model *model)
{
    if (flame->model == model) {
        return true;
    }
    const size_t count = (size_t)model->frames.count;

    flame->model = NULL;
    flame->frame_labels.count = 0;
    if (!tn_vec_reserve(&flame->frame_labels, count + 1)) {
        return false;
    }
    memset(flame->frame_labels.items, 0, (count + 1) * sizeof(uint32_t));
    flame->frame_labels.count = count + 1;
    flame->model = model;
    return true;
}

/* The i-th frame from the root. */
static uint32_t path_frame(const struct tn_flame_path *path, uint32_t i)
{
    return path->stack.frames[path->is_inverted ? i : path->stack.count - 1 - i];
}

bool tn_flame_add(struct tn_flame *flame, const struct tn_model *model,
                  const struct tn_flame_path *given)
{
    struct path path = {.flame = flame, .bytes = given->bytes};

    if (given->is_negative || given->bytes == 0) {
        return true;
    }
    if (!flame_use_model(flame, model)) {
        return false;
    }
    tn_flame_node(flame, 0)->bytes += given->bytes;
    for (unsigned i = 0; i < given->place_count; i++) {
        path_step_text(&path, given->places[i], TN_FLAME_PLACE);
    }
    for (uint32_t i = 0; i < given->stack.count && path.node >= 0; i++) {
        path_step_frame(&path, path_frame(given, i));
    }
    if (given->stack.count == 0) {
        path_step_text(&path, (struct tn_string){given->leaf, strlen(given->leaf)},
                       TN_FLAME_NOTHING);
    }
    return path.node >= 0;
}

void tn_flame_path_add_place(struct tn_flame_path *path, struct tn_string place)
{
    tn_assert(path->place_count < TN_FLAME_PLACES);
    path->places[path->place_count++] = place;
}

/* In a place ';' would begin the next one. */
static void place_put(struct tn_text_out *out, struct tn_string place)
{
    for (size_t i = 0; i < place.length; i++) {
        tn_text_putc(out, (char)(place.text[i] == ';' ? ',' : place.text[i]));
    }
}

void tn_flame_path_put(struct tn_text_out *out, const struct tn_model *model,
                       const struct tn_flame_path *path)
{
    const char *joint = "";
    bool has_frames = false;

    for (unsigned i = 0; i < path->place_count; i++, joint = ";") {
        tn_text_puts(out, joint);
        place_put(out, path->places[i]);
    }
    for (uint32_t i = 0; i < path->stack.count; i++) {
        const uint32_t frame = path_frame(path, i);

        if (!tn_fold_hides_frame(model, tn_model_frame(model, frame))) {
            tn_text_puts(out, joint);
            tn_frame_put(out, model, frame, TN_ESCAPED_PLAIN);
            joint = ";";
            has_frames = true;
        }
    }
    if (!has_frames) {
        tn_text_puts(out, joint);
        tn_text_puts(out, path->leaf);
    }
    tn_text_printf(out, " %s%" PRIu64 "\n", path->is_negative ? "-" : "", path->bytes);
}

/* ---- layout ---- */

/* Parents come first: their numbers are smaller than their children's. */
static void offsets_set(struct tn_flame *flame, const struct tn_sibling *ranked, size_t count)
{
    uint64_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || ranked[i].parent != ranked[i - 1].parent) {
            at = tn_flame_node(flame, ranked[i].parent)->offset;
        }
        tn_flame_node(flame, ranked[i].number)->offset = at;
        at += ranked[i].rank;
    }
}

bool tn_flame_layout(struct tn_flame *flame)
{
    const size_t count = (size_t)flame->nodes.count - 1;

    if (count == 0) {
        return true;
    }
    struct tn_sibling *ranked = tn_host_alloc(count * sizeof *ranked);

    if (!ranked) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct tn_flame_node *node = tn_flame_node(flame, (uint32_t)i + 1);

        ranked[i] = (struct tn_sibling){node->bytes, node->parent, (uint32_t)i + 1};
    }
    tn_siblings_sort(ranked, count);
    offsets_set(flame, ranked, count);
    tn_host_free(ranked, count * sizeof *ranked);
    return true;
}

/* ---- init and fini ---- */

static bool root_add(struct tn_flame *flame, const char *name)
{
    struct draft draft;

    draft_begin(&draft, TN_FLAME_PLACE);
    draft_add_text(&draft, name);
    const int64_t label = label_get(flame, &draft);
    struct tn_flame_node *root = label >= 0 ? tn_chunked_vec_push(&flame->nodes) : NULL;

    if (!root) {
        return false;
    }
    *root = (struct tn_flame_node){.label = (uint32_t)label};
    return true;
}

enum tarn_status tn_flame_init(struct tn_flame *flame, const char *root)
{
    *flame = (struct tn_flame){.model = NULL};
    tn_arena_init(&flame->arena, &flame->budget);
    tn_chunked_vec_init(&flame->labels, &flame->budget, sizeof(struct tn_flame_label));
    tn_chunked_vec_init(&flame->nodes, &flame->budget, sizeof(struct tn_flame_node));
    tn_id_table_init(&flame->label_ids, &flame->budget);
    tn_vec_init(&flame->frame_labels, sizeof(uint32_t));
    if (!root_add(flame, root)) {
        tn_flame_fini(flame);
        return TARN_ERR_HOST_MEMORY;
    }
    return TARN_OK;
}

void tn_flame_fini(struct tn_flame *flame)
{
    tn_vec_fini(&flame->frame_labels);
    tn_map_fini(&flame->node_numbers);
    tn_id_table_fini(&flame->label_ids);
    tn_chunked_vec_fini(&flame->nodes);
    tn_chunked_vec_fini(&flame->labels);
    tn_arena_fini(&flame->arena);
}
