/* SPDX-License-Identifier: MIT */
#include "alloc/pool/linked.h"

#include "base/assertion.h"

enum {
    NODE_BITS = 6,    /* nodes are that much aligned */
    ADDRESS_BITS = 48 /* of the host, in user space */
};

#define LINK_BITS (ADDRESS_BITS - NODE_BITS)
#define LINK_END  ((uint64_t)1 << LINK_BITS)
#define LINK_MASK (LINK_END - 1)

static uint64_t word_of(const struct tn_block *next, int64_t base)
{
    const uint64_t node = (uintptr_t)next >> NODE_BITS;

    tn_assert(node << NODE_BITS == (uintptr_t)next && node <= LINK_MASK);
    return (uint64_t)base << LINK_BITS | node;
}

static uint64_t word_relinked(uint64_t word, const struct tn_block *next)
{
    return (word & ~LINK_MASK) | word_of(next, 0);
}

struct tn_block *tn_linked_next(const struct tn_block *block)
{
    return (struct tn_block *)(uintptr_t)((block->u.link & LINK_MASK) << NODE_BITS);
}

/* The low bits are those of the word; the others follow from `now`, which is near. */
int64_t tn_linked_base(const struct tn_block *block, int64_t now)
{
    const uint64_t since = ((uint64_t)now << LINK_BITS) - (block->u.link & ~LINK_MASK);

    return now - (int64_t)since / (int64_t)LINK_END;
}

void tn_linked_add(struct tn_linked *list, struct tn_block *block)
{
    block->u.link = word_of(list->first, block->u.gc_base);
    list->first = block;
}

void tn_linked_remove(struct tn_linked *list, struct tn_block *block, int64_t now)
{
    struct tn_block *next = tn_linked_next(block);
    struct tn_block *before = NULL;

    for (struct tn_block *b = list->first; b != block; b = tn_linked_next(b)) {
        before = b;
    }
    if (before) {
        before->u.link = word_relinked(before->u.link, next);
    } else {
        list->first = next;
    }
    block->u.gc_base = tn_linked_base(block, now);
}

bool tn_linked_has(const struct tn_linked *list, const struct tn_block *block)
{
    const struct tn_block *b = list->first;

    while (b && b != block) {
        b = tn_linked_next(b);
    }
    return b != NULL;
}

uint64_t tn_linked_count(const struct tn_linked *list)
{
    uint64_t count = 0;

    for (const struct tn_block *b = list->first; b; b = tn_linked_next(b)) {
        count++;
    }
    return count;
}
