/* SPDX-License-Identifier: MIT */
/*
 * watched [DEVICE [SECONDS]]: a simulated server that other programs can watch: weights, and
 * requests on three streams that allocate and free. By default on a simulated device of 16 GiB, for
 * five minutes; `tarn watch` shows it.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif

#include "example.h"

#include <tarn/allocator.h>
#include <tarn/watch.h>
#include <tarn/watch_control.h>

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

enum {
    STREAMS = 3,
    REQUESTS = 12,     /* at the same time, on each stream */
    STEP_NS = 2000000, /* two milliseconds */
    LAYERS = 32
};

/* What a request holds: a cache that grows, until it is done. */
struct request {
    tarn_ptr pages[LAYERS];
    int count;
    int wanted; /* 0: nobody is served */
};

static struct request requests[STREAMS][REQUESTS];
static uint32_t seed = 1;

/* The same in every run. */
static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

static void request_end(struct tarn_allocator *allocator, struct request *request)
{
    struct tarn_error error;

    while (request->count > 0) {
        CHECK(tarn_allocator_free(allocator, request->pages[--request->count], &error));
    }
    request->wanted = 0;
}

/* False: there is no memory, and the request is given up. */
static bool request_alloc(struct tarn_allocator *allocator, struct request *request, uint64_t size,
                          tarn_stream stream, tarn_ptr *ptr_out)
{
    struct tarn_error error;
    const enum tarn_status status = tarn_allocator_alloc(allocator, size, stream, ptr_out, &error);

    if (status == TARN_ERR_OUT_OF_MEMORY) {
        request_end(allocator, request);
        return false;
    }
    CHECK(status);
    return true;
}

static void request_step(struct tarn_allocator *allocator, struct request *request,
                         tarn_stream stream)
{
    struct tarn_error error;
    tarn_ptr scratch;

    if (request->wanted == 0) {
        request->wanted = draw(8) == 0 ? 1 + (int)draw(LAYERS) : 0;
        return;
    }
    if (!request_alloc(allocator, request, (uint64_t)(1 + draw(64)) * 256 * 1024, stream,
                       &scratch)) {
        return;
    }
    CHECK(tarn_allocator_free(allocator, scratch, &error));
    if (request->count == request->wanted) {
        request_end(allocator, request);
    } else if (request_alloc(allocator, request, (2 + draw(7)) * MIB, stream,
                             &request->pages[request->count])) {
        request->count++;
    }
}

int main(int argc, char **argv)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    const long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 300;
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = getenv("XDG_RUNTIME_DIR"),
                                               .control = true};
    struct tarn_allocator *allocator;
    struct tarn_error error;
    tarn_ptr weights;

    tarn_control_enable(); /* takes requests as well: tarn dump, tarn control */
    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : "sim:16GiB", NULL, &allocator, &error));
    CHECK(tarn_watch_start(allocator, &options, &error));
    CHECK(tarn_allocator_alloc(allocator, 6144 * MIB, 0, &weights, &error));
    (void)printf("process %ld serves for %ld s\n", (long)getpid(), seconds);
    (void)fflush(stdout);

    const time_t end = time(NULL) + seconds;

    for (uint32_t i = 0; time(NULL) < end; i++) {
        const uint32_t stream = i % STREAMS;

        for (int r = 0; r < REQUESTS; r++) {
            request_step(allocator, &requests[stream][r], (tarn_stream)(stream + 1) * 0x1000);
        }
        (void)nanosleep(&step, NULL);
    }
    tarn_allocator_destroy(allocator);
    return 0;
}
