/* SPDX-License-Identifier: MIT */
#include "alloc/compact/compact.h"

#include "alloc/compact/harvest.h"
#include "alloc/compact/placement.h"
#include "alloc/pool/segment.h"
#include "base/probe.h"

/* Moving may take half as long as creating the pages has, and a share of the time: */
enum {
    TIDY_SHARE = 400, /* to keep what lives together */
    OTHERS_SHARE = 30 /* for pages of other streams, while memory is plentiful */
};

enum {
    WORTH_MOVING = 8 /* pages, to keep what lives together */
};

/* The device is far behind: */
enum {
    BEHIND_SHARE = 8, /* old addresses are such a share of what is reserved, or more */
    SPARE_SHARE = 96  /* then such a share may be free, for the next requests */
};

enum {
    SHED_PAGES = 32,  /* at a time: 21 us each to unmap and release */
    SHED_PAUSES = 255 /* calls at most, while nothing can go */
};

void tn_compact_init(struct tn_compact *compact, struct tn_heap *heap)
{
    *compact =
        (struct tn_compact){.heap = heap, .begin_ns = heap->device->ops->now_ns(heap->device)};
    tn_stream_order_init(&compact->order, heap);
    tn_retired_init(&compact->retired, &compact->order);
    tn_page_store_init(&compact->store, heap);
}

void tn_compact_fini(struct tn_compact *compact)
{
    (void)!tn_retired_unmap(&compact->retired, true, NULL);
    tn_page_store_release(&compact->store);
    tn_retired_fini(&compact->retired);
    tn_stream_order_fini(&compact->order);
}

static bool may_look_at_events(const struct tn_compact *compact)
{
    return !tn_heap_is_capturing(compact->heap);
}

/* Whether so many more pages may be reserved without anybody missing them: a limit says how much
 * is meant to be used; without one, half of the device is left to others. */
static bool is_plentiful(const struct tn_heap *heap, uint64_t pages)
{
    const uint64_t half = heap->device->total_memory / 2;
    const bool is_limited = heap->limit < heap->device->total_memory;

    return heap->reserved + pages * TN_SMALL_BUFFER <= (is_limited ? heap->limit : half);
}

static uint64_t device_now_ns(const struct tn_compact *compact)
{
    return compact->heap->device->ops->now_ns(compact->heap->device);
}

/* From when on more may move, if a share of the time may go into it. */
static uint64_t time_for(const struct tn_compact *compact, uint64_t share)
{
    const uint64_t spent = compact->moving_ns;
    const uint64_t granted = compact->pages_created * TN_PAGE_CREATE_NS / 2;

    return compact->begin_ns + (spent > granted ? (spent - granted) * share : 0);
}

static bool has_time_for_others(const struct tn_compact *compact)
{
    return device_now_ns(compact) >= time_for(compact, OTHERS_SHARE);
}

/* Streams that take turns could move the same pages to and fro all the time. What a stream left
 * behind that needs no more moves once. */
static enum tarn_status take_from_others(struct tn_compact *compact, struct tn_harvest *harvest,
                                         struct tarn_error *error)
{
    harvest->not_in_turns =
        is_plentiful(compact->heap, harvest->wanted) && !has_time_for_others(compact);
    const enum tarn_status st = tn_harvest_take(harvest, TN_HARVEST_DONE, error);

    harvest->not_in_turns = false;
    return st;
}

/* The free block that fits best, wherever it lies; NULL if none fits. */
static struct tn_block *mapped_block(const struct tn_heap *heap, const struct tn_request *request)
{
    struct tn_block *block = tn_request_is_placed(heap, request)
                                 ? tn_free_set_find(request->set, request->size)
                                 : NULL; /* others were looked for already */

    return block && tn_fit_is_allowed(&heap->config, block, request->size) ? block : NULL;
}

/* The best place, in a new range if there is none. */
static enum tarn_status find_place(struct tn_compact *compact, struct tn_free_set *set,
                                   uint64_t size, bool anywhere, struct tn_placement *place_out,
                                   struct tarn_error *error)
{
    struct tn_block *block;

