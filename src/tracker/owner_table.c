/* SPDX-License-Identifier: MIT */
#include "tracker/owner_table.h"

#include "base/assertion.h"

#include <string.h>

void tn_owner_table_init(struct tn_owner_table *table)
{
    *table = (struct tn_owner_table){0};
    tn_vec_init(&table->owners, sizeof(struct tn_owner));
}

void tn_owner_table_fini(struct tn_owner_table *table)
{
    tn_map_fini(&table->map);
    tn_vec_fini(&table->owners);
}

static struct tn_owner *owner_at(const struct tn_owner_table *table, size_t at)
{
    tn_assert(at < table->owners.count);
    return (struct tn_owner *)table->owners.items + at;
}

const struct tn_owner *tn_owner_at(const struct tn_owner_table *table, size_t at)
{
    return owner_at(table, at);
}

static uint64_t owner_key(uint32_t module, uint32_t device)
{
    return (uint64_t)module * TARN_TRACK_DEVICES_MAX + device + 1;
}

bool tn_owner_get(struct tn_owner_table *table, uint32_t module, uint32_t device,
                  uint32_t *owner_out)
{
    const uint64_t *found = tn_map_find(&table->map, owner_key(module, device));

    if (tn_likely(found != NULL)) {
        *owner_out = (uint32_t)*found;
        return true;
    }
    if (!tn_vec_reserve(&table->owners, 1) || !tn_map_reserve(&table->map, 1)) {
        return false;
    }
    *owner_out = (uint32_t)table->owners.count++;
    *owner_at(table, *owner_out) = (struct tn_owner){
        .module = module,
        .device = device,
        .device_epoch = table->device_epochs[device],
        .total_peak_epoch = table->total_peak_epoch,
    };
    tn_map_insert(&table->map, owner_key(module, device), *owner_out);
    return true;
}

void tn_owner_change(struct tn_owner_table *table, uint32_t owner, uint32_t category,
                     int64_t change)
{
    struct tn_owner *o = owner_at(table, owner);

    if (o->device_epoch != table->device_epochs[o->device]) {
        o->device_epoch = table->device_epochs[o->device];
        memcpy(o->at_device_peak, o->now, sizeof o->now);
    }
    if (o->total_peak_epoch != table->total_peak_epoch) {
        o->total_peak_epoch = table->total_peak_epoch;
        memcpy(o->at_total_peak, o->now, sizeof o->now);
    }
    o->now[category] += change;
}

void tn_owner_begin_device_peak(struct tn_owner_table *table, uint32_t device)
{
    table->device_epochs[device]++;
}

void tn_owner_begin_point(struct tn_owner_table *table)
{
    table->total_peak_epoch++;
}

const int64_t *tn_owner_bytes(const struct tn_owner_table *table, const struct tn_owner *owner,
                              enum tarn_track_point point)
{
    switch (point) {
    case TARN_TRACK_PEAKS:
        return owner->device_epoch == table->device_epochs[owner->device] ? owner->at_device_peak
                                                                          : owner->now;
    case TARN_TRACK_TOTAL_PEAK:
        return owner->total_peak_epoch == table->total_peak_epoch ? owner->at_total_peak
                                                                  : owner->now;
    case TARN_TRACK_NOW:
    case TARN_TRACK_AT_END:
    case TARN_TRACK_POINT_COUNT:
        break;
    }
    return owner->now;
}

const struct tn_owner *tn_owner_find(const struct tn_owner_table *table, uint32_t module,
                                     uint32_t device)
{
    const uint64_t *found = tn_map_find(&table->map, owner_key(module, device));

    return found ? owner_at(table, *found) : NULL;
}
