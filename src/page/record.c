/* SPDX-License-Identifier: MIT */
#include "page/record.h"

#include "base/assertion.h"
#include "page/section.h"
#include "page/segment_pages.h"

#include <inttypes.h>
#include <stdio.h>

#define ASKED  ((uint64_t)1 << 63)
#define BEFORE ((uint64_t)1 << 62)
#define ENTRY  (BEFORE - 1)

#define POOL_UNKNOWN UINT64_MAX /* in both numbers of the pool, as viewer/ has it */

static const struct tn_trace_entry *entry_at(const struct tn_record *record, uint64_t number)
{
    return tn_source_entry(record->source, number);
}

static void number_put(struct tn_record *record, enum tn_record_column column, uint64_t number)
{
    if (!tn_vec_append(&record->columns[column], &number, 1)) {
        record->failed = true;
    }
}

static bool has_address(const struct tn_trace_entry *entry)
{
    return entry->action <= TN_TRACE_SEGMENT_UNMAP;
}

/* ---- addresses ---- */

/* The lowest address, and the largest power of two that divides all. */
static void addresses_look_at(struct tn_record *record)
{
    const struct tn_trace_source *source = record->source;
    uint64_t bits = 0;
    uint64_t base = UINT64_MAX;

    for (uint64_t i = 0; i < source->trace->count; i++) {
        const struct tn_trace_entry *entry = entry_at(record, i);

        if (has_address(entry)) {
            bits |= entry->address;
            base = entry->address < base ? entry->address : base;
        }
    }
    for (size_t i = 0; i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];

        for (size_t k = 0; tn_source_has(source, i) && k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state != TN_BLOCK_INACTIVE) {
                bits |= block->address;
                base = block->address < base ? block->address : base;
            }
        }
        if (tn_source_has(source, i)) {
            bits |= segment->address;
            base = segment->address < base ? segment->address : base;
        }
    }
    record->base = base == UINT64_MAX ? 0 : base;
    record->unit = bits == 0 ? 1 : bits & (0 - bits);
}

/* Times of the page count from there, wherever it begins. */
static void time_begin(struct tn_record *record)
{
    const uint64_t count = record->source->trace->count;

    record->time_begun = TN_TIME_NONE;
    for (uint64_t i = 0; i < count && record->time_begun == TN_TIME_NONE; i++) {
        record->time_begun = entry_at(record, i)->time_us;
    }
}

bool tn_record_init(struct tn_record *record, const struct tn_trace_source *source,
                    struct tn_names *names, struct tn_pool_stream_table *pool_streams,
                    struct tn_size_table *sizes, uint64_t first, uint64_t first_step)
{
    *record = (struct tn_record){.source = source,
                                 .names = names,
                                 .pool_streams = pool_streams,
                                 .sizes = sizes,
                                 .first = first,
                                 .first_step = first_step,
                                 .time_first = TN_TIME_NONE};
    tn_lifetime_ids_init(&record->lifetimes);
    tn_vec_init(&record->origin, sizeof(uint64_t));
    tn_column_init(&record->hints);
    for (int i = 0; i < TN_COLUMN_COUNT; i++) {
        tn_vec_init(&record->columns[i], sizeof(uint64_t));
    }
    tn_column_init(&record->chunk);
    tn_column_init(&record->before);
    for (int i = 0; i < TN_OVERVIEW; i++) {
        record->overview[0][i] = TN_OVERVIEW_NONE;
    }
    addresses_look_at(record);
    time_begin(record);
    if (!source->is_host &&
        !tn_gradients_init_trace(&record->gradients, source->model, (size_t)source->device,
                                 names->categories, first_step)) {
        return false;
    }
    if (!tn_entry_pools_init(&record->pools, source)) {
        goto gradients;
    }
    if (!tn_block_sizes_init(&record->block_sizes, source)) {
        goto pools;
    }
    if (tn_view_spans_collect(&record->spans, source, first)) {
        return true;
    }
    tn_block_sizes_fini(&record->block_sizes);
pools:
    tn_entry_pools_fini(&record->pools);
gradients:
    tn_gradients_fini(&record->gradients);
    return false;
}