    if (tn_placement_find(compact->heap, &compact->retired, set, size, anywhere, place_out)) {
        return TARN_OK;
    }
    if (size > tn_expandable_range_size(compact->heap, set)) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY, "more than the device's memory");
    }
    const enum tarn_status st = tn_expandable_create(compact->heap, set, &block, error);

    if (st) {
        return st;
    }
    const bool found =
        tn_placement_find(compact->heap, &compact->retired, set, size, anywhere, place_out);

    return tn_always(found) ? TARN_OK /* at the beginning of the new range */
                            : tn_fail(error, TARN_ERR_INTERNAL, "an empty range has no place");
}

/* What was taken changed the blocks around the place, and there may be new places behind what
 * retires. None of those is better than one at the beginning or the end of a block was before; only
 * where these were not looked at can it be. */
static enum tarn_status renew_place(struct tn_compact *compact, const struct tn_request *request,
                                    bool anywhere, struct tn_placement *place,
                                    struct tarn_error *error)
{
    if (!anywhere) {
        return find_place(compact, request->set, request->size, anywhere, place, error);
    }
    tn_placement_renew(request->set, place);
    return TARN_OK;
}

/* A request begins with the first effort. */
static void count_pages(struct tn_compact *compact, enum tn_compact_effort effort, uint64_t moved,
                        uint64_t created)
{
    const uint64_t before = effort == TN_COMPACT_FREE ? 0 : compact->request_ns;
    const uint64_t ns = before + moved * TN_PAGE_MOVE_NS + created * TN_PAGE_CREATE_NS;

    compact->request_ns = ns;
    compact->pages_moved += moved;
    compact->pages_created += created;
    compact->longest_ns = ns > compact->longest_ns ? ns : compact->longest_ns;
    TN_PROBE4(move, moved, compact->heap->device->ordinal, created, ns);
}

/* What moving took by the device's clock, or what is assumed for the pages if that is more: where
 * two processes map at once a page takes several times as long. The clock of a simulated device
 * stands still meanwhile, so replays decide by what is assumed. */
static void count_time(struct tn_compact *compact, uint64_t begin_ns, uint64_t moved_before,
                       uint64_t created_before)
{
    const uint64_t moved = compact->pages_moved - moved_before;
    const uint64_t created = compact->pages_created - created_before;
    const uint64_t assumed = moved * TN_PAGE_MOVE_NS + created * TN_PAGE_CREATE_NS;

    if (moved > 0) {
        const uint64_t ns = device_now_ns(compact) - begin_ns;
        const uint64_t beyond = ns > assumed ? ns - assumed : 0;

        compact->moving_ns += moved * TN_PAGE_MOVE_NS + beyond / (moved + created) * moved;
    }
    compact->heap->tidy_from_ns = time_for(compact, TIDY_SHARE);
}

/* Creates what is wanted, but no more than `most` pages, and adds their number. */
static enum tarn_status create_pages(struct tn_compact *compact, struct tn_harvest *harvest,
                                     uint64_t most, uint64_t *created, struct tarn_error *error)
{
    uint64_t left = harvest->wanted < most ? harvest->wanted : most;
    enum tarn_status st =
        tn_page_store_reserve(&compact->store, left) ? TARN_OK : tn_fail_memory(error);

    for (; st == TARN_OK && left > 0; left--) {
        st = tn_page_store_create(&compact->store, error);
        harvest->wanted -= st == TARN_OK;
        *created += st == TARN_OK;
    }
    return st == TARN_ERR_OUT_OF_MEMORY ? TARN_ERR_NOT_FOUND : st;
}

/* Takes what the stream has to wait for. */
static enum tarn_status take_ordered(struct tn_compact *compact, struct tn_harvest *harvest,
                                     struct tarn_error *error)
{
    enum tarn_status st = tn_page_store_take_ordered(&compact->store, &compact->order,
                                                     harvest->stream, &harvest->wanted, error);

    if (st == TARN_OK) {
        st = tn_harvest_take(harvest, TN_HARVEST_ORDERED, error);
    }
    return st == TARN_OK && harvest->wanted > 0 ? TARN_ERR_NOT_FOUND : st;
}

/* The device has no more pages. */
static enum tarn_status take_rest(struct tn_compact *compact, struct tn_harvest *harvest,
                                  enum tn_compact_effort effort, struct tarn_error *error)
{
    enum tarn_status st = tn_harvest_take(harvest, TN_HARVEST_DONE, error);

