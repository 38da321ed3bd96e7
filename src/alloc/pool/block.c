/* SPDX-License-Identifier: MIT */
#include "alloc/pool/block.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    CHUNK_BYTES = 16 * 1024,
    CHUNK_NODES = CHUNK_BYTES / sizeof(struct tn_block) - 1
};

/* A free node is only its link. */
struct free_node {
    struct free_node *next;
};

struct tn_block_chunk {
    struct tn_block_chunk *prev; /* in the slab's list of chunks with free nodes */
    struct tn_block_chunk *next;
    struct free_node *free;     /* nodes that were given back */
    uint32_t used;              /* nodes in use */
    uint32_t fresh;             /* nodes from this index on were never taken */
    struct tn_block_slab *slab; /* that it belongs to */
    char unused[24];            /* the header fills a cache line, nodes follow */
    struct tn_block nodes[];    /* CHUNK_NODES */
};

static_assert(sizeof(struct tn_block_chunk) == sizeof(struct tn_block), "header is one line");

static struct tn_block_chunk *chunk_of(struct tn_block *block)
{
    return (struct tn_block_chunk *)(void *)((uintptr_t)block & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static void slab_link(struct tn_block_slab *slab, struct tn_block_chunk *chunk)
{
    chunk->prev = NULL;
    chunk->next = slab->partial;
    if (chunk->next) {
        chunk->next->prev = chunk;
    }
    slab->partial = chunk;
}

static void slab_unlink(struct tn_block_slab *slab, struct tn_block_chunk *chunk)
{
    if (chunk->prev) {
        chunk->prev->next = chunk->next;
    } else {
        slab->partial = chunk->next;
    }
    if (chunk->next) {
        chunk->next->prev = chunk->prev;
    }
}

static TN_COLD bool slab_add_chunk(struct tn_block_slab *slab)
{
    struct tn_block_chunk *chunk = slab->spare;

    slab->spare = NULL;
    if (!chunk) {
        chunk = tn_host_alloc_aligned(CHUNK_BYTES, CHUNK_BYTES);
        if (!chunk) {
            return false;
        }
        slab->chunks++;
    }
    memset(chunk, 0, sizeof *chunk);
    chunk->slab = slab;
    slab_link(slab, chunk);
    return true;
}

/* The chunk has no node in use any more and is not in the list. */
static TN_COLD void slab_drop_chunk(struct tn_block_slab *slab, struct tn_block_chunk *chunk)
{
    if (!slab->spare) {
        slab->spare = chunk;
        return;
    }
    tn_host_free(chunk, CHUNK_BYTES);
    slab->chunks--;
}

void tn_block_slab_fini(struct tn_block_slab *slab)
{
    tn_assert(slab->live == 0 && !slab->partial);
    tn_host_free(slab->spare, CHUNK_BYTES);
    *slab = (struct tn_block_slab){0};
}

struct tn_block *tn_block_create(struct tn_block_slab *slab)
{
    if (tn_unlikely(!slab->partial) && !slab_add_chunk(slab)) {
        return NULL;
    }
    struct tn_block_chunk *chunk = slab->partial;
    struct free_node *node = chunk->free;
    struct tn_block *block;

    if (node) {
        chunk->free = node->next;
        block = (struct tn_block *)(void *)node;
    } else {
        block = &chunk->nodes[chunk->fresh++];
    }
    chunk->used++;
    slab->live++;
    if (chunk->used == CHUNK_NODES) {
        slab_unlink(slab, chunk);
    }
    memset(block, 0, sizeof *block);
    return block;
}

void tn_block_destroy(struct tn_block *block)
{
    struct tn_block_chunk *chunk = chunk_of(block);
    struct tn_block_slab *slab = chunk->slab;
    struct free_node *node = (struct free_node *)(void *)block;

    tn_assert(chunk->used > 0 && slab->live > 0);
    if (chunk->used == CHUNK_NODES) {
        slab_link(slab, chunk);
    }
    node->next = chunk->free;
    chunk->free = node;
    chunk->used--;
    slab->live--;
    if (chunk->used == 0) {
        slab_unlink(slab, chunk);
        slab_drop_chunk(slab, chunk);
    }
}

size_t tn_block_slab_memory(const struct tn_block_slab *slab)
{
    return slab->chunks * CHUNK_BYTES;
}
