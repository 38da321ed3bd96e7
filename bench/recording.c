/* SPDX-License-Identifier: MIT */
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>

void bench_fail(const struct tarn_error *error)
{
    (void)fprintf(stderr, "bench: %s\n", error->text);
    exit(1);
}

static void history_open(struct bench_recording *recording, const struct bench_setting *setting)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = setting->source,
        .max_frames = BENCH_FRAMES,
        .max_entries = BENCH_ENTRIES,
    };
    struct tarn_sink sink;
    struct tarn_error error;

    if (tarn_history_create(&options, &recording->history, &error)) {
        bench_fail(&error);
    }
    tarn_history_get_sink(recording->history, setting->level, &sink);
    if (tarn_allocator_add_sink(recording->tarn.allocator, &sink, &error) ||
        tarn_allocator_switch_sink(recording->tarn.allocator, recording->history, setting->is_on,
                                   setting->level, &error)) {
        bench_fail(&error);
    }
}

void bench_recording_open(struct bench_recording *recording, const struct bench_setting *setting)
{
    const struct bench_allocator *a = &recording->tarn.measured;

    recording->history = NULL;
    bench_tarn_open_named(&recording->tarn, "tarn");
    if (setting->has_history) {
        history_open(recording, setting);
    }
    for (int i = 0; i < BENCH_ENTRIES / 2; i++) {
        a->free(a->context, a->alloc(a->context, 512, a->streams[0]), a->streams[0]);
    }
}

void bench_recording_close(struct bench_recording *recording)
{
    bench_tarn_close(&recording->tarn);
    tarn_history_destroy(recording->history);
}