    if (st || harvest->wanted == 0) {
        return st;
    }
    return effort == TN_COMPACT_ORDERED && may_look_at_events(compact)
               ? take_ordered(compact, harvest, error)
               : TARN_ERR_NOT_FOUND;
}

static struct tn_harvest harvest_for(struct tn_compact *compact, const struct tn_request *request,
                                     const struct tn_placement *place)
{
    return (struct tn_harvest){
        .heap = compact->heap,
        .order = &compact->order,
        .retired = &compact->retired,
        .store = &compact->store,
        .stream = request->stream,
        .owner = request->pool->owner,
        .priority = request->pool->owner ? request->pool->owner->priority : 0,
        .keep_begin = place->address,
        .keep_end = place->address + request->size,
        .wanted = place->missing,
        .stack = request->stack,
    };
}

/* Pages that the pool, which may be NULL, can get from elsewhere without exceeding its limit. */
static uint64_t pages_within_limit(const struct tn_private_pool *owner)
{
    if (!owner || owner->limit == TARN_SIZE_UNLIMITED) {
        return UINT64_MAX;
    }
    return owner->limit > owner->reserved ? (owner->limit - owner->reserved) / TN_SMALL_BUFFER : 0;
}

/* Takes those pages from the request's own pool that its limit does not let it get from elsewhere:
 * if they move within it, it has no more than before. */
static enum tarn_status take_beyond_limit(struct tn_harvest *harvest, enum tn_compact_effort effort,
                                          struct tarn_error *error)
{
    const enum tn_harvest_from last =
        effort == TN_COMPACT_ORDERED ? TN_HARVEST_ORDERED : TN_HARVEST_DONE;
    const uint64_t within = pages_within_limit(harvest->owner);
    const uint64_t elsewhere = harvest->wanted < within ? harvest->wanted : within;
    enum tarn_status st = TARN_OK;

    if (elsewhere == harvest->wanted) {
        return TARN_OK;
    }
    harvest->wanted -= elsewhere;
    if (!tn_harvest_own_suffice(harvest)) {
        return TARN_ERR_NOT_FOUND; /* pages that do not help stay where they are */
    }
    harvest->own_only = true;
    for (enum tn_harvest_from from = TN_HARVEST_SAME_STREAM;
         st == TARN_OK && harvest->wanted > 0 && from <= last; from++) {
        st = tn_harvest_take(harvest, from, error);
    }
    st = st == TARN_OK && harvest->wanted > 0 ? TARN_ERR_NOT_FOUND : st;
    harvest->own_only = false;
    harvest->wanted += elsewhere;
    return st;
}

/* Whether what is free stays for the next requests, and new pages serve this one. While the device
 * is far behind, every page that moves takes an address from the stream for a long time, often the
 * beginning of a hole. Where streams give each other pages, what is free is needed there. */
static bool leaves_free(const struct tn_compact *compact, const struct tn_harvest *harvest,
                        const struct tn_free_set *set)
{
    const uint64_t reserved = compact->heap->reserved / TN_SMALL_BUFFER;
    struct tn_harvest more_than_spare = *harvest;

    if (compact->retired.pages == 0 || compact->retired.pages * BEHIND_SHARE < reserved ||
        compact->order.is_shared || !is_plentiful(compact->heap, harvest->wanted)) {
        return false;
    }
    more_than_spare.wanted = reserved / SPARE_SHARE + 1;
    return tn_harvest_count(&more_than_spare, set) < more_than_spare.wanted;
}

/* As many as the slack leaves, where none of them would go back at once because of a watermark. */
static uint64_t pages_in_slack(const struct tn_compact *compact, const struct tn_harvest *harvest,
                               const struct tn_free_set *set)
{
    const struct tn_heap *heap = compact->heap;
    const uint64_t allowed = tn_slack_allowed(&compact->slack);

    if (allowed < heap->reserved + TN_SMALL_BUFFER || tn_compact_limits_cache(heap)) {
        return 0;
    }
    const uint64_t own = tn_harvest_count(harvest, set);
    const uint64_t room = (allowed - heap->reserved) / TN_SMALL_BUFFER;
    const uint64_t pages = own < room ? own : room;

    return is_plentiful(heap, pages) ? pages : 0;
}

