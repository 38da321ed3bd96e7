/* SPDX-License-Identifier: MIT */
/*
 * One row per warning: a function that tests whether it applies, and its text. Where the text needs
 * a number, the row has a function that writes it.
 */
#include "config_advice.h"

#include <inttypes.h>
#include <stdio.h>

/* Steps this fine rarely make two sizes equal; our own threshold. */
#define DIVISIONS_TOO_FINE 64

/* large_segment_size_mb, if it is not given. */
#define LARGE_SEGMENT_DEFAULT ((uint64_t)20 << 20)

/* Page size granularity of all NVIDIA GPUs so far. */
#define GPU_PAGE ((uint64_t)2 << 20)

static bool has_limit(const struct tarn_config *config)
{
    return config->memory_fraction_given && config->memory_fraction < 1.0;
}

static bool has_divisions(const struct tarn_config *config)
{
    for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        if (config->roundup_power2_divisions[i] > 1) {
            return true;
        }
    }
    return false;
}

/* The smallest number of divisions above 1, or 0. */
static uint32_t divisions_min(const struct tarn_config *config)
{
    uint32_t min = 0;

    for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        const uint32_t divisions = config->roundup_power2_divisions[i];

        if (divisions > 1 && (min == 0 || divisions < min)) {
            min = divisions;
        }
    }
    return min;
}

static uint32_t divisions_max(const struct tarn_config *config)
{
    uint32_t max = 0;

    for (size_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        const uint32_t divisions = config->roundup_power2_divisions[i];

        max = divisions > max ? divisions : max;
    }
    return max;
}

static bool caches_nothing(const struct tarn_config *config)
{
    return config->no_caching;
}

static bool is_compact(const struct tarn_config *config)
{
    return config->policy == TARN_POLICY_COMPACT;
}

static bool is_refused(const struct tarn_config *config)
{
    return is_compact(config) && config->backend == TARN_BACKEND_ASYNC;
}

static bool collects_without_limit(const struct tarn_config *config)
{
    return config->garbage_collection_threshold > 0.0 && !has_limit(config) && !is_compact(config);
}

static bool collects_compact(const struct tarn_config *config)
{
    return config->garbage_collection_threshold > 0.0 && is_compact(config);
}

static bool throws_without_limit(const struct tarn_config *config)
{
    return config->throw_on_device_oom && !has_limit(config) && !is_compact(config);
}

static bool throws_compact(const struct tarn_config *config)
{
    return config->throw_on_device_oom && is_compact(config);
}

static bool limits_to_nothing(const struct tarn_config *config)
{
    return config->memory_fraction_given && config->memory_fraction <= 0.0;
}

static bool rounds_without_split_limit(const struct tarn_config *config)
{
    return config->max_non_split_rounding != config->large_segment_size &&
           config->max_split_size == TARN_SIZE_UNLIMITED;
}

static bool splits_expandable_anyway(const struct tarn_config *config)
{
    return (config->expandable_segments || is_compact(config)) &&
           config->max_split_size != TARN_SIZE_UNLIMITED;
}

static bool has_own_pages(const struct tarn_config *config)
{
    return is_compact(config) && config->large_segment_size != LARGE_SEGMENT_DEFAULT;
}

static bool has_odd_pages(const struct tarn_config *config)
{
    return config->expandable_segments && !is_compact(config) &&
           config->large_segment_size % GPU_PAGE != 0;
}

static bool divides_coarsely(const struct tarn_config *config)
{
    const uint32_t min = divisions_min(config);

    return min > 0 && min <= 4;
}

static bool divides_too_finely(const struct tarn_config *config)
{
    return divisions_max(config) > DIVISIONS_TOO_FINE;
}

static bool async_ignores_options(const struct tarn_config *config)
{
    return config->backend == TARN_BACKEND_ASYNC &&
           (config->max_split_size != TARN_SIZE_UNLIMITED || has_divisions(config) ||
            config->garbage_collection_threshold > 0.0 || config->expandable_segments ||
            config->max_non_split_rounding != config->large_segment_size ||
            config->release_lock_on_device_alloc);
}

