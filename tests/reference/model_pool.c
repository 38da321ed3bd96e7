/* SPDX-License-Identifier: MIT */
/* Private pools and their checkpoints. */
#include "reference/model_core.h"

#include <stdlib.h>
#include <string.h>

struct ref_block_state {
    uint64_t ptr;
    uint64_t size;
    tarn_stream stream;
    bool is_small;
    bool allocated;
    bool mapped;
};

struct ref_segment_state {
    struct ref_block_state *block;
    size_t count;
};

struct ref_checkpoint {
    struct tarn_pool_id id;
    struct ref_segment_state *segment;
    size_t count;
};

static bool same_id(struct tarn_pool_id a, struct tarn_pool_id b)
{
    return a.first == b.first && a.second == b.second;
}

struct ref_private *ref_find_private(const struct ref_model *model, struct tarn_pool_id id)
{
    struct ref_private *private = model->privates;

    while (private && !same_id(private->id, id)) {
        private = private->next;
    }
    return private;
}

struct ref_pool *ref_get_pool(struct ref_model *model, uint64_t size, tarn_stream stream)
{
    for (size_t i = model->capture_count; i > 0; i--) {
        const struct ref_capture *capture = &model->captures[i - 1];

        if (capture->filter(capture->context, stream)) {
            struct ref_private *private = ref_find_private(model, capture->id);

            ref_require(private != NULL, "a capture without its pool");
            return size <= REF_SMALL_SIZE ? &private->small : &private->large;
        }
    }
    return size <= REF_SMALL_SIZE ? &model->small : &model->large;
}

static size_t find_capture(const struct ref_model *model, struct tarn_pool_id id)
{
    size_t at = 0;

    while (at < model->capture_count && !same_id(model->captures[at].id, id)) {
        at++;
    }
    return at;
}

enum tarn_status ref_acquire_pool(struct ref_model *model, struct tarn_pool_id id)
{
    struct ref_private *private = ref_find_private(model, id);
    struct ref_private **link = &model->privates;

    if (id.first == 0 && id.second == 0) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (private && private->use_count == 0) {
        return TARN_ERR_STATE;
    }
    if (!private) {
        private = calloc(1, sizeof *private);
        ref_require(private != NULL, "no host memory");
        private->id = id;
        private->small.is_small = true;
        private->small.owner = private;
        private->large.owner = private;
        ref_pool_apply_rules(&private->small, &model->config);
        ref_pool_apply_rules(&private->large, &model->config);
        while (*link) {
            link = &(*link)->next;
        }
        *link = private;
    }
    private->use_count++;
    return TARN_OK;
}

enum tarn_status ref_release_pool(struct ref_model *model, struct tarn_pool_id id)
{
    struct ref_private *private = ref_find_private(model, id);

    if (!private || private->use_count == 0) {
        return TARN_ERR_NOT_FOUND;
    }
    private->use_count--;
    private->freeable = private->use_count == 0;
    return TARN_OK;
}

enum tarn_status ref_begin_pool(struct ref_model *model, struct tarn_pool_id id,
                                tarn_pool_filter filter, void *context)
{
    if (find_capture(model, id) < model->capture_count) {
        return TARN_ERR_STATE;
    }
    const enum tarn_status st = ref_acquire_pool(model, id);

    if (st == TARN_OK) {
        model->captures = ref_grow(model->captures, &model->capture_capacity,
                                   model->capture_count + 1, sizeof *model->captures);
        model->captures[model->capture_count++] =
            (struct ref_capture){.id = id, .filter = filter, .context = context};
    }
    return st;
}

enum tarn_status ref_end_pool(struct ref_model *model, struct tarn_pool_id id)
{
    const size_t at = find_capture(model, id);

    if (at == model->capture_count) {
        return TARN_ERR_STATE;
    }
    model->capture_count--;
    memmove(model->captures + at, model->captures + at + 1,
            (model->capture_count - at) * sizeof *model->captures);
    return TARN_OK;
}

enum tarn_status ref_begin_capture(struct ref_model *model)
{
    model->active_captures++;
    return TARN_OK;
}

enum tarn_status ref_end_capture(struct ref_model *model)
{
    if (model->active_captures == 0) {
        return TARN_ERR_STATE;
    }
    model->active_captures--;
    return TARN_OK;
}

uint64_t ref_pool_use_count(const struct ref_model *model, struct tarn_pool_id id)
{
    const struct ref_private *private = ref_find_private(model, id);

    return private ? (uint64_t) private->use_count : 0;
}

enum tarn_status ref_set_use_on_oom(struct ref_model *model, struct tarn_pool_id id, bool on)
{
    struct ref_private *private = ref_find_private(model, id);