/* How many new pages the request gets before any free ones of its stream move. */
static uint64_t new_pages_first(struct tn_compact *compact, const struct tn_harvest *harvest,
                                const struct tn_request *request)
{
    const uint64_t live =
        (uint64_t)tn_counters_active_bytes(&compact->heap->shard.counters) + request->size;

    tn_slack_note_live(&compact->slack, live);
    return leaves_free(compact, harvest, request->set)
               ? UINT64_MAX
               : pages_in_slack(compact, harvest, request->set);
}

/* Takes free pages that nothing has to wait for. */
static enum tarn_status take_free(struct tn_compact *compact, struct tn_harvest *harvest,
                                  struct tarn_error *error)
{
    const uint64_t before = harvest->taken;
    const enum tarn_status st = tn_harvest_take(harvest, TN_HARVEST_SAME_STREAM, error);

    if (is_plentiful(compact->heap, 1)) {
        tn_slack_note_moved(&compact->slack, (harvest->taken - before) * TN_SMALL_BUFFER,
                            compact->heap->reserved);
    }
    return st ? st : take_from_others(compact, harvest, error);
}

/* Takes what is wanted from wherever it can be had, but creates up to `first` pages before any
 * moves. Adds how many pages are new. */
static enum tarn_status take_anywhere(struct tn_compact *compact, struct tn_harvest *harvest,
                                      enum tn_compact_effort effort, uint64_t first,
                                      uint64_t *created, struct tarn_error *error)
{
    harvest->wanted -=
        tn_page_store_take(&compact->store, &compact->order, harvest->stream, harvest->wanted);
    enum tarn_status st = create_pages(compact, harvest, first, created, error);

    if (st == TARN_OK || st == TARN_ERR_NOT_FOUND) { /* the device may have less than it says */
        st = take_free(compact, harvest, error);
    }
    if (st == TARN_OK) {
        st = create_pages(compact, harvest, UINT64_MAX, created, error);
    }
    return st == TARN_ERR_NOT_FOUND ? take_rest(compact, harvest, effort, error) : st;
}

/* Takes the pages that the place lacks in hand. *moved_out is how many come from free blocks, which
 * changes these. */
static enum tarn_status collect_pages(struct tn_compact *compact, const struct tn_request *request,
                                      const struct tn_placement *place,
                                      enum tn_compact_effort effort, uint64_t *moved_out,
                                      struct tarn_error *error)
{
    struct tn_harvest harvest = harvest_for(compact, request, place);
    const uint64_t first = new_pages_first(compact, &harvest, request);
    uint64_t created = 0;
    enum tarn_status st = TARN_OK;

    if (place->missing > 0) {
        tn_order_needs(&compact->order, request->stream);
    }
    st = take_beyond_limit(&harvest, effort, error);

    if (st == TARN_OK) {
        st = take_anywhere(compact, &harvest, effort, first, &created, error);
    }
    count_pages(compact, effort, harvest.taken, created);
    *moved_out = harvest.taken;
    return st;
}

/* Cuts the unmapped block so that one begins at the place. */
static void cut_at(struct tn_heap *heap, struct tn_placement *place)
{
    if (place->address > place->block->address) {
        struct tn_block *block = place->block;
        struct tn_block *behind = tn_shard_take_spare(&heap->shard);

        tn_assert(!block->mapped);
        tn_free_set_remove_unmapped(block->set, block);
        tn_block_split(block, place->address - block->address, behind);
        behind->requested_size = 0;
        tn_free_set_insert_unmapped(block->set, block);
        tn_free_set_insert_unmapped(block->set, behind);
        place->block = behind;
    }
}

/* Undoes it. */
static void join_at(struct tn_heap *heap, const struct tn_placement *place)
{
    struct tn_block *below = place->block->prev;
    uint32_t merged;
    uint64_t merged_bytes;

    if (below && tn_block_is_idle(below) && !place->block->mapped) {
        tn_free_set_remove_unmapped(below->set, place->block);
        struct tn_block *whole =
            tn_heap_coalesce(&heap->shard, place->block, &merged, &merged_bytes);

        tn_free_set_insert_unmapped(whole->set, whole);
    }
}

/* Maps what the place lacks, from the store. */
static enum tarn_status fill_place(struct tn_compact *compact, struct tn_request *request,
                                   struct tn_placement *place, struct tarn_error *error)
{
    struct tn_heap *heap = compact->heap;
    struct tn_block *block = NULL;
    uint64_t end;