void tn_record_fini(struct tn_record *record)
{
    tn_vec_fini(&record->spans);
    tn_block_sizes_fini(&record->block_sizes);
    tn_entry_pools_fini(&record->pools);
    tn_gradients_fini(&record->gradients);
    tn_lifetime_ids_fini(&record->lifetimes);
    tn_vec_fini(&record->origin);
    tn_column_fini(&record->hints);
    for (int i = 0; i < TN_COLUMN_COUNT; i++) {
        tn_vec_fini(&record->columns[i]);
    }
    tn_column_fini(&record->chunk);
    tn_column_fini(&record->before);
}

static uint64_t size_of(const struct tn_record *record, uint64_t lifetime)
{
    const uint64_t origin = ((const uint64_t *)record->origin.items)[lifetime];

    return entry_at(record, origin & ENTRY)->size;
}

/* Of the allocation; TN_STACK_NONE when it is not in the page. */
static uint32_t stack_of(const struct tn_record *record, uint64_t lifetime)
{
    const uint64_t origin = ((const uint64_t *)record->origin.items)[lifetime];

    return origin & BEFORE ? TN_STACK_NONE : entry_at(record, origin & ENTRY)->stack;
}

/* ---- guessed categories ---- */

/* Of a block with that start, end and stack. */
static uint8_t hint_of(struct tn_record *record, const struct tn_lifetime *lifetime,
                       bool is_gradient)
{
    struct tn_categories *categories = record->names->categories;
    const uint32_t category = tn_category_of(categories, lifetime, record->first_step, is_gradient);

    if (category == tn_category_of_stack(categories, lifetime->stack)) {
        return 0;
    }
    return (uint8_t)(category - (tn_category_count(categories) - TN_CATEGORIES_GUESSED) + 1);
}

/* The lifetime ends at an entry, or never. */
static void hint_set(struct tn_record *record, uint64_t number, uint64_t end)
{
    const uint64_t origin = ((const uint64_t *)record->origin.items)[number];
    const struct tn_lifetime lifetime = {.start = origin & BEFORE ? TN_NEVER : origin & ENTRY,
                                         .end = end,
                                         .stack = stack_of(record, number)};

    ((uint8_t *)record->hints.bytes.items)[number] =
        hint_of(record, &lifetime, tn_gradients_has(&record->gradients, origin & ENTRY));
}

/* ---- numbers into columns ---- */

/* The step from the address written last, in units. */
static uint64_t address_step(struct tn_record *record, uint64_t address)
{
    const uint64_t at = (address - record->base) / record->unit;
    const uint64_t step = tn_column_zigzag(record->at, at);

    record->at = at;
    return step;
}

static void time_put(struct tn_record *record, const struct tn_trace_entry *entry)
{
    if (entry->time_us != TN_TIME_NONE && record->time_first == TN_TIME_NONE) {
        record->time_first = entry->time_us;
        record->time = entry->time_us;
        record->time_last = entry->time_us;
    }
    const int64_t time = entry->time_us == TN_TIME_NONE ? record->time : entry->time_us;

    number_put(record, TN_COLUMN_TIME, tn_column_zigzag((uint64_t)record->time, (uint64_t)time));
    record->time = time;
    record->time_last = time > record->time_last ? time : record->time_last;
}

/* Most frees have the stack of the allocation: that is 0 there, and other numbers one more. */
static void stack_put(struct tn_record *record, enum tn_record_kind kind,
                      const struct tn_trace_entry *entry, const struct tn_lifetime_step *step)
{
    const uint64_t number = tn_names_stack(record->names, entry->stack);

    if (kind >= TN_RECORD_FREE_REQUESTED && kind <= TN_RECORD_FREE) {
        number_put(record, TN_COLUMN_FREE_STACK,
                   entry->stack == stack_of(record, step->lifetime) ? 0 : number + 1);
    } else {
        number_put(record, TN_COLUMN_STACK, number);
    }
}

static void extra_put(struct tn_record *record, const struct tn_trace_entry *entry)
{
    number_put(record, TN_COLUMN_EXTRA, tn_names_extra(record->names, entry->extra));
}

