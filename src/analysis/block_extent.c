/* SPDX-License-Identifier: MIT */
#include "analysis/block_extent.h"

#include "analysis/address_map.h"
#include "analysis/segment_walk.h"
#include "base/assertion.h"
#include "base/order.h"

#include <assert.h>

/* Blocks that can have more than their rounded request are larger than this, and have at most this
 * much more, unless none of a block is ever split off. So of these blocks one at most begins in
 * each MiB of addresses, and one ends, and a map by MiB finds the next one. */
#define NEAR TN_BLOCK_SMALL_MAX

/* A block that is allocated at the position of the walk. */
struct live_block {
    uint64_t address;
    uint64_t requested;
    uint64_t rounded_end;
    uint64_t size; /* as the snapshot has it; 0: the trace frees it */
    uint64_t end;  /* where a block was allocated right behind it; 0: never */
    bool is_used;
};

/* Whether memory was reserved before the trace. To know it costs a walk over the trace, which few
 * blocks need. */
enum before {
    BEFORE_UNKNOWN,
    BEFORE_NONE,
    BEFORE_SOME
};

struct walk {
    struct tn_block_extents *extents;
    struct tn_trace_source source;
    struct tn_segment_walk segments;
    struct tn_vec blocks;     /* struct live_block */
    struct tn_vec unused;     /* uint64_t: numbers of blocks */
    struct tn_map starts;     /* MiB in which a block begins -> its number */
    struct tn_map ends;       /* MiB in which its rounded request ends -> the same */
    struct tn_map odd;        /* address of a block of the snapshot that cannot have more, but has
                              another size than the rule gives -> its size */
    uint64_t least_with_more; /* of the requests in the trace */
    enum before before;
};

static uint64_t near_key(uint64_t address)
{
    return address / NEAR + 1;
}

/* The block that a map has for the MiB of an address; NULL: none. */
static struct live_block *live_near(const struct walk *walk, const struct tn_map *map,
                                    uint64_t address)
{
    const uint64_t *number = tn_map_find(map, near_key(address));

    return number ? (struct live_block *)walk->blocks.items + *number : NULL;
}

static struct live_block *live_find(const struct walk *walk, uint64_t address)
{
    struct live_block *block = live_near(walk, &walk->starts, address);

    return block && block->address == address ? block : NULL;
}

static bool number_take(struct walk *walk, uint64_t *number_out)
{
    if (walk->unused.count > 0) {
        *number_out = ((const uint64_t *)walk->unused.items)[--walk->unused.count];
        return true;
    }
    *number_out = walk->blocks.count;
    return tn_vec_push(&walk->blocks) && tn_vec_reserve(&walk->unused, walk->blocks.count);
}

/* Where two blocks are too near, which is a contradiction, the one that the walk meets first
 * stays. */
static bool live_add(struct walk *walk, uint64_t address, uint64_t requested, uint64_t size)
{
    const uint64_t rounded_end =
        tn_range_end(address, tn_split_rounded(&walk->extents->rule, requested));
    uint64_t number;

    if (tn_map_find(&walk->starts, near_key(address)) ||
        tn_map_find(&walk->ends, near_key(rounded_end))) {
        return true;
    }
    if (!tn_map_reserve(&walk->starts, 1) || !tn_map_reserve(&walk->ends, 1) ||
        !number_take(walk, &number)) {
        return false;
    }
    ((struct live_block *)walk->blocks.items)[number] = (struct live_block){
        .address = address,
        .requested = requested,
        .rounded_end = rounded_end,
        .size = size,
        .is_used = true,
    };
    tn_map_insert(&walk->starts, near_key(address), number);
    tn_map_insert(&walk->ends, near_key(rounded_end), number);
    return true;
}

