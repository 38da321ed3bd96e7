/* SPDX-License-Identifier: MIT */
#include "support/view.h"

#include <stdio.h>
#include <stdlib.h>

static struct view_item *view_add(struct view *view)
{
    if (view->count == view->capacity) {
        view->capacity = view->capacity * 2 + 64;
        view->items = realloc(view->items, view->capacity * sizeof *view->items);
        if (!view->items) {
            abort();
        }
    }
    view->items[view->count] = (struct view_item){.is_block = false};
    return &view->items[view->count++];
}

static bool see_segment(void *context, const struct tarn_segment_info *segment)
{
    view_add(context)->segment = *segment;
    return true;
}

static bool see_block(void *context, const struct tarn_block_info *block)
{
    struct view_item *item = view_add(context);

    item->block = *block;
    item->is_block = true;
    return true;
}

struct tarn_walker view_walker(struct view *view)
{
    return (struct tarn_walker){.context = view, .segment = see_segment, .block = see_block};
}

void view_fini(struct view *view)
{
    free(view->items);
    *view = (struct view){0};
}

static bool same(const char *what, uint64_t a, uint64_t b, char *text, size_t size)
{
    if (a != b) {
        (void)snprintf(text, size, "%s: %llu (0x%llx), %llu (0x%llx)", what, (unsigned long long)a,
                       (unsigned long long)a, (unsigned long long)b, (unsigned long long)b);
    }
    return a == b;
}

static bool same_segment(const struct tarn_segment_info *a, const struct tarn_segment_info *b,
                         char *text, size_t size)
{
    return same("segment address", a->address, b->address, text, size) &&
           same("segment size", a->total_size, b->total_size, text, size) &&
           same("segment allocated", a->allocated_size, b->allocated_size, text, size) &&
           same("segment active", a->active_size, b->active_size, text, size) &&
           same("segment requested", a->requested_size, b->requested_size, text, size) &&
           same("segment stream", a->stream, b->stream, text, size) &&
           same("segment pool", a->pool.first, b->pool.first, text, size) &&
           same("segment pool", a->pool.second, b->pool.second, text, size) &&
           same("segment is large", a->is_large, b->is_large, text, size) &&
           same("segment is expandable", a->is_expandable, b->is_expandable, text, size);
}

static bool same_block(const struct tarn_block_info *a, const struct tarn_block_info *b, char *text,
                       size_t size)
{
    return same("block address", a->address, b->address, text, size) &&
           same("block size", a->size, b->size, text, size) &&
           same("block requested", a->requested_size, b->requested_size, text, size) &&
           same("block allocated", a->allocated, b->allocated, text, size) &&
           same("block active", a->active, b->active, text, size);
}

bool view_same(const struct view *a, const struct view *b, char *text, size_t size)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct view_item *x = &a->items[i];
        const struct view_item *y = &b->items[i];

        if (!same("walk shows a block", x->is_block, y->is_block, text, size)) {
            return false;
        }
        if (x->is_block ? !same_block(&x->block, &y->block, text, size)
                        : !same_segment(&x->segment, &y->segment, text, size)) {
            return false;
        }
    }
    return same("segments and blocks", a->count, b->count, text, size);
}

/* Index of the next block that is handed out, from `at` on; `count` at the end. */
static size_t next_allocated(const struct view *view, size_t at)
{
    while (at < view->count && !(view->items[at].is_block && view->items[at].block.allocated)) {
        at++;
    }
    return at;
}

bool view_same_allocated(const struct view *a, const struct view *b, char *text, size_t size)
{
    size_t i = next_allocated(a, 0);
    size_t j = next_allocated(b, 0);

    while (i < a->count && j < b->count) {
        if (!same_block(&a->items[i].block, &b->items[j].block, text, size)) {
            return false;
        }
        i = next_allocated(a, i + 1);
        j = next_allocated(b, j + 1);
    }
    return same("more blocks handed out", i < a->count, j < b->count, text, size);
}

uint64_t view_reserved(const struct view *view)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < view->count; i++) {
        sum += view->items[i].is_block ? 0 : view->items[i].segment.total_size;
    }
    return sum;
}
