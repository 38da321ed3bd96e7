/* SPDX-License-Identifier: MIT */
/*
 * Stacks with bytes, as folded lines or as a tree of labels: a node for every different path, the
 * bytes of a node are those of its own paths and of all its children's.
 *
 * Owns: nodes and labels, within a budget. Node 0 is the root. A child's number is greater than its
 * parent's. Guarded by its owner. Cost: expected O(1) a frame of a line.
 */
#ifndef TN_RENDER_FLAME_H
#define TN_RENDER_FLAME_H

#include "analysis/fold.h"
#include "base/arena.h"
#include "base/chunked_vec.h"
#include "base/id_table.h"
#include "base/map.h"
#include "base/text_out.h"
#include "base/vec.h"

/* Text that can be shown, as tn_escaped writes it. */
struct tn_flame_label {
    const char *text; /* NUL-terminated */
    size_t length;
    uint8_t kind; /* enum tn_flame_kind */
};

enum tn_flame_kind {
    TN_FLAME_PLACE, /* root, stream, segment, state */
    TN_FLAME_FRAME,
    TN_FLAME_NOTHING /* free memory, gaps */
};

struct tn_flame_node {
    uint64_t bytes;
    uint64_t offset; /* from the left of the root; after tn_flame_layout */
    uint32_t parent;
    uint32_t label;
    uint32_t depth; /* 0 for the root */
};

struct tn_flame {
    struct tn_budget budget;      /* without a limit */
    struct tn_arena arena;        /* texts of labels */
    struct tn_chunked_vec labels; /* struct tn_flame_label */
    struct tn_chunked_vec nodes;  /* struct tn_flame_node */
    struct tn_id_table label_ids;
    struct tn_map node_numbers;   /* by parent and label */
    const struct tn_model *model; /* whose frames are cached; NULL before the first line */
    struct tn_vec frame_labels;   /* uint32_t a frame: label + 2, 0 = not made yet, 1 = left out */
    uint32_t depth_max;
};

/* TARN_ERR_HOST_MEMORY; then there is nothing to release. */
enum tarn_status tn_flame_init(struct tn_flame *flame, const char *root) TN_MUST_CHECK;
void tn_flame_fini(struct tn_flame *flame);

enum {
    TN_FLAME_PLACES = 4
};

/* A stack of frames, below what it is grouped by. */
struct tn_flame_path {
    struct tn_string places[TN_FLAME_PLACES]; /* device, stream, state, ...; safe to print */
    unsigned place_count;
    struct tn_stack stack;
    const char *leaf; /* in place of a stack without frames */
    bool is_inverted; /* the innermost frame comes first */
    bool is_negative; /* -bytes: a file says that a block holds more than its size */
    uint64_t bytes;
};

void tn_flame_path_add_place(struct tn_flame_path *path, struct tn_string place);

/* Adds a path of that model; nothing if it has no bytes, or fewer. False without host memory. */
bool tn_flame_add(struct tn_flame *flame, const struct tn_model *model,
                  const struct tn_flame_path *path) TN_MUST_CHECK;

/* The same as a line of folded stacks: "stream_0;a.py:1:f 512". */
void tn_flame_path_put(struct tn_text_out *out, const struct tn_model *model,
                       const struct tn_flame_path *path);

/* Gives every node its offset: children from the left, most bytes first. */
bool tn_flame_layout(struct tn_flame *flame) TN_MUST_CHECK;

static inline struct tn_flame_node *tn_flame_node(const struct tn_flame *flame, uint32_t number)
{
    return tn_chunked_vec_at(&flame->nodes, number);
}

static inline const struct tn_flame_label *tn_flame_label(const struct tn_flame *flame,
                                                          uint32_t number)
{
    return tn_chunked_vec_at(&flame->labels, number);
}

#endif
