/* SPDX-License-Identifier: MIT */
#include "alloc/config/config_table.h"

#include "tarn/text.h"

#include <string.h>

#define FIELD(name) offsetof(struct tarn_config, name)

#define MIB_MAX (UINT64_MAX >> 20) /* larger numbers are clamped to it, as in PyTorch */

static const struct tn_config_row rows[] = {
    {.option = {.name = "max_split_size_mb",
                .kind = TARN_CONFIG_MIB,
                .resets = true,
                .default_text = "unlimited",
                .range = "at least large_segment_size_mb",
                .help = "blocks of this many MiB and more are never split",
                .since = "2.4"},
     .at = FIELD(max_split_size),
     .max = MIB_MAX,
     .min_is_segment = true},
    {.option = {.name = "max_non_split_rounding_mb",
                .kind = TARN_CONFIG_MIB,
                .resets = true,
                .default_text = "20",
                .range = "at least large_segment_size_mb, its default",
                .help = "MiB by which a block too large to split may exceed a request",
                .since = "2.11"},
     .at = FIELD(max_non_split_rounding),
     .max = MIB_MAX,
     .min_is_segment = true},
    {.option = {.name = "large_segment_size_mb",
                .kind = TARN_CONFIG_MIB,
                .default_text = "20",
                .range = "more than 10",
                .help = "segment size in MiB for requests of 1 to 10 MiB, and the growth step of "
                        "expandable segments",
                .since = "2.11"},
     .at = FIELD(large_segment_size),
     .min = 11,
     .max = MIB_MAX,
     .is_early = true},
    {.option = {.name = "garbage_collection_threshold",
                .kind = TARN_CONFIG_FRACTION,
                .resets = true,
                .default_text = "0",
                .range = "above 0, below 1",
                .help = "share of the memory limit above which old free blocks are released",
                .since = "2.4"},
     .at = FIELD(garbage_collection_threshold),
     .is_open = true},
    {.option = {.name = "roundup_power2_divisions",
                .kind = TARN_CONFIG_DIVISIONS,
                .resets = true,
                .default_text = "0",
                .range = "a power of two, or a list such as [256:1,512:2,>:4]",
                .help = "steps between two powers of two to which requests are rounded up",
                .since = "2.4"},
     .at = FIELD(roundup_power2_divisions)},
    {.option = {.name = "expandable_segments",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "segments that grow by virtual memory mapping, against fragmentation",
                .since = "2.4"},
     .at = FIELD(expandable_segments)},
    {.option = {.name = "release_lock_on_cudamalloc",
                .alias = "release_lock_on_hipmalloc",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "let other threads allocate while the driver allocates a segment",
                .since = "2.4"},
     .at = FIELD(release_lock_on_device_alloc)},
    {.option = {.name = "per_process_memory_fraction",
                .kind = TARN_CONFIG_FRACTION,
                .default_text = "1",
                .range = "from 0 to 1",
                .help = "share of the device's memory that may be reserved",
                .since = "2.11"},
     .at = FIELD(memory_fraction),
     .given_at = FIELD(memory_fraction_given)},
    {.option = {.name = "throw_on_cudamalloc_oom",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "fail requests beyond the memory fraction before asking the device",
                .since = "2.12"},
     .at = FIELD(throw_on_device_oom)},
    {.option = {.name = "graph_capture_record_stream_reuse",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help =
                    "reuse blocks of several streams during graph capture when the graph proves "
                    "it safe",
                .since = "2.11"},
     .at = FIELD(graph_capture_record_stream_reuse)},
    {.option = {.name = "backend",
                .kind = TARN_CONFIG_BACKEND,
                .default_text = "native",
                .range = "native or cudaMallocAsync",
                .help = "who manages memory: the caching allocator or the driver's pools",
                .since = "2.4"},
     .at = FIELD(backend)},
    {.option = {.name = "policy",
                .kind = TARN_CONFIG_POLICY,
                .default_text = "exact",
                .range = "exact or compact",
                .help = "PyTorch's decisions, or free pages that move to where they are needed",
                .since = "tarn"},
     .at = FIELD(policy)},
    {.option = {.name = "max_cached_mb",
                .kind = TARN_CONFIG_MIB,
                .default_text = "unlimited",
                .range = "from 0",
                .help =
                    "policy:compact: MiB of free memory that stay reserved; more than that goes "
                    "back to the device",
                .since = "tarn"},
     .at = FIELD(max_cached),
     .max = MIB_MAX},
    {.option = {.name = "rules",
                .kind = TARN_CONFIG_RULES,
                .default_text = "2.11",
                .range = "2.11 or 2.14",
                .help = "the version of PyTorch whose decisions are made",
                .since = "tarn"},
     .at = FIELD(rules)},
    {.option = {.name = "pinned_use_cuda_host_register",
                .alias = "pinned_use_hip_host_register",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "pinned host memory: register ordinary memory instead of cudaHostAlloc",
                .since = "2.4"},
     .at = FIELD(pinned_use_host_register)},
    {.option = {.name = "pinned_num_register_threads",
                .kind = TARN_CONFIG_COUNT,
                .default_text = "1",
                .range = "a power of two from 1 to 128",
                .help = "pinned host memory: threads that touch pages before they are registered",
                .since = "2.4"},
     .at = FIELD(pinned_num_register_threads),
     .min = 1,
     .max = 128},
    {.option = {.name = "pinned_use_background_threads",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "pinned host memory: a background thread looks for finished events",
                .since = "2.4"},
     .at = FIELD(pinned_use_background_threads)},
    {.option = {.name = "pinned_reserve_segment_size_mb",
                .kind = TARN_CONFIG_MIB,
                .default_text = "0",
                .range = "more than 0",
                .help = "pinned host memory: MiB reserved up front to serve requests from",
                .since = "2.11"},
     .at = FIELD(pinned_reserve_segment_size),
     .min = 1,
     .max = MIB_MAX},
    {.option = {.name = "pinned_free_catch_all",
                .kind = TARN_CONFIG_BOOL,
                .default_text = "False",
                .range = "True or False",
                .help = "pinned host memory: log errors while freeing instead of failing",
                .since = "2.11"},
     .at = FIELD(pinned_free_catch_all)},
    {.option = {.name = "pinned_max_round_threshold_mb",
                .kind = TARN_CONFIG_MIB,
                .default_text = "unlimited",
                .range = "from 0",
                .help = "pinned host memory: requests of more MiB are not rounded up to a power of "
                        "two",
                .since = "2.13"},
     .at = FIELD(pinned_max_round_threshold),
     .max = MIB_MAX},
    {.option = {.name = "pinned_max_cached_size_mb",
                .kind = TARN_CONFIG_MIB,
                .default_text = "unlimited",
                .range = "from 0",
                .help = "pinned host memory: requests of more MiB are neither rounded up nor "
                        "cached when freed",
                .since = "2.13"},
     .at = FIELD(pinned_max_cached_size),
     .max = MIB_MAX},
};

