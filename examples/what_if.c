/* SPDX-License-Identifier: MIT */
/*
 * what_if SNAPSHOT: the cost of a recorded run under other settings, the smallest device for it,
 * and the memory it needs with twice the batch.
 */
#include "example.h"

#include <tarn/replay.h>
#include <tarn/snapshot.h>

#include <inttypes.h>

static const char *const settings[] = {"", "expandable_segments:True", "max_split_size_mb:128"};

static void print_run(const char *name, const struct tarn_replay_result *result)
{
    const struct tarn_stats *stats = &result->stats;

    (void)printf("%-26s %11" PRId64 " bytes reserved at peak, %" PRId64 " device calls\n", name,
                 stats->by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak,
                 stats->num_device_alloc + stats->num_device_free);
}

static void run(const struct tarn_replay *replay, const char *name, const char *conf)
{
    const struct tarn_replay_options options = {.struct_size = sizeof options, .conf = conf};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_error error;

    CHECK(tarn_replay_run(replay, &options, &result, &error));
    EXPECT(result.allocations > 0);
    print_run(name, &result);
}

int main(int argc, char **argv)
{
    const struct tarn_scale_rule twice = {.what = TARN_SCALE_BATCH, .factor = 2};
    struct tarn_snapshot *snapshot;
    struct tarn_replay *replay;
    struct tarn_replay *larger;
    struct tarn_error error;
    uint64_t capacity;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: what_if SNAPSHOT\n");
        return 2;
    }
    CHECK(tarn_snapshot_load(argv[1], NULL, &snapshot, &error));
    CHECK(tarn_replay_create(snapshot, -1, &replay, &error));
    run(replay, "as recorded", NULL);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        run(replay, settings[i][0] ? settings[i] : "(default)", settings[i]);
    }
    CHECK(tarn_replay_fit(replay, NULL, &capacity, &error));
    (void)printf("it needs %" PRIu64 " bytes of a device\n", capacity);
    CHECK(tarn_replay_scale(replay, snapshot, &twice, 1, &larger, NULL, &error));
    run(larger, "twice the batch (estimate)", NULL);
    for (size_t i = 0; tarn_replay_get_note(larger, i); i++) {
        (void)printf("note: %s\n", tarn_replay_get_note(larger, i));
    }
    tarn_replay_destroy(larger);
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
    return 0;
}
