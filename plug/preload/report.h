/* SPDX-License-Identifier: MIT */
/* The summary on standard error at exit: what the number of nvidia-smi is made of. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "plug/preload/record.h"
#include "tarn/observer.h"

/* Of all devices. */
struct run_kind_total {
    uint64_t calls;
    uint64_t bytes; /* now */
    uint64_t peak;
};

const char *run_kind_name(enum run_kind kind);

void run_report_device(int device, struct tarn_observer *observer);
void run_report_allocator(struct tarn_allocator *allocator);
void run_report_kinds(const struct run_kind_total totals[RUN_KINDS]);

#endif