#define ROW_COUNT  (sizeof rows / sizeof rows[0])
#define NAME_COUNT (2 * ROW_COUNT) /* names and aliases */

const struct tn_config_row *tn_config_row_get(size_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

const struct tn_config_row *tn_config_row_find(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct tarn_config_option *option = &rows[i].option;

        if (strcmp(option->name, name) == 0 ||
            (option->alias && strcmp(option->alias, name) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Name (even) or alias (odd) of a row, or NULL. */
static const char *name_at(size_t index)
{
    const struct tarn_config_option *option = &rows[index / 2].option;

    return index % 2 == 0 ? option->name : option->alias;
}

const char *tn_config_name_suggest(const char *word)
{
    const size_t length = strlen(word);
    const char *best = NULL;
    unsigned best_distance = UINT32_MAX;

    for (size_t i = 0; i < NAME_COUNT; i++) {
        const char *name = name_at(i);
        const unsigned distance = name ? tarn_text_distance(word, name) : UINT32_MAX;

        if (distance < best_distance && (size_t)distance * 3 <= strlen(name)) {
            best = name;
            best_distance = distance;
        }
    }
    /* Otherwise the first name that begins with the word. */
    for (size_t i = 0; !best && length >= 4 && i < NAME_COUNT; i++) {
        const char *name = name_at(i);

        if (name && strncmp(name, word, length) == 0) {
            best = name;
        }
    }
    return best;
}

const struct tarn_config_option *tarn_config_get_option(size_t index)
{
    return index < ROW_COUNT ? &rows[index].option : NULL;
}
