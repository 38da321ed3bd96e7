/* SPDX-License-Identifier: MIT */
#include "tracker/breakdown.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

void tn_breakdown_fini(struct tn_breakdown *breakdown)
{
    tn_host_free(breakdown->rows, breakdown->capacity * sizeof *breakdown->rows);
    *breakdown = (struct tn_breakdown){0};
}

bool tn_breakdown_reserve(struct tn_breakdown *breakdown, size_t devices)
{
    if (tn_likely(devices <= breakdown->capacity)) {
        return true;
    }
    tn_assert(devices <= TARN_TRACK_DEVICES_MAX);
    struct tarn_track_row *rows =
        tn_host_resize(breakdown->rows, breakdown->capacity * sizeof *rows, devices * sizeof *rows);

    if (rows) {
        breakdown->rows = rows;
        breakdown->capacity = devices;
    }
    return rows != NULL;
}

struct tarn_track_row *tn_breakdown_find(const struct tn_breakdown *breakdown, uint32_t device)
{
    for (size_t i = 0; i < breakdown->count; i++) {
        if (breakdown->rows[i].device == device) {
            return &breakdown->rows[i];
        }
    }
    return NULL;
}

struct tarn_track_row *tn_breakdown_get(struct tn_breakdown *breakdown, uint32_t device)
{
    struct tarn_track_row *row = tn_breakdown_find(breakdown, device);

    if (tn_unlikely(!row)) {
        tn_assert(breakdown->count < breakdown->capacity);
        row = &breakdown->rows[breakdown->count++];
        *row = (struct tarn_track_row){.device = device};
    }
    return row;
}

void tn_breakdown_remove(struct tn_breakdown *breakdown, struct tarn_track_row *row)
{
    const size_t at = (size_t)(row - breakdown->rows);

    tn_assert(at < breakdown->count);
    breakdown->count--;
    memmove(row, row + 1, (breakdown->count - at) * sizeof *row);
}

void tn_breakdown_copy(struct tn_breakdown *to, const struct tn_breakdown *from)
{
    tn_assert(from->count <= to->capacity);
    to->count = from->count;
    if (from->count > 0) {
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
    }
}

void tn_breakdown_put(struct tn_breakdown *breakdown, const struct tarn_track_row *row)
{
    *tn_breakdown_get(breakdown, row->device) = *row;
}
