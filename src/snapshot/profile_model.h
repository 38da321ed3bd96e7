/* SPDX-License-Identifier: MIT */
/*
 * Memory events and time slices of a profile, and the model built from them. Owns the arrays;
 * borrows the model. Cost: O(n log n).
 */
#ifndef TN_SNAPSHOT_PROFILE_MODEL_H
#define TN_SNAPSHOT_PROFILE_MODEL_H

#include "base/vec.h"
#include "snapshot/model.h"

enum {
    TN_PROFILE_CPU = -1,
    TN_PROFILE_DEVICES_MAX = 1024
};

/* An allocation (bytes > 0) or a free. */
struct tn_profile_event {
    uint64_t order; /* in the file */
    int64_t time_ns;
    int64_t thread;
    uint64_t address; /* > 0 */
    int64_t bytes;    /* not 0 */
    int64_t total;    /* in use afterwards, according to the profile; -1 = unknown */
    int32_t device;   /* or TN_PROFILE_CPU */
    uint32_t stack;
};

/* The execution of a function or operator. */
struct tn_profile_slice {
    int64_t thread;
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t frame;
};

struct tn_profile {
    struct tn_model *model;
    struct tn_vec events; /* struct tn_profile_event */
    struct tn_vec slices; /* struct tn_profile_slice */
    int64_t base_ns;      /* base of the times */
};

void tn_profile_init(struct tn_profile *profile, struct tn_model *model);
void tn_profile_fini(struct tn_profile *profile);

/* Adds an event or slice, charged to the model; NULL: see tn_model_memory_status. Sorting
 * temporarily needs as much again, so it charges twice the size. */
void *tn_profile_push(struct tn_profile *profile, struct tn_vec *vec) TN_MUST_CHECK;

/* Fills the model; stacks keep their innermost `max_frames` frames. False: see
 * tn_model_memory_status. */
bool tn_profile_build(struct tn_profile *profile, uint32_t max_frames) TN_MUST_CHECK;

#endif
