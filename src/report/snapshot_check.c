/* SPDX-License-Identifier: MIT */
/*
 * Whether a snapshot is consistent: blocks of a segment are adjacent and add up to its size,
 * segments of a device do not overlap, sums are right, the trace allocates only what is free and
 * frees only what is allocated, its time does not run backwards, and what it leaves allocated is
 * what the segments contain.
 */
#include "tarn/report.h"

#include "analysis/timeline.h"
#include "base/errinfo.h"
#include "base/finding.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>

static void blocks_check(const struct tn_model_segment *segment, struct tarn_findings *findings)
{
    uint64_t at = segment->address;
    uint64_t allocated = 0;
    uint64_t active = 0;

    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->address != at) {
            tn_finding_add(findings,
                           "segment %" PRIu64 ": block %zu begins at %" PRIu64
                           ", the previous one ends at %" PRIu64,
                           segment->address, i, block->address, at);
        }
        if (block->state != TN_BLOCK_INACTIVE && block->requested_size > block->size) {
            tn_finding_add(findings,
                           "segment %" PRIu64 ": block %zu has %" PRIu64 " bytes, less than the "
                           "%" PRIu64 " requested",
                           segment->address, i, block->size, block->requested_size);
        }
        at = block->address + block->size;
        active += block->state != TN_BLOCK_INACTIVE ? block->size : 0;
        allocated += block->state == TN_BLOCK_ACTIVE_ALLOCATED ? block->size : 0;
    }
    if (at != segment->address + segment->total_size) {
        tn_finding_add(findings,
                       "segment %" PRIu64 ": its blocks end at %" PRIu64 ", it ends at %" PRIu64,
                       segment->address, at, segment->address + segment->total_size);
    }
    if (segment->allocated_size != allocated || segment->active_size != active) {
        tn_finding_add(findings,
                       "segment %" PRIu64 ": allocated %" PRIu64 " and active %" PRIu64
                       " bytes, its blocks add up to %" PRIu64 " and %" PRIu64,
                       segment->address, segment->allocated_size, segment->active_size, allocated,
                       active);
    }
}

static int segment_compare(const void *left, const void *right)
{
    const struct tn_model_segment *a = *(const struct tn_model_segment *const *)left;
    const struct tn_model_segment *b = *(const struct tn_model_segment *const *)right;

    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return a->address < b->address ? -1 : a->address > b->address;
}

static bool overlaps_check(const struct tn_model *model, struct tarn_findings *findings)
{
    const size_t size = (model->segment_count + 1) * sizeof(struct tn_model_segment *);
    const struct tn_model_segment **sorted = tn_host_alloc_zero(size);

    if (!sorted) {
        return false;
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        sorted[i] = &model->segments[i];
    }
    qsort(sorted, model->segment_count, sizeof(struct tn_model_segment *), segment_compare);
    for (size_t i = 1; i < model->segment_count; i++) {
        const struct tn_model_segment *a = sorted[i - 1];
        const struct tn_model_segment *b = sorted[i];

        if (a->device == b->device && b->address - a->address < a->total_size) {
            tn_finding_add(findings,
                           "device %" PRId32 ": the segments %" PRIu64 " and %" PRIu64 " overlap",
                           a->device, a->address, b->address);
        }
    }
    tn_host_free(sorted, size);
    return true;
}

static void time_check(const struct tn_model *model, size_t device, struct tarn_findings *findings)
{
    const struct tn_trace *trace = &model->traces[device];
    uint64_t count = 0;
    uint64_t first = 0;
    int64_t last = INT64_MIN;

    for (uint64_t i = 0; i < trace->count; i++) {
        const int64_t now = tn_trace_at(model, trace, i)->time_us;

        if (now == TN_TIME_NONE) {
            continue;
        }
        if (now < last) {
            first = count == 0 ? i : first;
            count++;
        }
        last = now;
    }
    if (count > 0) {
        tn_finding_add(findings,
                       "device %zu: time runs backwards %" PRIu64 " times, first at event %" PRIu64,
                       device, count, first);
    }
}