static uint32_t pool_stream_of(struct tn_record *record, const struct tn_trace_entry *entry)
{
    const struct tn_segment_range *by;
    struct tn_pool_id pool;

    if (!tn_entry_pool(&record->pools, entry, &pool, &by)) {
        pool = (struct tn_pool_id){{POOL_UNKNOWN, POOL_UNKNOWN}};
    }
    return tn_pool_stream_table_get(record->pool_streams, entry->stream, pool);
}

static void what_put(struct tn_record *record, const struct tn_trace_entry *entry)
{
    number_put(record, TN_COLUMN_SIZE, tn_size_table_get(record->sizes, entry->size));
    number_put(record, TN_COLUMN_POOL_STREAM, pool_stream_of(record, entry));
}

static void where_put(struct tn_record *record, const struct tn_trace_entry *entry)
{
    number_put(record, TN_COLUMN_ADDRESS, address_step(record, entry->address));
    what_put(record, entry);
}

static void plain_put(struct tn_record *record, uint64_t number)
{
    number_put(record, TN_COLUMN_PLAIN, number);
}

/* ---- entries ---- */

static enum tn_record_kind free_kind(const struct tn_lifetime_step *step, bool is_completed)
{
    enum tn_record_kind kind = TN_RECORD_FREE_REQUESTED;

    if (step->is_new) {
        kind = TN_RECORD_OLD_FREE_REQUESTED;
    } else if (step->lifetime == TN_LIFETIME_NONE) {
        kind = TN_RECORD_LOST_FREE_REQUESTED;
    }
    return is_completed ? kind + 1 : kind;
}

static enum tn_record_kind kind_of(const struct tn_trace_entry *entry,
                                   const struct tn_lifetime_step *step)
{
    switch ((enum tn_trace_action)entry->action) {
    case TN_TRACE_ALLOC:
        return step->ended == TN_LIFETIME_NONE ? TN_RECORD_ALLOC : TN_RECORD_ALLOC_AGAIN;
    case TN_TRACE_FREE_REQUESTED:
        return free_kind(step, false);
    case TN_TRACE_FREE_COMPLETED:
        return free_kind(step, true);
    case TN_TRACE_SEGMENT_ALLOC:
        return TN_RECORD_SEGMENT_ALLOC;
    case TN_TRACE_SEGMENT_FREE:
        return TN_RECORD_SEGMENT_FREE;
    case TN_TRACE_SEGMENT_MAP:
        return TN_RECORD_SEGMENT_MAP;
    case TN_TRACE_SEGMENT_UNMAP:
        return TN_RECORD_SEGMENT_UNMAP;
    case TN_TRACE_SNAPSHOT:
        return TN_RECORD_SNAPSHOT;
    case TN_TRACE_OOM:
        return TN_RECORD_OOM;
    case TN_TRACE_ANNOTATE:
        return TN_RECORD_ANNOTATE;
    case TN_TRACE_USER_DEFINED:
        return TN_RECORD_USER_DEFINED;
    case TN_TRACE_OTHER:
        break;
    case TN_TRACE_ACTION_COUNT:
        tn_no_case();
        break;
    }
    return TN_RECORD_OTHER;
}

/* The numbers that a record of that kind has beside its kind, time and stack. viewer/trace.js reads
 * them in the same order. */
