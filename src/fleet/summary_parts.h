/* SPDX-License-Identifier: MIT */
/* What a summary says of one device: the results of the reports, and a sketch of the timeline. */
#ifndef TN_FLEET_SUMMARY_PARTS_H
#define TN_FLEET_SUMMARY_PARTS_H

#include "report/reports.h"

enum {
    TN_SUMMARY_STACKS = 128,  /* rows of what is held at the instant */
    TN_SUMMARY_RESERVED = 32, /* of what is held when most was reserved */
    TN_SUMMARY_GROWTH = 8,    /* stacks that grow */
    TN_SUMMARY_STEPS = 64,    /* steps, evenly spread; the last one is among them */
    TN_SUMMARY_POINTS = 64    /* of the sketch */
};

/* The highest values within equal parts of the trace, by number of events. */
struct tn_sketch {
    uint64_t requested[TN_SUMMARY_POINTS];
    uint64_t reserved[TN_SUMMARY_POINTS];
};

/* One device. Begins with its head, as the results of all reports do. */
struct tn_summary_parts {
    struct tarn_report_head head;
    struct tarn_live_result live; /* at the selection's instant, by default the peak */
    struct tarn_peak_result peak;
    struct tarn_steps_result steps;
    struct tarn_leaks_result leaks;
    struct tarn_oom_result oom;
    struct tarn_frag_result frag;
    struct tarn_composition by_category; /* at the requested peak */
    struct tarn_top_result by_size;
    struct tn_sketch sketch;
};

/* All of it from one analysis, in which blocks have categories. */
tn_report_device tn_summary_parts_compute;

#endif
