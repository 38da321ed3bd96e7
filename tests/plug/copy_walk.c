/* SPDX-License-Identifier: MIT */
#include "plug/copy_walk.h"

struct copy {
    struct walk_row *rows;
    size_t capacity;
    size_t count;
};

static bool copy_segment(void *context, const struct tarn_segment_info *segment)
{
    struct copy *copy = context;

    if (copy->count < copy->capacity) {
        copy->rows[copy->count] =
            (struct walk_row){.is_segment = true, .as = {.segment = *segment}};
    }
    copy->count++;
    return true;
}

static bool copy_block(void *context, const struct tarn_block_info *block)
{
    struct copy *copy = context;

    if (copy->count < copy->capacity) {
        copy->rows[copy->count] = (struct walk_row){.is_segment = false, .as = {.block = *block}};
    }
    copy->count++;
    return true;
}

enum tarn_status copy_walk(struct tarn_allocator *allocator, const struct tarn_pool_id *pool,
                           struct walk_row *rows, size_t capacity, size_t *count_out)
{
    struct copy copy = {.rows = rows, .capacity = capacity};
    const struct tarn_walker walker = {
        .context = &copy, .segment = copy_segment, .block = copy_block};
    const enum tarn_status st = tarn_allocator_walk_pool(allocator, *pool, &walker);

    if (st == TARN_OK) {
        *count_out = copy.count;
    }
    return st;
}