/* There is room for the number: number_take has seen to it. */
static void live_remove(struct walk *walk, struct live_block *block)
{
    uint64_t number;

    (void)tn_map_take(&walk->ends, near_key(block->rounded_end), &number);
    (void)tn_map_take(&walk->starts, near_key(block->address), &number);
    block->is_used = false;
    ((uint64_t *)walk->unused.items)[walk->unused.count++] = number;
}

/* ---- sizes ---- */

static uint64_t rounded_of(const struct walk *walk, uint64_t requested)
{
    return tn_split_rounded(&walk->extents->rule, requested);
}

/* The least request whose block can have more than the request rounded. Requests up to a power of
 * two are rounded to that at most. */
static uint64_t least_with_more(const struct tn_split_rule *rule)
{
    static_assert((TN_BLOCK_SMALL_MAX & (TN_BLOCK_SMALL_MAX - 1)) == 0, "a power of two");

    return rule->expandable ? UINT64_MAX : (uint64_t)TN_BLOCK_SMALL_MAX + 1;
}

/* Where the next block begins, if that is not farther than a remainder can be large. */
static uint64_t next_start(const struct walk *walk, uint64_t rounded_end)
{
    for (uint64_t i = 0; i <= 1; i++) {
        const struct live_block *next =
            live_near(walk, &walk->starts, tn_range_end(rounded_end, i * NEAR));

        if (next && next->address >= rounded_end) {
            return next->address;
        }
    }
    return UINT64_MAX;
}

/* By the rule, from the blocks behind it at the position of the walk. The request is one that can
 * have more; one that is never split has all of its segment. */
static uint64_t size_by_rule(const struct walk *walk, uint64_t address, uint64_t requested)
{
    const struct tn_split_rule *rule = &walk->extents->rule;
    const uint64_t rounded = tn_split_rounded(rule, requested);
    const uint64_t rounded_end = tn_range_end(address, rounded);
    const bool is_split = rounded < rule->max_split;
    const uint64_t next = is_split ? next_start(walk, rounded_end) : UINT64_MAX;

    tn_assert(tn_split_leaves_slack(rule, rounded, false));
    if (next == rounded_end) {
        return rounded;
    }
    const struct tn_segment_range *range = tn_segment_walk_find(&walk->segments, address);

    return range && !range->is_expandable
               ? tn_split_block(rule, (next < range->end ? next : range->end) - address, rounded,
                                false)
               : rounded;
}

static bool extent_add(const struct walk *walk, struct tn_vec *extents, uint64_t key,
                       uint64_t requested, uint64_t size)
{
    const struct tn_block_extent extent = {.key = key, .size = size};

    return size == rounded_of(walk, requested) || tn_vec_append(extents, &extent, 1);
}

/* ---- the trace, backwards ---- */

/* A block of the snapshot. */
static bool final_add(struct walk *walk, const struct tn_model_segment *segment,
                      const struct tn_model_block *block)
{
    const uint64_t rounded = rounded_of(walk, block->requested_size);

    if (block->state == TN_BLOCK_INACTIVE) {
        return true;
    }
    if (tn_split_leaves_slack(&walk->extents->rule, rounded, segment->is_expandable)) {
        return live_add(walk, block->address, block->requested_size, block->size);
    }
    return block->size == rounded || tn_address_put(&walk->odd, block->address, block->size);
}

/* Those of a truncated file may be of another time. */
static bool finals_add(struct walk *walk)
{
    const struct tn_trace_source *source = &walk->source;

    for (size_t i = 0; !source->model->is_partial && i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];

        for (size_t k = 0; tn_source_has(source, i) && k < segment->block_count; k++) {
            if (!final_add(walk, segment, &segment->blocks[k])) {
                return false;
            }
        }
    }
    return true;
}

static bool has_before(struct walk *walk)
{
    if (walk->before == BEFORE_UNKNOWN) {
        walk->before = tn_source_reserved_before(&walk->source, 0) > 0 ? BEFORE_SOME : BEFORE_NONE;
    }
    return walk->before == BEFORE_SOME;
}