static void details_put(struct tn_record *record, enum tn_record_kind kind,
                        const struct tn_trace_entry *entry, const struct tn_lifetime_id *id)
{
    switch (kind) {
    case TN_RECORD_ALLOC_AGAIN: /* its address is that of the lifetime that ends */
        number_put(record, TN_COLUMN_BEHIND, id->behind);
        what_put(record, entry);
        extra_put(record, entry);
        return;
    case TN_RECORD_ALLOC:
        number_put(record, TN_COLUMN_REUSE, id->reuse);
        if (id->reuse > 0) {
            what_put(record, entry);
        } else {
            where_put(record, entry);
        }
        extra_put(record, entry);
        return;
    case TN_RECORD_FREE_REQUESTED:
    case TN_RECORD_FREE_COMPLETED:
    case TN_RECORD_FREE:
        number_put(record, TN_COLUMN_BEHIND, id->behind);
        return;
    case TN_RECORD_OLD_FREE_REQUESTED:
    case TN_RECORD_OLD_FREE_COMPLETED:
    case TN_RECORD_OLD_FREE:
    case TN_RECORD_LOST_FREE_REQUESTED:
    case TN_RECORD_LOST_FREE_COMPLETED:
    case TN_RECORD_SEGMENT_ALLOC:
    case TN_RECORD_SEGMENT_FREE:
    case TN_RECORD_SEGMENT_MAP:
    case TN_RECORD_SEGMENT_UNMAP:
        where_put(record, entry);
        return;
    case TN_RECORD_OOM:
        record->ooms++;
        plain_put(record, entry->size);
        plain_put(record, entry->address); /* free bytes of the device */
        number_put(
            record, TN_COLUMN_POOL_STREAM,
            tn_pool_stream_table_get(record->pool_streams, entry->stream,
                                     tn_model_extra(record->source->model, entry->extra)->pool));
        return;
    case TN_RECORD_SNAPSHOT:
        plain_put(record, entry->size);
        return;
    case TN_RECORD_ANNOTATE:
        plain_put(record, id->step.lifetime == TN_LIFETIME_NONE ? 0 : id->behind + 1);
        extra_put(record, entry);
        return;
    case TN_RECORD_USER_DEFINED:
    case TN_RECORD_OTHER:
        extra_put(record, entry);
        return;
    }
}

/* Bytes allocated and reserved after the entry. */
static void totals_step(struct tn_record *record, uint64_t number,
                        const struct tn_trace_entry *entry, const struct tn_lifetime_step *step)
{
    const uint64_t count = record->source->trace->count - record->first;
    const uint64_t column = (number - record->first) * TN_OVERVIEW / count;
    uint64_t *requested = &record->overview[0][column];
    uint64_t *reserved = &record->overview[1][column];

    if (step->ended != TN_LIFETIME_NONE) {
        record->requested -= size_of(record, step->ended);
    }
    if (entry->action == TN_TRACE_ALLOC) {
        record->requested += entry->size;
    } else if (step->is_new) {
        record->requested_before += entry->size;
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED && step->lifetime != TN_LIFETIME_NONE) {
        record->requested -= size_of(record, step->lifetime);
    }
    record->reserved += (uint64_t)tn_reserved_delta(entry);
    if ((int64_t)record->requested > (int64_t)*requested) {
        *requested = record->requested;
    }
    *reserved = record->reserved > *reserved ? record->reserved : *reserved;
}

/* Updates the entry's block. False without host memory. */
static bool lifetime_step(struct tn_record *record, uint64_t number, struct tn_lifetime_id *id_out)
{
    const struct tn_trace_entry *entry = entry_at(record, number);
    const struct tn_lifetime_step *step = &id_out->step;

    if (!tn_lifetime_ids_step(&record->lifetimes, entry, id_out)) {
        return false;
    }
    if (step->is_new) {
        const uint64_t origin = number | (entry->action == TN_TRACE_ALLOC ? 0 : BEFORE);

        if (!tn_vec_append(&record->origin, &origin, 1)) {
            return false;
        }
        tn_column_put_byte(&record->hints, 0);
        if (record->hints.failed) {
            return false;
        }
    }
    if (step->ended != TN_LIFETIME_NONE) {
        hint_set(record, step->ended, number);
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED && step->lifetime != TN_LIFETIME_NONE) {
        hint_set(record, step->lifetime, number);
    }
    if (entry->action == TN_TRACE_FREE_REQUESTED && step->lifetime != TN_LIFETIME_NONE) {
        ((uint64_t *)record->origin.items)[step->lifetime] |= ASKED;
    }
    return true;
}

/* Whether the entry after a request to free completes it, with nothing new to say. */
static bool is_pair(const struct tn_record *record, uint64_t number)
{
    const struct tn_trace_entry *entry = entry_at(record, number);

    tn_assert(entry->action == TN_TRACE_FREE_REQUESTED);
    if (number + 1 >= record->source->trace->count) {
        return false;
    }
    const struct tn_trace_entry *next = entry_at(record, number + 1);

    return next->action == TN_TRACE_FREE_COMPLETED && next->address == entry->address &&
           next->stack == entry->stack;
}