    if (!private) {
        return TARN_ERR_NOT_FOUND;
    }
    private->use_on_oom = on;
    return TARN_OK;
}

enum tarn_status ref_set_no_split(struct ref_model *model, struct tarn_pool_id id, bool on)
{
    struct ref_private *private = ref_find_private(model, id);

    if (!private) {
        return TARN_ERR_NOT_FOUND;
    }
    private->no_split = on;
    return TARN_OK;
}

/* ---- walking ---- */

static int compare_ptr(const void *a, const void *b)
{
    const struct ref_block *x = *(struct ref_block *const *)a;
    const struct ref_block *y = *(struct ref_block *const *)b;

    return (x->ptr > y->ptr) - (x->ptr < y->ptr);
}

static void add_all(struct ref_blocks *blocks, const struct ref_blocks *more)
{
    for (size_t i = 0; i < more->count; i++) {
        ref_blocks_push(blocks, more->item[i]);
    }
}

struct ref_blocks ref_all_blocks(const struct ref_model *model)
{
    struct ref_blocks blocks = {0};

    add_all(&blocks, &model->small.blocks);
    add_all(&blocks, &model->large.blocks);
    for (const struct ref_private *private = model->privates; private; private = private->next) {
        add_all(&blocks, &private->small.blocks);
        add_all(&blocks, &private->large.blocks);
    }
    add_all(&blocks, &model->active);
    if (blocks.count > 1) {
        qsort(blocks.item, blocks.count, sizeof(struct ref_block *), compare_ptr);
    }
    return blocks;
}

static bool is_active(const struct ref_block *block)
{
    return block->allocated || block->event_count > 0 || block->stream_uses.count > 0;
}

static bool walk_segment(const struct ref_block *head, const struct tarn_walker *walker)
{
    struct tarn_segment_info info = {.address = head->ptr,
                                     .stream = head->stream,
                                     .is_large = !head->pool->is_small,
                                     .is_expandable = head->expandable != NULL};
    bool more = true;

    if (head->pool->owner) {
        info.pool = head->pool->owner->id;
    }
    for (const struct ref_block *b = head; b && b->mapped; b = b->next) {
        info.total_size += b->size;
        info.allocated_size += b->allocated ? b->size : 0;
        info.active_size += is_active(b) ? b->size : 0;
        info.requested_size += is_active(b) ? b->requested_size : 0;
    }
    if (walker->segment) {
        more = walker->segment(walker->context, &info);
    }
    for (const struct ref_block *b = head; more && b && b->mapped && walker->block; b = b->next) {
        const struct tarn_block_info block = {.address = b->ptr,
                                              .size = b->size,
                                              .requested_size = b->requested_size,
                                              .allocated = b->allocated,
                                              .active = is_active(b)};

        more = walker->block(walker->context, &block);
    }
    return more;
}

void ref_walk(const struct ref_model *model, const struct tarn_walker *walker)
{
    struct ref_blocks blocks = ref_all_blocks(model);
    bool more = true;

    for (size_t i = 0; more && i < blocks.count; i++) {
        const struct ref_block *head = blocks.item[i];

        if (!head->prev || !head->prev->mapped) {
            more = walk_segment(head, walker);
        }
    }
    free(blocks.item);
}

enum tarn_status ref_check_pool_live(const struct ref_model *model, struct tarn_pool_id id,
                                     const tarn_ptr *expected, size_t count, bool *live_out)
{
    const struct ref_private *private = ref_find_private(model, id);
    size_t live = 0;

    if (!private) {
        return TARN_ERR_NOT_FOUND;
    }
    for (size_t i = 0; i < model->active.count; i++) {
        const struct ref_block *block = model->active.item[i];
        bool found = false;

        if (!block->allocated || block->pool->owner != private) {
            continue;
        }
        for (size_t j = 0; j < count; j++) {
            found = found || expected[j] == block->ptr;
        }
        if (!found) {
            *live_out = false;
            return TARN_OK;
        }
        live++;
    }
    *live_out = live == count;
    return TARN_OK;
}

/* ---- checkpoints ---- */

/* First blocks of the pool's segments, by address; caller frees `item`. */
static struct ref_blocks head_blocks(const struct ref_model *model,
                                     const struct ref_private *private)
{
    struct ref_blocks all = ref_all_blocks(model);
    struct ref_blocks heads = {0};
    struct ref_blocks found = {0};

    add_all(&found, &all);
    add_all(&found, &private->small.unmapped);
    add_all(&found, &private->large.unmapped);
    for (size_t i = 0; i < found.count; i++) {
        if (found.item[i]->pool->owner == private && !found.item[i]->prev) {
            ref_blocks_push(&heads, found.item[i]);
        }
    }
    if (heads.count > 1) {
        qsort(heads.item, heads.count, sizeof(struct ref_block *), compare_ptr);
    }
    free(all.item);
    free(found.item);
    return heads;
}