/* The free block that served the request began there, so the block before it ended there. Only
 * blocks from before the trace need to be told. */
static void end_set(struct walk *walk, uint64_t address)
{
    const struct tn_segment_range *range =
        has_before(walk) ? tn_segment_walk_find(&walk->segments, address) : NULL;

    for (uint64_t i = 0; i <= 1 && range && address >= NEAR; i++) {
        struct live_block *before = live_near(walk, &walk->ends, address - i * NEAR);

        if (before && before->rounded_end <= address && address - before->rounded_end <= NEAR &&
            before->address >= range->start) {
            before->end = address;
            return;
        }
    }
}

/* An odd block of the snapshot that the trace allocated. */
static bool odd_undo(struct walk *walk, const struct tn_trace_entry *entry, uint64_t number)
{
    uint64_t size;

    return !tn_map_take(&walk->odd, tn_address_key(entry->address), &size) ||
           extent_add(walk, &walk->extents->allocated, number, entry->size, size);
}

static bool alloc_undo(struct walk *walk, const struct tn_trace_entry *entry, uint64_t number)
{
    struct live_block *block;
    uint64_t size = 0;

    if (!tn_segment_walk_to(&walk->segments, number)) {
        return false;
    }
    block = live_find(walk, entry->address);
    if (block) {
        size = block->size;
        live_remove(walk, block);
    }
    if (size == 0) {
        size = size_by_rule(walk, entry->address, entry->size);
    }
    end_set(walk, entry->address);
    return extent_add(walk, &walk->extents->allocated, number, entry->size, size);
}

static bool entry_undo(struct walk *walk, const struct tn_trace_entry *entry, uint64_t number)
{
    const bool has_more = entry->size >= walk->least_with_more;

    if (entry->action == TN_TRACE_ALLOC) {
        return has_more ? alloc_undo(walk, entry, number) : odd_undo(walk, entry, number);
    }
    return entry->action != TN_TRACE_FREE_COMPLETED || !has_more ||
           live_add(walk, entry->address, entry->size, 0);
}

/* Entries from `first` on that lie side by side. */
static bool run_undo(struct walk *walk, const struct tn_trace_entry *run, uint64_t count,
                     uint64_t first)
{
    for (uint64_t i = count; i > 0; i--) {
        const struct tn_trace_entry *entry = &run[i - 1];

        if (entry->size < walk->least_with_more && walk->odd.count == 0) {
            continue; /* most entries */
        }
        if (!entry_undo(walk, entry, first + i - 1)) {
            return false;
        }
    }
    return true;
}

static bool trace_undo(struct walk *walk)
{
    const struct tn_trace_source *source = &walk->source;
    uint64_t count;

    if (walk->odd.count == 0 && source->request_limit > 0 &&
        source->request_limit <= walk->least_with_more) {
        return true; /* no block has more */
    }
    for (uint64_t limit = source->trace->count; limit > 0; limit -= count) {
        const struct tn_trace_entry *run =
            tn_trace_run_before(source->model, source->trace, limit, &count);

        if (!run_undo(walk, run, count, limit - count)) {
            return false;
        }
    }
    return true;
}

/* ---- before the trace ---- */

static bool before_add(struct walk *walk, const struct live_block *block)
{
    uint64_t size = block->size;

    if (size == 0 && block->end > 0) {
        size = block->end - block->address;
    } else if (size == 0) {
        size = size_by_rule(walk, block->address, block->requested);
    }
    return extent_add(walk, &walk->extents->before, block->address, block->requested, size);
}

/* Odd blocks that the trace did not allocate. */
static bool odds_add(struct walk *walk)
{
    for (uint64_t i = 0; i < walk->odd.capacity; i++) {
        const struct tn_map_slot *slot = &walk->odd.slots[i];
        const struct tn_block_extent extent = {.key = slot->key - 1, /* as tn_address_key */
                                               .size = slot->value};

        if (slot->key != 0 && !tn_vec_append(&walk->extents->before, &extent, 1)) {
            return false;
        }
    }
    return true;
}