/* Blocks allocated at the end, by address + 1, with their requested bytes. */
static bool finals_collect(const struct tn_model *model, size_t device, struct tn_map *finals)
{
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        for (size_t k = 0; (size_t)segment->device == device && k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state == TN_BLOCK_INACTIVE || block->address == UINT64_MAX ||
                tn_map_find(finals, block->address + 1)) {
                continue;
            }
            if (!tn_map_reserve(finals, 1)) {
                return false;
            }
            tn_map_insert(finals, block->address + 1, block->requested_size);
        }
    }
    return true;
}

/* Entries looked at for sleeping blocks in all: a file may be made to take long. */
#define VISITS_MAX ((uint64_t)10000000)

/* Whether the memory of a block that was not freed sleeps (tarn/sleep.h): the last that the trace
 * says of its address is that the pages went. */
static bool is_asleep(const struct tn_timeline *timeline, const struct tn_lifetime *lifetime,
                      uint64_t *visits)
{
    const struct tn_trace *trace = timeline->trace;
    const uint64_t start = lifetime->start == TN_NEVER ? 0 : lifetime->start;

    for (uint64_t i = trace->count; i > start && *visits < VISITS_MAX; i--, ++*visits) {
        const struct tn_trace_entry *entry = tn_trace_at(timeline->model, trace, i - 1);
        const bool is_there =
            lifetime->address >= entry->address && lifetime->address - entry->address < entry->size;

        if (is_there && (tn_trace_takes(entry) || tn_trace_gives_back(entry))) {
            return entry->action == TN_TRACE_SEGMENT_UNMAP;
        }
    }
    return false;
}

/* What the trace leaves allocated, and what the segments have: PyTorch collects those a little
 * later. */
static bool ends_check(const struct tn_timeline *timeline, struct tarn_findings *findings)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    struct tn_map finals = {0};
    uint64_t missing = 0;
    uint64_t bytes = 0;
    uint64_t visits = 0;
    const bool good = finals_collect(timeline->model, (size_t)timeline->device, &finals);

    for (size_t i = 0; good && i < timeline->lifetimes.count; i++) {
        const bool is_left = lifetimes[i].end == TN_NEVER && lifetimes[i].address < UINT64_MAX;
        const uint64_t *size = is_left ? tn_map_find(&finals, lifetimes[i].address + 1) : NULL;

        if (is_left && (!size || *size != lifetimes[i].size) &&
            (size || !is_asleep(timeline, &lifetimes[i], &visits))) {
            missing++;
            bytes += lifetimes[i].size;
        }
    }
    if (missing > 0) {
        tn_finding_add(findings,
                       "device %" PRId64 ": %" PRIu64 " blocks of %" PRIu64 " bytes that the trace "
                       "leaves allocated are not in the segments with that size",
                       timeline->device, missing, bytes);
    }
    tn_map_fini(&finals);
    return good;
}

static bool trace_check(const struct tn_model *model, size_t device, struct tarn_findings *findings)
{
    struct tn_timeline timeline;

    if (!tn_timeline_init(&timeline, model, device)) {
        return false;
    }
    time_check(model, device, findings);
    if (timeline.doubled_allocs > 0) {
        tn_finding_add(findings,
                       "device %zu: the trace allocates allocated memory %" PRIu64 " times", device,
                       timeline.doubled_allocs);
    }
    if (timeline.unknown_frees > 0) {
        tn_finding_add(findings, "device %zu: the trace frees free memory %" PRIu64 " times",
                       device, timeline.unknown_frees);
    }
    const bool good = model->is_partial || ends_check(&timeline, findings);

    tn_timeline_fini(&timeline);
    return good;
}

enum tarn_status tarn_snapshot_check(const struct tarn_snapshot *snapshot,
                                     struct tarn_findings *findings, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    bool good = overlaps_check(model, findings);

    for (size_t i = 0; i < model->segment_count; i++) {
        blocks_check(&model->segments[i], findings);
    }
    for (size_t i = 0; good && i < model->trace_count; i++) {
        good = model->traces[i].count == 0 || trace_check(model, i, findings);
    }
    return good ? TARN_OK : tn_fail_memory(error);
}
