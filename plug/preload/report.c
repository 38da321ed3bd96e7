/* SPDX-License-Identifier: MIT */
#include "plug/preload/report.h"

#include "plug/preload/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* What NVML says of a device: this process and the others. */
struct usage {
    uint64_t own;
    uint64_t others;
    uint64_t all;
    bool own_is_known;
    bool others_are_known;
};

static void process_add(void *context, int64_t process, uint64_t used)
{
    struct usage *usage = context;
    const bool is_known = used != TARN_PROCESS_BYTES_UNKNOWN;

    if (process == (int64_t)getpid()) {
        usage->own += is_known ? used : 0;
        usage->own_is_known = is_known;
    } else {
        usage->others += is_known ? used : 0;
        usage->others_are_known = usage->others_are_known && is_known;
    }
}

static const char *size_text(char *text, uint64_t bytes)
{
    return tarn_size_text(text, TARN_UNITS_IEC, (double)bytes);
}

static void usage_say(int device, const struct usage *usage, uint64_t allocated)
{
    char used[TARN_SIZE_TEXT_MAX];
    char live[TARN_SIZE_TEXT_MAX];
    char rest[TARN_SIZE_TEXT_MAX];
    char others[TARN_SIZE_TEXT_MAX];

    if (!usage->own_is_known) {
        run_say(
            "tarn run: GPU %d: %s in use now, of all processes: the driver does not say of which\n",
            device, size_text(used, usage->all));
        return;
    }
    run_say("tarn run: GPU %d: nvidia-smi shows %s now: %s allocated, %s of the context, modules "
            "and the driver's caches; other processes: %s\n",
            device, size_text(used, usage->own), size_text(live, allocated),
            size_text(rest, usage->own > allocated ? usage->own - allocated : 0),
            usage->others_are_known ? size_text(others, usage->others) : "not known");
}

void run_report_device(int device, struct tarn_observer *observer)
{
    struct tarn_observer_stats stats = {.struct_size = sizeof stats};
    struct usage usage = {.others_are_known = true};
    struct tarn_device *opened = NULL;
    char spec[32];
    char peak[TARN_SIZE_TEXT_MAX];
    char now[TARN_SIZE_TEXT_MAX];

    tarn_observer_get_stats(observer, &stats);
    run_say("tarn run: GPU %d: %s at most, %s now, in %" PRIu64 " allocations, %" PRIu64
            " failed\n",
            device, size_text(peak, stats.allocated_peak), size_text(now, stats.allocated),
            stats.allocations_all, stats.failures);
    (void)snprintf(spec, sizeof spec, "cuda:%d", device);
    if (tarn_device_open(spec, &opened, NULL) == TARN_OK) {
        uint64_t unused = 0;
        uint64_t total = 0;

        (void)!tarn_device_walk_processes(opened, process_add, &usage, NULL);
        if (tarn_device_memory_info(opened, &unused, &total) == TARN_OK) {
            usage.all = total - unused;
        }
        tarn_device_close(opened);
    }
    usage_say(device, &usage, stats.allocated);
}

void run_report_allocator(struct tarn_allocator *allocator)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    char reserved[TARN_SIZE_TEXT_MAX];
    char allocated[TARN_SIZE_TEXT_MAX];

    tarn_allocator_get_stats(allocator, &stats);
    run_say("tarn run: GPU %d: served by tarn: %s allocated and %s reserved at most\n",
            tarn_allocator_get_ordinal(allocator),
            size_text(allocated, (uint64_t)stats.by_pool[TARN_STAT_ALLOCATED_BYTES][0].peak),
            size_text(reserved, (uint64_t)stats.by_pool[TARN_STAT_RESERVED_BYTES][0].peak));
}

void run_report_kinds(const struct run_kind_total totals[RUN_KINDS])
{
    char peak[TARN_SIZE_TEXT_MAX];
    char now[TARN_SIZE_TEXT_MAX];

    for (int i = 0; i < RUN_KINDS; i++) {
        if (totals[i].calls > 0) {
            run_say("tarn run: %s: %" PRIu64 " calls, %s at most, %s now\n",
                    run_kind_name((enum run_kind)i), totals[i].calls,
                    size_text(peak, totals[i].peak), size_text(now, totals[i].bytes));
        }
    }
}