static int extent_compare(const void *left, const void *right)
{
    const struct tn_block_extent *a = left;
    const struct tn_block_extent *b = right;

    return tn_order(a->key, b->key);
}

static bool befores_add(struct walk *walk)
{
    const struct live_block *blocks = walk->blocks.items;

    for (size_t i = 0; i < walk->blocks.count; i++) {
        if (blocks[i].is_used &&
            (!tn_segment_walk_to(&walk->segments, TN_NEVER) || !before_add(walk, &blocks[i]))) {
            return false;
        }
    }
    if (!odds_add(walk)) {
        return false;
    }
    tn_vec_sort(&walk->extents->before, extent_compare);
    return true;
}

/* ---- all of it ---- */

static void reverse(struct tn_vec *vec)
{
    struct tn_block_extent *items = vec->items;

    for (size_t i = 0; i < vec->count / 2; i++) {
        const struct tn_block_extent last = items[vec->count - 1 - i];

        items[vec->count - 1 - i] = items[i];
        items[i] = last;
    }
}

static bool walk_run(struct walk *walk)
{
    if (!finals_add(walk) || !trace_undo(walk)) {
        return false;
    }
    reverse(&walk->extents->allocated);
    return befores_add(walk);
}

bool tn_block_extents_init(struct tn_block_extents *extents, const struct tn_trace_source *source)
{
    static const struct tn_model_settings unset = {.present = false}; /* pinned memory has none */
    struct walk walk = {.extents = extents, .source = *source};

    extents->rule = tn_split_rule_of(source->is_host ? &unset : &source->model->settings);
    walk.least_with_more = least_with_more(&extents->rule);
    tn_vec_init(&extents->allocated, sizeof(struct tn_block_extent));
    tn_vec_init(&extents->before, sizeof(struct tn_block_extent));
    tn_vec_init(&walk.blocks, sizeof(struct live_block));
    tn_vec_init(&walk.unused, sizeof(uint64_t));
    if (!tn_segment_walk_init(&walk.segments, source)) {
        return false;
    }
    const bool good = walk_run(&walk);

    tn_map_fini(&walk.odd);
    tn_map_fini(&walk.ends);
    tn_map_fini(&walk.starts);
    tn_vec_fini(&walk.unused);
    tn_vec_fini(&walk.blocks);
    tn_segment_walk_fini(&walk.segments);
    if (!good) {
        tn_block_extents_fini(extents);
    }
    return good;
}

void tn_block_extents_fini(struct tn_block_extents *extents)
{
    tn_vec_fini(&extents->before);
    tn_vec_fini(&extents->allocated);
}

static const struct tn_block_extent *extent_find(const struct tn_vec *extents, uint64_t key)
{
    const struct tn_block_extent *items = extents->items;
    size_t first = 0;
    size_t count = extents->count;

    while (count > 0) {
        const size_t half = count / 2;

        if (items[first + half].key < key) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first < extents->count && items[first].key == key ? &items[first] : NULL;
}

uint64_t tn_block_extent_of(const struct tn_block_extents *extents, uint64_t start,
                            uint64_t address, uint64_t requested)
{
    const struct tn_block_extent *extent = start == TN_NEVER
                                               ? extent_find(&extents->before, address)
                                               : extent_find(&extents->allocated, start);

    return extent ? extent->size : tn_split_rounded(&extents->rule, requested);
}

uint64_t tn_block_extent_next(const struct tn_block_extents *extents, size_t *next, uint64_t start,
                              uint64_t requested)
{
    const struct tn_block_extent *items = extents->allocated.items;

    while (*next < extents->allocated.count && items[*next].key < start) {
        ++*next;
    }
    return *next < extents->allocated.count && items[*next].key == start
               ? items[*next].size
               : tn_split_rounded(&extents->rule, requested);
}