    if (!tn_heap_reserve_spares(heap, &heap->shard, 3) ||
        !tn_free_set_reserve_unmapped(request->set, 3)) {
        return tn_fail_memory(error);
    }
    cut_at(heap, place);
    const uint64_t missing = tn_mapping_missing(place->segment, place->block, request->size, &end);

    tn_assert(missing == place->missing && missing <= compact->store.hand.count);
    if (!tn_expandable_reserve(place->segment->expandable, end)) {
        join_at(heap, place);
        return tn_fail_memory(error);
    }
    const uint64_t in_hand = compact->store.hand.count;

    tn_page_store_lend(&compact->store, missing);
    const enum tarn_status st = tn_mapping_add(heap, place->segment, place->block, request->size,
                                               request->stack, &compact->store.hand, &block, error);

    if (st) { /* what the device did not unmap again is lost */
        tn_page_store_return(&compact->store, missing - (in_hand - compact->store.hand.count));
        join_at(heap, place);
        return st;
    }
    tn_pool_remove(block);
    request->block = block;
    return TARN_OK;
}

/* Whether there is a place for the request, at the beginning of a hole, that few pages of its own
 * stream would fill. */
static bool is_worth_moving(struct tn_compact *compact, const struct tn_request *request)
{
    struct tn_placement place;

    if (!tn_placement_find(compact->heap, &compact->retired, request->set, request->size, false,
                           &place)) {
        return false;
    }
    const struct tn_harvest harvest = harvest_for(compact, request, &place);

    return place.missing <= WORTH_MOVING &&
           tn_harvest_count(&harvest, request->set) >= harvest.wanted;
}

/* The first block from this one on that begins its hole. */
static struct tn_block *first_of_hole(const struct tn_heap *heap, const struct tn_request *request,
                                      struct tn_block *block)
{
    while (block && !tn_fit_is_first(block)) {
        block = tn_free_set_next(request->set, block);
    }
    return block && tn_fit_is_allowed(&heap->config, block, request->size) ? block : NULL;
}

/* Serves the request from the mapped block that fits, unless moving pages is better. */
static bool take_mapped(struct tn_compact *compact, struct tn_request *request, bool tidy)
{
    struct tn_block *block = mapped_block(compact->heap, request);
    struct tn_block *first = tidy ? first_of_hole(compact->heap, request, block) : NULL;

    if (!block || (tidy && !first && is_worth_moving(compact, request))) {
        return false;
    }
    request->block = first ? first : block;
    tn_pool_remove(request->block);
    return true;
}

bool tn_compact_take_free(struct tn_compact *compact, struct tn_request *request)
{
    return take_mapped(compact, request, false);
}

/* Whether pages may move to keep together what lives: nothing but the fewest pages counts when
 * memory is short, pages move only where events can be recorded, and none do for this while more
 * slack is to end all moving. */
static bool is_tidy(const struct tn_compact *compact)
{
    const bool settles = compact->slack.grown_to > 0 && is_plentiful(compact->heap, 1);

    return may_look_at_events(compact) && tn_heap_is_tidy(compact->heap) && !settles;
}

enum tarn_status tn_compact_alloc(struct tn_compact *compact, struct tn_request *request,
                                  enum tn_compact_effort effort, struct tarn_error *error)
{
    const bool tidy = effort == TN_COMPACT_FREE && is_tidy(compact);
    const bool anywhere = !tidy;
    struct tn_placement place;
    uint64_t moved = 0;
    enum tarn_status st = TARN_OK;

    if (take_mapped(compact, request, tidy)) {
        return TARN_OK;
    }
    const uint64_t begin_ns = device_now_ns(compact);
    const uint64_t moved_before = compact->pages_moved;
    const uint64_t created_before = compact->pages_created;

    if (!tn_order_add(&compact->order, request->stream)) {
        return tn_fail_memory(error); /* a stream that gets memory can be marked */
    }
    if (may_look_at_events(compact)) {
        tn_harvest_prepare(compact->heap, &compact->order);
        tn_page_store_poll(&compact->store, &compact->order);
        st = tn_retired_unmap(&compact->retired, false, error);
    }
    if (st == TARN_OK) {
        st = find_place(compact, request->set, request->size, anywhere, &place, error);
    }
    if (st == TARN_OK) {
        st = collect_pages(compact, request, &place, effort, &moved, error);
    }
    if (st == TARN_OK && moved > 0) {
        st = renew_place(compact, request, anywhere, &place, error);
    }
    if (st == TARN_OK) {
        st = fill_place(compact, request, &place, error);
    }
    tn_page_store_keep(&compact->store, &compact->order, request->stream); /* after a failure */
    count_time(compact, begin_ns, moved_before, created_before);
    return st;
}