/* Whether a block of the pool is free but for streams that it waits for. */
static bool pool_waits(const struct ref_model *model, const struct ref_private *private)
{
    for (size_t i = 0; i < model->active.count; i++) {
        const struct ref_block *block = model->active.item[i];

        if (block->pool->owner == private && !block->allocated) {
            return true;
        }
    }
    return false;
}

static struct ref_segment_state segment_state(const struct ref_block *head)
{
    struct ref_segment_state state = {0};
    size_t capacity = 0;

    for (const struct ref_block *b = head; b; b = b->next) {
        state.block = ref_grow(state.block, &capacity, state.count + 1, sizeof *state.block);
        state.block[state.count++] = (struct ref_block_state){.ptr = b->ptr,
                                                              .size = b->size,
                                                              .stream = b->stream,
                                                              .is_small = b->pool->is_small,
                                                              .allocated = b->allocated,
                                                              .mapped = b->mapped};
    }
    return state;
}

enum tarn_status ref_get_checkpoint(struct ref_model *model, struct tarn_pool_id id,
                                    struct ref_checkpoint **checkpoint_out)
{
    const struct ref_private *private = ref_find_private(model, id);

    ref_insert_deferred(model);
    if (!private) {
        return TARN_ERR_NOT_FOUND;
    }
    if (pool_waits(model, private)) {
        return TARN_ERR_STATE;
    }
    struct ref_blocks heads = head_blocks(model, private);
    struct ref_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    size_t capacity = 0;

    ref_require(checkpoint != NULL, "no host memory");
    checkpoint->id = id;
    for (size_t i = 0; i < heads.count; i++) {
        if (!heads.item[i]->mapped && !heads.item[i]->next) {
            continue; /* a range in which nothing is mapped has no blocks */
        }
        checkpoint->segment = ref_grow(checkpoint->segment, &capacity, checkpoint->count + 1,
                                       sizeof *checkpoint->segment);
        checkpoint->segment[checkpoint->count++] = segment_state(heads.item[i]);
    }
    free(heads.item);
    *checkpoint_out = checkpoint;
    return TARN_OK;
}

void ref_checkpoint_destroy(struct ref_checkpoint *checkpoint)
{
    if (!checkpoint) {
        return;
    }
    for (size_t i = 0; i < checkpoint->count; i++) {
        free(checkpoint->segment[i].block);
    }
    free(checkpoint->segment);
    free(checkpoint);
}

void ref_order_checkpoint(struct ref_checkpoint *checkpoint, const tarn_ptr *heads, size_t count)
{
    size_t placed = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = placed; j < checkpoint->count; j++) {
            const struct ref_segment_state state = checkpoint->segment[j];

            if (state.block[0].ptr == heads[i]) {
                memmove(checkpoint->segment + placed + 1, checkpoint->segment + placed,
                        (j - placed) * sizeof state);
                checkpoint->segment[placed++] = state;
                break;
            }
        }
    }
}

static void push_ptr(tarn_ptr **array, size_t *count, size_t *capacity, tarn_ptr ptr)
{
    *array = ref_grow(*array, capacity, *count + 1, sizeof **array);
    (*array)[(*count)++] = ptr;
}

static void free_allocated_blocks(struct ref_model *model, const struct ref_private *private,
                                  struct tarn_checkpoint_delta *delta)
{
    struct ref_blocks heads = head_blocks(model, private);
    size_t capacity = 0;

    for (size_t i = 0; i < heads.count; i++) {
        for (struct ref_block *b = heads.item[i]; b; b = b->next) {
            if (b->allocated) {
                push_ptr(&delta->freed, &delta->freed_count, &capacity, b->ptr);
                ref_free_allocated(model, b);
            }
        }
    }
    free(heads.item);
}

/* The pool's block at this address, or NULL. */
static const struct ref_block *block_at(const struct ref_model *model,
                                        const struct ref_private *private, uint64_t ptr)
{
    struct ref_blocks heads = head_blocks(model, private);
    const struct ref_block *found = NULL;

    for (size_t i = 0; i < heads.count; i++) {
        for (const struct ref_block *b = heads.item[i]; b; b = b->next) {
            found = b->ptr == ptr ? b : found;
        }
    }
    free(heads.item);
    return found;
}

