/* SPDX-License-Identifier: MIT */
/* Copies a walk. A caller in Python could not do that itself: its callbacks would wait for the
 * interpreter's lock under the allocator's, for which a thread that holds the interpreter's may be
 * waiting. */
#include "plug/pytorch/plug.h"

struct copy {
    struct tarn_torch_row *rows;
    size_t capacity;
    size_t count;
};

static bool copy_segment(void *context, const struct tarn_segment_info *segment)
{
    struct copy *copy = context;

    if (copy->count < copy->capacity) {
        copy->rows[copy->count] =
            (struct tarn_torch_row){.is_segment = 1, .as = {.segment = *segment}};
    }
    copy->count++;
    return true;
}

static bool copy_block(void *context, const struct tarn_block_info *block)
{
    struct copy *copy = context;

    if (copy->count < copy->capacity) {
        copy->rows[copy->count] = (struct tarn_torch_row){.is_segment = 0, .as = {.block = *block}};
    }
    copy->count++;
    return true;
}

enum tarn_status tarn_torch_copy_walk(struct tarn_allocator *allocator,
                                      const struct tarn_pool_id *pool, struct tarn_torch_row *rows,
                                      size_t capacity, size_t *count_out)
{
    struct copy copy = {.rows = rows, .capacity = capacity};
    const struct tarn_walker walker = {
        .context = &copy, .segment = copy_segment, .block = copy_block};
    const enum tarn_status st = pool ? tarn_allocator_walk_pool(allocator, *pool, &walker)
                                     : tarn_allocator_walk(allocator, &walker);

    if (st == TARN_OK) {
        *count_out = copy.count;
    }
    return st;
}