/* One record, of one or two entries; *number is then that of the next entry. */
static bool entry_put(struct tn_record *record, uint64_t *number)
{
    const struct tn_trace_entry *entry = entry_at(record, *number);
    struct tn_lifetime_id id;

    if (!lifetime_step(record, *number, &id)) {
        return false;
    }
    if (id.step.is_new) {
        tn_block_sizes_add(&record->block_sizes, id.step.lifetime,
                           entry->action == TN_TRACE_ALLOC ? *number : TN_NEVER, entry->address,
                           entry->size);
    }
    enum tn_record_kind kind = kind_of(entry, &id.step);
    const bool is_two =
        (kind == TN_RECORD_FREE_REQUESTED || kind == TN_RECORD_OLD_FREE_REQUESTED) &&
        is_pair(record, *number);

    kind = is_two ? kind + 2 : kind;
    totals_step(record, *number, entry, &id.step);
    number_put(record, TN_COLUMN_KIND, kind);
    time_put(record, entry);
    stack_put(record, kind, entry, &id.step);
    details_put(record, kind, entry, &id);
    ++*number;
    if (is_two) {
        entry = entry_at(record, *number);
        if (!lifetime_step(record, *number, &id)) {
            return false;
        }
        totals_step(record, *number, entry, &id.step);
        time_put(record, entry);
        ++*number;
    }
    record->chunk_entries += is_two ? 2 : 1;
    return true;
}

/* Bytes that the largest number of a column needs. */
static unsigned column_width(const struct tn_vec *column)
{
    const uint64_t *numbers = column->items;
    uint64_t bits = 0;
    unsigned width = 0;

    for (size_t i = 0; i < column->count; i++) {
        bits |= numbers[i];
    }
    for (; bits > 0; bits >>= 8) {
        width++;
    }
    return width;
}

static void plane_add(struct tn_section *section, struct tn_column *scratch,
                      const struct tn_vec *column, unsigned plane)
{
    const uint64_t *numbers = column->items;

    tn_column_clear(scratch);
    for (size_t i = 0; i < column->count; i++) {
        tn_column_put_byte(scratch, (uint8_t)(numbers[i] >> 8 * plane));
    }
    tn_section_add(section, scratch->bytes.items, scratch->bytes.count);
}

/* Writes the columns, and empties them. */
static bool chunk_put(struct tn_record *record, const struct tn_section_out *out)
{
    unsigned width[TN_COLUMN_COUNT];
    struct tn_section section;
    size_t size = 0;
    char name[48];

    tn_column_clear(&record->chunk);
    tn_column_put_varint(&record->chunk, record->chunk_entries);
    for (int i = 0; i < TN_COLUMN_COUNT; i++) {
        width[i] = column_width(&record->columns[i]);
        tn_column_put_varint(&record->chunk, record->columns[i].count);
        tn_column_put_byte(&record->chunk, (uint8_t)width[i]);
        size += record->columns[i].count * width[i];
    }
    (void)snprintf(name, sizeof name, "d%zu.trace.%zu", record->number, record->chunks++);
    if (record->failed || record->chunk.failed ||
        !tn_section_begin(&section, out, name, record->chunk.bytes.count + size)) {
        return false;
    }
    tn_section_add(&section, record->chunk.bytes.items, record->chunk.bytes.count);
    for (int i = 0; i < TN_COLUMN_COUNT; i++) {
        for (unsigned plane = 0; plane < width[i]; plane++) {
            plane_add(&section, &record->chunk, &record->columns[i], plane);
        }
        record->columns[i].count = 0;
    }
    record->chunk_entries = 0;
    return tn_section_end(&section) && !record->chunk.failed;
}

static bool entries_put(struct tn_record *record, const struct tn_section_out *out)
{
    const uint64_t count = record->source->trace->count;

    for (uint64_t i = record->first; i < count && out->text->status == TARN_OK;) {
        if (!entry_put(record, &i)) {
            return false;
        }
        if ((record->chunk_entries >= TN_RECORD_CHUNK || i >= count) && !chunk_put(record, out)) {
            return false;
        }
    }
    return true;
}