void tn_compact_measured(struct tn_compact *compact, uint64_t ns)
{
    struct tarn_page_stats *stats = &compact->measured;
    unsigned bucket = 0;

    while (bucket + 1 < TARN_PAGE_TIMES && ns >= UINT64_C(1000) << bucket) {
        bucket++;
    }
    stats->by_time[bucket]++;
    stats->requests++;
    stats->request_ns += ns;
    stats->longest_ns = ns > stats->longest_ns ? ns : stats->longest_ns;
}

/* Pages that are cached beyond the limit. */
static uint64_t pages_to_shed(const struct tn_heap *heap)
{
    const uint64_t cached =
        heap->reserved - (uint64_t)tn_counters_active_bytes(&heap->shard.counters);

    return cached > heap->config.max_cached ? (cached - heap->config.max_cached) / TN_SMALL_BUFFER
                                            : 0;
}

/* Takes pages that no work uses in hand, and unmaps them. True if there are any, and they are
 * mapped nowhere. */
static bool take_to_shed(struct tn_compact *compact, uint64_t wanted, uint64_t stack)
{
    struct tn_harvest harvest = {.heap = compact->heap,
                                 .order = &compact->order,
                                 .retired = &compact->retired,
                                 .store = &compact->store,
                                 .priority = INT64_MAX,
                                 .wanted = wanted < SHED_PAGES ? wanted : SHED_PAGES,
                                 .stack = stack};

    tn_harvest_prepare(compact->heap, &compact->order);
    enum tarn_status st = tn_retired_unmap(&compact->retired, false, NULL);

    if (st || compact->retired.runs.count > 0) { /* some may be mapped at an old address */
        return false;
    }
    harvest.wanted -= tn_page_store_take_any(&compact->store, harvest.wanted);
    st = tn_harvest_take(&harvest, TN_HARVEST_ALL_DONE, NULL);
    st = st ? st : tn_retired_unmap(&compact->retired, false, NULL);
    return st == TARN_OK && compact->store.hand.count > 0;
}

void tn_compact_shed(struct tn_compact *compact, uint64_t stack)
{
    const uint64_t wanted = pages_to_shed(compact->heap);

    if (wanted == 0 || !may_look_at_events(compact)) {
        return;
    }
    if (compact->shed_pause > 0) {
        compact->shed_pause--;
        return;
    }
    if (take_to_shed(compact, wanted, stack)) {
        tn_page_store_release_hand(&compact->store);
        compact->shed_pauses = 0;
    } else {
        tn_page_store_keep(&compact->store, &compact->order, 0);
        compact->shed_pauses = compact->shed_pauses * 2 + 1;
        compact->shed_pauses =
            compact->shed_pauses < SHED_PAUSES ? compact->shed_pauses : SHED_PAUSES;
        compact->shed_pause = compact->shed_pauses;
    }
}

void tn_compact_read(const struct tn_compact *compact, struct tarn_page_stats *stats_out)
{
    *stats_out = compact->measured;
    stats_out->page_size = TN_SMALL_BUFFER;
    stats_out->created = compact->pages_created;
    stats_out->moved = compact->pages_moved;
    stats_out->kept = compact->store.kept.count;
    stats_out->retired = compact->retired.pages;
}

void tn_compact_mark(struct tn_compact *compact)
{
    tn_harvest_prepare(compact->heap, &compact->order);
}

bool tn_compact_must_stay(const struct tn_compact *compact)
{
    return !may_look_at_events(compact) && compact->retired.runs.count > 0;
}

enum tarn_status tn_compact_settle(struct tn_compact *compact, struct tarn_error *error)
{
    const enum tarn_status st = tn_retired_unmap(&compact->retired, true, error);

    if (st == TARN_OK) { /* else some pages are still mapped */
        tn_page_store_release(&compact->store);
        compact->slack = (struct tn_slack){.live_peak = 0}; /* for what lives from now on */
    }
    return st;
}
