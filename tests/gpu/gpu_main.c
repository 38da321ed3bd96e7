/* SPDX-License-Identifier: MIT */
/*
 * gpu_test [--driver PATH] [--no-fork] [CASE]...: runs all cases, or those named, each on the first
 * GPU opened anew. Prints a line a case and ends with "N passed, N failed, N skipped"; where there
 * is no GPU all of it is one skipped case, with the reason. --no-fork is for tools that watch the
 * program: no child processes, and nothing is said of how long work takes.
 */
#include "gpu/gpu_case.h"

#include "base/clock.h"

#include <string.h>

bool gpu_wrong(const char *file, int line, const char *what)
{
    (void)printf("%s:%d: not so: %s\n", file, line, what);
    return false;
}

bool gpu_driver_ok(const struct gpu *gpu, const char *file, int line, const char *call, int result)
{
    char text[256];

    if (result == TN_CU_SUCCESS) {
        return true;
    }
    tn_cuda_explain(gpu->driver, call, result, text, sizeof text);
    (void)printf("%s:%d: %s\n", file, line, text);
    return false;
}

bool gpu_status_ok(const char *file, int line, const char *call, enum tarn_status status,
                   const struct tarn_error *error)
{
    if (status != TARN_OK) {
        (void)printf("%s:%d: %s: %s\n", file, line, call, error->text);
    }
    return status == TARN_OK;
}

struct tarn_allocator *gpu_allocator(const struct gpu *gpu, const char *settings)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error = {.status = TARN_OK};

    if (!TARN(tarn_config_parse(settings, &config, &error)) ||
        !TARN(tarn_allocator_create(gpu->device, &config, &allocator, &error))) {
        return NULL;
    }
    return allocator;
}

static enum tarn_status gpu_open(struct gpu *gpu, struct tarn_error *error)
{
    const struct tn_cuda_options options = {.driver_path = gpu->path, .nvml_path = gpu->path};
    const enum tarn_status st = tn_cuda_open(&options, &gpu->device, error);

    if (st == TARN_OK) {
        gpu->driver = &tn_cuda_from(gpu->device)->driver;
    }
    return st;
}

static bool context_is(const struct gpu *gpu, const void *wanted)
{
    void *current = NULL;

    return DRIVER(cuCtxGetCurrent(&current)) && CHECK(current == wanted);
}

static bool memory_free(const struct gpu *gpu, uint64_t *free_out)
{
    uint64_t total = 0;

    return CHECK(tarn_device_memory_info(gpu->device, free_out, &total) == TARN_OK);
}

/* One case between two looks at the context and at what is free: nothing may stay. */
static bool case_run(struct gpu *gpu, const struct gpu_case *one)
{
    void *context = tn_cuda_from(gpu->device)->context;
    uint64_t before = 0;
    uint64_t after = 0;
    bool passed = DRIVER(cuCtxPushCurrent_v2(context)) && memory_free(gpu, &before);

    passed = passed && one->run(gpu);
    passed = context_is(gpu, context) && passed;
    passed = DRIVER(cuCtxSynchronize()) && memory_free(gpu, &after) && passed;
    passed = DRIVER(cuCtxPopCurrent_v2(&context)) && passed;
    /* The driver keeps some memory of its own once something was used for the first time. */
    return passed && CHECK(after + 128 * MIB >= before);
}

static bool case_is_wanted(const char *name, char **wanted, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(wanted[i], name) == 0) {
            return true;
        }
    }
    return count == 0;
}

struct totals {
    int passed;
    int failed;
    int skipped;
};

/* Says what machine this is; false where there is no GPU. */
static bool gpu_introduce(struct gpu *gpu)
{
    struct tarn_error error = {.status = TARN_OK};
    const enum tarn_status st = gpu_open(gpu, &error);

    if (st == TARN_ERR_NOT_FOUND) {
        (void)printf("skip: %s\n", error.text);
        return false;
    }
    if (st == TARN_OK) {
        (void)printf("driver for CUDA %d.%d, GPU of %llu MiB at %s, granularity %llu\n",
                     gpu->driver->version / 1000, gpu->driver->version % 1000 / 10,
                     (unsigned long long)(gpu->device->total_memory >> 20),
                     tn_cuda_from(gpu->device)->bus_id,
                     (unsigned long long)gpu->device->granularity);
        tarn_device_close(gpu->device);
    }
    return true; /* what fails to open fails in every case */
}

static void case_try(struct gpu *gpu, const struct gpu_case *one, struct totals *totals)
{
    struct tarn_error error = {.status = TARN_OK};
    const uint64_t begun = tn_clock_now_ns();
    const enum tarn_status st = gpu_open(gpu, &error);

    if (!gpu_status_ok(__FILE__, __LINE__, "opening the GPU", st, &error)) {
        totals->failed++;
        return;
    }
    gpu->note[0] = '\0';
    gpu->skip[0] = '\0';
    const bool passed = case_run(gpu, one);

    tarn_device_close(gpu->device);
    if (passed && gpu->skip[0]) {
        (void)printf("skip: %s: %s\n", one->name, gpu->skip);
        totals->skipped++;
        return;
    }
    (void)printf("%-6s %-44s %8.1f ms  %s\n", passed ? "ok" : "FAILED", one->name,
                 (double)(tn_clock_now_ns() - begun) / 1e6, gpu->note);
    (void)fflush(stdout);
    totals->passed += passed;
    totals->failed += !passed;
}

int main(int argc, char **argv)
{
    struct gpu gpu = {.real = true, .whole = true};
    struct totals totals = {0};
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--no-fork") == 0) {
            gpu.whole = false;
        } else if (strcmp(argv[at], "--driver") == 0 && at + 1 < argc) {
            gpu.path = argv[++at];
            gpu.real = false;
        } else {
            (void)fprintf(stderr, "usage: gpu_test [--driver PATH] [--no-fork] [CASE]...\n");
            return 2;
        }
    }
    if (!gpu_introduce(&gpu)) {
        (void)printf("0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    const struct gpu_case *const lists[] = {gpu_cases, gpu_compact_cases, gpu_engine_cases,
                                            gpu_pair_cases, NULL};

    for (size_t i = 0; lists[i]; i++) {
        for (const struct gpu_case *one = lists[i]; one->name; one++) {
            if (case_is_wanted(one->name, argv + at, argc - at)) {
                case_try(&gpu, one, &totals);
            }
        }
    }
    (void)printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed,
                 totals.skipped);
    return totals.failed > 0;
}
