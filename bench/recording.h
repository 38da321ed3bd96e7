/* SPDX-License-Identifier: MIT */
/* An allocator on a simulated device, with or without a history that records. */
#ifndef BENCH_RECORDING_H
#define BENCH_RECORDING_H

#include "tarn_adapter.h"

#include "tarn/history.h"

#include <stdbool.h>

enum {
    BENCH_FRAMES = 32,
    BENCH_ENTRIES = 100000
};

/* How it records; the name is the one in the CSV file. */
struct bench_setting {
    const char *name;
    bool has_history;
    bool is_on;
    enum tarn_context_level level;
    enum tarn_stack_source source;
};

struct bench_recording {
    struct bench_tarn tarn;
    struct tarn_history *history;
};

/* Ends the program with the error's text. */
_Noreturn void bench_fail(const struct tarn_error *error);

/* The ring is full when this returns, so that every event also lets one go. */
void bench_recording_open(struct bench_recording *recording, const struct bench_setting *setting);
void bench_recording_close(struct bench_recording *recording);

#endif
