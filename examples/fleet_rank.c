/* SPDX-License-Identifier: MIT */
/*
 * fleet_rank SNAPSHOT RANK [KEEPER]: the memory of one rank of a training job on a simulated
 * device, for `tarn ranks`. Pipeline stage RANK / 8 of 2 holds half of the layers, the first also
 * the embedding; every rank sees other lengths of text. Rank KEEPER (none) forgets to free what it
 * keeps of each step. Frames are those of a program in Python, as a host language gives them.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif

#include "example.h"

#include <tarn/allocator.h>
#include <tarn/capture.h>
#include <tarn/history.h>
#include <tarn/snapshot.h>

#include <time.h>

#define MIB ((uint64_t)1 << 20)

enum {
    STAGE_RANKS = 8,
    LAYERS = 6,
    STEPS = 12,
    KEPT_MAX = 64,
    FRAMES_MAX = 3
};

/* Where memory is asked for. */
enum site {
    SITE_EMBEDDING = 1,
    SITE_WEIGHTS,
    SITE_OPTIMIZER,
    SITE_FORWARD,
    SITE_BACKWARD,
    SITE_KEEP
};

static const struct tarn_stack_frame stacks[][FRAMES_MAX] = {
    [SITE_EMBEDDING] = {{"__init__", "/job/model.py", 14}, {"build", "/job/train.py", 31}},
    [SITE_WEIGHTS] = {{"__init__", "/job/model.py", 40}, {"build", "/job/train.py", 32}},
    [SITE_OPTIMIZER] = {{"_init_group", "/job/torch/optim/adamw.py", 170},
                        {"step", "/job/torch/optim/optimizer.py", 493},
                        {"train", "/job/train.py", 58}},
    [SITE_FORWARD] = {{"forward", "/job/model.py", 66}, {"train", "/job/train.py", 52}},
    [SITE_BACKWARD] = {{"backward", "/job/torch/_tensor.py", 630}, {"train", "/job/train.py", 55}},
    [SITE_KEEP] = {{"keep_logits", "/job/debug.py", 17}, {"train", "/job/train.py", 53}}};

struct rank {
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    enum site site; /* of the requests that follow */
    unsigned random;
    tarn_ptr kept[KEPT_MAX]; /* until the end */
    int kept_count;
};

/* ---- stacks ---- */

static uint64_t site_capture(void *context)
{
    return (uint64_t)((const struct rank *)context)->site;
}

static void site_describe(void *context, uint64_t stack, tarn_frame_visitor visit,
                          void *visit_context)
{
    (void)context;
    for (int i = 0; i < FRAMES_MAX && stacks[stack][i].name; i++) {
        visit(visit_context, &stacks[stack][i]);
    }
}

/* ---- memory ---- */

static tarn_ptr ask(struct rank *rank, enum site site, uint64_t size)
{
    struct tarn_error error;
    tarn_ptr ptr;

    rank->site = site;
    CHECK(tarn_allocator_alloc(rank->allocator, size, 0, &ptr, &error));
    return ptr;
}

static void keep(struct rank *rank, enum site site, uint64_t size)
{
    rank->kept[rank->kept_count++] = ask(rank, site, size);
}

static void give(struct rank *rank, tarn_ptr ptr)
{
    struct tarn_error error;

    CHECK(tarn_allocator_free(rank->allocator, ptr, &error));
}

/* Lengths of text, of a step and a rank. */
static uint64_t next_length(struct rank *rank)
{
    rank->random = rank->random * 1103515245u + 12345u;
    return 4096 + (rank->random >> 16) % 64 * 8;
}

/* Marks of steps and events have the time in microseconds: between them passes at least one. */
static void mark(struct rank *rank, enum tarn_annotation_stage stage, int step)
{
    const struct timespec moment = {.tv_nsec = 5000};
    char name[32];

    (void)snprintf(name, sizeof name, "ProfilerStep#%d", step);
    (void)nanosleep(&moment, NULL);
    EXPECT(tarn_history_annotate(rank->history, stage, 0, name, NULL, 0) == TARN_OK);
    (void)nanosleep(&moment, NULL);
}

/* Forward through the layers, backward in turn; the first step makes the optimizer's state. */
static void train_step(struct rank *rank, int step, bool keeps)
{
    const uint64_t length = next_length(rank);
    tarn_ptr activations[LAYERS];

    mark(rank, TARN_ANNOTATION_START, step);
    for (int i = 0; i < LAYERS; i++) {
        activations[i] = ask(rank, SITE_FORWARD, length * 10 * 1024);
    }
    if (keeps) {
        keep(rank, SITE_KEEP, length * 8 * 1024);
    }
    for (int i = LAYERS; i-- > 0;) {
        give(rank, ask(rank, SITE_BACKWARD, length * 6 * 1024));
        give(rank, activations[i]);
    }
    for (int i = 0; step == 1 && i < LAYERS; i++) {
        keep(rank, SITE_OPTIMIZER, 64 * MIB);
    }
    mark(rank, TARN_ANNOTATION_END, step);
}

/* ---- the job ---- */

static void history_begin(struct rank *rank)
{
    const struct tarn_host_frames frames = {
        .context = rank, .capture = site_capture, .describe = site_describe};
    const struct tarn_history_options options = {
        .struct_size = sizeof options, .stack_source = TARN_STACK_NONE, .host = &frames};
    struct tarn_error error;
    struct tarn_sink sink;

    CHECK(tarn_history_create(&options, &rank->history, &error));
    tarn_history_get_sink(rank->history, TARN_CONTEXT_ALL, &sink);
    CHECK(tarn_allocator_add_sink(rank->allocator, &sink, &error));
}

static void save(const struct rank *rank, const char *path)
{
    const struct tarn_capture_source source = {rank->allocator, rank->history};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    CHECK(tarn_snapshot_capture(&source, 1, NULL, &snapshot, &error));
    CHECK(tarn_snapshot_save(snapshot, path, &error));
    tarn_snapshot_destroy(snapshot);
}

int main(int argc, char **argv)
{
    struct rank rank = {.allocator = NULL};
    struct tarn_error error;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: fleet_rank SNAPSHOT RANK [KEEPER]\n");
        return 2;
    }
    const int number = (int)strtol(argv[2], NULL, 10);
    const bool keeps = argc > 3 && number == (int)strtol(argv[3], NULL, 10);

    CHECK(tarn_allocator_create_on("sim:16GiB", NULL, &rank.allocator, &error));
    history_begin(&rank);
    rank.random = (unsigned)number;
    if (number / STAGE_RANKS == 0) {
        keep(&rank, SITE_EMBEDDING, 64 * MIB);
    }
    for (int i = 0; i < LAYERS; i++) {
        keep(&rank, SITE_WEIGHTS, 32 * MIB);
    }
    for (int step = 1; step <= STEPS; step++) {
        train_step(&rank, step, keeps);
    }
    save(&rank, argv[1]);
    while (rank.kept_count > 0) {
        give(&rank, rank.kept[--rank.kept_count]);
    }
    tarn_allocator_destroy(rank.allocator);
    tarn_history_destroy(rank.history);
    return 0;
}
