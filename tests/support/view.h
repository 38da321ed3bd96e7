/* SPDX-License-Identifier: MIT */
/* Everything that a walk over an allocator shows, kept for comparing. */
#ifndef TESTS_SUPPORT_VIEW_H
#define TESTS_SUPPORT_VIEW_H

#include "tarn/allocator.h"

/* A segment, or a block of the segment before it. */
struct view_item {
    bool is_block;
    struct tarn_segment_info segment;
    struct tarn_block_info block;
};

/* All zero is empty. Free with view_fini. */
struct view {
    struct view_item *items;
    size_t count;
    size_t capacity;
};

/* A walker that adds what it is shown to the view. */
struct tarn_walker view_walker(struct view *view);
void view_fini(struct view *view);

/* Whether both show the same; if not, `text` says what the first difference is. */
bool view_same(const struct view *a, const struct view *b, char *text, size_t size);

/* Whether the same blocks are handed out in both. */
bool view_same_allocated(const struct view *a, const struct view *b, char *text, size_t size);

/* Sum of the segments. */
uint64_t view_reserved(const struct view *view);

#endif
