/* SPDX-License-Identifier: MIT */
/*
 * The program's annotations ("Optimizer.step#Adam.step", from START to END) as parts of a device's
 * trace, and the steps of training that follow from them.
 *
 * Entries and annotations meet by time; a trace without times has none. Owns: its arrays. Immutable
 * once made. Cost: O(annotations log entries + entries).
 */
#ifndef TN_ANALYSIS_ANNOTATION_H
#define TN_ANALYSIS_ANNOTATION_H

#include "analysis/timeline.h"

/* One phase: entries [start, end). */
struct tn_phase {
    uint32_t name; /* string */
    uint64_t start;
    uint64_t end;
};

struct tn_phases {
    const struct tn_timeline *timeline;
    struct tn_vec phases; /* struct tn_phase, by start; of equals the outer one first */
};

/* Those of the timeline's device. False when host memory is missing; nothing to release then. */
bool tn_phases_init(struct tn_phases *phases, const struct tn_timeline *timeline) TN_MUST_CHECK;
void tn_phases_fini(struct tn_phases *phases);

/* Whether an annotation is of that name: all of it, or all before a '#'. */
bool tn_phase_is_named(struct tn_string annotation, const char *name);

/* Sets `annotation` of each lifetime of a timeline to the innermost phase that was open. */
bool tn_phases_mark(const struct tn_phases *phases, struct tn_timeline *timeline) TN_MUST_CHECK;

/* One byte per entry, not 0 where a phase of that name was open: `marks` is the caller's, zero, as
 * long as the trace. Returns how many such phases there are. */
uint64_t tn_phases_cover(const struct tn_phases *phases, const char *name, uint8_t *marks);

/* Where steps end: the entry that each begins after, uint64_t, ascending, different. Step 1 begins
 * with the trace and ends with the first of them; TN_NEVER is never among them. Empty when nothing
 * tells steps. The caller ends the vector, also after a failure. */
bool tn_phases_steps(const struct tn_phases *phases, struct tn_vec *ends_out) TN_MUST_CHECK;

/* The entry that ends the first step of those; 0 when nothing tells steps. */
static inline uint64_t tn_steps_first(const struct tn_vec *ends)
{
    return ends->count > 0 ? *(const uint64_t *)ends->items : 0;
}

/* The same for a trace that is not followed. False when host memory is missing. */
bool tn_trace_first_step(const struct tn_model *model, const struct tn_trace *trace, int64_t device,
                         uint64_t *entry_out) TN_MUST_CHECK;

/* The first entry at or after a time; the trace's length when there is none. */
uint64_t tn_timeline_find_time(const struct tn_timeline *timeline, int64_t time_us);

/* The time of the first entry that has one, or TN_TIME_NONE. */
int64_t tn_timeline_first_time(const struct tn_timeline *timeline);

#endif
