/* SPDX-License-Identifier: MIT */
#include "snapshot/read_limits.h"

#include "base/checked.h"
#include "base/errinfo.h"

#include <unistd.h>

enum {
    DEPTH_DEFAULT = 64,
    DEPTH_MOST = 120,
    FRAMES_DEFAULT = 4096,
    RATIO_DEFAULT = 2000,
    STRING_DEFAULT = 64 << 20,
    MEMORY_LEAST = 256 << 20,
    MEMORY_PER_BYTE = 16,
    MEMORY_PER_PACKED_BYTE = 512
};

enum tarn_status tn_read_limits_complete(const struct tarn_read_limits *wanted,
                                         struct tarn_read_limits *limits, struct tarn_error *error)
{
    *limits = wanted ? *wanted : (struct tarn_read_limits){.struct_size = sizeof *limits};
    if (limits->struct_size < sizeof *limits || limits->max_depth > DEPTH_MOST) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the read limits have a wrong size or a depth above %d", DEPTH_MOST);
    }
    limits->max_depth = limits->max_depth ? limits->max_depth : DEPTH_DEFAULT;
    limits->max_bytes = limits->max_bytes ? limits->max_bytes : (uint64_t)1 << 36;
    limits->max_string = limits->max_string ? limits->max_string : STRING_DEFAULT;
    limits->max_ratio = limits->max_ratio ? limits->max_ratio : RATIO_DEFAULT;
    limits->max_frames = limits->max_frames ? limits->max_frames : FRAMES_DEFAULT;
    return TARN_OK;
}

static uint64_t memory_per_byte(const struct tn_input *input)
{
    return input->unpack.packing == TN_PACKING_NONE ? MEMORY_PER_BYTE : MEMORY_PER_PACKED_BYTE;
}

/* Half of the machine's. */
static uint64_t memory_most(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages / 2 * (uint64_t)page : (uint64_t)1 << 32;
}

uint64_t tn_read_limits_memory(const struct tarn_read_limits *limits, const struct tn_input *input)
{
    const uint64_t size = input->source.size >= 0 ? (uint64_t)input->source.size : 0;
    const uint64_t most = memory_most();
    uint64_t memory;

    if (limits->max_memory) {
        return limits->max_memory;
    }
    if (!tn_mul_u64(size, memory_per_byte(input), &memory) || memory > most) {
        return most;
    }
    return memory > MEMORY_LEAST ? memory : most < MEMORY_LEAST ? most : MEMORY_LEAST;
}

void tn_read_limits_follow(const struct tarn_read_limits *limits, const struct tn_input *input,
                           struct tn_budget *budget)
{
    if (limits->max_memory == 0 && input->source.size < 0) {
        budget->input = &input->source.taken;
        budget->per_byte = memory_per_byte(input);
        budget->most = memory_most();
    }
}

void tn_read_limits_settle(struct tn_budget *budget)
{
    budget->input = NULL;
}