/* ---- what was there before ---- */

/* A block that was allocated before the first entry of the page. */
struct old_block {
    uint64_t address;
    uint64_t size;
    uint32_t pool_stream;
    uint32_t stack;
    uint32_t extra;       /* of the allocation */
    const uint64_t *said; /* extra of the program's later metadata; NULL: none */
    bool is_asked;
};

/* viewer/trace.js reads them in the same order. */
static void old_put(struct tn_record *record, const struct old_block *block)
{
    struct tn_column *column = &record->before;

    tn_column_put_varint(column, address_step(record, block->address));
    tn_column_put_varint(column, tn_size_table_get(record->sizes, block->size));
    tn_column_put_varint(column, block->pool_stream);
    tn_column_put_varint(column, tn_names_stack(record->names, block->stack));
    tn_column_put_varint(column, tn_names_extra(record->names, block->extra));
    tn_column_put_varint(
        column,
        block->said ? 1 + (uint64_t)tn_names_extra(record->names, (uint32_t)*block->said) : 0);
    tn_column_put_byte(column, block->is_asked);
    record->requested_before += block->size;
}

static bool survivor_put(void *context, const struct tn_model_segment *segment,
                         const struct tn_model_block *block)
{
    struct tn_record *record = context;
    const struct old_block old = {.address = block->address,
                                  .size = block->requested_size,
                                  .pool_stream = tn_pool_stream_table_get(
                                      record->pool_streams, segment->stream, segment->pool),
                                  .stack = block->stack,
                                  .is_asked = block->state == TN_BLOCK_ACTIVE_PENDING_FREE};
    const struct tn_lifetime lifetime = {.start = TN_NEVER, .end = TN_NEVER, .stack = block->stack};

    old_put(record, &old);
    tn_block_sizes_add(&record->block_sizes, record->lifetimes.walk.count + record->survivors,
                       TN_NEVER, block->address, block->requested_size);
    tn_column_put_byte(&record->hints, hint_of(record, &lifetime, false));
    record->survivors++;
    return true;
}

/* Notes what the program says of a block. False when host memory is missing. */
static bool said_step(struct tn_map *said, const struct tn_trace_entry *entry,
                      const struct tn_lifetime_step *step)
{
    if (entry->action != TN_TRACE_ANNOTATE || step->lifetime == TN_LIFETIME_NONE) {
        return true;
    }
    uint64_t *last = tn_map_find(said, step->lifetime + 1);

    if (last) {
        *last = entry->extra;
        return true;
    }
    if (!tn_map_reserve(said, 1)) {
        return false;
    }
    tn_map_insert(said, step->lifetime + 1, entry->extra);
    return true;
}

/* A block of the entries that the page does not have, from `origin` and `said`. */
static struct old_block carried_block(struct tn_record *record, uint64_t origin,
                                      const uint64_t *said)
{
    const struct tn_trace_entry *entry = entry_at(record, origin & ENTRY);
    const bool is_known = (origin & BEFORE) == 0;

    return (struct old_block){.address = entry->address,
                              .size = entry->size,
                              .pool_stream = pool_stream_of(record, entry),
                              .stack = is_known ? entry->stack : TN_STACK_NONE,
                              .extra = is_known ? entry->extra : TN_EXTRA_NONE,
                              .said = said,
                              .is_asked = (origin & ASKED) != 0};
}

/* The lifetimes that last, which get new numbers, from 0 on. */
static bool carried_put(struct tn_record *record, const struct tn_map *said)
{
    struct tn_vec carried;

    tn_vec_init(&carried, sizeof(uint64_t));
    const bool good = record->first == 0 || tn_lifetime_ids_carry(&record->lifetimes, &carried);

    for (size_t i = 0; good && i < carried.count; i++) {
        const uint64_t lifetime = ((const uint64_t *)carried.items)[i];
        uint64_t *origin = record->origin.items;

        origin[i] = origin[lifetime];
        ((uint8_t *)record->hints.bytes.items)[i] = 0;
        const struct old_block old =
            carried_block(record, origin[i], tn_map_find(said, lifetime + 1));

        old_put(record, &old);
        tn_block_sizes_add(&record->block_sizes, i,
                           origin[i] & BEFORE ? TN_NEVER : origin[i] & ENTRY, old.address,
                           old.size);
    }
    record->carried = carried.count;
    record->origin.count = good ? carried.count : record->origin.count;
    record->hints.bytes.count = record->origin.count;
    tn_vec_fini(&carried);
    return good;
}

