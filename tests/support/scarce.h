/* SPDX-License-Identifier: MIT */
/*
 * An allocator without the nodes and the room in lists that it keeps ahead: what the next call
 * needs, it has to ask the host for. Include after
 * support/test.h.
 */
#ifndef TESTS_SUPPORT_SCARCE_H
#define TESTS_SUPPORT_SCARCE_H

#include "base/host_mem.h"
#include "support/rig.h"

enum {
    SCARCE_HELD_MAX = 8192 /* free nodes of an allocator */
};

/* Nodes that the allocator does not have meanwhile. */
static struct {
    struct tn_block *node;
    struct tn_block_slab *slab;
} scarce_held[SCARCE_HELD_MAX];

static size_t scarce_count;

static inline void scarce_hold(struct tn_block_slab *slab, struct tn_block *node)
{
    assert_true(scarce_count < SCARCE_HELD_MAX);
    scarce_held[scarce_count].slab = slab;
    scarce_held[scarce_count++].node = node;
    slab->live--; /* so that the checker does not miss it */
}

static inline void scarce_hold_all_of(struct tn_block_slab *slab)
{
    while (slab->partial || slab->spare) {
        scarce_hold(slab, tn_block_create(slab));
    }
}

static inline void scarce_list(struct tn_block_list *list)
{
    const size_t entry = sizeof(struct tn_block *);

    if (list->count > 0) {
        list->blocks = tn_host_resize(list->blocks, list->capacity * entry, list->count * entry);
        assert_non_null(list->blocks);
    } else {
        tn_host_free(list->blocks, list->capacity * entry);
        list->blocks = NULL;
    }
    list->capacity = list->count;
}

static inline void scarce_pool(const struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        scarce_list(&pool->sets[i]->far);
        scarce_list(&pool->sets[i]->unmapped);
    }
}

/* Until scarce_end. Of the caching engine only. */
static inline void scarce_begin(struct tarn_allocator *allocator)
{
    if (!tn_allocator_is_native(allocator)) {
        return;
    }
    struct tn_heap *heap = &rig_engine(allocator)->heap;

    while (heap->shard.spares) {
        scarce_hold(&heap->slab, tn_shard_take_spare(&heap->shard));
    }
    scarce_hold_all_of(&heap->slab);
    scarce_hold_all_of(&heap->heads);
    scarce_pool(&heap->small);
    scarce_pool(&heap->large);
    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        scarce_pool(&p->small);
        scarce_pool(&p->large);
    }
}

static inline void scarce_end(void)
{
    while (scarce_count > 0) {
        scarce_count--;
        scarce_held[scarce_count].slab->live++;
        tn_block_destroy(scarce_held[scarce_count].node);
    }
}

#endif
