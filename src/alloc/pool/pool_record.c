/* SPDX-License-Identifier: MIT */
#include "alloc/pool/pool_record.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/id_table.h"

/* ---- by id ---- */

static uint64_t key_of(struct tarn_pool_id id)
{
    const uint64_t halves[] = {id.first, id.second};

    return UINT64_C(1) + tn_hash_bytes(halves, sizeof halves); /* a map's key is not 0 */
}

/* The first record whose id has this key, NULL if none has. */
static struct tn_pool_record *first_alike(const struct tn_pool_records *records, uint64_t key)
{
    const uint64_t *value = tn_map_find(&records->by_key, key);

    return value ? (struct tn_pool_record *)(uintptr_t)*value : NULL;
}

struct tn_pool_record *tn_pool_record_find(const struct tn_pool_records *records,
                                           struct tarn_pool_id id)
{
    struct tn_pool_record *record = first_alike(records, key_of(id));

    while (record && !tn_pool_id_equal(record->id, id)) {
        record = record->alike;
    }
    return record;
}

/* Sets which record is the first one with this key, NULL for none; space was reserved. */
static void set_first_alike(struct tn_pool_records *records, uint64_t key,
                            struct tn_pool_record *first)
{
    uint64_t ignored;

    tn_map_take(&records->by_key, key, &ignored);
    if (first) {
        tn_map_insert(&records->by_key, key, (uintptr_t)first);
    }
}

static void key_add(struct tn_pool_records *records, struct tn_pool_record *record)
{
    const uint64_t key = key_of(record->id);

    record->alike = first_alike(records, key);
    set_first_alike(records, key, record);
}

static void key_remove(struct tn_pool_records *records, const struct tn_pool_record *record)
{
    const uint64_t key = key_of(record->id);
    struct tn_pool_record *first = first_alike(records, key);
    struct tn_pool_record **link = &first;

    while (*link != record) {
        tn_assert(*link);
        link = &(*link)->alike;
    }
    *link = record->alike;
    set_first_alike(records, key, first);
}

/* ---- lifetime ---- */

struct tn_pool_record *tn_pool_record_acquire(struct tn_pool_records *records,
                                              struct tarn_pool_id id)
{
    struct tn_pool_record *record = tn_pool_record_find(records, id);

    if (record || !tn_map_reserve(&records->by_key, 1)) {
        return record;
    }
    record = tn_host_alloc_zero(sizeof *record);
    if (record) {
        record->id = id;
        record->prev = records->last;
        *(records->last ? &records->last->next : &records->first) = record;
        records->last = record;
        records->count++;
        key_add(records, record);
    }
    return record;
}

/* Whether all of its numbers are 0. */
static bool is_blank(const struct tn_pool_record *record)
{
    int64_t bits = 0;

    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        const struct tarn_stat stat = tn_counter_read(&record->reserved, pool);

        bits |= stat.current | stat.peak | stat.allocated | stat.freed;
    }
    return bits == 0;
}

static void record_destroy(struct tn_pool_records *records, struct tn_pool_record *record)
{
    *(record->prev ? &record->prev->next : &records->first) = record->next;
    *(record->next ? &record->next->prev : &records->last) = record->prev;
    records->count--;
    key_remove(records, record);
    tn_host_free(record, sizeof *record);
}

void tn_pool_record_tidy(struct tn_pool_records *records, struct tn_pool_record *record)
{
    if (!record->pool && is_blank(record)) {
        record_destroy(records, record);
    }
}

void tn_pool_record_leave(struct tn_pool_records *records, struct tn_pool_record *record)
{
    struct tn_pool_record *victim = record;

    record->pool = NULL;
    if (!is_blank(record)) {
        if (records->count <= TARN_POOL_RESERVED_MAX) {
            return;
        }
        for (victim = records->first; victim->pool;) {
            victim = victim->next;
        }
    }
    record_destroy(records, victim);
}

void tn_pool_records_fini(struct tn_pool_records *records)
{
    while (records->first) {
        struct tn_pool_record *record = records->first;

        records->first = record->next;
        tn_host_free(record, sizeof *record);
    }
    tn_map_fini(&records->by_key);
    *records = (struct tn_pool_records){0};
}

/* ---- all of them ---- */

static void records_reset(struct tn_pool_records *records, void (*reset)(struct tn_counter *))
{
    struct tn_pool_record *next;

    for (struct tn_pool_record *r = records->first; r; r = next) {
        next = r->next;
        reset(&r->reserved);
        tn_pool_record_tidy(records, r);
    }
}

void tn_pool_records_reset_peaks(struct tn_pool_records *records)
{
    records_reset(records, tn_counter_reset_peak);
}

void tn_pool_records_reset_accumulated(struct tn_pool_records *records)
{
    records_reset(records, tn_counter_reset_accumulated);
}

static struct tarn_pool_reserved record_read(const struct tn_pool_record *record)
{
    struct tarn_pool_reserved read = {.id = record->id, .is_gone = !record->pool};

    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        read.by_pool[pool] = tn_counter_read(&record->reserved, pool);
    }
    return read;
}

size_t tn_pool_records_read(const struct tn_pool_records *records,
                            struct tarn_pool_reserved *reserved_out, size_t room)
{
    size_t count = 0;

    for (const struct tn_pool_record *r = records->first; r; r = r->next) {
        if (count < room) {
            reserved_out[count] = record_read(r);
        }
        count++;
    }
    return count;
}
