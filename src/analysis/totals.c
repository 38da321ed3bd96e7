/* SPDX-License-Identifier: MIT */
/* A file may name any device number, so devices are collected and sorted, not counted up. */
#include "analysis/totals.h"

static int totals_compare(const void *left, const void *right)
{
    const struct tn_totals *a = left;
    const struct tn_totals *b = right;

    return a->device < b->device ? -1 : a->device > b->device;
}

static struct tn_totals *totals_push(struct tn_vec *totals, int64_t device)
{
    struct tn_totals *pushed = tn_vec_push(totals);

    if (pushed) {
        pushed->device = device;
        pushed->first_us = TN_TIME_NONE;
        pushed->last_us = TN_TIME_NONE;
    }
    return pushed;
}

static void segment_add(struct tn_totals *totals, const struct tn_model_segment *segment)
{
    totals->segments++;
    totals->reserved += segment->total_size;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        if (block->state != TN_BLOCK_INACTIVE) {
            totals->active += block->size;
            totals->requested += block->requested_size;
            totals->blocks++;
        }
        if (block->state == TN_BLOCK_ACTIVE_ALLOCATED) {
            totals->allocated += block->size;
        }
    }
}

/* Segments of a device mostly follow each other: a row for every run of them. */
static bool segments_collect(const struct tn_model *model, struct tn_vec *totals)
{
    struct tn_totals *current = NULL;

    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        if (!current || current->device != segment->device) {
            current = totals_push(totals, segment->device);
        }
        if (!current) {
            return false;
        }
        segment_add(current, segment);
    }
    return true;
}

static bool traces_collect(const struct tn_model *model, struct tn_vec *totals)
{
    for (size_t i = 0; i < model->trace_count; i++) {
        const struct tn_trace *trace = &model->traces[i];
        struct tn_totals *row = trace->count > 0 ? totals_push(totals, (int64_t)i) : NULL;

        if (trace->count > 0 && !row) {
            return false;
        }
        for (uint64_t k = 0; k < trace->count; k++) {
            const struct tn_trace_entry *entry = tn_trace_at(model, trace, k);

            row->ooms += entry->action == TN_TRACE_OOM;
            if (entry->time_us != TN_TIME_NONE) {
                row->first_us = row->first_us == TN_TIME_NONE ? entry->time_us : row->first_us;
                row->last_us = entry->time_us;
            }
        }
        if (row) {
            row->entries = trace->count;
        }
    }
    return true;
}

static void totals_merge(struct tn_totals *into, const struct tn_totals *from)
{
    into->segments += from->segments;
    into->reserved += from->reserved;
    into->allocated += from->allocated;
    into->active += from->active;
    into->requested += from->requested;
    into->blocks += from->blocks;
    into->entries += from->entries;
    into->ooms += from->ooms;
    if (from->first_us != TN_TIME_NONE) {
        into->first_us = from->first_us;
        into->last_us = from->last_us;
    }
}

bool tn_totals_collect(const struct tn_model *model, struct tn_vec *totals_out)
{
    tn_vec_init(totals_out, sizeof(struct tn_totals));
    if (!segments_collect(model, totals_out) || !traces_collect(model, totals_out)) {
        return false;
    }
    struct tn_totals *rows = totals_out->items;
    size_t kept = 0;

    tn_vec_sort(totals_out, totals_compare);
    for (size_t i = 1; i < totals_out->count; i++) {
        if (rows[i].device == rows[kept].device) {
            totals_merge(&rows[kept], &rows[i]);
        } else {
            rows[++kept] = rows[i];
        }
    }
    totals_out->count = totals_out->count > 0 ? kept + 1 : 0;
    return true;
}
