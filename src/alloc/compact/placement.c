/* SPDX-License-Identifier: MIT */
#include "alloc/compact/placement.h"

#include "alloc/pool/best_fit.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"

/* A hole, and the best place in all holes so far. */
struct search {
    const struct tn_retired *retired;
    struct tn_segment *segment;
    struct tn_block *first; /* of the hole */
    uint64_t end;
    uint64_t mapped; /* bytes of the hole */
    uint64_t size;   /* wanted */
    bool anywhere;   /* in a hole, or only at its beginning */
    struct tn_placement best;
};

static uint64_t block_end(const struct tn_block *block)
{
    return block->address + block->size;
}

static uint64_t page_of(const struct tn_segment *segment, uint64_t address)
{
    tn_assert(address >= segment->address);
    return (address - segment->address) / segment->expandable->page_size;
}

/* Pages that a part of an unmapped block needs; UINT64_MAX if one is not free yet. */
static uint64_t part_pages(const struct search *search, uint64_t begin, uint64_t end)
{
    const uint64_t page_size = search->segment->expandable->page_size;
    const uint64_t first = page_of(search->segment, begin);
    const uint64_t pages = tn_pages_up(end - begin, page_size);

    return tn_retired_has(search->retired, search->segment, first, first + pages) ? UINT64_MAX
                                                                                  : pages;
}

/* Pages missing from `address`, which is in `block`, on; UINT64_MAX: it cannot be used. */
static uint64_t place_pages(const struct search *search, const struct tn_block *block,
                            uint64_t address)
{
    const uint64_t end = address + search->size;
    uint64_t missing = 0;

    for (; block && block->address < end; block = block->next) {
        const uint64_t from = block->address > address ? block->address : address;
        const uint64_t to = block_end(block) < end ? block_end(block) : end;
        const uint64_t pages = block->mapped ? 0 : part_pages(search, from, to);

        if (pages == UINT64_MAX) {
            return UINT64_MAX;
        }
        missing += pages;
    }
    return missing;
}

static bool is_better(const struct tn_placement *a, const struct tn_placement *b)
{
    if (!b->block || a->missing != b->missing) {
        return !b->block || a->missing < b->missing;
    }
    return a->hole != b->hole ? a->hole < b->hole : a->address < b->address;
}

static void try_place(struct search *search, struct tn_block *block, uint64_t address)
{
    const struct tn_placement place = {
        .segment = search->segment,
        .block = block,
        .address = address,
        .missing = search->end - address >= search->size ? place_pages(search, block, address)
                                                         : UINT64_MAX,
        .hole = search->end - search->first->address,
    };

    if (place.missing != UINT64_MAX && is_better(&place, &search->best)) {
        search->best = place;
    }
}

/* The place that ends with a mapped block and begins in the unmapped one below it: a block that is
 * large enough by itself is a place already. */
static void try_ending_with(struct search *search, const struct tn_block *mapped)
{
    struct tn_block *below = mapped->prev;
    const uint64_t page_size = search->segment->expandable->page_size;

    if (mapped != search->first && mapped->size < search->size &&
        block_end(mapped) >= below->address + search->size) {
        tn_assert(!below->mapped); /* else they would be one block */
        const uint64_t at = block_end(mapped) - search->size - search->segment->address;

        try_place(search, below, search->segment->address + at / page_size * page_size);
    }
}

/* The places in an unmapped block that begin where retired pages end. */
static void try_behind_retired(struct search *search, struct tn_block *block)
{
    const struct tn_retired_run *runs = search->retired->runs.items;
    const struct tn_segment *segment = search->segment;

    if (segment->expandable->retiring == 0) {
        return;
    }
    for (size_t i = 0; i < search->retired->runs.count; i++) {
        const uint64_t end = segment->address + runs[i].end * segment->expandable->page_size;

        if (runs[i].segment == segment && end > block->address && end < block_end(block)) {
            try_place(search, block, end);
        }
    }
}

static void try_hole(struct search *search)
{
    for (struct tn_block *b = search->first; b && b->address < search->end; b = b->next) {
        if (b->mapped && search->anywhere) {
            try_place(search, b, b->address);
            try_ending_with(search, b);
        } else if (!b->mapped) {
            try_behind_retired(search, b);
        }
        if (b == search->first && (!b->mapped || !search->anywhere)) {
            try_place(search, b, b->address);
        }
    }
}

/* Makes the hole whose lowest unmapped block this is the one that is searched. */
static void hole_around(struct search *search, struct tn_block *block)
{
    struct tn_block *first = tn_fit_is_first(block) ? block : block->prev;
    struct tn_block *last = block;
    uint64_t mapped = block->address - first->address;

    tn_assert(tn_fit_is_first(first)); /* no two mapped or two unmapped blocks are neighbours */
    while (last->next && tn_block_is_idle(last->next)) {
        last = last->next;
        mapped += last->mapped ? last->size : 0;
    }
    search->first = first;
    search->end = block_end(last);
    search->mapped = mapped;
}

/* Whether a place in the hole may be better than the best in holes at lower addresses: no place
 * lacks less than what the whole hole has not mapped. */
static bool hole_may_be_better(const struct search *search)
{
    const uint64_t hole = search->end - search->first->address;

    if (hole < search->size || !search->best.block) {
        return hole >= search->size;
    }
    const uint64_t has = search->mapped < search->size ? search->mapped : search->size;
    const uint64_t missing = tn_pages_up(search->size - has, TN_SMALL_BUFFER);

    return missing < search->best.missing ||
           (missing == search->best.missing && hole < search->best.hole);
}

bool tn_placement_find(const struct tn_heap *heap, const struct tn_retired *retired,
                       const struct tn_free_set *set, uint64_t size, bool anywhere,
                       struct tn_placement *placement_out)
{
    struct search search = {.retired = retired, .size = size, .anywhere = anywhere};

    for (uint32_t i = 0; i < set->unmapped.count; i++) { /* in the order of addresses */
        struct tn_block *block = set->unmapped.blocks[i];

        if (block->address >= search.end) {
            hole_around(&search, block);
            if (hole_may_be_better(&search)) {
                search.segment = tn_segment_find(heap, block->address);
                try_hole(&search);
            }
        }
    }
    *placement_out = search.best;
    return search.best.block != NULL;
}

void tn_placement_renew(const struct tn_free_set *set, struct tn_placement *place)
{
    struct tn_block *unmapped = tn_free_set_find_unmapped(set, place->address);

    if (unmapped) { /* else it begins with a mapped block, whose beginning stays */
        place->block = unmapped;
    }
}
