/* SPDX-License-Identifier: MIT */
/*
 * A second tracker, written from the description of PyTorch's only: everything is recomputed from a
 * list of storages whenever somebody asks, and copied whole at every peak. Slow, small numbers
 * only; running out of room ends the program.
 */
#ifndef TESTS_REFERENCE_TRACK_MODEL_H
#define TESTS_REFERENCE_TRACK_MODEL_H

#include "tarn/tracker.h"

enum {
    TM_DEVICES = 3,
    TM_CATEGORIES = 8,
    TM_STATES = 9,
    TM_NAMES = 6,   /* of modules; 0 is outside of all */
    TM_MODULES = 8, /* ids from 0 */
    TM_STORAGES = 24,
    TM_CALLS = 400
};

/* Bytes by device and category; `order` has the devices that are there, oldest first. */
struct tm_rows {
    int64_t bytes[TM_DEVICES][TM_CATEGORIES];
    uint32_t order[TM_DEVICES];
    size_t count;
};

struct tm_module {
    bool known;
    uint32_t name;
    int64_t parameter_bytes;
    int64_t buffer_bytes;
    int64_t input_bytes;
    int64_t output_bytes;
    int64_t highest[TM_DEVICES];
    struct tm_rows calls[TM_STATES][TM_CALLS];
    size_t call_count[TM_STATES];
};

struct tm_storage {
    bool known;
    uint64_t size;
    uint32_t device;
    uint32_t category;
    uint32_t owner;
};

struct tm_model {
    bool rounds[TM_DEVICES];
    bool all_storages;
    struct tm_storage storages[TM_STORAGES];
    uint32_t order[TM_DEVICES]; /* devices with an entry */
    size_t order_count;
    struct tm_module modules[TM_MODULES];
    uint32_t active[64]; /* names as they were entered, repeated ones again */
    size_t active_count;
    bool in_step;
    int recomputed; /* module id, -1 = none */
    int entering;   /* module id, -1 = none */
    bool entering_is_new;
    bool entering_recomputes;
    int64_t inputs;
    int64_t outputs;
    bool skips; /* the rest of a tensor's storages */
    struct tm_rows peaks;
    struct tm_rows moment;
    int64_t owned_at_moment[TM_NAMES][TM_DEVICES][TM_CATEGORIES];
    int64_t owned_at_peak[TM_NAMES][TM_DEVICES][TM_CATEGORIES];
};

void tm_init(struct tm_model *model);

/* Whether the event is right; nothing changes if it is not. */
bool tm_apply(struct tm_model *model, const struct tarn_track_event *event);

struct tm_rows tm_now(const struct tm_model *model);

#endif