/* Whether a mapped range of at least that size begins at the block that will be one free block once
 * everything in it is freed: no stream must be waited for. PyTorch notices half way. */
static bool range_begins(const struct ref_block *block, const struct ref_block_state *state,
                         uint64_t size)
{
    uint64_t have = 0;

    if (!block || !block->mapped || (block->prev && block->prev->mapped) ||
        block->stream != state->stream || block->pool->is_small != state->is_small) {
        return false;
    }
    for (; block && block->mapped; block = block->next) {
        if (block->event_count > 0 || block->stream_uses.count > 0) {
            return false;
        }
        have += block->size;
    }
    return have >= size;
}

/* Blocks from `begin` on that follow each other mapped. */
static size_t run_end(const struct ref_segment_state *state, size_t begin)
{
    while (begin < state->count && state->block[begin].mapped) {
        begin++;
    }
    return begin;
}

/* Whether the pool still has the mapped ranges of that segment, each where it began. They may be
 * longer now: PyTorch fails a check half way then. */
static bool segment_exists(const struct ref_model *model, const struct ref_private *private,
                           const struct ref_segment_state *state)
{
    size_t end;

    for (size_t begin = 0; begin < state->count; begin = end + 1) {
        uint64_t size = 0;

        end = run_end(state, begin);
        for (size_t i = begin; i < end; i++) {
            size += state->block[i].size;
        }
        if (end > begin && !range_begins(block_at(model, private, state->block[begin].ptr),
                                         &state->block[begin], size)) {
            return false;
        }
    }
    return true;
}

/* The free block at an address, or NULL. */
static struct ref_block *free_block_at(const struct ref_private *private, tarn_ptr ptr)
{
    const struct ref_blocks *sets[2] = {&private->small.blocks, &private->large.blocks};

    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < sets[i]->count; j++) {
            if (sets[i]->item[j]->ptr == ptr) {
                return sets[i]->item[j];
            }
        }
    }
    return NULL;
}

/* setSegmentStateToCheckpoint for a run of mapped blocks: hands all of them out, then frees those
 * that were free. */
static void restore_run(struct ref_model *model, const struct ref_private *private,
                        const struct ref_block_state *state, size_t count,
                        struct tarn_checkpoint_delta *delta, size_t *capacity)
{
    struct ref_block *curr = free_block_at(private, state[0].ptr);
    struct ref_block *first = NULL;

    ref_require(curr != NULL, "restoring: the segment is not free");
    for (size_t i = 0; i < count; i++) {
        struct ref_request request = {.stream = state[i].stream,
                                      .requested = state[i].size,
                                      .size = state[i].size,
                                      .alloc_size = state[i].size,
                                      .pool = curr->pool,
                                      .block = curr};

        ref_blocks_remove(&curr->pool->blocks, curr);
        ref_alloc_found_block(model, &request, curr->size > state[i].size);
        curr = request.block;
        ref_require(curr->ptr == state[i].ptr && curr->size == state[i].size,
                    "restoring: another place");
        first = first ? first : curr;
        curr = curr->next;
    }
    curr = first;
    for (size_t i = 0; i < count; i++, curr = curr->next) {
        ref_require(curr != NULL, "restoring: a block is missing");
        if (state[i].allocated) {
            push_ptr(&delta->created, &delta->created_count, capacity, curr->ptr);
        } else {
            ref_free_allocated(model, curr);
        }
    }
}

enum tarn_status ref_set_checkpoint(struct ref_model *model,
                                    const struct ref_checkpoint *checkpoint,
                                    struct tarn_checkpoint_delta *delta_out)
{
    const struct ref_private *private = ref_find_private(model, checkpoint->id);
    size_t capacity = 0;

    if (!private) {
        return TARN_ERR_NOT_FOUND;
    }
    if (private->freeable) {
        return TARN_ERR_STATE;
    }
    for (size_t i = 0; i < checkpoint->count; i++) {
        if (!segment_exists(model, private, &checkpoint->segment[i])) {
            return TARN_ERR_STATE;
        }
    }
    *delta_out = (struct tarn_checkpoint_delta){0};
    free_allocated_blocks(model, private, delta_out);
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct ref_segment_state *segment = &checkpoint->segment[i];
        size_t end;

        for (size_t begin = 0; begin < segment->count; begin = end + 1) {
            end = run_end(segment, begin);
            if (end > begin) {
                restore_run(model, private, segment->block + begin, end - begin, delta_out,
                            &capacity);
            }
        }
    }
    return TARN_OK;
}

void ref_delta_fini(struct tarn_checkpoint_delta *delta)
{
    free(delta->freed);
    free(delta->created);
    *delta = (struct tarn_checkpoint_delta){0};
}
