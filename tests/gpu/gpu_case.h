/* SPDX-License-Identifier: MIT */
/*
 * A small frame for tests on a GPU, which machines without cmocka can build: a case is a function
 * that returns whether it passed, and says why when not. `make test` runs them as well, on the fake
 * driver, so that they are right before a GPU sees them.
 */
#ifndef TESTS_GPU_GPU_CASE_H
#define TESTS_GPU_GPU_CASE_H

#include "device/cuda_device.h"
#include "tarn/allocator.h"

#include <stdbool.h>
#include <stdio.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* What a case works with: a device of its own, open, and its context current. */
struct gpu {
    struct tarn_device *device;
    const struct tn_cuda_driver *driver;
    const char *path; /* of the driver, NULL = the installed one */
    bool real;        /* work takes time, and memory runs out where it really does */
    bool whole;       /* no tool watches the program: it may fork, and work is not held up */
    char note[256];   /* a case's figures, for the table */
    char skip[128];   /* why the case cannot run here; "" = it ran */
};

struct gpu_case {
    const char *name;
    bool (*run)(struct gpu *gpu);
};

/* Says what is wrong, false. */
bool gpu_wrong(const char *file, int line, const char *what);

/* True when the driver call succeeded; else says which one failed and with what. */
bool gpu_driver_ok(const struct gpu *gpu, const char *file, int line, const char *call, int result);

/* True when there was no error; else prints its text. */
bool gpu_status_ok(const char *file, int line, const char *call, enum tarn_status status,
                   const struct tarn_error *error);

#define CHECK(condition) ((condition) || gpu_wrong(__FILE__, __LINE__, #condition))
#define DRIVER(call)     gpu_driver_ok(gpu, __FILE__, __LINE__, #call, gpu->driver->call)
/* For calls whose last argument is &error. */
#define TARN(call) gpu_status_ok(__FILE__, __LINE__, #call, call, &error)

/* An allocator on the GPU with these settings; NULL, with the reason said, when it fails. */
struct tarn_allocator *gpu_allocator(const struct gpu *gpu, const char *settings);

/* Cases with a file of their own. */
bool gpu_decisions_are_the_same(struct gpu *gpu);

/* Each ends with a NULL name. */
extern const struct gpu_case gpu_cases[];
extern const struct gpu_case gpu_compact_cases[]; /* the compact policy, while work is queued */
extern const struct gpu_case gpu_engine_cases[];  /* pools, tries, pressure */
extern const struct gpu_case gpu_pair_cases[];    /* two GPUs, and the host */

#endif
