/* SPDX-License-Identifier: MIT */
#include "alloc/compact/retired.h"

#include "alloc/pool/expandable.h"

void tn_retired_init(struct tn_retired *retired, struct tn_stream_order *order)
{
    *retired = (struct tn_retired){.order = order};
    tn_vec_init(&retired->runs, sizeof(struct tn_retired_run));
}

void tn_retired_fini(struct tn_retired *retired)
{
    tn_vec_fini(&retired->runs);
}

bool tn_retired_reserve(struct tn_retired *retired)
{
    return tn_vec_reserve(&retired->runs, 1);
}

void tn_retired_add(struct tn_retired *retired, const struct tn_retired_run *run)
{
    const bool added = tn_vec_add(&retired->runs, run);

    tn_assert(added);
    (void)added;
    run->segment->expandable->retiring += run->end - run->begin;
    retired->pages += run->end - run->begin;
    retired->pages_most =
        retired->pages > retired->pages_most ? retired->pages : retired->pages_most;
}

static enum tarn_status run_unmap(struct tn_retired *retired, const struct tn_retired_run *run)
{
    struct tarn_device *device = retired->order->heap->device;
    const uint64_t page_size = run->segment->expandable->page_size;
    const enum tarn_status st =
        device->ops->unmap(device, run->segment->address + run->begin * page_size,
                           (run->end - run->begin) * page_size);

    if (st == TARN_OK) {
        run->segment->expandable->retiring -= run->end - run->begin;
        retired->pages -= run->end - run->begin;
    }
    return st;
}

static enum tarn_status event_passed(const struct tn_retired *retired, tn_event_handle event,
                                     bool wait)
{
    struct tarn_device *device = retired->order->heap->device;

    if (event == 0) {
        return TARN_OK;
    }
    return wait ? device->ops->event_wait(device, event) : device->ops->event_query(device, event);
}

enum tarn_status tn_retired_unmap(struct tn_retired *retired, bool wait, struct tarn_error *error)
{
    struct tn_retired_run *runs = retired->runs.items;
    const size_t count = retired->runs.count;
    tn_event_handle event = 0;
    enum tarn_status passed = TARN_OK;
    enum tarn_status failed = TARN_OK;

    retired->runs.count = 0;
    for (size_t i = 0; i < count; i++) {
        struct tn_retired_run run = runs[i];

        if (i == 0 || run.event != event) {
            event = run.event;
            passed = event_passed(retired, event, wait);
        }
        const enum tarn_status st = passed ? passed : run_unmap(retired, &run);

        if (passed == TARN_OK && run.owns_event) {
            tn_order_give(retired->order, run.event);
        }
        if (passed == TARN_OK) {
            run.event = 0;
            run.owns_event = false;
        }
        if (st) { /* tried again later */
            runs[retired->runs.count++] = run;
            failed = failed || st == TARN_ERR_NOT_READY ? failed : st;
        }
    }
    return failed
               ? tn_heap_device_failed(retired->order->heap, failed, "unmapping moved pages", error)
               : TARN_OK;
}

bool tn_retired_has(const struct tn_retired *retired, const struct tn_segment *segment,
                    uint64_t begin, uint64_t end)
{
    const struct tn_retired_run *runs = retired->runs.items;

    for (size_t i = 0; segment->expandable->retiring > 0 && i < retired->runs.count; i++) {
        if (runs[i].segment == segment && runs[i].begin < end && begin < runs[i].end) {
            return true;
        }
    }
    return false;
}
