/* SPDX-License-Identifier: MIT */
/* tarn_tracker_check: recomputes all derived state from the storages and modules. */
#include "base/finding.h"
#include "tracker/track_core.h"

#include <inttypes.h>
#include <string.h>

/* Sums of one device, by category, from the storages or the owners. */
static void storages_sum(const struct tarn_tracker *t, uint32_t device, int64_t *sums)
{
    const struct tn_storage *records = t->storages.records.items;

    for (size_t i = 0; i < t->storages.records.count; i++) {
        const struct tn_storage *found = tn_storage_find(&t->storages, records[i].id);

        if (found == &records[i] && found->device == device) {
            sums[found->category] += found->bytes;
        }
    }
}

static void owners_sum(const struct tarn_tracker *t, uint32_t device, enum tarn_track_point point,
                       int64_t *sums)
{
    for (size_t i = 0; i < t->owners.owners.count; i++) {
        const struct tn_owner *owner = tn_owner_at(&t->owners, i);

        for (size_t c = 0; owner->device == device && c < TARN_TRACK_CATEGORIES_MAX; c++) {
            sums[c] += tn_owner_bytes(&t->owners, owner, point)[c];
        }
    }
}

/* A device without a row has nothing. */
static void check_sums(uint32_t device, const char *what, const struct tn_breakdown *breakdown,
                       const int64_t *sums, struct tarn_findings *findings)
{
    const struct tarn_track_row *row = tn_breakdown_find(breakdown, device);
    static const struct tarn_track_row nothing;
    int64_t total = 0;

    row = row ? row : &nothing;
    for (uint32_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        total += row->bytes[c];
        if (row->bytes[c] != sums[c]) {
            tn_finding_add(findings,
                           "device %" PRIu32 ", %s, category %" PRIu32 ": the row has %" PRId64
                           " bytes, the sum is %" PRId64,
                           device, what, c, row->bytes[c], sums[c]);
        }
    }
    if (total != row->total) {
        tn_finding_add(findings,
                       "device %" PRIu32 ", %s: the row's total is %" PRId64
                       " bytes, its categories add up to %" PRId64,
                       device, what, row->total, total);
    }
}

static void check_device(const struct tarn_tracker *t, uint32_t device,
                         struct tarn_findings *findings)
{
    int64_t sums[TARN_TRACK_CATEGORIES_MAX] = {0};

    storages_sum(t, device, sums);
    check_sums(device, "storages now", &t->now, sums, findings);
    memset(sums, 0, sizeof sums);
    owners_sum(t, device, TARN_TRACK_NOW, sums);
    check_sums(device, "owners now", &t->now, sums, findings);
    memset(sums, 0, sizeof sums);
    owners_sum(t, device, TARN_TRACK_TOTAL_PEAK, sums);
    check_sums(device, "owners at the total peak", &t->total_peak, sums, findings);
    if (tn_breakdown_find(&t->peaks, device)) {
        memset(sums, 0, sizeof sums);
        owners_sum(t, device, TARN_TRACK_PEAKS, sums);
        check_sums(device, "owners at the device's peak", &t->peaks, sums, findings);
    }
}

static void check_totals(const struct tarn_tracker *t, struct tarn_findings *findings)
{
    int64_t now = 0;
    int64_t point = 0;

    for (size_t i = 0; i < t->now.count; i++) {
        now += t->now.rows[i].total;
    }
    for (size_t i = 0; i < t->total_peak.count; i++) {
        point += t->total_peak.rows[i].total;
    }
    if (now != t->total) {
        tn_finding_add(findings, "the total is %" PRId64 " bytes, rows add up to %" PRId64,
                       t->total, now);
    }
    if (point != t->total_peak_bytes) {
        tn_finding_add(findings,
                       "the peak's total is %" PRId64 " bytes, its rows add up to %" PRId64,
                       t->total_peak_bytes, point);
    }
}

static void check_storages(const struct tarn_tracker *t, struct tarn_findings *findings)
{
    const struct tn_storage *records = t->storages.records.items;
    size_t free_records = 0;

    for (uint32_t at = t->storages.first_free;
         at != TN_STORAGE_NONE && free_records <= t->storages.records.count;
         at = records[at].next_free) {
        free_records++;
    }
    if (free_records + t->storages.map.count != t->storages.records.count) {
        tn_finding_add(findings, "%zu records are free and %" PRIu64 " known, but there are %zu",
                       free_records, t->storages.map.count, t->storages.records.count);
    }
}

static void check_active(const struct tarn_tracker *t, struct tarn_findings *findings)
{
    const uint32_t *active = t->active.items;
    size_t begun = 0;

    for (uint32_t name = 0; name < t->scopes.count; name++) {
        begun += tn_track_scope(t, name)->active > 0;
    }
    for (size_t i = 0; i < t->active.count; i++) {
        if (tn_track_scope(t, active[i])->active == 0) {
            tn_finding_add(findings, "name %" PRIu32 " is active, but counts no module", active[i]);
        }
    }
    if (begun != t->active.count) {
        tn_finding_add(findings, "%zu names count modules, but %zu are active", begun,
                       t->active.count);
    }
}

static bool chain_has(const struct tarn_tracker *t, const struct tn_module *module)
{
    const struct tn_module *at = tn_track_scope(t, module->name)->first;

    while (at && at != module) {
        at = at->next_of_name;
    }
    return at != NULL;
}

static void check_rows_room(const struct tarn_tracker *t, const struct tn_module *module,
                            struct tarn_findings *findings)
{
    const uint32_t devices = tn_name_list_count(&t->names[TARN_TRACK_DEVICE]);

    for (size_t i = 0; i < module->state_count; i++) {
        const struct tn_breakdown *call =
            tn_module_newest_call(module, tn_module_state_at(module, i)->state);

        if (call->capacity < devices) {
            tn_finding_add(findings, "module %" PRIu64 " has room for %zu rows of %" PRIu32,
                           module->id, call->capacity, devices);
        }
    }
}

static void check_modules(const struct tarn_tracker *t, struct tarn_findings *findings)
{
    for (size_t i = 0; i < t->order.count; i++) {
        const struct tn_module *module = tn_track_module_at(t, i);
        const uint64_t *found = tn_map_find(&t->modules, module->id + 1);

        if (!found || *found != (uintptr_t)module || !chain_has(t, module)) {
            tn_finding_add(findings, "module %" PRIu64 " is not in all tables", module->id);
        }
        check_rows_room(t, module, findings);
    }
    if (t->modules.count != t->order.count) {
        tn_finding_add(findings, "%" PRIu64 " modules by id, but %zu in order", t->modules.count,
                       t->order.count);
    }
}

uint64_t tarn_tracker_check(struct tarn_tracker *t, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;

    if (tn_fork_passed(&t->fork)) {
        return 0;
    }
    tn_lock_acquire(&t->lock);
    for (uint32_t device = 0; device < tn_name_list_count(&t->names[TARN_TRACK_DEVICE]); device++) {
        check_device(t, device, findings);
    }
    check_totals(t, findings);
    check_storages(t, findings);
    check_active(t, findings);
    check_modules(t, findings);
    tn_lock_release(&t->lock);
    return findings->count - before;
}