/* The entries that the page does not have: blocks allocated after them come first in it. */
static bool skipped_read(struct tn_record *record)
{
    struct tn_map said = {0};
    struct tn_lifetime_id id;
    bool good = true;

    for (uint64_t i = 0; i < record->first && good; i++) {
        good = lifetime_step(record, i, &id) && said_step(&said, entry_at(record, i), &id.step);
    }
    good = good && carried_put(record, &said);
    tn_map_fini(&said);
    return good;
}

/* ---- segments ---- */

static void entry_number_put(struct tn_record *record, struct tn_column *column, uint64_t entry)
{
    tn_column_put_varint(column, entry == TN_NEVER ? 0 : entry - record->first + 1);
}

static bool spans_put(struct tn_record *record, const struct tn_section_out *out)
{
    const struct tn_view_span *spans = record->spans.items;
    struct tn_column *column = &record->chunk;
    char name[48];

    tn_column_clear(column);
    record->at = 0;
    tn_column_put_varint(column, record->spans.count);
    for (size_t i = 0; i < record->spans.count; i++) {
        tn_column_put_varint(column, address_step(record, spans[i].address));
        tn_column_put_varint(column, spans[i].size);
        entry_number_put(record, column, spans[i].start);
        entry_number_put(record, column, spans[i].end);
        tn_column_put_varint(
            column, tn_pool_stream_table_get(record->pool_streams, spans[i].stream, spans[i].pool));
        tn_column_put_varint(column, tn_names_stack(record->names, spans[i].stack));
        tn_column_put_byte(column, (uint8_t)(spans[i].is_large | spans[i].is_expandable << 1));
    }
    (void)snprintf(name, sizeof name, "d%zu.spans", record->number);
    return tn_section_put(out, name, column);
}

/* Only where the file has some. */
static bool pages_put(struct tn_record *record, const struct tn_section_out *out)
{
    struct tn_column *column = &record->chunk;
    char name[48];

    tn_column_clear(column);
    record->pages = tn_segment_pages_put(column, record->source, record->base, record->unit);
    (void)snprintf(name, sizeof name, "d%zu.pages", record->number);
    return record->pages == 0 || tn_section_put(out, name, column);
}

static bool column_put(const struct tn_record *record, const char *what,
                       const struct tn_column *column, const struct tn_section_out *out)
{
    char name[48];

    (void)snprintf(name, sizeof name, "d%zu.%s", record->number, what);
    return tn_section_put(out, name, column);
}

bool tn_record_put(struct tn_record *record, size_t number, const struct tn_section_out *out)
{
    record->number = number;
    record->reserved_before = tn_source_reserved_before(record->source, record->first);
    record->reserved = record->reserved_before;
    if (!spans_put(record, out) || !pages_put(record, out)) {
        return false;
    }
    record->at = 0;
    if (!skipped_read(record)) {
        return false;
    }
    const uint64_t after_carried = record->at;

    record->at = 0;
    if (!entries_put(record, out)) {
        return false;
    }
    for (size_t i = 0; i < record->lifetimes.row.count; i++) {
        hint_set(record, ((const uint64_t *)record->lifetimes.row.items)[i], TN_NEVER);
    }
    record->at = after_carried;
    const bool walked =
        tn_lifetime_walk_survivors(&record->lifetimes.walk, record->source, survivor_put, record);

    tn_assert(walked); /* columns say at their end whether memory was missing */
    (void)walked;
    return column_put(record, "before", &record->before, out) &&
           column_put(record, "hints", &record->hints, out) &&
           column_put(record, "blocks", &record->block_sizes.column, out);
}