static bool keeps_all_anyway(const struct tarn_config *config)
{
    return !is_compact(config) && config->max_cached != TARN_SIZE_UNLIMITED;
}

static bool registers_nothing(const struct tarn_config *config)
{
    return config->pinned_num_register_threads > 1 && !config->pinned_use_host_register;
}

static void coarse_write(const struct tarn_config *config, struct cli_advice *advice_out)
{
    const uint32_t min = divisions_min(config);

    (void)snprintf(advice_out->text, sizeof advice_out->text,
                   "roundup_power2_divisions of %" PRIu32
                   " makes requests up to %u %% larger; that memory is lost",
                   min, 100u / min);
}

static void fine_write(const struct tarn_config *config, struct cli_advice *advice_out)
{
    const uint64_t max = divisions_max(config);

    (void)snprintf(
        advice_out->text, sizeof advice_out->text,
        "roundup_power2_divisions of %" PRIu64 " leaves requests up to %" PRIu64
        " bytes unchanged, and its steps are so fine that few requests end up with equal sizes",
        max, 512 * max);
}

static const struct {
    bool (*applies)(const struct tarn_config *config);
    const char *text; /* or NULL and */
    void (*write)(const struct tarn_config *config, struct cli_advice *advice_out);
} rows[] = {
    {caches_nothing,
     "PYTORCH_NO_CUDA_MEMORY_CACHING is set: nothing is cached and no option has any effect", NULL},
    {is_refused,
     "policy:compact is refused with backend:cudaMallocAsync, under which the driver decides where "
     "memory lies",
     NULL},
    {collects_without_limit,
     "garbage_collection_threshold has no effect without a memory fraction below 1, set by "
     "per_process_memory_fraction or set_per_process_memory_fraction()",
     NULL},
    {collects_compact,
     "garbage_collection_threshold has no effect with policy:compact, whose free pages go where "
     "they are needed; max_cached_mb limits them",
     NULL},
    {throws_without_limit,
     "throw_on_cudamalloc_oom has no effect without a memory fraction below 1", NULL},
    {throws_compact,
     "throw_on_cudamalloc_oom has no effect with policy:compact, which moves free pages before a "
     "request fails",
     NULL},
    {limits_to_nothing, "per_process_memory_fraction of 0 rejects every allocation", NULL},
    {rounds_without_split_limit,
     "max_non_split_rounding_mb has no effect without max_split_size_mb", NULL},
    {splits_expandable_anyway,
     "max_split_size_mb does not stop expandable segments from being split; it only keeps smaller "
     "requests out of their free blocks of that size",
     NULL},
    {has_odd_pages,
     "expandable_segments needs an even large_segment_size_mb: GPUs map multiples of 2 MiB "
     "and reject these settings",
     NULL},
    {has_own_pages,
     "large_segment_size_mb has no effect on the pages of policy:compact: 2 MiB each", NULL},
    {divides_coarsely, NULL, coarse_write},
    {divides_too_finely, NULL, fine_write},
    {async_ignores_options, "backend:cudaMallocAsync ignores the caching allocator's options",
     NULL},
    {keeps_all_anyway, "max_cached_mb has no effect without policy:compact", NULL},
    {registers_nothing,
     "pinned_num_register_threads has no effect without pinned_use_cuda_host_register:True", NULL},
};

bool cli_config_advice(const struct tarn_config *config, size_t index,
                       struct cli_advice *advice_out)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].applies(config) || index-- > 0) {
            continue;
        }
        if (rows[i].write) {
            rows[i].write(config, advice_out);
        } else {
            (void)snprintf(advice_out->text, sizeof advice_out->text, "%s", rows[i].text);
        }
        return true;
    }
    return false;
}
